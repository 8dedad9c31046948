"""What an answer about another layout rests on and needs in memory, as data."""

from whatif.models.coverage import Coverage
from whatif.models.layout_told import LayoutTold
from whatif.models.memory.told import MemoryTold, Side
from whatif.report.answer import FitsWith, LayoutFacts, MemoryFacts, RankMemoryFacts, RestsOn


def rests_on_facts(found: Coverage | None) -> RestsOn | None:
    """Shares of the work by where its times come from."""
    if found is None:
        return None
    return RestsOn(
        measured_frac=found.measured_frac,
        scaled_frac=found.scaled_frac,
        made_frac=found.made_frac,
    )


def layout_facts(told: LayoutTold | None) -> LayoutFacts | None:
    """Degrees and ranks of another layout."""
    if told is None:
        return None
    return LayoutFacts(
        degrees=told.degrees,
        ranks_before=told.ranks_before,
        ranks_after=told.ranks_after,
        throughput_per_rank=told.throughput_per_rank,
    )


def memory_facts(told: MemoryTold | None) -> MemoryFacts | None:
    """Bytes of the fullest rank, before and after."""
    if told is None:
        return None
    return MemoryFacts(
        device_bytes=_whole(told.device_bytes),
        basis="recorded" if told.is_recorded else "formula",
        baseline=_side(told.before, told.device_bytes),
        predicted=_side(told.after, told.device_bytes),
        suggestions=tuple(
            FitsWith(flags=one.flags, peak_bytes=round(one.peak_bytes)) for one in told.suggestions
        ),
    )


def _side(side: Side, device_bytes: float | None) -> RankMemoryFacts:
    need = side.needed
    return RankMemoryFacts(
        parameters_bytes=round(side.parameters_bytes),
        gradients_bytes=round(side.gradients_bytes),
        optimizer_bytes=round(side.optimizer_bytes),
        activations_bytes=_whole(side.activations_bytes),
        other_bytes=_whole(side.other_bytes),
        peak_bytes=_whole(side.peak_bytes),
        high_bytes=_whole(None if need is None else need.high_bytes),
        fits=side.fits(device_bytes),
    )


def _whole(size: float | None) -> int | None:
    return None if size is None else round(size)
