"""Layouts that a run cannot have, or that its trace says too little for."""

from whatif.description.described import Described
from whatif.models.shape import RunShape


def refuse(described: Described, target: RunShape) -> None:
    """Refuse what cannot be, or cannot be told.

    Raises:
        ScenarioError: heads, layers, experts or ranks do not divide; or the run was not understood
            well enough for this change.
    """
