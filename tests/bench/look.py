"""Pictures of the report of every set of traces: `python tests/bench/look.py FOLDER [NAME...]`.

For each set of `../shared/traces` (of those whose name contains a NAME): the report as files in the
folder (HTML, JSON, Markdown), and as pictures at 1280 px and 375 px in light and dark; prints what
each weighs and how long it takes to open.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from playwright.sync_api import Browser, sync_playwright

from replay import api
from whatif.postmortem.render.forms import FORMS

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
WINDOWS = {"desktop": (1280, 900), "phone": (375, 800)}
SCHEMES = ("light", "dark")
SEVERAL = ("single", "pair_", "sweep_")
"""Folders that hold several runs."""
MOST_PX = 16_000
"""Height of a picture; longer pages are cut there."""


def sets(names: list[str]) -> Iterator[Path]:
    """Folders of runs, and single files."""
    for path in sorted(TRACES.iterdir()):
        inside = sorted(path.iterdir()) if path.name.startswith(SEVERAL) else [path]
        for one in inside:
            is_run = one.is_dir() or ".json" in one.name
            if is_run and (not names or any(name in one.name for name in names)):
                yield one


def write(run: Path, folder: Path) -> tuple[dict[str, Path], float]:
    """The report of a run in all forms, and the seconds that it took."""
    began = perf_counter()
    report = api.report([run])
    seconds = perf_counter() - began
    stem = run.name.removesuffix(".gz").removesuffix(".json")
    paths = {suffix: folder / f"{stem}{suffix}" for suffix in FORMS}
    for suffix, path in paths.items():
        path.write_bytes(FORMS[suffix](report))
    return paths, seconds


def look(browser: Browser, page_path: Path) -> float:
    """Pictures beside the page; milliseconds until it can be read."""
    slowest_ms = 0.0
    for name, (width, height) in WINDOWS.items():
        for scheme in SCHEMES:
            context = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=scheme
            )
            page = context.new_page()
            page.on("pageerror", lambda error: print(f"  error: {error}"))  # noqa: T201
            page.goto(page_path.as_uri())
            slowest_ms = max(
                slowest_ms,
                page.evaluate(
                    "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
                ),
            )
            wide = page.evaluate("document.documentElement.scrollWidth")
            if wide > width:
                print(f"  wider than {width}: {wide}")  # noqa: T201
            tall = min(page.evaluate("document.documentElement.scrollHeight"), MOST_PX)
            page.screenshot(
                path=page_path.with_name(f"{page_path.stem}.{name}.{scheme}.png"),
                full_page=True,
                clip={"x": 0, "y": 0, "width": width, "height": tall},
            )
            context.close()
    return slowest_ms


def main(folder: Path, names: list[str]) -> None:
    """All sets, one line each."""
    folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        print(f"{'set':48} {'report':>8} {'html':>8} {'md':>7} {'json':>8} {'opens':>8}")  # noqa: T201
        for run in sets(names):
            paths, seconds = write(run, folder)
            sizes = {suffix: path.stat().st_size / 1e3 for suffix, path in paths.items()}
            opens_ms = look(browser, paths[".html"])
            print(  # noqa: T201
                f"{run.name[:48]:48} {seconds:6.1f} s {sizes['.html']:5.0f} kB "
                f"{sizes['.md']:4.0f} kB {sizes['.json']:5.0f} kB {opens_ms:5.0f} ms",
                flush=True,
            )
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
