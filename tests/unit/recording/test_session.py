"""A recording in a process: which steps are measured, and that no error reaches the training."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="recording needs torch")

from replay.recording import profiling, session
from replay.recording.session import Session
from replay.recording.settings import Settings


class FakeProfiler:
    """Counts calls and calls back when the last step is recorded, as torch's does."""

    def __init__(self, settings: Settings, ready: Callable[[Any], None]) -> None:
        self.on_trace_ready: Callable[[Any], None] | None = ready
        self._settings = settings
        self.steps = 0
        self.stops = 0
        self.fails_at = -1

    def start(self) -> None:
        pass

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.fails_at:
            raise RuntimeError("CUPTI is out of buffers\nand more")
        if self.steps == self._settings.needed and self.on_trace_ready:
            self.on_trace_ready(self)

    def stop(self) -> None:
        self.stops += 1
        begun = self.steps > self._settings.skip + self._settings.warmup
        if begun and self.steps < self._settings.needed and self.on_trace_ready:
            self.on_trace_ready(self)

    def export_chrome_trace(self, path: str) -> None:
        Path(path).write_text('{"traceEvents": []}', encoding="utf-8")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[FakeProfiler]:
    """Every profiler made; its `fails_at` may be set before the step."""
    profilers: list[FakeProfiler] = []

    def make(settings: Settings, *, ready: Callable[[Any], None]) -> FakeProfiler:
        profilers.append(FakeProfiler(settings, ready))
        return profilers[-1]

    monkeypatch.setattr(session, "make_profiler", make)
    return profilers


@pytest.fixture
def told() -> list[str]:
    return []


def _head(path: Path) -> dict[str, Any]:
    found = json.loads(gzip.decompress(path.read_bytes()))["trace_replay"]
    assert isinstance(found, dict)
    return found


