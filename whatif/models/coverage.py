"""What an answer about another layout rests on, in shares of its time."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Shares of the predicted work of all ranks by where its times come from; they add up to 1."""

    measured_frac: float
    """As recorded."""
    scaled_frac: float
    """A recorded time, scaled by a model's ratio."""
    made_frac: float
    """By a model alone: nothing like it was recorded."""

    @property
    def told(self) -> str:
        """For people."""
        return (
            f"rests on: {self.measured_frac:.0%} measured, {self.scaled_frac:.0%} scaled, "
            f"{self.made_frac:.0%} made by models alone"
        )
