"""The outputs in the README are those that the commands print."""

import re
import shlex

import pytest

from tests.cli.calls import ROOT, Run

README = ROOT / "README.md"
SESSION = re.compile(r"^```console\n\$ replay (?P<line>[^\n]*)\n(?P<out>.*?)^```", re.M | re.S)
STORE = re.compile(r"^store .*$", re.MULTILINE)
SHOWN_STORE = "store    ~/.cache/trace-replay/4c1f….duckdb (3.4 MB, new) | 1.4 s"


def test_what_the_readme_shows_is_what_is_printed(run: Run, request: pytest.FixtureRequest) -> None:
    """Place and size of the store and the seconds are those of another machine."""
    text = README.read_text(encoding="utf-8")
    sessions = list(SESSION.finditer(text))
    assert sessions
    for session in reversed(sessions):
        printed = STORE.sub(SHOWN_STORE, run(*shlex.split(session["line"])).out)
        if request.config.getoption("--update-golden", default=False):
            text = text[: session.start("out")] + printed + text[session.end("out") :]
            README.write_text(text, encoding="utf-8")
        else:
            assert session["out"] == printed
