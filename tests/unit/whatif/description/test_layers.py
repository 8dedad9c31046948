"""Layers are found where sequences of work repeat."""

from itertools import pairwise

import numpy as np

from whatif.description.doing import Doing
from whatif.description.layers import Cut, cut_layers

LETTERS = {
    "E": Doing.EMBEDDING,
    "n": Doing.NORM,
    "P": Doing.PRODUCT,
    "@": Doing.ATTENTION,
    "s": Doing.SOFTMAX,
    "a": Doing.ACTIVATION,
    "+": Doing.SUM,
    "g": Doing.GRADIENT,
    "X": Doing.EXCHANGE,
    "L": Doing.LOSS,
    "?": Doing.OTHER,
}
NOBODY = np.zeros(0, bool)


def cut(text: str, products: dict[int, tuple[int, int, int, int]] | None = None, **more: int) -> (
    Cut | None
):  # fmt: skip
    """Layers of a pass that is written as one letter per stroke."""
    doing = np.array([LETTERS[one] for one in text], np.int8)
    token = np.array([ord(one) for one in text], np.int64)
    product = np.zeros((len(text), 4), np.int64)
    for at, dims in (products or {}).items():
        product[at] = dims
        token[at] += 1000 * dims[2] + dims[3]
    return cut_layers(doing, token, product, noise=np.zeros(len(text), bool), **more)


def pieces(text: str, found: Cut) -> list[str]:
    bounds = [*found.start.tolist(), found.end]
    return [text[low:high] for low, high in pairwise(bounds)]


def test_layers_lie_between_embedding_and_head() -> None:
    text = "E" + "nP@P+nPaP+" * 3 + "nPL"
    found = cut(text)
    assert found is not None
    assert found.start[0] == 1
    assert pieces(text, found) == ["nP@P+nPaP+"] * 3


def test_a_sum_that_ends_embedding_and_layer_alike_stays_with_what_it_ends() -> None:
    text = "E+" + "nP@P+nPaP+" * 2 + "nPL"
    found = cut(text)
    assert found is not None
    assert found.start.tolist() == [2, 12]


def test_a_stage_without_embedding_and_head_is_layers_alone() -> None:
    text = "nPPP@P+nPaP+" * 4
    found = cut(text)
    assert found is not None
    assert pieces(text, found) == ["nPPP@P+nPaP+"] * 4


def test_what_is_gathered_before_a_layer_is_of_it() -> None:
    text = "E" + "gXgnP@P+nPaP+" * 3 + "gXnPL"
    found = cut(text)
    assert found is not None
    assert pieces(text, found) == ["gXgnP@P+nPaP+"] * 3


def test_decoders_with_two_attentions_are_one_layer_each() -> None:
    sizes = {"first": (1, 8, 4, 4), "second": (1, 8, 4, 6)}
    layer = "nP@PnP@PnPaP+"
    products = {}
    for number in range(4):
        for at, kind in ((1, "first"), (3, "first"), (5, "second"), (7, "second")):
            products[number * len(layer) + at] = sizes[kind]
    found = cut(layer * 4, products)
    assert found is not None
    assert pieces(layer * 4, found) == [layer] * 4


def test_without_attention_the_shortest_repeated_sequence_is_a_layer() -> None:
    found = cut("?" * 8 + "+")
    assert found is not None
    assert len(found) == 8
    text = "P" + "Pan" * 5
    found = cut(text)
    assert found is not None
    assert pieces(text, found) == ["Pan"] * 5


def test_a_single_layer_ends_before_the_head() -> None:
    text = "EnP@P+nPaP+nPL"
    dims = {
        2: (1, 9, 12, 4),
        4: (1, 9, 4, 4),
        7: (1, 9, 16, 4),
        9: (1, 9, 4, 16),
        12: (1, 9, 50, 4),
    }
    found = cut(text, dims)
    assert found is not None
    assert pieces(text, found) == ["nP@P+nPaP+"]


def test_attention_among_other_work_is_no_layer() -> None:
    """Products before it start from another width than the one behind it comes back to."""
    assert cut("EP@PP", {1: (1, 9, 12, 7), 3: (1, 9, 4, 4), 4: (1, 9, 1, 4)}) is None


def test_a_backward_has_the_layers_of_its_forward() -> None:
    """Read from its end; two layers were compiled together, so that pairs of them repeat."""
    text = ("nP@P+Pa+P" + "nPP@PaP+") * 2
    found = cut(text, count=4)
    assert found is not None
    assert len(found) == 4


def test_nothing_repeats_in_unlike_work() -> None:
    assert cut("PanX+PL") is None
    assert cut("") is None
