"""Two runs beside each other, and a prediction beside the run made since."""

from ingest import pipeline
from ingest.pipeline import IngestOptions
from replay.calls.replayed import graph_of
from replay.calls.window import DEFAULTS, WHOLE, Paths, Window
from replay.results.causes import find_fetching
from replay.results.fidelity import baseline
from replay.results.frames import host_frames
from replay.run import failed_files
from whatif.compare.contract import Diff
from whatif.compare.diff import diff as compared
from whatif.compare.gate import Limit
from whatif.compare.side import Side
from whatif.compare.verify import Verification
from whatif.compare.verify import verify as verified
from whatif.report.answer import Answer
from whatif.report.reading import read_run


def side(paths: Paths, *, window: Window = WHOLE, options: IngestOptions = DEFAULTS) -> Side:
    """Read and replay a run as it is, for `diff` and `verify`.

    Raises:
        UserError: as `analyse`.
    """
    with pipeline.open_run(paths, options=options) as run:
        return side_of(run, name_of(paths), window)


def side_of(run: pipeline.Run, name: str, window: Window) -> Side:
    """An open run as it is compared."""
    graph, facts = graph_of(run, window)
    base, fetching = baseline(graph, facts), find_fetching(run.store)
    return Side(
        name=name,
        graph=graph,
        facts=facts,
        baseline=base,
        reading=read_run(graph, base, facts, fetching),
        fetching=fetching,
        frames=host_frames(run.store, graph, facts),
        failed=failed_files(run),
    )


def name_of(paths: Paths) -> str:
    """The paths as one word or a few."""
    return " ".join(str(path) for path in paths)


def diff(a: Side, b: Side, limit: Limit | None = None) -> Diff:
    """What accounts for the difference of two runs; `a` is the baseline.

    Args:
        a: of `side`.
        b: of `side`.
        limit: how much slower `b` may be.
    """
    return compared(a, b, limit)


def verify(
    prediction: Answer, run: Side, *, name: str = "prediction", limit: Limit | None = None
) -> Verification:
    """How good a prediction was.

    Args:
        prediction: an answer to a what-if, also one that `read_prediction` reads from a file.
        run: made later, of `side`.
        name: of the prediction.
        limit: how far off it may be.
    """
    return verified(prediction, name, run, limit)
