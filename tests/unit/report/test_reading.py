"""How a run reads: what is said, and what is left unsaid."""

from dataclasses import replace

from tests.builders import GraphBuilder, data_parallel, facts_of
from tests.unit.report.findings import findings_of
from whatif.report.check import render_check
from whatif.report.text import render
from whatif.report.view import answer_of

US = 1_000


def test_a_slow_rank_is_named_with_its_cost_and_cause() -> None:
    text = render(findings_of(data_parallel(slow_rank=1)))
    assert "bound    GPU-bound on rank 1: 83% of the critical path is device compute" in text
    assert (
        "waits    rank 1 makes each other rank wait 1.00 ms a step (41.5%), last in 1 of 1" in text
    )
    assert "device compute 100%" in text


def test_the_call_that_holds_a_late_host_is_named() -> None:
    made = GraphBuilder(ranks=(0, 1))
    callers = {}
    for rank in made.ranks:
        if rank == 1:
            made.call(rank, "cudaFree", 300 * US)
        made.host(rank, "aten::mm", 20 * US)
        callers[rank] = made.call(rank, "cudaLaunchKernel", 5 * US)
    made.collective(50 * US, callers=callers)
    text = " ".join(render(findings_of(made.build())).split())
    assert "host work 100% (longest in cudaFree)" in text


def test_ranks_alike_leave_the_waiting_unsaid() -> None:
    assert "waits " not in render(findings_of(data_parallel()))


def test_a_host_bound_run_says_how_long_the_device_idles() -> None:
    made = GraphBuilder()
    for _ in range(4):
        made.host(0, "aten::mm", 90 * US)
        made.kernel(0, "k", 40 * US, caller=made.call(0, "cudaLaunchKernel", 10 * US))
    text = render(findings_of(made.build()))
    assert "host-bound: 91% of the critical path is host work | device idle 64% waiting" in text


def test_a_run_without_gpu_is_bound_by_its_cpu() -> None:
    made = GraphBuilder(gpu=None)
    made.host(0, "aten::mm", 100 * US)
    graph = made.build()
    text = render(findings_of(graph, facts=replace(facts_of(graph), has_device=False)))
    assert "bound    CPU-bound: 100% of the critical path is CPU work\n" in text


def test_a_check_has_every_rank_and_the_costliest_collectives() -> None:
    lines = render_check(findings_of(data_parallel(slow_rank=1))).splitlines()
    at = lines.index("stragglers")
    head = lines[at + 1].split()
    assert head[:4] == ["rank", "calls", "last", "resolved"]
    assert lines[at + 2].split()[:4] == ["1", "1", "1", "1"]
    assert lines[at + 3].split()[:4] == ["0", "1", "0", "0"]
    assert lines[at + 5].split()[:3] == ["all_reduce", "0", "1"]
    assert "ahead" in lines


def test_a_long_step_is_told_with_what_grew() -> None:
    made = GraphBuilder()
    for step, free_us in enumerate((0, 126_000, 0)):
        if free_us:
            made.call(0, "cudaFree", free_us * US, step=step)
        made.host(0, "aten::mm", 50_000 * US, step=step)
    findings = findings_of(made.build())
    sentence = "step 1 took 176.00 ms, 3.5x the median: 126.00 ms of cudaFree on rank 0"
    assert sentence in render(findings)
    (long,) = answer_of(findings).reading.long_steps
    assert (long.grown[0].name, long.grown[0].spent_ns) == ("cudaFree", 126_000 * US)


def test_the_answer_holds_the_reading() -> None:
    reading = answer_of(findings_of(data_parallel(slow_rank=1))).reading
    assert (reading.bound_by, reading.bound_rank) == ("device", 1)
    assert set(reading.path_frac) == {
        "host", "input", "compute", "copies", "transfer", "wait", "unknown",
    }  # fmt: skip
    first, second = reading.stragglers
    assert (first.rank, first.cost_ns, first.causes) == (1, 1_000_000, {"compute": 1_000_000})
    assert (second.rank, second.own_wait_ns) == (0, 1_000_000)
