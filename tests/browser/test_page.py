"""The page in a browser: as a reader uses it, with pointer, keyboard, phone and printer."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import DESKTOP, PHONE, Show

MOST_BUSY_S = 2.0
"""0.3 s are usual."""


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [
        ("sample_page", DESKTOP, "light"),
        ("sample_page", PHONE, "dark"),
        ("real_page", DESKTOP, "dark"),
    ],
)
def test_a_page_is_accessible(
    request: pytest.FixtureRequest, show: Show, name: str, size: tuple[int, int], scheme: str
) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe comes with the extra `browser`"
    )
    shown = show(request.getfixturevalue(name), size=size, scheme=scheme)
    shown.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    found = axe.Axe().run(shown.page).response["violations"]
    told = [
        (one["id"], one["impact"], [node["html"][:120] for node in one["nodes"][:3]])
        for one in found
        if one["impact"] in {"serious", "critical"}
    ]
    assert told == []
    assert (shown.complaints, shown.requests) == ([], [])


@pytest.mark.parametrize("name", ["sample_page", "real_page"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_page_never_scrolls_sideways(
    request: pytest.FixtureRequest, show: Show, name: str, size: tuple[int, int]
) -> None:
    page = show(request.getfixturevalue(name), size=size).page
    for is_open in ("true", "false"):
        page.evaluate(
            f"document.querySelectorAll('details').forEach(one => {{ one.open = {is_open}; }})"
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]


def test_a_page_opens_at_once(show: Show, real_page: Path) -> None:
    """Time of the browser's own thread, which does not depend on what else the machine does."""
    page = show(real_page).page
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = _busy_s(session)
    page.reload()
    assert _busy_s(session) - before < MOST_BUSY_S


def _busy_s(session: Any) -> float:  # noqa: ANN401  (playwright may be missing)
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


def test_the_verdict_and_the_first_finding_are_on_the_first_screen(
    show: Show, sample_page: Path
) -> None:
    page = show(sample_page).page
    for found in (".verdict", ".card"):
        box = page.locator(found).first.bounding_box()
        assert box["y"] + box["height"] < DESKTOP[1]


def test_contents_lead_to_sections_and_tell_where_one_is(show: Show, sample_page: Path) -> None:
    page = show(sample_page).page
    page.emulate_media(reduced_motion="reduce")
    for key in ("kernels", "trust", "comparison"):
        page.locator(f".toc a[href='#{key}']").click()
        assert page.locator(f"#{key} h2").is_visible()
        box = page.locator(f"#{key}").bounding_box()
        assert 0 <= box["y"] < DESKTOP[1] or key == "comparison"
    page.locator("#trust").scroll_into_view_if_needed()
    page.evaluate("document.getElementById('trust').scrollIntoView()")
    page.wait_for_selector(".toc a[href='#trust'][aria-current]")


def test_a_folded_section_opens_where_one_is_led(show: Show, sample_page: Path) -> None:
    page = show(sample_page).page
    page.locator("#fold").click()
    assert page.locator("details.section[open]").count() == 0
    page.locator(".toc a[href='#kernels']").click()
    page.wait_for_selector("#kernels details.section[open]")
    page.locator("#fold").click()
    assert page.locator("details.section[open]").count() == 0


def test_details_are_folded_under_their_titles(show: Show, sample_page: Path) -> None:
    page = show(sample_page).page
    roofline = page.locator("[id='kernels.roofline']")
    assert roofline.get_by_role("heading", name="Kernels under the roofs of the card").is_visible()
    assert not roofline.locator("svg.chart").is_visible()
    page.locator("#fold-details").click()
    assert roofline.locator("svg.chart").is_visible()
    assert page.locator("#fold-details").inner_text() == "Fold details"


def test_a_link_to_a_detail_opens_it(show: Show, sample_page: Path) -> None:
    page = show(sample_page).page
    page.evaluate("location.hash = 'kernels.roofline'")
    page.wait_for_selector("[id='kernels.roofline'][open] svg.chart")


