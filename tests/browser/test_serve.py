"""The what-if page in a browser: figures against `api.analyse`, keyboard, phone, accessibility."""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from replay import api
from replay.cli.flags import scenario_of_words
from replay.serve.app import App
from replay.serve.document import document
from replay.serve.server import ANY_PORT, Server
from replay.serve.session import Asked, Session

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    Open = Callable[..., Page]

playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe checks the page")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason="no chromium here"),
    # Sockets of playwright are closed when its process ends.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT.parent / "shared" / "traces"
SAMPLES = ROOT / "sample_traces"
TOKEN = "a-token"
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
HOSTILE = "<img src=x onerror=alert(1)>'\"&.json"
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


@contextmanager
def _serving(trace: Path, *words: str, name: str = "run") -> Iterator[str]:
    """The address of a page over a trace, which begins with these what-ifs."""
    begins = scenario_of_words(words)
    found = api.examine([trace])
    session = Session(
        found, Asked(name=name, command="replay run", start=begins), scenario_of_words
    )
    with Server(ANY_PORT) as server:
        app = App(session, document(), TOKEN)
        thread = Thread(target=server.answer, args=(app.respond,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.port}/?token={TOKEN}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=list(OPTIONS))
        yield found
        found.close()


@pytest.fixture(scope="module")
def ddp8() -> Iterator[str]:
    with _serving(SAMPLES / "ddp8_h100", name=HOSTILE) as address:
        yield address


@pytest.fixture
def opened(browser: "Browser") -> Iterator["Open"]:
    """Opens an address; what the page complains of, or asks of elsewhere, fails the test."""
    contexts, complaints = [], []

    def open_page(address: str, **options: object) -> "Page":
        context = browser.new_context(**({"viewport": DESK} | options))
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: complaints.extend(_elsewhere(request.url, address)))
        page.goto(address)
        _settle(page)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def _elsewhere(url: str, address: str) -> list[str]:
    origin = address.partition("?")[0]
    return [] if url.startswith((origin, "data:")) else [url]


def _settle(page: "Page") -> None:
    """Until the answer with its whole range is there."""
    page.locator("#result[data-full=true]").wait_for()
    page.locator("#pending").wait_for(state="hidden")


def _tried(page: "Page") -> None:
    """Until it is known which knobs do something."""
    page.locator("#idle summary").wait_for()


def _slide(page: "Page", key: str, position: int) -> None:
    """Put the slider of a knob at a position, as a drag does."""
    page.locator(f"#knob-{key}").evaluate(
        "(slider, at) => { slider.value = at; slider.dispatchEvent(new Event('input')); }", position
    )


def _ms(ns: int) -> str:
    return f"{ns / 1e6:,.2f} ms"


def _figures(page: "Page", table: str) -> list[list[str]]:
    rows = page.locator(f"{table} tbody tr").all()
    return [row.locator("th, td").all_text_contents() for row in rows]


def _agrees(page: "Page", trace: Path, *words: str) -> None:
    """All figures of the page are those of `api.analyse`."""
    answer = api.analyse([trace], scenario_of_words(words))
    prediction, predicted = answer.prediction, answer.breakdown.predicted
    assert prediction is not None
    assert predicted is not None
    assert page.locator("#step").get_attribute("data-ns") == str(prediction.step_ns)
    assert page.locator("#step").text_content() == _ms(prediction.step_ns)
    told = page.locator("#range-words").text_content()
    assert f"range {_ms(prediction.low_ns)} to {_ms(prediction.high_ns)}" in told
    parts = {row[0]: row[2] for row in _figures(page, "#parts")}
    assert parts["compute"] == _ms(predicted.compute_ns)
    assert parts["waiting for other ranks"] == _ms(predicted.exposed_wait_ns)
    assert parts["idle"] == _ms(predicted.idle_ns)
    assert parts["all"] == _ms(prediction.step_ns)
    ranks = {row[0]: row[1:3] for row in _figures(page, "#ranks")}
    assert ranks == {
        str(one.rank): [_ms(one.replayed_ns), _ms(one.predicted_ns)]
        for one in answer.ranks
        if one.predicted_ns is not None
    }
    rates = answer.rates
    if rates is not None and rates.mfu_frac is not None:
        assert f"MFU {rates.mfu_frac:.1%}".replace("%", " %") in told
    trusted = [*answer.trust.reasons, *answer.trust.advice]
    assert _listed(page, "#trust") == trusted
    assert _listed(page, "#assumptions") == list(prediction.assumptions)
    assert _listed(page, "#errors") == list(prediction.known_errors)
    assert _listed(page, "#no-effect") == list(prediction.no_effect)


def _listed(page: "Page", section: str) -> list[str]:
    found: list[str] = page.locator(f"{section} li").all_text_contents()
    return found


