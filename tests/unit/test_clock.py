"""Clocks of devices, hosts and files."""

import numpy as np
import pytest

from ingest.normalise.clock import (
    DeviceTasks,
    Meetings,
    device_clock_offset,
    fit_file_clocks,
    kernels_after_launch,
)
from ingest.vocab import CollectiveKind as Kind


def launches(lag_ns: int, n: int, *, period_ns: int = 100_000) -> DeviceTasks:
    call = np.arange(1, n + 1, dtype=np.int64) * period_ns
    start = call + 10_000 + lag_ns
    return DeviceTasks(
        start_ns=start,
        end_ns=start + 20_000,
        device=np.zeros(n, np.int64),
        call_start_ns=call,
        call_end_ns=call + 10_000,
        plain_launch=np.ones(n, dtype=bool),
    )


@pytest.mark.parametrize("lag_ns", [-67_000, -18_000, 30_000])
def test_device_clock_is_brought_to_two_microseconds_after_the_call(lag_ns: int) -> None:
    clock = device_clock_offset(launches(lag_ns, 20))
    assert clock.offset_ns == 2_000 - lag_ns
    assert clock.median_lag_ns == lag_ns


def test_small_or_badly_founded_device_offsets_are_not_applied() -> None:
    assert device_clock_offset(launches(5_500, 20)).offset_ns == 0
    assert device_clock_offset(launches(-67_000, 8)).offset_ns == 0, "seven met an idle device"


def test_tasks_that_queue_behind_others_say_nothing_about_the_clock() -> None:
    queued = launches(60_000, 20, period_ns=15_000)
    assert device_clock_offset(queued).samples == 0


def test_a_task_before_its_call_moves_with_its_busy_run_until_an_idle_gap_takes_it_up() -> None:
    start = np.array([990, 2_000, 20_000, 60_000], np.int64) * 100
    tasks = DeviceTasks(
        start_ns=start,
        end_ns=np.array([1_990, 19_990, 39_990, 70_000], np.int64) * 100,
        device=np.zeros(4, np.int64),
        call_start_ns=np.array([1_000 * 100, -1, 15_000 * 100, 50_000 * 100], np.int64),
        call_end_ns=np.array([1_050 * 100, -1, 15_050 * 100, 50_050 * 100], np.int64),
        plain_launch=np.ones(4, dtype=bool),
    )
    repair = kernels_after_launch(tasks)
    assert repair.shift_ns.tolist() == [1_000, 1_000, 1_000, 0]
    assert (repair.early, repair.dragged) == (1, 2)


def test_repair_of_one_device_leaves_the_others_alone() -> None:
    tasks = DeviceTasks(
        start_ns=np.array([0, 0], np.int64),
        end_ns=np.array([10, 10], np.int64),
        device=np.array([0, 1], np.int64),
        call_start_ns=np.array([5, -1], np.int64),
        call_end_ns=np.array([6, -1], np.int64),
        plain_launch=np.ones(2, dtype=bool),
    )
    assert kernels_after_launch(tasks).shift_ns.tolist() == [5, 0]


def meetings(
    ends: np.ndarray, *, kind: Kind = Kind.ALL_REDUCE, dur_ns: int = 100_000, on_host: bool = False
) -> Meetings:
    """`ends` of shape (files, collectives)."""
    n_files, n = ends.shape
    end = ends.T.reshape(-1).astype(np.int64)
    return Meetings(
        collective=np.repeat(np.arange(n), n_files),
        file=np.tile(np.arange(n_files), n),
        kind=np.full(n * n_files, kind, np.int64),
        start_ns=end - dur_ns,
        end_ns=end,
        on_host=np.full(n * n_files, on_host),
    )


def test_clock_offset_is_the_median_difference_of_ends() -> None:
    noise = np.random.default_rng(3).integers(-1_000, 1_000, (3, 40))
    ends = np.arange(1, 41) * 1_000_000 + noise
    ends[1] += 5_000_000
    ends[2] -= 700_000
    clocks = fit_file_clocks(meetings(ends), np.arange(3), ["", "", ""])
    assert clocks.offset_ns[0] == 0
    assert abs(clocks.offset_ns[1] - 5_000_000) < 1_000
    assert abs(clocks.offset_ns[2] + 700_000) < 1_000
    assert clocks.method == ("reference", "ends", "ends")
    assert (clocks.uncertainty_ns[1:] >= clocks.spread_ns / 2).all()


