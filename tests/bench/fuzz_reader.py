"""Damage traces at random for some minutes and check the law of `tests.damage`.

    python tests/bench/fuzz_reader.py --minutes 10 [--seed 1] [traces …]

Prints the first cases that break the law; each can be made again from its seed.
"""

import argparse
import faulthandler
import gzip
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from json.decoder import JSONDecoder
from pathlib import Path

from ingest.readers.source import Source
from tests.damage import Trace, broken_law, damaged, smaller
from tests.read_back import Blocks

ROOT = Path(__file__).parents[2]
LONGEST_S = 10
MOST_BYTES = 20_000_000
_NEXT = re.compile(r"[\s,]*")


def load(path: Path) -> Trace | None:
    """A whole trace and the places of its events; None where it is broken already."""
    stored = path.read_bytes()
    data = gzip.decompress(stored) if stored[:2] == b"\x1f\x8b" else stored
    try:
        text = data.decode()
        found = re.match(r'\s*\[|.*?"traceEvents"\s*:\s*\[', text, re.DOTALL)
        if found is None or len(data) > MOST_BYTES:
            return None
        spans, at, bytes_before, chars_before = [], _behind(text, found.end()), 0, 0
        while text[at] == "{":
            _, end = JSONDecoder().raw_decode(text, at)
            bytes_before += len(text[chars_before:at].encode())
            size = len(text[at:end].encode())
            spans.append((bytes_before, bytes_before + size))
            bytes_before, chars_before = bytes_before + size, end
            at = _behind(text, end)
    except ValueError:
        return None
    return Trace(data, tuple(spans)) if spans else None


def _behind(text: str, at: int) -> int:
    found = _NEXT.match(text, at)
    assert found
    return found.end()


def sources(paths: Sequence[Path]) -> list[Trace]:
    """The traces given, else samples and small real traces."""
    if not paths:
        paths = sorted((ROOT / "sample_traces").rglob("*.json*"))
        shared = ROOT.parent / "shared" / "traces"
        by_size = sorted(shared.rglob("*.json*"), key=lambda path: path.stat().st_size)
        paths = [*paths, *by_size[:12]]
    return [trace for path in paths if (trace := load(path)) is not None]


def run_case(seed: int, whole: Sequence[Trace], folder: Path) -> tuple[str, Trace]:
    """One damaged trace: what breaks the law, and the trace."""
    dice = random.Random(seed)
    few = [smaller(trace, dice.choice((3, 12, 60)), dice) for trace in dice.sample(whole, 3)]
    trace = damaged(few[0], few[1:], dice)
    if dice.random() < 0.2:
        packed = gzip.compress(trace.text, 1)
        if dice.random() < 0.5:
            packed = packed[: dice.randrange(len(packed))]
            trace = trace.cut(0)
        path = folder / "t.json.gz"
        path.write_bytes(packed)
        return broken_law(trace, Source(path)), trace
    size = dice.choice((7, 100, 1000, 1 << 23))
    return broken_law(trace, Blocks(trace.text, size)), trace


def main() -> int:
    """Fuzz and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=5)
    parser.add_argument("traces", nargs="*", type=Path)
    given = parser.parse_args()
    whole = sources(given.traces)
    began, cpu, seed, found = time.monotonic(), time.process_time(), given.seed, Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() - began < given.minutes * 60:
            faulthandler.dump_traceback_later(LONGEST_S, exit=True)
            started = time.monotonic()
            try:
                told, trace = run_case(seed, whole, Path(folder))
            except Exception as error:
                told, trace = f"raised {type(error).__name__}: {error}", Trace(b"", ())
            took = time.monotonic() - started
            if took > LONGEST_S / 2:
                told = told or f"took {took:.1f} s"
            if told:
                found[told.split(",")[0][:40]] += 1
                if found.total() <= given.show:
                    print(f"seed {seed}: {told}\n  {trace.text[:300]!r}")  # noqa: T201
            seed += 1
    faulthandler.cancel_dump_traceback_later()
    seconds = time.process_time() - cpu
    print(  # noqa: T201
        f"{seed - given.seed} cases of {len(whole)} traces, {seconds:.0f} s of CPU,"
        f" {found.total()} break the law {dict(found)}"
    )
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
