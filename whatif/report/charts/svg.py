"""Elements of SVG with everything escaped: names in charts come from traces, written by anybody."""

from markupsafe import Markup, escape

Text = str | Markup


def element(tag: str, *children: Text, **attributes: str | float | None) -> Markup:
    """`<tag …>children</tag>`; attributes are named as in Python: `class_`, `stroke_width`.

    Attributes that are None are left out; children that are no markup are escaped.
    """
    told = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_plain(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(escape(child) for child in children)
    return Markup(f"<{tag}{told}>{inside}</{tag}>")


def _plain(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def per_cent(share: float) -> str:
    """A place along x."""
    return f"{share * 100:.2f}".rstrip("0").rstrip(".") + "%"


def title(text: str) -> Markup:
    """What is told of a mark when it is pointed at."""
    return element("title", text)


def cut(text: str, most: int) -> str:
    """A name that fits."""
    return text if len(text) <= most else text[: most - 1] + "…"
