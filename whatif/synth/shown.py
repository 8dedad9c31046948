"""How PyTorch's profiler writes collectives and the arguments of operators."""

from ingest.vocab import CollectiveKind
from whatif.synth.operators import Operator
from whatif.synth.script import Exchange, Kernel

_ARGUMENTS = "(ncclDevKernelArgsStorage<4096ul>)"
_MESSAGES = "ncclDevKernel_SendRecv"
_KERNELS = {
    CollectiveKind.ALL_REDUCE: "ncclDevKernel_AllReduce_Sum_{}_RING_LL",
    CollectiveKind.ALL_GATHER: "ncclDevKernel_AllGather_RING_LL",
    CollectiveKind.REDUCE_SCATTER: "ncclDevKernel_ReduceScatter_Sum_{}_RING_LL",
    CollectiveKind.ALL_TO_ALL: _MESSAGES,
    CollectiveKind.SEND_RECV: _MESSAGES,
    CollectiveKind.SEND: _MESSAGES,
    CollectiveKind.RECV: _MESSAGES,
}
_NCCL_TYPES = {"Float": "f32", "Half": "f16", "BFloat16": "bf16", "Float8_e4m3fn": "u8"}
OPERATORS = {
    CollectiveKind.ALL_REDUCE: "c10d::allreduce_",
    CollectiveKind.ALL_GATHER: "c10d::_allgather_base_",
    CollectiveKind.REDUCE_SCATTER: "c10d::_reduce_scatter_base_",
    CollectiveKind.ALL_TO_ALL: "c10d::alltoall_base_",
    CollectiveKind.SEND_RECV: "c10d::alltoall_base_",
    CollectiveKind.SEND: "c10d::send",
    CollectiveKind.RECV: "c10d::recv_",
}
_NAMES = {
    CollectiveKind.ALL_REDUCE: "allreduce",
    CollectiveKind.ALL_GATHER: "_allgather_base",
    CollectiveKind.REDUCE_SCATTER: "_reduce_scatter_base",
    CollectiveKind.ALL_TO_ALL: "all_to_allv",
    CollectiveKind.SEND_RECV: "sendrecv",
    CollectiveKind.SEND: "send",
    CollectiveKind.RECV: "recv",
}


def record(exchange: Exchange, rank: int) -> dict[str, object]:
    """What PyTorch writes beside a collective."""
    group = exchange.group
    shown: dict[str, object] = {
        "Collective name": _NAMES[exchange.kind],
        "In msg nelems": exchange.sent,
        "Out msg nelems": exchange.received,
        "Group size": len(group.ranks),
        "dtype": exchange.dtype,
        "In split size": "[]",
        "Out split size": "[]",
        "Process Group Name": group.name,
        "Process Group Description": group.description,
        "Process Group Ranks": str(list(group.ranks)),
    }
    if exchange.kind is CollectiveKind.SEND:
        shown |= {"Src Rank": rank, "Dst Rank": exchange.peer}
    elif exchange.kind is CollectiveKind.RECV:
        shown |= {"Src Rank": exchange.peer, "Dst Rank": rank}
    return shown


def tensor(exchange: Exchange) -> dict[str, object]:
    """Arguments of the operator that starts it."""
    kind = {"Float": "float", "Half": "c10::Half"}.get(exchange.dtype, "c10::BFloat16")
    return {
        "Concrete Inputs": [""],
        "Input type": [kind],
        "Input Dims": [[exchange.sent or exchange.received]],
    }


def kernel_of(exchange: Exchange) -> Kernel:
    """NCCL's kernel; it lasts as long as the exchange."""
    name = _KERNELS[exchange.kind].format(_NCCL_TYPES[exchange.dtype])
    return Kernel(
        name=name + _ARGUMENTS,
        dur_ns=0,
        grid=(24, 1, 1),
        block=544,
        registers=96,
        shared_bytes=103_808,
    )


def arguments(operator: Operator) -> dict[str, object]:
    """Shapes and types of an operator's tensors."""
    return {
        "Concrete Inputs": [""] * len(operator.dims),
        "Input type": list(operator.types),
        "Input Dims": [list(dims) for dims in operator.dims],
    }
