"""For the site: tours of the packages become pages, and links lead to pages or are words.

The documents link to each other and to code as a repository shows them. The site has no
repository to lead to: links to code become plain words, all others lead to the page that a
document is here.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = {
    "ingest/README.md": "packages/ingest.md",
    "replay/README.md": "packages/replay.md",
    "whatif/README.md": "packages/whatif.md",
    "sample_traces/README.md": "packages/sample_traces.md",
    "CONTRIBUTING.md": "packages/contributing.md",
    "CHANGELOG.md": "packages/changelog.md",
}
"""Documents beside the folder of the site, and the pages that they are."""
_LINK = re.compile(r"(?<!!)\[(?P<words>(?:[^\[\]]|\[[^\]]*\])+)\]\((?P<target>[^)\s]+)\)")
_WORDS_OF_CODE = re.compile(r"`[^`\n]+`")
_CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents from outside."""
    for source, page in OUTSIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Turn the links of a page into what the site has."""
    source = next(
        (path for path, made in OUTSIDE.items() if made == page.file.src_uri),
        f"docs/{page.file.src_uri}",
    )
    parts, at = [], 0
    for block in _CODE.finditer(markdown):
        parts += [_linked(markdown[at : block.start()], source), block.group()]
        at = block.end()
    return "".join([*parts, _linked(markdown[at:], source)])


def _linked(text: str, source: str) -> str:
    """Links as the site has them; a pipe in code needs no escape in its tables."""
    plain = _WORDS_OF_CODE.sub(lambda code: code.group().replace(r"\|", "|"), text)
    return _LINK.sub(lambda link: _one(link, source), plain)


def _one(link: re.Match[str], source: str) -> str:
    """A link as the site has it: to a page, or its words alone.

    Raises:
        PluginError: it leads nowhere.
    """
    target, mark, anchor = link["target"].partition("#")
    if not target or ":" in target:
        return link.group()
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if not (ROOT / meant).exists():
        raise PluginError(f"{source}: no `{target}`")
    here = OUTSIDE.get(source, source.removeprefix("docs/"))
    there = OUTSIDE.get(meant, meant.removeprefix("docs/"))
    if meant in OUTSIDE or (meant.startswith("docs/") and (ROOT / meant).is_file()):
        path = posixpath.relpath(there, posixpath.dirname(here) or ".")
        return f"[{link['words']}]({path}{mark}{anchor})"
    return link["words"]
