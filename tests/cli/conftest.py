"""How the command line is run in tests: in this process, with streams kept apart."""

from collections.abc import Callable
from pathlib import Path

import pytest

from replay.cli.app import main
from tests.cli.calls import ROOT, Outcome, Run


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the expected texts anew, for review",
    )


@pytest.fixture(scope="session")
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, cache_home: Path
) -> Run:
    """Runs `replay` in the project folder; stores are shared between the tests of a session."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_home))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(ROOT)

    def call(*arguments: str | Path) -> Outcome:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return call


@pytest.fixture
def agrees(request: pytest.FixtureRequest) -> Callable[[str, Path], None]:
    """Compares a text with its golden file; `pytest tests/cli --update-golden` writes it."""

    def compare(text: str, golden: Path) -> None:
        if request.config.getoption("--update-golden", default=False):
            golden.write_text(text, encoding="utf-8")
        assert text == golden.read_text(encoding="utf-8")

    return compare
