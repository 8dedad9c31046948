"""A headless Chromium, and pages to look at in it; skipped with a reason where there is none."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from replay.cli.app import main
from tests.cli.calls import ROOT
from tests.unit.postmortem.sample_report import sample_report
from whatif.postmortem.contract import Report
from whatif.postmortem.render.html import page as page_of

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SAMPLE = "sample_traces/ddp8_h100"
DESKTOP, PHONE = (1280, 800), (375, 800)


@dataclass
class Shown:
    """A page in the browser, and what it did that it should not."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    """Errors and words on the console."""
    requests: list[str] = field(default_factory=list)
    """All but the page itself."""


Show = Callable[..., Shown]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One for a module: playwright runs only once at a time in a process."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright comes with the extra `browser`"
    )
    path = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if path is None:
        pytest.skip("no Chromium is installed here")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=path, args=list(QUIET))
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def sample_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with every kind of block and hostile names."""
    path = tmp_path_factory.mktemp("pages") / "sample.html"
    path.write_text(page_of(sample_report()), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def own_cache(session_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores of these tests lie where no other test looks."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(session_cache))


@pytest.fixture(scope="session")
def real_page(tmp_path_factory: pytest.TempPathFactory, session_cache: Path) -> Path:
    """The report of a run of eight ranks, as the command writes it; its JSON lies beside it."""
    path = tmp_path_factory.mktemp("real") / "report.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(session_cache))
        patch.chdir(ROOT)
        assert main(["report", SAMPLE, "-o", str(path)]) == 0
    page = path.with_suffix(".html")
    report = msgspec.json.decode(path.read_bytes(), type=Report)
    page.write_text(page_of(report), encoding="utf-8")
    return page


@pytest.fixture
def show(browser: Any) -> Iterator[Show]:  # noqa: ANN401  (playwright may be missing)
    """Opens a page in a window of its own."""
    contexts = []

    def opened(
        path: Path, *, size: tuple[int, int] = DESKTOP, scheme: str = "light", **more: object
    ) -> Shown:
        width, height = size
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, **more
        )
        contexts.append(context)
        shown = Shown(page=context.new_page())
        shown.page.on("console", lambda message: shown.complaints.append(message.text))
        shown.page.on("pageerror", lambda error: shown.complaints.append(str(error)))
        shown.page.on("request", lambda request: shown.requests.append(request.url))
        shown.page.goto(path.as_uri())
        shown.requests.remove(path.as_uri())
        return shown

    yield opened
    for context in contexts:
        context.close()
