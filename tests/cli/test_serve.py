"""`replay serve` from its first line to Ctrl-C."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.cli.calls import ROOT, Run

SAMPLE = "sample_traces/gloo2_cpu"


def _hear_ctrl_c() -> None:
    """What a script runs in its background is deaf to it, and so is what that starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def _served(cache_home: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address, and the process."""
    serving = subprocess.Popen(
        [sys.executable, "-m", "replay", "serve", SAMPLE, "--no-open", *options],
        cwd=ROOT,
        env=os.environ | {"XDG_CACHE_HOME": str(cache_home), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=None if os.name == "nt" else _hear_ctrl_c,
    )
    assert serving.stdout is not None
    try:
        yield serving.stdout.readline().strip(), serving
    finally:
        serving.kill()
        serving.communicate()


def _got(address: str, path: str, body: object = None) -> dict[str, object]:
    root, _, token = address.partition("/?token=")
    data = None if body is None else json.dumps(body).encode()
    headers = {"X-Replay-Token": token, "Content-Type": "application/json"}
    with urlopen(Request(root + path, data=data, headers=headers), timeout=30) as answer:
        found: dict[str, object] = json.load(answer)
    return found


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is a signal elsewhere")
def test_it_answers_what_the_command_line_answers_and_ends_with_ctrl_c(
    run: Run, cache_home: Path
) -> None:
    with _served(cache_home, "--net", "x2") as (address, serving):
        assert address.startswith("http://127.0.0.1:")
        assert len(address.partition("token=")[2]) >= 32
        told = _got(address, "/api/run")
        assert told["start"] == ["--net", "x2"]
        flags = ["--net", "x2", "--host-scale", "2"]
        answer = _got(address, "/api/what-if", {"flags": flags})
        with pytest.raises(HTTPError) as refused:
            urlopen(address.partition("?")[0], timeout=30)
        assert refused.value.code == 403
        refused.value.close()
        serving.send_signal(signal.SIGINT)
        out, err = serving.communicate(timeout=30)
    assert (serving.returncode, out) == (0, "")
    assert err.endswith("ended\n")
    assert "Traceback" not in err
    assert answer == json.loads(run(SAMPLE, *flags, "--json").out)


def test_a_port_in_use_is_told_before_anything_is_read(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = run("serve", "missing.json", "--port", str(port), "--no-open")
    assert (outcome.code, outcome.out) == (2, "")
    first, *rest = outcome.err.splitlines()
    assert first == f"error: port {port} cannot be had: Address already in use"
    assert rest[0] == ""
    assert rest[1].startswith("hint: give another with --port N")


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        ([SAMPLE, "--nvlink", "900"], 2, "`900` is not a rate"),
        ([SAMPLE, "--port", "70000"], 2, "65535"),
        ([SAMPLE, "--scale", "class:gem=2"], 4, "class:gem"),
        (["missing.json"], 3, "no such file"),
    ],
)
def test_what_cannot_be_served_ends_with_its_code(
    run: Run, arguments: list[str], code: int, word: str
) -> None:
    outcome = run("serve", *arguments, "--no-open")
    assert (outcome.code, outcome.out) == (code, "")
    assert word in outcome.err