def test_an_offset_below_its_uncertainty_is_not_applied() -> None:
    noise = np.random.default_rng(3).integers(-20_000, 20_000, (2, 40))
    ends = np.arange(1, 41) * 1_000_000 + noise
    ends[1] += 3_000
    clocks = fit_file_clocks(meetings(ends), np.arange(2), ["", ""])
    assert clocks.offset_ns.tolist() == [0, 0]
    assert clocks.fitted_ns[1] != 0


def test_files_are_reached_over_others_and_the_lowest_rank_is_the_reference() -> None:
    first = meetings(np.array([[10, 20, 30], [1_010, 1_020, 1_030]]) * 1_000)
    second = meetings(np.array([[1_040, 1_050, 1_060], [5_040, 5_050, 5_060]]) * 1_000)
    chain = Meetings(
        collective=np.concatenate((first.collective, second.collective + 3)),
        file=np.concatenate((first.file, second.file + 1)),
        kind=np.concatenate((first.kind, second.kind)),
        start_ns=np.concatenate((first.start_ns, second.start_ns)),
        end_ns=np.concatenate((first.end_ns, second.end_ns)),
        on_host=np.concatenate((first.on_host, second.on_host)),
    )
    clocks = fit_file_clocks(chain, np.array([2, 1, 0]), ["", "", ""])
    assert clocks.offset_ns.tolist() == [-5_000_000, -4_000_000, 0]


def test_drift_is_taken_off_only_where_it_is_clear() -> None:
    ends = np.tile(np.arange(1, 101) * 50_000_000, (2, 1)).astype(np.float64)
    noise = np.random.default_rng(3).normal(0, 2_000, 100)
    ends[1] += 1_000_000 + noise + 20e-6 * (ends[0] - ends[0, 0])
    clocks = fit_file_clocks(meetings(ends), np.arange(2), ["", ""])
    assert clocks.drift[1] == pytest.approx(20e-6, rel=0.05)
    aligned = clocks.corrected(ends[1].astype(np.int64), np.ones(100, np.int64))
    assert np.abs(aligned - ends[0]).max() < 10_000
    ends[1] = ends[0] + 1_000_000 + noise
    assert fit_file_clocks(meetings(ends), np.arange(2), ["", ""]).drift[1] == 0


def test_host_members_only_bound_the_clock_by_the_order_of_events() -> None:
    ends = np.array([[1_000, 2_000, 3_000], [1_030, 2_011, 3_020]]) * 1_000_000
    near = meetings(ends, dur_ns=500_000_000, on_host=True)
    clocks = fit_file_clocks(near, np.arange(2), ["", ""])
    assert (clocks.offset_ns[1], clocks.method[1]) == (0, "order_of_events")
    ends[1] += 900_000_000
    far = meetings(ends, dur_ns=500_000_000, on_host=True)
    clocks = fit_file_clocks(far, np.arange(2), ["", ""])
    assert abs(clocks.offset_ns[1] - 920_000_000) < 15_000_000


def test_files_of_one_recorded_host_share_its_clock() -> None:
    ends = np.array([[1_000, 2_000, 3_000], [1_030, 2_011, 3_020]]) * 1_000_000
    near = meetings(ends, dur_ns=500_000_000, on_host=True)
    clocks = fit_file_clocks(near, np.arange(2), ["node1", "node1"])
    assert (clocks.method[1], clocks.uncertainty_ns[1]) == ("host", 0)


def test_a_file_that_shares_no_collective_stays_where_it_is() -> None:
    clocks = fit_file_clocks(meetings(np.array([[1, 2], [3, 4]])), np.arange(3), ["", "", ""])
    assert clocks.method[2] == "alone"
    assert np.isnan(clocks.fitted_ns[2])
    assert clocks.offset_ns[2] == 0
