"""What a run is: its layout, its model, its batches."""

from dataclasses import dataclass
from pathlib import Path

from ingest import pipeline
from ingest.pipeline import IngestOptions
from replay.calls.replayed import graph_of
from replay.calls.window import DEFAULTS, WHOLE, Paths, Window
from replay.run import failed_files
from whatif.description.described import Described
from whatif.description.file import description_text, load_said
from whatif.description.infer import THE_FILE
from whatif.description.infer import describe as understood
from whatif.report.description import DescribeAnswer, describe_answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """What was found of a run, in the forms that are asked for."""

    described: Described
    answer: DescribeAnswer
    failed: tuple[tuple[str, str], ...]
    """File and reason of those that could not be read."""

    @property
    def yaml(self) -> str:
        """A description to edit and give back."""
        return description_text(self.described.shape, self.described.findings)


def describe(
    paths: Paths,
    *,
    said: Path | None = None,
    window: Window = WHOLE,
    options: IngestOptions = DEFAULTS,
) -> Understood:
    """Understand a run: kind, degrees, stages, schedule, micro-batches, model, element types.

    Args:
        paths: as `analyse`.
        said: a YAML file that overrules what is found, field by field.
        window: the part of the run that counts.
        options: how traces are read.

    Raises:
        UserError: the traces or the description cannot be read, or contradict one another.
    """
    fields = None if said is None else load_said(said)
    with pipeline.open_run(paths, options=options) as run:
        graph, facts = graph_of(run, window)
        failed = failed_files(run)
    described = understood(graph, fields, THE_FILE if said is None else str(said))
    answer = describe_answer(graph, facts, described, len(failed))
    return Understood(described=described, answer=answer, failed=failed)
