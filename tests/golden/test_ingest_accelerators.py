"""Device work of other accelerators: Intel's queues and Meta's MTIA, linked to their calls."""

import json
from pathlib import Path

from tests.reading import document, host, issues, reading, rows, write

KERNELS = """
    SELECT k.name, k.class, k.device, k.stream, r.api, r.kind, o.name
    FROM kernel k
    LEFT JOIN runtime r ON r.id = k.runtime_id
    LEFT JOIN slice o ON o.id = k.op_id
    ORDER BY k.ts
"""


def _device(category: str, name: str, lane: tuple[int, int], ts: float, **args: object) -> str:
    row = {"ph": "X", "cat": category, "name": name, "pid": lane[0], "tid": lane[1]}
    return json.dumps({**row, "ts": ts, "dur": 5, "args": args})


def test_intel_kernels_are_on_their_queue_and_linked(tmp_path: Path) -> None:
    launch = host("xpu_runtime", "urEnqueueKernelLaunch", 2, 3, correlation=5)
    copy = host("xpu_runtime", "urEnqueueUSMMemcpy", 6, 2, correlation=6)
    queue = {"device": 1, "context": 2, "sycl queue": 4}
    path = write(
        tmp_path / "t.json",
        document(
            host("cpu_op", "aten::mm", 0, 9),
            launch,
            copy,
            _device("kernel", "gemm_kernel", (1, 4), 20, correlation=5, **queue),
            _device("gpu_memcpy", "Memcpy M2D", (1, 4), 30, correlation=6, **queue),
        ),
    )
    assert rows(path, KERNELS) == [
        ("gemm_kernel", "gemm", 1, 4, "urEnqueueKernelLaunch", "launch", "aten::mm"),
        ("Memcpy M2D", "memcpy", 1, 4, "urEnqueueUSMMemcpy", "memcpy", "aten::mm"),
    ]


def test_mtia_kernels_are_linked_and_its_firmware_s_copies_are_no_work_of_the_host(
    tmp_path: Path,
) -> None:
    path = write(
        tmp_path / "t.json",
        document(
            host("cpu_op", "aten::mm", 0, 9),
            host("mtia_runtime", "runFunction - submit", 2, 3, correlation=5),
            _device("mtia_ccp_events", "dma_request", (9, 4), 10, stream=1, size=632),
            _device("mtia_ccp_events", "batch_matmul-dtype_Float", (9, 4), 20, stream=1,
                    correlation=5),
        ),
    )  # fmt: skip
    with reading(path) as run:
        assert run.store.rows(KERNELS) == [
            ("batch_matmul-dtype_Float", "gemm", 9, 1, "runFunction - submit", "launch", "aten::mm")
        ]
        assert run.store.rows("SELECT count(*) FROM slice WHERE name = 'dma_request'") == [(1,)]
        assert not {"unlinked", "zero_correlation"} & set(issues(run))
