"""What plots of the page of accuracy share."""

from collections.abc import Iterable

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f")


def drawing(width: int, height: int, elements: Iterable[str]) -> str:
    """An SVG file of a white ground with elements on it."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">'
    )
    back = f'<rect width="{width}" height="{height}" fill="white"/>'
    return "\n".join((head, back, *elements, "</svg>", ""))