def _column(page: object, at: int) -> list[float]:
    script = (
        "at => [...document.querySelectorAll('[id=\"kernels.top\"] tbody tr:not([hidden])')]"
        ".map(row => Number(row.cells[at].dataset.v))"
    )
    values: list[float] = page.evaluate(script, at)  # type: ignore[attr-defined]
    return values


def test_tables_sort_by_pointer_and_by_keyboard(show: Show, sample_page: Path) -> None:
    page = show(sample_page).page
    head = page.locator("[id='kernels.top'] thead th").nth(2)
    before = _column(page, 2)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert _column(page, 2) == sorted(before, reverse=True)
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert _column(page, 2) == sorted(before)


def test_unknown_values_sort_last_both_ways(show: Show, sample_page: Path) -> None:
    page = show(sample_page).page
    button = page.locator("[id='kernels.top'] thead th").nth(5).locator("button")
    for _ in range(2):
        button.click()
        cells = page.locator("[id='kernels.top'] tbody td:last-child").all_inner_texts()
        known = [cell != "-" for cell in cells]
        assert known == sorted(known, reverse=True)


def test_a_filter_keeps_matching_rows_and_counts_them(show: Show, sample_page: Path) -> None:
    page = show(sample_page).page
    table = page.locator("[id='kernels.top']")
    table.get_by_label("Filter").fill("s16816gemm_2")
    assert len(_column(page, 2)) == 3
    assert table.locator(".filter [role=status]").inner_text() == "3 of 24"
    table.get_by_label("Filter").fill("")
    assert len(_column(page, 2)) == 24


def test_tips_come_with_the_pointer_and_with_the_keyboard(show: Show, sample_page: Path) -> None:
    page = show(sample_page).page
    tip = page.locator("#tip")
    page.locator("[id='breakdown.ranks'] svg.chart rect.part").first.hover()
    assert tip.inner_text() == "rank 0: compute 31.00 ms (62.0 %)"
    page.mouse.move(5, 5)
    assert not tip.is_visible()
    page.locator("#verdict .card > details > summary").last.focus()
    page.keyboard.press("Tab")
    page.wait_for_selector("#tip:not([hidden])")
    assert tip.inner_text() == "rank 0: compute 31.00 ms (62.0 %)"
    page.keyboard.press("ArrowRight")
    assert tip.inner_text() == "rank 0: waiting 9.00 ms (18.0 %)"
    page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_the_theme_is_switched_and_remembered(show: Show, sample_page: Path) -> None:
    page = show(sample_page).page
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.locator("#theme").click()
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    assert page.evaluate(ground) == dark
    page.locator("#theme").click()
    assert page.evaluate(ground) == light


def test_sql_is_copied(show: Show, sample_page: Path) -> None:
    page = show(sample_page, permissions=["clipboard-read", "clipboard-write"]).page
    box = page.locator("[id='kernels.top'] details.sql")
    box.locator("summary").click()
    button = box.locator("button").first
    button.click()
    button.filter(has_text=re.compile("Copied|Selected")).wait_for()


def test_print_opens_all_details_and_leaves_the_contents_out(show: Show, sample_page: Path) -> None:
    page = show(sample_page).page
    page.emulate_media(media="print")
    assert not page.locator(".toc").is_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() > 0
    assert page.pdf()[:5] == b"%PDF-"


def test_a_page_is_complete_without_scripts(show: Show, sample_page: Path) -> None:
    page = show(sample_page, java_script_enabled=False).page
    assert page.locator(".card").count() == 3
    assert page.locator("svg.chart").count() == 7
    assert page.locator("svg.chart title").count() > 100
    assert page.locator("thead button").count() == 0


def test_names_of_a_trace_run_no_script(show: Show, sample_page: Path) -> None:
    shown = show(sample_page)
    shown.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    for mark in shown.page.locator("[id='kernels.roofline'] circle").all()[:2]:
        mark.hover()
    assert shown.page.locator("img").count() == 0
    assert shown.complaints == []
