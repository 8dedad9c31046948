"""Sends and receives that one kernel does together are known one by one, with their partners."""

from pathlib import Path
from typing import Any

from tests.kineto import KinetoFile
from tests.reading import reading

KERNEL = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


def _record(file: KinetoFile, kind: str, peer: int, at: float, elements: int) -> None:
    """What `isend` and `irecv` leave on the host: one operator and two records of it."""
    peer_key = "Dst Rank" if kind == "send" else "Src Rank"
    fields: dict[str, Any] = {"Collective name": kind, peer_key: peer, "dtype": "Float", "Seq": 5}
    fields |= {"In msg nelems": elements, "Out msg nelems": elements, "Group size": 3}
    fields |= {"Process Group Name": "0", "Process Group Ranks": "[0, 1, 2]"}
    file.op(f"c10d::{'send' if kind == 'send' else 'recv_'}", (at, at + 8))
    file.op("record_param_comms", (at + 1, at + 7), **fields)
    file.op("record_param_comms", (at + 2, at + 6), **fields)


def test_one_kernel_for_a_batch_meets_the_partner_of_each_record(tmp_path: Path) -> None:
    paths = []
    for rank in range(3):
        file = KinetoFile(rank=rank, ranks=range(3))
        if rank != 1:
            _record(file, "send" if rank else "recv", 2 - rank, 0, 7)
            file.launched(KERNEL, (3, 4), (5, 9))
        _record(file, "send", (rank + 1) % 3, 10, 100)
        _record(file, "recv", (rank - 1) % 3, 20, 100)
        _record(file, "send", (rank + 2) % 3, 30, 50)
        _record(file, "recv", (rank - 2) % 3, 40, 50)
        start = 100 + 10 * rank
        file.launched(KERNEL, (60, 65), (start, 150), stream=20)
        paths.append(file.write(tmp_path / f"rank{rank}.json"))
    with reading(*paths) as run:
        found = run.store.rows(
            "SELECT c.kind, c.n_seen, c.msg_bytes, c.dtype, r.rank, r.wait_dur, r.transfer_dur"
            " FROM collective_rank r JOIN collective c USING (coll_id)"
            " WHERE r.dur > 10000 ORDER BY r.rank"
        )
    assert found == [
        ("send_recv", 3, 600, "Float", 0, 20_000, 30_000),
        ("send_recv", 3, 600, "Float", 1, 10_000, 30_000),
        ("send_recv", 3, 600, "Float", 2, 0, 30_000),
    ]