def test_steps_are_counted_recorded_and_measured_around(
    made: list[FakeProfiler], told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that goes on 7 per step while the profiler is on, and 2 else."""
    asked = Settings(folder=str(tmp_path), skip=4, warmup=1, steps=2, metadata={"model": "m"})
    recording = Session(asked, telling=told.append)
    now = 0
    for watch in (recording._watch, recording._host_watch):
        monkeypatch.setattr(watch, "_clock", lambda: now)
    recording.start()
    for done in range(1, 40):
        now += 7 if 4 < done <= 7 else 2
        recording.step()
    assert (made[0].steps, made[0].stops, recording.reason) == (7, 1, "")
    assert recording.path == tmp_path / "rank0.json.gz"
    head = _head(recording.path)
    assert head["step_ns"] == {"before": 2, "while": 7, "after": 2}
    assert (head["unprofiled_step_ns"], head["unprofiled_steps"]) == (2, 2 + 5)
    assert (head["first_step"], head["steps"], head["metadata"]) == (5, 2, {"model": "m"})
    assert recording.note.steps == 7 + 2 + 5
    assert len(told) == 1


def test_an_error_is_told_once_and_the_training_goes_on(
    made: list[FakeProfiler], told: list[str], tmp_path: Path
) -> None:
    recording = Session(Settings(folder=str(tmp_path)), telling=told.append)
    recording.start()
    made[0].fails_at = 12
    for _ in range(40):
        recording.step()
    recording.close()
    assert told == [
        "recording given up, the program goes on: RuntimeError: CUPTI is out of buffers"
    ]
    assert (recording.path, made[0].steps, made[0].stops) == (None, 12, 1)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_does_not_stop_the_training(
    made: list[FakeProfiler], told: list[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    recording = Session(Settings(folder=str(tmp_path / "file" / "x")), telling=told.append)
    recording.start()
    for _ in range(40):
        recording.step()
    assert len(made) == len(told) == 1
    assert "NotADirectoryError" in recording.reason


def test_a_file_that_cannot_be_compressed_stays_as_it_is(
    made: list[FakeProfiler], told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(session, "compress", full)
    recording = Session(Settings(folder=str(tmp_path), skip=0), telling=told.append)
    recording.start()
    for _ in range(40):
        recording.step()
    assert recording.path == tmp_path / "rank0.json"
    assert "No space left" in told[0]
    assert made[0].stops == 1


def test_a_program_that_ends_too_soon_says_how_many_steps_it_had(
    made: list[FakeProfiler], told: list[str], tmp_path: Path
) -> None:
    recording = Session(Settings(folder=str(tmp_path)), telling=told.append)
    recording.start()
    for _ in range(5):
        recording.step()
    recording.close()
    assert told == ["nothing recorded: it ended after 5 steps; recording begins after 13"]
    assert made[0].stops == 1


def test_a_program_that_ends_while_recording_keeps_the_steps_it_had(
    made: list[FakeProfiler], told: list[str], tmp_path: Path
) -> None:
    recording = Session(Settings(folder=str(tmp_path)), telling=told.append)
    recording.start()
    for _ in range(15):
        recording.step()
    recording.close()
    recording.close()
    assert recording.path is not None
    assert _head(recording.path)["steps"] == 2
    assert recording.reason == "it ended with 2 of 3 steps recorded whole"
    assert made[0].stops == 1


def test_a_profiler_that_is_on_already_is_neither_disturbed_nor_ended(
    made: list[FakeProfiler], told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = Session(Settings(folder=str(tmp_path)), telling=told.append)
    recording.start()
    for done in range(40):
        monkeypatch.setattr(session, "another_is_on", lambda done=done: done == 12)
        recording.step()
    assert told == ["recording given up, the program goes on: RuntimeError: another profiler is on"]
    assert (made[0].steps, made[0].stops) == (12, 0)


@pytest.mark.parametrize("steps_before", [0, 5, 14])
def test_recording_gives_way_to_a_profiler_of_the_program(
    made: list[FakeProfiler], told: list[str], tmp_path: Path, steps_before: int
) -> None:
    recording = Session(Settings(folder=str(tmp_path)), telling=told.append)
    if steps_before:
        recording.start()
        recording.give_way(made[0])  # its own is no other
    for _ in range(steps_before):
        recording.step()
    recording.give_way(object())
    recording.start()
    recording.step()
    assert told == ["not recording: the program starts a profiler of its own"]
    assert [profiler.stops for profiler in made] == [1] * bool(steps_before)
    assert list(tmp_path.iterdir()) == []


def test_a_rank_that_is_not_asked_for_records_nothing(
    made: list[FakeProfiler], told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    recording = Session(Settings(folder=str(tmp_path), ranks=(0, 2)), telling=told.append)
    recording.start()
    recording.step()
    recording.close()
    assert (made, told, list(tmp_path.iterdir())) == ([], [], [])


def test_a_rank_known_from_the_launcher_alone_is_written_into_the_file(
    made: list[FakeProfiler], told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    recording = Session(Settings(folder=str(tmp_path), skip=0), telling=told.append)
    recording.start()
    for _ in range(20):
        recording.step()
    whole = json.loads(gzip.decompress((tmp_path / "rank3.json.gz").read_bytes()))
    assert whole["distributedInfo"] == {"rank": 3, "world_size": 4}
    assert (len(made), told) == (1, [])


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (
            {"enable_cuda_sync_events", "trace_only"},
            {"enable_cuda_sync_events": True, "trace_only": True},
        ),
        ({"enable_cuda_sync_events"}, {"enable_cuda_sync_events": True}),
        (set(), {}),
    ],
    ids=["torch 2.13", "torch 2.6", "torch 2.0"],
)
def test_an_older_torch_is_asked_for_what_it_knows(
    monkeypatch: pytest.MonkeyPatch, known: set[str], expected: dict[str, bool]
) -> None:
    def config(**options: bool) -> dict[str, bool]:
        if set(options) - known:
            raise TypeError("incompatible constructor arguments")
        return options

    monkeypatch.setattr(profiling.torch._C._profiler, "_ExperimentalConfig", config)
    assert profiling._experimental(file_only=True) == expected


@pytest.mark.parametrize(("stacks", "file_only"), [(True, True), (False, False)])
def test_stacks_and_tables_need_what_trace_only_leaves_out(
    *, stacks: bool, file_only: bool
) -> None:
    made = profiling.make_profiler(
        Settings(folder="x", stacks=stacks), ready=lambda _: None, file_only=file_only
    )
    assert not getattr(made.experimental_config, "trace_only", False)


def test_no_step_ends_inside_a_cuda_graph_and_no_device_is_waited_for_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Waiting for a device would spoil the capture."""
    waited: list[str] = []
    cuda = profiling.torch.cuda
    for name, value in (("is_available", True), ("is_initialized", True)):
        monkeypatch.setattr(cuda, name, lambda value=value: value)
    monkeypatch.setattr(cuda, "is_current_stream_capturing", lambda: True)
    monkeypatch.setattr(cuda, "synchronize", lambda: waited.append("cuda"))
    assert "CUDA graph" in profiling.may_not_step()
    profiling.wait_for_devices()
    assert waited == []
    monkeypatch.setattr(cuda, "is_current_stream_capturing", lambda: False)
    profiling.wait_for_devices()
    assert (profiling.may_not_step(), waited) == ("", ["cuda"])
