"""Another number of layers."""

from msgspec import Struct
from msgspec.structs import replace

from replay.graph.arrays import TaskGraph
from whatif.models.shape import ModelShape, RunShape, check_count
from whatif.models.transformer.dims import is_known
from whatif.models.transformer.parameters import layer_parameters
from whatif.transforms.base import Applied, Context
from whatif.transforms.relayout.apply import relayout


class Layers(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="layers"
):
    """Give the model another number of its repeated layers."""

    layers: int

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        check_count(self.layers, "layers")

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--layers {self.layers}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Make the run of that layout.

        Raises:
            ScenarioError: the run cannot have it, or does not tell enough for it.
        """
        return relayout(graph, context, self._edit, _label)

    def _edit(self, target: RunShape) -> RunShape:
        return replace(target, model=with_layers(target.model, self.layers))


def with_layers(model: ModelShape, layers: int) -> ModelShape:
    """The model with another number of layers, and with their parameters."""
    parameters = model.parameters
    if parameters is not None and model.layers:
        sparse = model.experts is not None
        each = parameters / model.layers
        if is_known(model):
            each = layer_parameters(model, has_experts=sparse).total
        parameters = round(parameters + (layers - model.layers) * each)
    return replace(model, layers=layers, parameters=parameters)


def _label(before: RunShape, after: RunShape) -> str:
    return f"layers {before.model.layers} -> {after.model.layers}"
