"""Section `communication` on traces that are small enough to do the sum by hand."""

from pathlib import Path

import pytest

from replay import api
from tests.kineto import ALL_REDUCE, KinetoFile
from tests.unit.postmortem.sections import bars_of, block_of, rows_of, section_of
from whatif.postmortem.sections import communication
from whatif.postmortem.shares import fitted_ns, whole_ns
from whatif.report.blocks import Scatter

ROOT = Path(__file__).resolve().parents[3]
TRACES = ROOT.parent / "shared" / "traces"
GLOO = ROOT / "sample_traces" / "gloo2_cpu"
with_shared = pytest.mark.skipif(not TRACES.is_dir(), reason="shared/ is not beside the checkout")


def _two_ranks(folder: Path) -> list[Path]:
    """Three all-reduces of 4,000 bytes in a step of 130 us; a kernel hides half of the last.

    Rank 1 comes 20 us late to the first, rank 0 comes 10 us late to the second.
    """
    runs = {0: ((10, 40), (60, 80), (100, 120)), 1: ((30, 40), (50, 80), (100, 120))}
    calls = {0: ((2, 5), (55, 58), (85, 88)), 1: ((2, 5), (20, 23), (85, 88))}
    written = []
    for rank in (0, 1):
        file = KinetoFile(rank=rank, ranks=(0, 1))
        file.step(1, (0, 130))
        for number in range(3):
            file.all_reduce(number, calls[rank][number], runs[rank][number])
        file.launched("gemm", (90, 92), (100, 110))
        written.append(file.write(folder / f"rank{rank}.json"))
    return written


def test_time_is_hidden_waited_or_moving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section, material = section_of(communication.section, _two_ranks(tmp_path), monkeypatch)
    (parts,) = bars_of(section, "communication.exposed").values()
    assert parts == {
        "exposed, waiting for other ranks": 15_000,
        "exposed, moving data": 40_000,
        "hidden by compute": 10_000,
    }
    assert material.answer.breakdown.baseline.exposed_comm_ns == 55_000
    assert section.summary.startswith(
        "Communication runs 0.07 ms of a step and rank; nothing hides 0.06 ms of it (42.3% of "
        "the step), of which 0.01 ms only wait for other ranks; default_pg (2 ranks) moves its "
        "bytes at 0.24 GB/s bus bandwidth"
    )


def test_a_group_stands_beside_its_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section, _ = section_of(communication.section, _two_ranks(tmp_path), monkeypatch)
    (group,) = rows_of(section, "communication.groups")
    assert group["ranks"] == "0-1"
    assert group["where"] == "inside a node"
    assert (group["calls"], group["bytes"]) == (3, 12_000)
    assert (group["transfer"], group["wait"]) == (50_000, 15_000)
    assert group["overlap"] == pytest.approx(10 / 65)
    (speed,) = rows_of(section, "communication.bandwidth")
    assert speed["achieved"] == pytest.approx(3 * 4_000 / 50e-6)
    assert speed["own best"] == pytest.approx(4_000 / 10e-6)
    assert speed["roof"] == 450e9
    assert "H100" in speed["roof is"]
    (size,) = rows_of(section, "communication.sizes")
    assert (size["kind"], size["size"], size["calls"]) == ("all_reduce", 4_000, 3)
    scatter = block_of(section, "communication.bandwidth_by_size")
    assert isinstance(scatter, Scatter)
    assert [roof.points[0][1] for roof in scatter.roofs] == [450e9]
    assert section.missing == ()


def test_members_without_metadata_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = KinetoFile(rank=0, ranks=(0, 1))
    file.step(1, (0, 100))
    file.launched(ALL_REDUCE, (5, 8), (10, 40))
    file.launched("gemm", (50, 55), (60, 90))
    section, _ = section_of(
        communication.section, [file.write(tmp_path / "rank0.json")], monkeypatch
    )
    unknown = {row["what"]: row["members"] for row in rows_of(section, "communication.unknown")}
    assert unknown["without size"] == 1
    assert unknown["absent"] == 1
    assert any(
        missing.what.startswith("size and bandwidth of 1 of 1") for missing in section.missing
    )


def test_a_run_without_collectives_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = KinetoFile()
    file.step(1, (0, 100))
    file.launched("gemm", (5, 10), (12, 32))
    section, _ = section_of(
        communication.section, [file.write(tmp_path / "rank0.json")], monkeypatch
    )
    assert section.summary == "One rank alone: nothing is communicated."
    assert section.blocks == ()


def test_uneven_all_to_alls_are_told_by_what_the_calls_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    for rank, sent in ((0, 3_000), (1, 1_000)):
        file = KinetoFile(rank=rank, ranks=(0, 1))
        file.step(1, (0, 100))
        file.all_reduce(0, (5, 8), (10, 40))
        file.rows[-1]["name"] = "ncclDevKernel_SendRecv"
        told = file.rows[-1]["args"]
        assert isinstance(told, dict)
        told |= {"Collective name": "all_to_allv", "In msg nelems": sent}
        told |= {"Out msg nelems": 2_000, "In split size": f"[{sent - 500}, 500]"}
        written.append(file.write(tmp_path / f"rank{rank}.json"))
    section, _ = section_of(communication.section, written, monkeypatch)
    (row,) = rows_of(section, "communication.balance")
    assert (row["most sent by rank"], row["most sent"]) == (0, 3_000)
    assert row["sent, most to mean"] == 1.5
    assert row["got, most to mean"] == 1.0
    assert row["largest split"] == 2_500


def test_groups_of_a_run_without_devices_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    section, material = section_of(communication.section, [GLOO], monkeypatch)
    parts = bars_of(section, "communication.exposed")
    exposed_ns = sum(
        value or 0 for of in parts.values() for name, value in of.items() if "exposed" in name
    )
    assert exposed_ns == material.answer.breakdown.baseline.exposed_comm_ns > 0
    waiting_ns = sum(of.get("exposed, waiting for other ranks") or 0 for of in parts.values())
    assert waiting_ns == pytest.approx(material.answer.breakdown.baseline.exposed_wait_ns, abs=3)
    assert [row["where"] for row in rows_of(section, "communication.groups")] == [
        "on the hosts' network"
    ]
    assert any("--base-net" in missing.how for missing in section.missing)


@with_shared
@pytest.mark.parametrize("steps", [None, range(5, 7)])
def test_parts_of_real_ranks_add_up_in_any_window(
    steps: range | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    section, material = section_of(
        communication.section,
        [TRACES / "v100x4_torchrec_fp32"],
        monkeypatch,
        api.Window(steps=steps),
    )
    parts = bars_of(section, "communication.exposed")
    exposed_ns = sum(
        value or 0 for of in parts.values() for name, value in of.items() if "exposed" in name
    )
    assert "not by group" not in parts
    assert exposed_ns == material.answer.breakdown.baseline.exposed_comm_ns
    phases_ns = sum(row["exposed"] for row in rows_of(section, "communication.phases"))
    assert phases_ns == pytest.approx(exposed_ns, abs=3)


def test_rounded_parts_add_up_and_a_real_rest_is_told() -> None:
    assert whole_ns([0.4, 0.4, 10.4]) == (0, 0, 11)
    assert fitted_ns([0.4, 10.4], 12) == ((0, 12), 0)
    assert fitted_ns([5.0, 10.0], 40) == ((5, 10), 25)
    assert fitted_ns([], 7) == ((), 7)
