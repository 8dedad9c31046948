"""Memory before and after a change of layout, and whether it fits: what an answer says of it."""

from dataclasses import dataclass, replace

from whatif.models.hardware import Accelerator
from whatif.models.memory.device import Needed, fits, needed
from whatif.models.memory.rank import RankMemory
from whatif.models.memory.suggest import Suggestion

GIB = 2**30
LACKS = "the sizes of model or batch are not"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Bytes of the fullest rank by part; None = not known."""

    parameters_bytes: float
    gradients_bytes: float
    optimizer_bytes: float
    activations_bytes: float | None
    """Kept from forward to backward, at the fullest moment."""
    other_bytes: float | None
    """Logits, gathered parameters and what backward works with, at that moment."""
    peak_bytes: float | None
    """The most that tensors hold at once."""
    beside_bytes: float = 0.0
    """What may lie there as well: `RankMemory.beside_bytes`."""

    @property
    def needed(self) -> Needed | None:
        """Of a device; None where the peak is not known."""
        if self.peak_bytes is None:
            return None
        return needed(self.peak_bytes, beside_bytes=self.beside_bytes)

    def fits(self, device_bytes: float | None) -> bool | None:
        """Whether that fits; None: not known."""
        if self.peak_bytes is None or device_bytes is None:
            return None
        return fits(self.peak_bytes, device_bytes, beside_bytes=self.beside_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTold:
    """Of a recorded run and of the layout asked for."""

    before: Side
    after: Side
    device: str | None
    """Name of the accelerator."""
    device_bytes: float | None
    is_recorded: bool
    """The peak before was recorded, and the one after is that plus the difference by formula."""
    suggestions: tuple[Suggestion, ...] = ()
    """What would make it fit, where it does not or may not."""
    lacks: str = ""
    """Why the peak is not known, where it is not."""

    @property
    def fits(self) -> bool | None:
        """Whether the layout asked for does."""
        return self.after.fits(self.device_bytes)

    def on(self, device: Accelerator | None) -> "MemoryTold":
        """On the accelerator that later what-ifs have made of it."""
        if device is None or device.name == self.device:
            return self
        size = None if device.memory_bytes is None else device.memory_bytes.value
        return replace(self, device=device.name, device_bytes=size, suggestions=())

    def sentences(self) -> tuple[str, ...]:
        """For people."""
        return (self._parts(), self.verdict)

    def _parts(self) -> str:
        names = ("parameters", "gradients", "optimizer", "activations", "other")
        changes = [
            f"{name} {_change(before, after)}"
            for name in names
            for before, after in [
                (getattr(self.before, f"{name}_bytes"), getattr(self.after, f"{name}_bytes"))
            ]
            if before or after
        ]
        return f"memory of the fullest rank, GiB: {', '.join(changes)}"

    @property
    def verdict(self) -> str:
        """Whether it fits, and what would make it, in a sentence."""
        need, size = self.after.needed, self.device_bytes
        if need is None:
            return f"memory: whether it fits is not known: {self.lacks or LACKS}"
        how = "as recorded, changed by formula" if self.is_recorded else "by formula"
        holds = f"{_change(self.before.peak_bytes, self.after.peak_bytes)} GiB at most in tensors"
        holds = f"{holds} ({how})"
        if size is None:
            return f"memory: {holds}; how much the device has is not known"
        holds = f"{holds}, {need.high_bytes / GIB:.3g} with all that may be reserved beside"
        has = f"the device has {size / GIB:.3g} GiB"
        match self.fits:
            case True:
                return f"memory: fits: {holds}; {has}"
            case False:
                return f"warning: does not fit in memory: {holds}; {has}; {self._ways}"
            case None:
                return f"warning: may not fit in memory: {holds}; {has}; {self._ways}"

    @property
    def _ways(self) -> str:
        if not self.suggestions:
            return "no change that is known here would make it fit"
        ways = (f"{one.flags} ({one.peak_bytes / GIB:.3g} GiB)" for one in self.suggestions)
        return f"fits with {', or '.join(ways)}"


def side_of(memory: RankMemory) -> Side:
    """By formula."""
    return Side(
        parameters_bytes=memory.parameters_bytes,
        gradients_bytes=memory.gradients_bytes,
        optimizer_bytes=memory.optimizer_bytes,
        activations_bytes=memory.activations_bytes,
        other_bytes=memory.logits_bytes + memory.gathered_bytes + memory.working_bytes,
        peak_bytes=memory.peak_bytes,
        beside_bytes=memory.beside_bytes,
    )


def _change(before: float | None, after: float | None) -> str:
    now, then = _shown(before), _shown(after)
    return now if now == then else f"{now} to {then}"


def _shown(size: float | None) -> str:
    return "unknown" if size is None else f"{size / GIB:.3g}"
