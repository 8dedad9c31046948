"""One small run that was read once, and a session over it as the command line makes it."""

from functools import cache
from pathlib import Path

from replay import api
from replay.cli.flags import scenario_of_words
from replay.serve.session import Asked, Session
from whatif.report.findings import Findings
from whatif.scenario import Scenario

ROOT = Path(__file__).resolve().parents[3]
DDP8, GLOO2 = ROOT / "sample_traces/ddp8_h100", ROOT / "sample_traces/gloo2_cpu"


@cache
def found(trace: Path, start: Scenario) -> Findings:
    """Read once for all tests."""
    return api.examine([trace], Scenario(base=start.base))


def session(trace: Path = DDP8, *words: str, start: Scenario | None = None) -> Session:
    """Over a sample; begins with words of a command line, or with a whole scenario."""
    begins = scenario_of_words(words) if start is None else start
    asked = Asked(name="run", command="replay run", start=begins)
    return Session(found(trace, begins), asked, scenario_of_words)
