"""The site has every document, builds without a warning, and loads nothing from other places."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SETTINGS = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
LOADED = re.compile(r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="(?:https?:)?//[^"]*')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `.ci/run` builds it."""
    if find_spec("material") is None:
        pytest.skip("the site needs the extra `docs`")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_document_is_in_the_navigation_once() -> None:
    pages = re.findall(r": (\S+\.md)$", SETTINGS.partition("\nnav:\n")[2], re.MULTILINE)
    own = [page for page in pages if not page.startswith("packages/")]
    assert sorted(own) == sorted(path.relative_to(DOCS).as_posix() for path in DOCS.glob("*.md"))
    assert len(set(pages)) == len(pages)


def test_every_page_is_built(site: Path) -> None:
    pages = re.findall(r": (\S+)\.md$", SETTINGS.partition("\nnav:\n")[2], re.MULTILINE)
    assert [page for page in pages if not (site / f"{page}.html").is_file()] == []


def test_no_page_loads_anything_from_another_place(site: Path) -> None:
    loaded = {
        path.name: LOADED.findall(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")
    }
    assert {name: found for name, found in loaded.items() if found} == {}


def test_links_to_code_are_words_and_links_to_pages_lead_there(site: Path) -> None:
    page = (site / "what-if.html").read_text(encoding="utf-8")
    assert "replay/engine/settle.py" in page
    assert 'href="../replay' not in page
    assert "<code>--in-network on|off</code>" in page
    tour = (site / "packages" / "changelog.html").read_text(encoding="utf-8")
    assert 'href="../what-if.html"' in tour
    for path in site.rglob("*.html"):
        targets = re.findall(r'href="([^"#:?]+\.html)', path.read_text(encoding="utf-8"))
        if path.name != "404.html":  # its links begin at the root of a server
            assert [one for one in targets if not (path.parent / one).exists()] == [], path
