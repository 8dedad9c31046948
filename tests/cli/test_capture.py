"""`replay capture` on real programs: what is recorded, what is told, and the exit code."""

import gzip
import json
import os
import signal
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

from replay.recording.head import read_head
from replay.recording.launch import INJECTED, environment
from replay.recording.launch import run as run_program
from replay.recording.settings import VARIABLE, Settings
from tests.cli.calls import ROOT, Run

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="recording needs torch")

TRAINING = """
    import sys, torch
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(128, 128) for _ in range(3)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(int(sys.argv[1])):
        optimizer.zero_grad()
        model(torch.randn(64, 128)).pow(2).mean().backward()
        optimizer.step()
    sys.exit(int(sys.argv[2]))
"""
DDP = """
    import torch, torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(128, 128))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(16):
        optimizer.zero_grad()
        model(torch.randn(64, 128)).pow(2).mean().backward()
        optimizer.step()
    dist.destroy_process_group()
"""
INFERENCE = """
    import torch
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.ReLU()).eval()
    with torch.no_grad():
        for step in range(16):
            model(torch.randn(64, 128))
"""
FEW = ("--skip", "4", "--warmup", "1", "--steps", "2")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "program.py"


def _write(path: Path, text: str) -> Path:
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


@needs_torch
def test_a_training_is_recorded_and_the_answer_can_be_asked_at_once(
    run: Run, script: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "traces"
    program = (sys.executable, _write(script, TRAINING), "20", "0")
    outcome = run("capture", "-o", folder, *FEW, "--metadata", "batch=64", "--", *program)
    assert (outcome.code, outcome.out) == (0, "")
    assert "recorded   1 file in" in outcome.err
    assert f"next       replay {os.path.relpath(folder)}" in outcome.err
    assert [path.name for path in folder.iterdir()] == ["rank0.json.gz"]
    head = read_head(folder / "rank0.json.gz")
    assert (head["first_step"], head["steps"], head["metadata"]) == (5, 2, {"batch": 64})
    assert set(head["step_ns"]) == {"before", "while", "after"}
    steps = run("sql", folder, "SELECT step FROM step ORDER BY 1", "--format", "csv")
    assert steps.out.split() == ["step", "5", "6"]
    ranges = "SELECT depth FROM slice WHERE name LIKE 'Optimizer.step#%'"
    nested = run("sql", folder, ranges, "--format", "csv")
    assert nested.out.split() == ["depth", "1", "1"], "each lies within its step"


@needs_torch
def test_both_ranks_of_torchrun_are_recorded_and_the_launcher_is_not(
    run: Run, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone")
    program = (*launcher, "--nproc-per-node", "2", _write(script, DDP))
    outcome = run("capture", "-o", tmp_path / "traces", *FEW, "--", *program)
    assert outcome.code == 0
    assert "recorded   2 files" in outcome.err
    assert "no optimizer" not in outcome.err
    answer = run(tmp_path / "traces")
    assert answer.code == 0
    assert "ranks 0-1 of 2" in answer.out
    assert "trust" in answer.out


@needs_torch
def test_the_exit_code_of_a_failing_program_is_ours_and_its_steps_are_kept(
    run: Run, script: Path, tmp_path: Path
) -> None:
    program = (sys.executable, _write(script, TRAINING), "7", "7")
    outcome = run("capture", "-o", tmp_path / "traces", *FEW, "--", *program)
    assert outcome.code == 7
    assert "rank 0: it ended with 1 of 2 steps recorded whole" in outcome.err
    assert "the program ended with code 7" in outcome.err
    assert (tmp_path / "traces" / "rank0.json.gz").is_file()


@needs_torch
def test_inference_has_no_optimizer_and_is_recorded_by_its_forward_passes(
    run: Run, script: Path, tmp_path: Path
) -> None:
    program = (sys.executable, _write(script, INFERENCE))
    without = run("capture", "-o", tmp_path / "none", *FEW, "--", *program)
    assert without.code == 0
    assert "nothing recorded: no optimizer was seen" in without.err
    assert "--step-is forward" in without.err
    forward = run("capture", "-o", tmp_path / "all", *FEW, "--step-is", "forward", *program)
    assert "recorded   1 file" in forward.err


@needs_torch
def test_a_program_of_too_few_steps_is_told_so(run: Run, script: Path, tmp_path: Path) -> None:
    program = (sys.executable, _write(script, TRAINING), "5", "0")
    outcome = run("capture", "-o", tmp_path / "traces", "--", *program)
    assert outcome.code == 0
    assert (
        "--skip 10, --warmup 3 and --steps 3 take 16 steps after the first; 4 were" in outcome.err
    )


@needs_torch
def test_a_program_with_a_profiler_of_its_own_keeps_it(
    run: Run, script: Path, tmp_path: Path
) -> None:
    program = _write(
        script,
        f"""
        import torch
        from torch.profiler import profile, schedule
        model = torch.nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        plan = schedule(wait=4, warmup=1, active=2, repeat=1)
        save = lambda own: own.export_chrome_trace({str(tmp_path / "own.json")!r})
        with profile(schedule=plan, on_trace_ready=save) as own:
            for step in range(12):
                model(torch.randn(4, 8)).sum().backward()
                optimizer.step()
                own.step()
        """,
    )
    outcome = run("capture", "-o", tmp_path / "traces", *FEW, "--", sys.executable, program)
    assert outcome.code == 0
    assert "nothing recorded: the program starts a profiler of its own" in outcome.err
    assert "ProfilerStep#6" in (tmp_path / "own.json").read_text(encoding="utf-8")


@needs_torch
def test_a_file_that_was_not_compressed_in_time_is_found(
    run: Run, script: Path, tmp_path: Path
) -> None:
    """As where something ends the program right after the recorded steps."""
    text = TRAINING.replace("optimizer.step()\n", "optimizer.step()\n        stop(step)\n")
    stop = "import os\n    stop = lambda step: os._exit(0) if step == 8 else None"
    program = _write(script, text.replace("import sys, torch", f"import sys, torch; {stop}"))
    folder = tmp_path / "traces"
    outcome = run("capture", "-o", folder, *FEW, "--", sys.executable, program, "20", "0")
    assert "recorded   1 file in" in outcome.err
    assert "no step was measured" in outcome.err
    assert run(folder).code == 0


def test_a_program_without_torch_is_left_alone(run: Run, tmp_path: Path) -> None:
    outcome = run(
        "capture", "-o", tmp_path / "x", "--", sys.executable, "-c", "raise SystemExit(3)"
    )
    assert outcome.code == 3
    assert "no Python process that imports torch was seen" in outcome.err
    assert not (tmp_path / "x").exists()


def test_a_program_ended_by_a_signal_has_the_code_of_a_shell(run: Run, tmp_path: Path) -> None:
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    outcome = run("capture", "-o", tmp_path / "x", "--", sys.executable, "-c", kill)
    assert outcome.code == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--", "no-such-program"), "`no-such-program` cannot be run"),
        (("--metadata", "tokens", "--", "true"), "no KEY=VALUE"),
        (("--metadata", "loss=nan", "--", "true"), "`nan` is no number"),
        (("--metadata", "loss=1e999", "--", "true"), "`1e999` is no number"),
        (("--ranks", "a", "--", "true"), "no list of ranks"),
        (("--warmup", "0", "--", "true"), "--warmup"),
        ((), "Missing argument"),
    ],
)
def test_what_cannot_be_asked_is_told(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    outcome = run("capture", "-o", tmp_path / "x", *arguments)
    assert outcome.code == 2
    assert words in outcome.err


def test_a_folder_that_cannot_be_is_told_before_the_program_runs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = tmp_path / "done"
    for folder in (tmp_path / "file", tmp_path / "file" / "x", Path("/proc/x")):
        outcome = run("capture", "-o", folder, "--", "touch", done)
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err.startswith(f"error: `{folder}` cannot take traces: ")
        assert not done.exists()


def test_a_program_that_leaves_nothing_leaves_no_folder(run: Run, tmp_path: Path) -> None:
    for program, code in (("true", 0), ("no-such-program", 2)):
        assert run("capture", "-o", tmp_path / "a" / "b", "--", program).code == code
        assert list(tmp_path.iterdir()) == []


def test_a_fact_is_a_number_where_a_person_writes_one() -> None:
    from replay.cli.cmd_capture import _facts

    asked = ["a=1_000", "b=32768", "c=0.5", "d=x=y"]
    assert _facts(asked) == {"a": "1_000", "b": 32768, "c": 0.5, "d": "x=y"}


def test_traces_of_another_run_are_not_mixed_with_new_ones(run: Run, tmp_path: Path) -> None:
    (tmp_path / "rank0.json.gz").touch()
    outcome = run("capture", "-o", tmp_path, "--", "true")
    assert outcome.code == 2
    assert "holds the traces of another run" in outcome.err


def test_a_usual_sitecustomize_is_run_and_the_path_is_as_without(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("MARK = 'theirs'\n", encoding="utf-8")
    (tmp_path / "replay.py").write_text("MARK = 'a replay buffer'\n", encoding="utf-8")
    variables = environment(
        {**os.environ, "PYTHONPATH": str(tmp_path)}, Settings(folder=str(tmp_path / "x"))
    )
    code = "import sys, sitecustomize, replay; print(sitecustomize.MARK, replay.MARK, *sys.path)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("theirs a replay buffer")
    assert str(INJECTED) not in done.stdout
    assert done.stderr == ""


def test_a_torch_that_lacks_everything_is_imported_all_the_same(tmp_path: Path) -> None:
    """Whatever is missing is told, and the program goes on."""
    (tmp_path / "torch.py").write_text("MARK = 1\n", encoding="utf-8")
    variables = environment(
        {**os.environ, "PYTHONPATH": str(tmp_path)}, Settings(folder=str(tmp_path / "x"))
    )
    done = subprocess.run(
        [sys.executable, "-c", "import torch; print(torch.MARK, torch.__loader__.path)"],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["1", str(tmp_path / "torch.py")]
    assert done.stderr.startswith("replay capture: not recording: ModuleNotFoundError")


def test_without_settings_in_the_environment_nothing_is_done(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("MARK = 1\n", encoding="utf-8")
    paths = os.pathsep.join([str(INJECTED), str(tmp_path)])
    variables = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, torch; print([n for n in sys.modules if 'replay' in n])",
        ],
        env={**variables, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout.strip(), done.stderr) == (
        "['_trace_replay_recording', '_trace_replay_recording.settings']",
        "",
    )


def test_the_program_sees_ctrl_c_and_is_waited_for(tmp_path: Path) -> None:
    """The launcher must outlive the program, or nobody would tell what was recorded."""
    code = "import os, signal; os.kill(os.getppid(), signal.SIGINT); raise SystemExit(4)"
    ran = run_program([sys.executable, "-c", code], Settings(folder=str(tmp_path / "x")))
    assert (ran.code, ran.notes, ran.files) == (4, (), ())


@needs_torch
def test_the_context_manager_records_what_the_script_calls_a_step(tmp_path: Path) -> None:
    script = _write(
        tmp_path / "own.py",
        """
        import torch
        from replay.capture import capture, profiler
        torch.set_num_threads(1)
        model = torch.nn.Linear(64, 64)
        with capture("run", skip=2, warmup=1, steps=1, metadata={"model": "tiny"}) as recording:
            for step in range(15):
                model(torch.randn(8, 64)).sum().backward()
                recording.step()
        print(recording.path)
        with profiler("plain", skip=1, warmup=1, steps=1) as plain:
            for step in range(4):
                model(torch.randn(8, 64)).sum().backward()
                plain.step()
        """,
    )
    done = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "run/rank0.json.gz"
    assert "run/rank0.json.gz is written; a step took" in done.stderr
    assert read_head(tmp_path / "run" / "rank0.json.gz")["metadata"] == {"model": "tiny"}
    assert read_head(tmp_path / "plain" / "rank0.json.gz")["rank"] == 0


def _with_head(folder: Path, step_ns: dict[int, object]) -> Path:
    """The two recorded ranks, with what a recording says of itself in front."""
    folder.mkdir()
    for rank, value in step_ns.items():
        name = f"rank{rank}.json.gz"
        whole = gzip.decompress((ROOT / "sample_traces/gloo2_cpu" / name).read_bytes()).decode()
        said = json.dumps({"unprofiled_step_ns": value})
        text = f'{{"trace_replay": {said},{whole.lstrip()[1:]}'
        (folder / name).write_bytes(gzip.compress(text.encode(), mtime=0))
    return folder


def test_a_step_measured_without_the_profiler_is_told_with_the_option(
    run: Run, tmp_path: Path
) -> None:
    traces = _with_head(tmp_path / "slow", {0: 20_000_000, 1: 22_000_000})
    told = "without the profiler a step took 21.00 ms: --unprofiled-step 21.00ms starts from there"
    assert told in " ".join(run(traces).out.split())
    assert "without the profiler a step" not in run(traces, "--unprofiled-step", "21ms").out


@pytest.mark.parametrize("value", ["soon", -5], ids=str)
def test_a_step_that_says_nothing_is_not_told(run: Run, tmp_path: Path, value: object) -> None:
    outcome = run(_with_head(tmp_path / "odd", {0: value, 1: value}))
    assert outcome.code == 0
    assert "without the profiler" not in outcome.out
