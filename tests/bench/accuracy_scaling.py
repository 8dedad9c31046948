"""How well made runs and what-ifs predict public scaling tables from one row each.

    python -m tests.bench.accuracy_scaling ../shared [TABLE ...]

Per system one row calibrates one factor of all compute kernels. Then, of every other row:

- made: the run is made at the row's own layout with that factor;
- asked: a run of the row's model is made at the calibrating row's layout with that factor, read as
  any trace, and what-ifs make the row's layout of it.

Nothing is fitted to what is predicted.
"""

import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ingest.errors import UserError
from tests.bench.scaling_rows import Row, rows
from tests.bench.tables import Table, percent
from whatif.synth.calibrate import Calibration, calibrated, step_ns
from whatif.synth.machine import site_of


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """One row, predicted."""

    row: Row
    calibrates: bool
    made_ms: float | None = None
    refused: str = ""

    @property
    def error(self) -> float | None:
        """Predicted over measured, less one."""
        return None if self.made_ms is None else self.made_ms / self.row.measured_ms - 1


def predict(wanted: Sequence[Row]) -> list[Predicted]:
    """Each row at its own layout, with the factor of its system."""
    found: dict[str, Calibration] = {}
    out = []
    for row in wanted:
        site = site_of(row.machine)
        first = row.system not in found
        try:
            if first:
                found[row.system] = calibrated(row.shape, site, row.measured_ms * 1e6)
            made = step_ns(row.shape, site, found[row.system].factors) / 1e6
        except UserError as error:
            out.append(Predicted(row=row, calibrates=first, refused=str(error)))
            continue
        out.append(Predicted(row=row, calibrates=first, made_ms=made))
    for system, calibration in found.items():
        sys.stderr.write(f"{system}: kernels x {calibration.compute_factor:.3f}\n")
    return out


def summary(predicted: Sequence[Predicted]) -> Table:
    """Median and 90th percentile of the errors per table."""
    by_table: dict[str, list[float]] = defaultdict(list)
    for each in predicted:
        if each.error is not None and not each.calibrates:
            by_table[each.row.table].append(abs(each.error))
    lines = tuple(
        (table, str(len(errors)), *(f"{np.percentile(errors, q):.1%}" for q in (50, 90, 100)))
        for table, errors in by_table.items()
    )
    return Table(head=("table", "rows", "median", "p90", "worst"), rows=lines)


def each_row(predicted: Sequence[Predicted]) -> Table:
    """All of them."""
    lines = tuple(
        (
            each.row.table,
            each.row.name + (" (calibrates)" if each.calibrates else ""),
            f"{each.row.measured_ms:,.0f}",
            each.refused or f"{each.made_ms:,.0f}",
            percent(each.error),
        )
        for each in predicted
    )
    return Table(head=("table", "row", "measured ms", "made ms", "error"), rows=lines)


def main(arguments: Sequence[str]) -> int:
    """Print the tables."""
    chosen = arguments[1:]
    wanted = [row for row in rows(Path(arguments[0])) if not chosen or row.table in chosen]
    predicted = predict(wanted)
    for table in (each_row(predicted), summary(predicted)):
        sys.stdout.write("\n".join(table.lines()) + "\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