def test_a_slider_shows_what_the_command_line_answers(ddp8: str, opened: "Open") -> None:
    page = opened(ddp8)
    sliding = page.locator("#knob-nvlink")
    _slide(page, "nvlink", int(sliding.get_attribute("max")) - 9)
    _settle(page)
    assert page.locator("#command").text_content() == "replay run --nvlink x2"
    _agrees(page, SAMPLES / "ddp8_h100", "--nvlink", "x2")
    page.locator("#knob-no-stragglers").check()
    page.locator("#knob-overlap").select_option(label="take turns")
    _settle(page)
    words = ("--nvlink", "x2", "--no-stragglers", "--no-overlap")
    assert page.locator("#command").text_content() == f"replay run {' '.join(words)}"
    _agrees(page, SAMPLES / "ddp8_h100", *words)


SETS = [
    ("h100x8_nanogpt_12-11", "--host-scale", "2"),
    ("h100x4_torchtitan_fsdp_A", "--nvlink", "x0.5"),
    ("v100x4_torchrec_fp32", "--network-scale", "2"),
    ("single/mi300_resnet_ddp.json.gz", "--gpu", "H200 SXM5 141 GB"),
]


@pytest.mark.parametrize(("trace", "option", "value"), SETS, ids=[name for name, *_ in SETS])
def test_real_runs_show_what_the_command_line_answers(
    opened: "Open", trace: str, option: str, value: str
) -> None:
    if not (REAL / trace).exists():
        pytest.skip("the recorded runs are not here")
    with _serving(REAL / trace) as address:
        page = opened(address)
        key = option.removeprefix("--")
        if key == "gpu":
            page.locator("#knob-gpu").select_option(label=value)
        else:
            page.get_by_label(re.compile("typed$")).and_(
                page.locator(f".knob:has(#knob-{key}) input[type=text]")
            ).fill(value)
            page.keyboard.press("Enter")
        _settle(page)
        _agrees(page, REAL / trace, option, value)


def test_a_run_without_a_gpu_is_turned_too(opened: "Open") -> None:
    with _serving(SAMPLES / "gloo2_cpu") as address:
        page = opened(address)
        _tried(page)
        page.locator("#idle summary").click()
        assert page.locator("#knob-gpu").is_disabled()
        reason = page.locator("#knob-gpu-reason").text_content()
        assert reason == "no effect here: no accelerator worked in this trace"
        _slide(page, "net", 0)
        _settle(page)
        _agrees(page, SAMPLES / "gloo2_cpu", "--net", "x0.1")


def test_the_keyboard_turns_a_knob_and_the_result_is_spoken(ddp8: str, opened: "Open") -> None:
    page = opened(ddp8)
    page.locator("#knob-host-scale").focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    _settle(page)
    assert page.locator("#knob-host-scale").get_attribute("aria-valuetext") == "x0.7"
    said = page.locator("#live[aria-live=polite]").text_content()
    assert said.startswith(f"Step {page.locator('#step').text_content()}, ")
    assert page.locator(":focus").get_attribute("id") == "knob-host-scale"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    _settle(page)
    assert page.locator("#knob-host-scale").get_attribute("aria-valuetext") == "as recorded"


def test_the_address_holds_the_scenario_and_what_is_compared(ddp8: str, opened: "Open") -> None:
    page = opened(ddp8)
    page.locator("#extra").fill("--scale 'class:gemm,rank:[01]=0.5' --nvlink x3")
    page.keyboard.press("Enter")
    _settle(page)
    page.locator("#pin").click()
    page.locator("#knob-cuda-graphs").check()
    _settle(page)
    step, address = page.locator("#step").text_content(), page.url
    again = opened(address)
    assert again.locator("#step").text_content() == step
    command = "replay run --cuda-graphs --scale 'class:gemm,rank:[01]=0.5' --nvlink x3"
    assert again.locator("#command").text_content() == command
    again.locator("#pins tbody tr").nth(1).wait_for()
    names = again.locator("#pins tbody th").all_text_contents()
    assert [" ".join(name.split()) for name in names] == [
        "--scale 'class:gemm,rank:[01]=0.5' --nvlink x3",
        "--cuda-graphs --scale 'class:gemm,rank:[01]=0.5' --nvlink x3 (now)",
    ]


def test_pinned_scenarios_are_compared_taken_back_and_removed(ddp8: str, opened: "Open") -> None:
    page = opened(ddp8)
    page.locator("#pin").click()
    _slide(page, "network-scale", 0)
    _settle(page)
    rows = _figures(page, "#pins")
    assert [row[0].strip() for row in rows] == ["as recorded", "--network-scale 0.1  (now)"]
    assert rows[1][1] == page.locator("#step").text_content()
    page.locator("#pins button.plain").first.click()
    _settle(page)
    assert page.locator("#speedup").text_content() == "as recorded"
    page.get_by_role("button", name="remove as recorded").click()
    assert page.locator("#pins").is_hidden()


