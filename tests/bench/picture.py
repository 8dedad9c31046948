"""Pictures of README and documents: `python -m tests.bench.picture` makes docs/img/*.png."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from replay import api
from whatif.postmortem.render.forms import FORMS

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "img"
RUN = "sample_traces/ddp8_h100"
PINNED = ("--gpu B200", "--no-stragglers")
SHOWN = "--nvlink x0.5 --network-scale 0.5"
SETTLED_MS = 4_000
"""Until all replays of the range have come."""


def main() -> None:
    """Of the sample, in light."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        _report(browser)
        _serve(browser)
        browser.close()


def _report(browser: Browser) -> None:
    """The first screen of the report."""
    report = api.report([RUN], command=f"replay report {RUN} -o report.html")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        path.write_bytes(FORMS[".html"](report))
        page = browser.new_page(viewport={"width": 1200, "height": 860}, color_scheme="light")
        page.goto(path.as_uri())
        page.screenshot(path=IMAGES / "report.png")


def _serve(browser: Browser) -> None:
    """The what-if page with two scenarios pinned beside a third."""
    command = [sys.executable, "-m", "replay", "serve", RUN, "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None, "it is a pipe"
        try:
            page = browser.new_page(viewport={"width": 1180, "height": 900}, color_scheme="light")
            page.goto(server.stdout.readline().strip())
            for words in (*PINNED, SHOWN):
                page.locator("#extra").fill(words)
                page.locator("#extra").press("Enter")
                page.wait_for_timeout(SETTLED_MS)
                if words != SHOWN:
                    page.locator("#pin").click()
            page.evaluate("scrollTo(0, 0); document.activeElement.blur()")
            page.screenshot(path=IMAGES / "serve.png")
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
