"""Whether the new layout fits the device, in words."""

from whatif.transforms.relayout.parts import Ask


def fits(ask: Ask) -> tuple[str, ...]:
    """Sentences: bytes per rank before and after, whether they fit, what would make them fit."""
    return ()