def test_a_wrong_what_if_is_told_and_the_next_one_answered(ddp8: str, opened: "Open") -> None:
    page = opened(ddp8)
    page.locator("#extra").fill("--scale class:gem=2")
    page.keyboard.press("Enter")
    page.locator("#error").wait_for()
    assert "class:gem" in page.locator("#error").text_content()
    page.locator("#reset").click()
    _settle(page)
    assert page.locator("#error").is_hidden()
    assert page.locator("#extra").input_value() == ""


def test_a_wrong_value_is_marked_and_what_is_shown_is_said_to_be_older(
    ddp8: str, opened: "Open"
) -> None:
    page = opened(ddp8)
    page.locator("#pin").click()
    _slide(page, "network-scale", 0)
    _settle(page)
    typed = page.locator("#knob-nvlink ~ input.typed")
    typed.fill("banana")
    page.keyboard.press("Enter")
    page.locator(".knob.wrong").wait_for()
    assert typed.get_attribute("aria-invalid") == "true"
    assert page.locator("[aria-invalid=true]").count() == 2
    assert "banana" in page.locator(".knob.wrong .reason").text_content()
    assert page.locator("#behind").text_content().endswith(": --network-scale 0.1")
    rows = _figures(page, "#pins")
    assert [row[0].strip() for row in rows][1] == "--network-scale 0.1  (last answer)"
    typed.fill("")
    page.keyboard.press("Enter")
    _settle(page)
    assert page.locator("#behind").is_hidden()
    assert page.locator("[aria-invalid]").count() == 0
    assert page.locator(".knob.wrong").count() == 0


def test_what_the_recording_lacks_is_listed_as_that(opened: "Open") -> None:
    with _serving(SAMPLES / "gloo2_cpu") as address:
        page = opened(address)
        assert page.locator("#lacks h3").text_content() == "What the recording lacks"
        assert "record" in page.locator("#lacks li").first.text_content()


def test_levers_are_tried_with_one_click(ddp8: str, opened: "Open") -> None:
    page = opened(ddp8)
    page.locator("#chips button").first.click()
    _settle(page)
    assert page.locator("#command").text_content() == "replay run --scale class:compute=0.5"
    page.locator("#all-levers").click()
    page.locator("#levers tbody tr").first.wait_for()
    run = api.replay_run([SAMPLES / "ddp8_h100"])
    expected = api.levers(run, scenario_of_words(("--scale", "class:compute=0.5")))
    assert [row[0] for row in _figures(page, "#levers")] == [one.what for one in expected.levers]
    page.locator("#levers tbody button").first.click()
    _settle(page)
    best = expected.levers[0].twice or expected.levers[0].limit
    assert page.locator("#step").get_attribute("data-ns") == str(best.step_ns)


def test_names_are_text_and_never_markup(ddp8: str, opened: "Open") -> None:
    page = opened(ddp8)
    assert page.locator("#name").text_content() == HOSTILE
    page.evaluate("words => { location.hash = `w=${encodeURIComponent(words)}`; }", "<img/src=x>")
    page.locator("#error").wait_for()
    assert "`<img/src=x>` is no what-if" in (page.locator("#error").text_content() or "")
    page.locator("#pin").click()
    page.locator("#pins tbody tr").first.wait_for()
    assert page.locator("img").count() == 0


def test_the_page_begins_with_what_was_typed(opened: "Open") -> None:
    """A value that is none of a knob's positions is shown by that knob, too."""
    with _serving(SAMPLES / "gloo2_cpu", "--dp", "6", "--net", "x2") as address:
        page = opened(address)
        assert page.locator("#command").text_content() == "replay run --dp 6 --net x2"
        _agrees(page, SAMPLES / "gloo2_cpu", "--dp", "6", "--net", "x2")
        page.locator("#extra").fill("--compress topk:0.5")
        page.keyboard.press("Enter")
        _settle(page)
        again = opened(page.url)
        assert again.locator("#knob-dp").get_attribute("aria-valuetext") == "6"
        chosen = again.locator("#knob-compress option:checked")
        assert chosen.text_content() == "topk:0.5"


def test_a_server_that_has_ended_is_told(ddp8: str, opened: "Open") -> None:
    page = opened(ddp8)
    page.context.set_offline(True)
    page.locator("#knob-no-stragglers").check()
    page.locator("#error").wait_for()
    assert page.locator("#error").text_content() == "no answer: has `replay serve` ended?"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_nobody_is_shut_out(ddp8: str, opened: "Open", scheme: str, size: dict[str, int]) -> None:
    page = opened(
        f"{ddp8}#w=--nvlink%20x2&pin=--host-scale%200.5", viewport=size, color_scheme=scheme
    )
    _tried(page)
    page.locator("#idle summary").click()
    found = axe.Axe().run(page).response["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0
