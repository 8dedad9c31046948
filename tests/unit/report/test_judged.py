"""What `replay check` says of places without a known cause."""

from tests.builders import GraphBuilder
from tests.unit.report.findings import findings_of
from whatif.report.findings import Findings
from whatif.report.judged import unexplained


def _late(residuals_ns: dict[str, int]) -> Findings:
    """Kernels one after another that begin so much after their causes."""
    made = GraphBuilder()
    for name, late_ns in residuals_ns.items():
        call = made.call(0, "launch", 10_000)
        made.kernel(0, name, 900_000, caller=call, residual_ns=late_ns)
    return findings_of(made.build())


def test_places_that_round_to_nothing_are_counted_not_listed() -> None:
    head, row, rest = unexplained(_late({"slow": 30_000, "early": -2_000, "late": 1_000}))
    assert head.split()[:3] == ["on", "the", "path"]
    assert row.split()[:2] == ["0.03", "ms"]
    assert rest == "2 more places: 3.0 us on the path, 3.0 us in all"


def test_a_run_with_small_places_alone_has_no_table() -> None:
    assert list(unexplained(_late({"late": 1_000}))) == [
        "1 place: 1.0 us on the path, 1.0 us in all"
    ]
