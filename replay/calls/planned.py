"""The best layouts of a run that was replayed once."""

from collections.abc import Callable
from pathlib import Path

from replay.calls.replayed import Replayed
from whatif.description.file import load_said
from whatif.description.infer import THE_FILE, describe
from whatif.plan.plan import Asked
from whatif.plan.plan import plan as planned
from whatif.report.plan import PlanAnswer, plan_answer
from whatif.report.run_facts import run_facts


def plan(
    run: Replayed,
    asked: Asked,
    *,
    progress: Callable[[str, float], None] = lambda _text, _share: None,
) -> PlanAnswer:
    """Search layouts for a number of GPUs, score all of them, and replay the best.

    Args:
        run: read and replayed; what was said of it (`Recorded.describe`) counts.
        asked: GPUs, their kind, the batch, and how far to search.
        progress: told what is done, and which share.

    Raises:
        UserError: model, batch or machine are not known, or nothing fits.
    """
    path = run.recorded.describe
    said = None if path is None else load_said(Path(path))
    described = describe(run.graph, said, THE_FILE if path is None else path)
    found = planned(run.graph, run.baseline, described, asked, run.recorded, progress)
    return plan_answer(run_facts(run), found)
