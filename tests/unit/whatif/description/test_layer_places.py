"""Places of a layer by order and dims."""

import numpy as np

from tests.unit.whatif.description.test_layers import LETTERS
from whatif.description.layer_places import layer_places
from whatif.models.places import Place

H, FFN, T = 64, 256, 32
LETTER_OF = {
    Place.UNKNOWN: "?",
    Place.NORM: "n",
    Place.QKV: "q",
    Place.ATTENTION: "@",
    Place.PROJECTION: "p",
    Place.UP: "u",
    Place.ACTIVATION: "a",
    Place.DOWN: "d",
    Place.RESIDUAL: "+",
    Place.ROUTER: "r",
    Place.EXPERT: "x",
    Place.DISPATCH: "<",
    Place.COMBINE: ">",
    Place.COMMUNICATION: "X",
}
USUAL = {
    "n": Place.NORM,
    "@": Place.ATTENTION,
    "s": Place.ATTENTION,
    "a": Place.ACTIVATION,
    "+": Place.RESIDUAL,
    "X": Place.COMMUNICATION,
}


def places(text: str, dims: list[tuple[int, int, int, int]], *, backward: bool = False) -> str:
    """Places of a layer, a letter each; dims are those of the products in order."""
    letters = {**LETTERS, "e": 15}
    doing = np.array([letters[one] for one in text], np.int8)
    usual = np.array([USUAL.get(one, Place.UNKNOWN) for one in text], np.int8)
    product = np.zeros((len(text), 4), np.int64)
    product[[at for at, one in enumerate(text) if one == "P"]] = dims
    found = layer_places(doing, product, np.arange(len(text)), usual, backward=backward)
    return "".join(LETTER_OF[Place(one)] for one in found.tolist())


def test_a_gated_layer_with_separate_products() -> None:
    dims = [(1, T, H, H)] * 4 + [(1, T, FFN, H), (1, T, FFN, H), (1, T, H, FFN)]
    assert places("nPPPe@P+nPaPeP+", dims) == "nqqq@@p+nuauad+"


def test_attention_of_parts() -> None:
    dims = [(1, T, 3 * H, H), (8, T, T, 8), (8, T, 8, T), (1, T, H, H)]
    dims += [(1, T, FFN, H), (1, T, H, FFN)]
    assert places("nPPsPPX+nPaPX+", dims) == "nq@@@pX+nuadX+"


def test_a_small_gate_behind_attention_is_part_of_it() -> None:
    dims = [(1, T, 3 * H, H), (1, T, 1, 2), (1, T, H, H), (1, T, FFN, H), (1, T, H, FFN)]
    assert places("nP@PPnPaP", dims) == "nq@@pnuad"


def test_experts_with_a_shared_one() -> None:
    dims = [(1, T, 3 * H, H), (1, T, H, H), (1, T, 8, H)]
    dims += [(4, T // 2, 2 * FFN, H), (4, T // 2, H, FFN), (1, T, 2 * FFN, H), (1, T, H, FFN)]
    assert places("nP@P+nPeXPaPeXPaP+", dims) == "nq@p+nr<Xxxx>Xuad+"


def test_a_backward_has_every_product_twice() -> None:
    """Read from its end: queries first."""
    assert places("nPP@PP+nPPaPP+", [(0, 0, 0, 0)] * 8, backward=True) == "nqq@pp+nuuadd+"


def test_without_attention_products_stay_unknown() -> None:
    assert places("nPaP", [(0, 0, 0, 0)] * 2) == "n?a?"
