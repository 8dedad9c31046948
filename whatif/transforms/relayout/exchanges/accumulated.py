"""Gradients as autograd accumulates them: parameters of a model whose shape is unknown."""

import json
from math import prod

import numpy as np
from msgspec.structs import replace

from replay.graph.arrays import TaskGraph
from whatif.description.labels import Labels
from whatif.models.shape import ModelShape
from whatif.models.transformer.dims import is_known

ACCUMULATES = "torch::autograd::AccumulateGrad"
"""Operator that adds a gradient to that of its parameter; its input has the parameter's shape."""


def with_parameters(model: ModelShape, graph: TaskGraph, labels: Labels) -> ModelShape:
    """The model with its number of parameters, where only its layers are known otherwise.

    Every layer is taken to have as many as the median of those of which the recording tells.
    """
    if is_known(model) or model.parameters is not None or not model.layers:
        return model
    found = _per_layer(graph, labels)
    return model if found is None else replace(model, parameters=round(found * model.layers))


def _per_layer(graph: TaskGraph, labels: Labels) -> float | None:
    """Median number of parameters over the passes of layers; None where no shapes are recorded."""
    tasks, scopes = graph.tasks, graph.scopes
    sizes = np.array([_size(*shape) for shape in scopes.shapes] + [0], np.int64)
    row = scopes.rows_of(tasks.slice_id)
    shape = np.where(row >= 0, np.append(scopes.shape, -1)[row], -1)
    size = sizes[shape]
    mine = np.flatnonzero((size > 0) & (labels.layer >= 0) & (tasks.step >= 0))
    if not len(mine):
        return None
    columns = [tasks.rank[mine], tasks.step[mine], labels.layer[mine], labels.micro_batch[mine]]
    _, number = np.unique(np.stack(columns), axis=1, return_inverse=True)
    return float(np.median(np.bincount(number.ravel(), size[mine])))


def _size(operator: str, dims: str) -> int:
    """Elements of what an operator accumulates; 0 for all others."""
    if operator != ACCUMULATES:
        return 0
    try:
        first = json.loads(dims)[0]
    except (ValueError, IndexError, TypeError):
        return 0
    return prod(first) if first and all(isinstance(size, int) for size in first) else 0
