"""The picture in the README: `python -m tests.bench.picture` makes docs/img/report.png."""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from replay import api
from whatif.postmortem.render.forms import FORMS

ROOT = Path(__file__).resolve().parents[2]
RUN = "sample_traces/ddp8_h100"
SIZE = {"width": 1200, "height": 860}


def main() -> None:
    """The first screen of the sample's report, in light."""
    report = api.report([RUN], command=f"replay report {RUN} -o report.html")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        page_path = Path(folder) / "report.html"
        page_path.write_bytes(FORMS[".html"](report))
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(page_path.as_uri())
        page.screenshot(path=ROOT / "docs" / "img" / "report.png")
        browser.close()


if __name__ == "__main__":
    main()
