"""Answers of the page are those of the command line, to the nanosecond."""

from pathlib import Path

import msgspec
import pytest

from ingest.errors import ScenarioError, UsageError
from replay import api
from replay.cli.flags import scenario_of_words
from replay.serve.contract import Ask
from tests.unit.serve.run import DDP8, GLOO2, session
from whatif.recorded import Recorded
from whatif.report.answer import Answer
from whatif.scenario import Scenario, load_scenario
from whatif.transforms.net import Net
from whatif.transforms.nvlink import Nvlink
from whatif.transforms.scale import Scale

STACKS = [
    (),
    ("--nvlink", "x2"),
    ("--network-scale", "0.5", "--host-scale", "2"),
    ("--gpu", "H200", "--nvlink=1800GBps"),
    ("--scale", "class:compute=0.5", "--no-stragglers", "--perfect-overlap"),
    ("--dp", "32"),
    ("--bucket-mb", "5", "--jitter", "20"),
]


def _plain(answer: Answer) -> dict[str, object]:
    return msgspec.to_builtins(answer)


@pytest.mark.parametrize("words", STACKS, ids=" ".join)
def test_an_answer_is_that_of_the_command_line(words: tuple[str, ...]) -> None:
    expected = api.analyse([DDP8], scenario_of_words(words))
    assert _plain(session().what_if(Ask(flags=words))) == _plain(expected)


def test_questions_one_after_the_other_leave_nothing_behind() -> None:
    one = session()
    first = [one.what_if(Ask(flags=words)) for words in STACKS]
    again = [one.what_if(Ask(flags=words)) for words in reversed(STACKS)]
    assert list(reversed(again)) == first


@pytest.mark.parametrize("words", STACKS[1:], ids=" ".join)
def test_a_short_answer_has_the_same_step_and_a_range_inside_the_full_one(
    words: tuple[str, ...],
) -> None:
    one = session()
    short, full = (one.what_if(Ask(flags=words, ranges=ranges)) for ranges in ("steps", "full"))
    assert short.prediction is not None
    assert full.prediction is not None
    assert short.prediction.step_ns == full.prediction.step_ns
    assert (short.breakdown, short.ranks) == (full.breakdown, full.ranks)
    assert full.prediction.low_ns <= short.prediction.low_ns <= short.prediction.step_ns
    assert short.prediction.step_ns <= short.prediction.high_ns <= full.prediction.high_ns


def test_the_base_that_the_page_began_with_is_that_of_all_answers() -> None:
    base = Recorded(gpus_per_node=4, net="400Gbps")
    one = session(start=Scenario(base=base))
    words = ("--net", "100Gbps")
    expected = api.analyse([DDP8], Scenario(base=base, transforms=(Net(rate="100Gbps"),)))
    assert _plain(one.what_if(Ask(flags=words))) == _plain(expected)


@pytest.mark.parametrize("trace", [DDP8, GLOO2], ids=["ddp8", "gloo2"])
@pytest.mark.parametrize("words", [(), ("--network-scale", "0.25"), ("--host-scale", "4")])
def test_shares_of_the_path_add_up(trace: Path, words: tuple[str, ...]) -> None:
    shares = session(trace).path(Ask(flags=words))
    assert sum(shares.baseline.values()) == pytest.approx(1, abs=1e-9)
    if words:
        assert shares.predicted is not None
        assert sum(shares.predicted.values()) == pytest.approx(1, abs=1e-9)
    else:
        assert shares.predicted is None


def test_slower_transfers_move_the_path_to_them() -> None:
    shares = session(GLOO2).path(Ask(flags=("--network-scale", "0.1")))
    assert shares.predicted is not None
    assert shares.predicted["transfer"] > 2 * shares.baseline["transfer"]


def test_the_share_of_the_unchanged_path_is_that_of_the_answer() -> None:
    one = session()
    reading = one.what_if(Ask()).reading
    assert reading is not None
    assert one.path(Ask()).baseline == reading.path_frac


def test_levers_are_those_of_the_command_line() -> None:
    run = api.replay_run([GLOO2])
    scenario = scenario_of_words(("--host-scale", "2"))
    expected = api.levers(run, scenario)
    assert session(GLOO2).levers(Ask(flags=("--host-scale", "2"))) == expected


@pytest.mark.parametrize(
    ("words", "error", "text"),
    [
        (("--nvlink", "900"), UsageError, "`900` is not a rate"),
        (("--nvlink",), UsageError, "has no value"),
        (("--nonsense", "1"), UsageError, "is no what-if"),
        (("--scenario", "some.yaml"), UsageError, "is no what-if"),
        (("--base-gpu", "H100"), UsageError, "is no what-if"),
        (("--gpu", "H1000"), ScenarioError, "no accelerator `H1000`"),
        (("--scale", "class:gem=2"), ScenarioError, "class:gem"),
    ],
)
def test_a_wrong_question_is_refused_as_the_command_line_does(
    words: tuple[str, ...], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        session().what_if(Ask(flags=words))


def test_an_unknown_range_is_refused() -> None:
    with pytest.raises(UsageError, match="`half` is no range"):
        session().what_if(Ask(flags=("--nvlink", "x2"), ranges="half"))


def test_a_scenario_is_written_as_a_command_and_a_file(tmp_path: Path) -> None:
    words = ("--scale", "name:*nccl*=2", "--nvlink", "x2")
    written = session().written(Ask(flags=words))
    assert written.command == "replay run --scale 'name:*nccl*=2' --nvlink x2"
    path = tmp_path / "kept.yaml"
    path.write_text(written.yaml, encoding="utf-8")
    assert load_scenario(path).transforms == (
        Scale(where="name:*nccl*", factor=2),
        Nvlink(rate="x2"),
    )


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("--net", "100Gbps"), "replay run --base-net 400Gbps --gpus-per-node 4 --net 100Gbps"),
        (("--cuda-graphs",), "replay run --cuda-graphs"),
    ],
)
def test_a_command_says_the_base_where_a_what_if_asks_for_it(
    words: tuple[str, ...], command: str
) -> None:
    one = session(start=Scenario(base=Recorded(gpus_per_node=4, net="400Gbps")))
    assert one.written(Ask(flags=words)).command == command


def test_the_run_is_told_with_what_the_page_begins_with() -> None:
    told = session(DDP8, "--scale", "class:gemm=0.5", "--no-stragglers").run()
    assert told.start == ("--scale", "class:gemm=0.5", "--no-stragglers")
    assert (told.name, len(told.trace.ranks), told.grade) == ("run", 8, "A")
    assert told.bound.startswith("GPU-bound")


def test_a_beginning_that_does_not_fit_the_run_is_refused_before_any_page_is_served() -> None:
    with pytest.raises(ScenarioError, match="class:gem"):
        session(DDP8, "--scale", "class:gem=2").begin()
