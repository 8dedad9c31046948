"""docs/ingest.md lists the oddities that the reader knows, in their order and words."""

import re
from pathlib import Path

from ingest.issues import ISSUES

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "ingest.md"
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (.+) \|$", re.MULTILINE)


def test_the_table_of_oddities_is_that_of_the_reader() -> None:
    listed = ROW.findall(DOCUMENT.read_text(encoding="utf-8"))
    known = [(issue.name, issue.severity.value, issue.description) for issue in ISSUES]
    assert listed == known
