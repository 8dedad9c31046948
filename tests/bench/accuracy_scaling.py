"""How well made runs and what-ifs predict public scaling tables from one row each.

    python -m tests.bench.accuracy_scaling ../shared [--asked [--undescribed]] [TABLE ...]

Per system one row calibrates one factor of all compute kernels. Then, of every other row:

- made: the run is made at the row's own layout with that factor;
- asked: a run of the row's model is made at the calibrating row's layout with that factor, read as
  any trace with its full description beside it (`run.yaml`; with `--undescribed` the trace alone),
  and what-ifs make the row's layout of it.

The row that calibrates is the first of each system in `scaling_rows`: of SimuMax the second one of
its table (Llama 3 70B, TP 2), of YaFSDP the longest sequence, of torchtitan one of compiled and one
of eager rows. No factor but that one is fitted to these tables; the models were mended with them in
view.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ingest.errors import UserError
from tests.bench.scaling_asked import asked_ms
from tests.bench.scaling_rows import Row, rows
from tests.bench.tables import Table, percent
from whatif.synth.calibrate import Calibration, calibrated, step_ns
from whatif.synth.machine import site_of


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """One row, predicted."""

    row: Row
    calibrates: bool
    made_ms: float
    asked_ms: float | None = None
    refused: str = ""

    @property
    def error(self) -> float:
        """Of the run made at its own layout: predicted over measured, less one."""
        return self.made_ms / self.row.measured_ms - 1

    @property
    def asked_error(self) -> float | None:
        """Of the what-ifs."""
        return None if self.asked_ms is None else self.asked_ms / self.row.measured_ms - 1


def predict(wanted: Sequence[Row], *, asked: bool, described: bool = True) -> list[Predicted]:
    """Each row at its own layout, and by what-ifs, with the factor of its system."""
    firsts: dict[str, tuple[Row, Calibration]] = {}
    out = []
    for row in wanted:
        site = site_of(row.machine)
        calibrates = row.system not in firsts
        if calibrates:
            firsts[row.system] = row, calibrated(row.shape, site, row.measured_ms * 1e6)
        first, found = firsts[row.system]
        made = step_ns(row.shape, site, found.factors) / 1e6
        by_what_ifs, refused = None, ""
        if asked and not calibrates:
            try:
                by_what_ifs = asked_ms(row, first, found, described=described)
            except UserError as error:
                refused = str(error)
        out.append(
            Predicted(
                row=row,
                calibrates=calibrates,
                made_ms=made,
                asked_ms=by_what_ifs,
                refused=refused,
            )
        )
    for system, (_, calibration) in firsts.items():
        sys.stderr.write(f"{system}: kernels x {calibration.compute_factor:.3f}\n")
    return out


def summary(predicted: Sequence[Predicted]) -> Table:
    """Median and 90th percentile of the errors per table."""
    lines = []
    for table in dict.fromkeys(each.row.table for each in predicted):
        mine = [each for each in predicted if each.row.table == table and not each.calibrates]
        for way, errors in (
            ("made", [each.error for each in mine]),
            ("asked", [each.asked_error for each in mine]),
        ):
            known = [abs(error) for error in errors if error is not None]
            if known:
                shown = (f"{np.percentile(known, q):.1%}" for q in (50, 90, 100))
                lines.append((table, way, f"{len(known)} of {len(mine)}", *shown))
    return Table(head=("table", "way", "rows", "median", "p90", "worst"), rows=tuple(lines))


def each_row(predicted: Sequence[Predicted]) -> Table:
    """All of them."""
    lines = tuple(
        (
            each.row.name + (" (calibrates)" if each.calibrates else ""),
            f"{each.row.measured_ms:,.0f}",
            f"{each.made_ms:,.0f}",
            percent(each.error),
            each.refused or ("-" if each.asked_ms is None else f"{each.asked_ms:,.0f}"),
            percent(each.asked_error),
        )
        for each in predicted
    )
    head = ("row", "measured ms", "made ms", "error", "asked ms", "error of asked")
    return Table(head=head, rows=lines)


def main(arguments: Sequence[str]) -> int:
    """Print the tables."""
    asked = "--asked" in arguments
    described = "--undescribed" not in arguments
    shared, *chosen = [each for each in arguments if not each.startswith("--")]
    wanted = [row for row in rows(Path(shared)) if not chosen or row.table in chosen]
    predicted = predict(wanted, asked=asked, described=described)
    for table in (each_row(predicted), summary(predicted)):
        sys.stdout.write("\n".join(table.lines()) + "\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
