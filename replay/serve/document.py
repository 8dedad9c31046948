"""The page as one document, and the policy that lets it load nothing else."""

import base64
import hashlib
from dataclasses import dataclass
from importlib.resources import files

from whatif.report.charts.palette import variables


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What a browser gets."""

    html: bytes
    policy: str
    """Value of `Content-Security-Policy`: this style and this script, this server, nothing else."""


def document() -> Document:
    """Put the page together from its three files and the colours of all our pages."""
    style, script = variables() + _read("page.css"), _read("page.js")
    html = _read("page.html").replace("/* page.css */", style).replace("/* page.js */", script)
    policy = (
        "default-src 'none'; connect-src 'self'; img-src data:; "
        f"style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Document(html=html.encode(), policy=policy)


def _read(name: str) -> str:
    return files("replay.serve").joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
