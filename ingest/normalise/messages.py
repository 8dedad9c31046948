"""What one communication row says of its message: kind of operation, element type, size."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from ingest.vocab import CollectiveKind

UNKNOWN_SIZE = -1
UNKNOWN_DTYPE = -1
_BEYOND_ANY_SIZE = 1 << 53
_WHOLE_NUMBER = re.compile(r"\s*-?\d{1,20}\s*", re.ASCII)

_SCALAR_TYPES = (
    ("Byte", 1, "unsigned char", "uint8", "u8"),
    ("Char", 1, "signed char", "char", "int8", "i8"),
    ("Short", 2, "short", "short int", "int16", "i16"),
    ("Int", 4, "int", "int32", "i32"),
    ("Long", 8, "long", "long int", "long long", "int64", "i64"),
    ("Half", 2, "half", "c10::Half", "float16", "f16"),
    ("Float", 4, "float", "float32", "f32"),
    ("Double", 8, "double", "float64", "f64"),
    ("ComplexHalf", 4, "c10::complex<c10::Half>", "complex32"),
    ("ComplexFloat", 8, "c10::complex<float>", "complex64"),
    ("ComplexDouble", 16, "c10::complex<double>", "complex128"),
    ("Bool", 1, "bool"),
    ("QInt8", 1, "c10::qint8"),
    ("QUInt8", 1, "c10::quint8"),
    ("QInt32", 4, "c10::qint32"),
    ("BFloat16", 2, "c10::BFloat16", "bfloat16", "bf16"),
    ("QUInt4x2", 1, "c10::quint4x2"),
    ("QUInt2x4", 1, "c10::quint2x4"),
    ("Bits1x8", 1, "c10::bits1x8"),
    ("Bits2x4", 1, "c10::bits2x4"),
    ("Bits4x2", 1, "c10::bits4x2"),
    ("Bits8", 1, "c10::bits8"),
    ("Bits16", 2, "c10::bits16"),
    ("Float8_e5m2", 1, "c10::Float8_e5m2", "f8e5m2"),
    ("Float8_e4m3fn", 1, "c10::Float8_e4m3fn", "f8e4m3"),
    ("Float8_e5m2fnuz", 1, "c10::Float8_e5m2fnuz"),
    ("Float8_e4m3fnuz", 1, "c10::Float8_e4m3fnuz"),
    ("UInt16", 2, "unsigned short", "uint16", "u16"),
    ("UInt32", 4, "unsigned int", "uint32", "u32"),
    ("UInt64", 8, "unsigned long", "uint64", "u64"),
    *((f"UInt{bits}", 1) for bits in range(1, 8)),
    *((f"Int{bits}", 1) for bits in range(1, 8)),
    ("Float8_e8m0fnu", 1, "c10::Float8_e8m0fnu"),
    ("Float4_e2m1fn_x2", 1, "c10::Float4_e2m1fn_x2"),
)
DTYPE_NAMES = tuple(str(row[0]) for row in _SCALAR_TYPES)
"""c10 ScalarType names; the index is the code (that of c10)."""
DTYPE_BYTES = tuple(int(row[1]) for row in _SCALAR_TYPES)
_DTYPE_BY_NAME = {
    str(name): code for code, row in enumerate(_SCALAR_TYPES) for name in (row[0], *row[2:])
}

_KIND_BY_WORD = (
    ("reducescatter", CollectiveKind.REDUCE_SCATTER),
    ("allreduce", CollectiveKind.ALL_REDUCE),
    ("crossdevicereduce", CollectiveKind.ALL_REDUCE),
    ("allgather", CollectiveKind.ALL_GATHER),
    ("alltoall", CollectiveKind.ALL_TO_ALL),
    ("sendrecv", CollectiveKind.SEND_RECV),
    ("broadcast", CollectiveKind.BROADCAST),
    ("barrier", CollectiveKind.BARRIER),
    ("gather", CollectiveKind.GATHER),
    ("scatter", CollectiveKind.SCATTER),
    ("send", CollectiveKind.SEND),
    ("recv", CollectiveKind.RECV),
    ("reduce", CollectiveKind.REDUCE),
)
ROOTED_KINDS = frozenset(
    {
        CollectiveKind.BROADCAST,
        CollectiveKind.REDUCE,
        CollectiveKind.GATHER,
        CollectiveKind.SCATTER,
    }
)
_ONE_WAY = frozenset({CollectiveKind.SEND, CollectiveKind.RECV})
_REDUCING_KINDS = frozenset(
    {CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER, CollectiveKind.REDUCE}
)
_EXPERT_KERNEL = re.compile(r"deep_?ep|nvshmem|internode|intranode", re.IGNORECASE)
_KERNEL_DTYPE = re.compile(
    r"_(?:u?int(?:8|16|32|64)_t|half|float|double|__nv_bfloat16|hip_bfloat16"
    r"|bf16|f8e4m3|f8e5m2|[fiu](?:8|16|32|64))(?=_|$)"
)
_HOST_RECORD = re.compile(
    r"record_param_comms$|\w*(?:nccl|c10d|gloo|mpi|ucc|hccl|xccl|symm_mem)\w*:{1,2}(?P<op>\w+)"
)
_ARROW = re.compile(r"\b(?:send|recv)\b.*?(?P<self>\d+)\s*(?:->|<-)\s*(?P<peer>\d+)")


class HostRow(NamedTuple):
    """A host row around the launching call of a member: `record_param_comms`, `c10d::*`, ..."""

    name: str
    args: Mapping[str, object]


class Message(NamedTuple):
    """Kind, element type and size of one member; -1 where not recorded."""

    kind: CollectiveKind
    dtype: int
    size_bytes: int
    recorded: str
    """The name of the operation as the trace has it."""


class Partner(NamedTuple):
    """One send or receive of a member."""

    sending: bool
    peer: int
    """Global rank."""
    size_bytes: int


@lru_cache(maxsize=4096)
def kind_of_operation(text: str) -> CollectiveKind:
    """Kind that the name of an operation means (`_allgather_base`, `nccl:all_to_all`, ...)."""
    word = text.lower().replace("_", "")
    for part, kind in _KIND_BY_WORD:
        if part in word:
            return kind
    return CollectiveKind.UNKNOWN


@lru_cache(maxsize=4096)
def kind_of_kernel(name: str) -> CollectiveKind:
    """Kind that the name of a communication kernel means; UNKNOWN for generic names.

    A bare `reduce` is a rooted reduction only in NCCL's and RCCL's own kernels: oneCCL and the
    inference engines use such a name inside an all-reduce.
    """
    stem = re.split(r"[<(]", name.replace("(anonymous namespace)::", ""), maxsplit=1)[0]
    if _EXPERT_KERNEL.search(stem) and re.search(r"dispatch|combine", stem):
        return CollectiveKind.ALL_TO_ALL
    kind = kind_of_operation(stem)
    if kind is CollectiveKind.REDUCE and not re.search(r"[nr]ccl", stem, re.IGNORECASE):
        return CollectiveKind.UNKNOWN
    return kind


def dtype_code(text: object) -> int:
    """Code of a c10 ScalarType name or a C++ type name, -1 when it is none."""
    return _DTYPE_BY_NAME.get(text, UNKNOWN_DTYPE) if isinstance(text, str) else UNKNOWN_DTYPE


def is_communication_record(name: str) -> bool:
    """Whether a host row is the record of a communication (not an annotation of the user)."""
    return _HOST_RECORD.match(name) is not None


def integer(value: object) -> int | None:
    """The value as an integer when it is one or is written as one; None beyond any real size."""
    if isinstance(value, str):
        number = int(value) if _WHOLE_NUMBER.fullmatch(value) else None
    elif isinstance(value, float):
        number = int(value) if value.is_integer() else None
    else:
        number = value if isinstance(value, int) and not isinstance(value, bool) else None
    return number if number is not None and abs(number) < _BEYOND_ANY_SIZE else None


def items(value: object) -> Sequence[object]:
    """The value as a list when it is one or is written as JSON; else empty."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return ()
    return value if isinstance(value, list | tuple) else ()


def may_be_a_batch(kernel: HostRow, host: Iterable[HostRow]) -> bool:
    """Whether a kernel may send and receive what was recorded earlier: its own rows do not say."""
    told = any(_operation(row) is not CollectiveKind.UNKNOWN for row in (kernel, *host))
    by_name = kind_of_kernel(kernel.name)
    return not told and by_name in {CollectiveKind.SEND_RECV, CollectiveKind.UNKNOWN}


def one_way(rows: Sequence[int], read: Callable[[int], HostRow]) -> list[int]:
    """Those of some rows that record a send or a receive."""
    return [row for row in rows if _operation(read(row)) in _ONE_WAY]


def message_of_device_row(
    name: str, args: Mapping[str, object], host: Sequence[HostRow], *, group_size: int
) -> Message:
    """The message of a device member: its own arguments first, then its host rows, then its name.

    `group_size` (-1 when not known) turns the input of an all-gather into its total.
    """
    rows = [HostRow(name, args), *host]
    recorded, kind = _recorded_kind(rows)
    if kind is CollectiveKind.UNKNOWN:
        kind = kind_of_kernel(name)
    if len(batch := _one_way_rows(host)) > 1:
        return _message_of_batch(batch, name)
    dtype, size = _from_elements(kind, rows, group_size)
    if size == UNKNOWN_SIZE:
        dtype, size = _from_dims(kind, host, group_size, dtype)
    if dtype == UNKNOWN_DTYPE and kind in _REDUCING_KINDS:
        dtype = _dtype_of_kernel(name)
    return Message(kind, dtype, size, recorded or name)


def message_of_host_row(
    name: str, args: Mapping[str, object], host: Sequence[HostRow], *, group_size: int
) -> Message:
    """The message of a member that runs on the host (`gloo:*`): the row itself comes first.

    gloo runs `c10d::_reduce_scatter_base_` as an all-reduce of the full input; the row says so.
    """
    kind = kind_of_operation(name)
    dtype, size = _from_dims(kind, (HostRow(name, args), *host), group_size, UNKNOWN_DTYPE)
    return Message(kind, dtype, size, name)


def root_of(kind: CollectiveKind, rows: Sequence[HostRow], ranks: Sequence[int]) -> int:
    """Global rank of the root of a rooted kind; -1 where it is not recorded or has none.

    PyTorch writes it as a rank of the group, in the field `Rank`.
    """
    if kind not in ROOTED_KINDS:
        return -1
    for row in rows:
        if _operation(row) is kind:
            if "Collective name" in row.args:
                return _global(integer(row.args.get("Rank")), ranks)
            position = 2 if kind is CollectiveKind.BROADCAST else 3
            root = _global(_concrete(row, position), ranks)
            if root >= 0:
                return root
    return -1


def peers_in_group(rows: Sequence[HostRow], ranks: Sequence[int], own: int) -> bool:
    """Whether `Src Rank` and `Dst Rank` of a member can only be ranks of its group.

    PyTorch writes them as global ranks; files of other writers hold the place in the group. They
    show where no member has that global rank, where it would be the rank itself, or where the
    field `Rank`, always a place in the group, says the same and means another rank.

    Args:
        rows: the member and the host rows around its launch.
        ranks: global ranks of its group.
        own: global rank of the member.
    """
    for row in rows:
        peer = _named_peer(row)
        if peer is None or not ranks:
            continue
        place = integer(row.args.get("Rank"))
        if place is not None and 0 <= place < len(ranks):
            if ranks[place] != peer == place:
                return True
        elif peer not in ranks or (peer == own and peer < len(ranks) and ranks[peer] != own):
            return True
    return False


def partners_of(
    rows: Sequence[HostRow], ranks: Sequence[int], *, in_group: bool = False
) -> tuple[Partner, ...]:
    """The sends and receives that a member's rows record, once each.

    One operation may show as `record_param_comms`, `c10d::send` and `nccl:send 0->1`: the first
    sort of row that is there counts. `Src Rank` and `Dst Rank` are global unless `in_group`, all
    else is a rank of the group.
    """
    for records in _sorts(rows):
        found = [
            Partner(
                sending=_operation(row) is CollectiveKind.SEND,
                peer=peer,
                size_bytes=_one_way_size(row),
            )
            for row in records
            if (peer := _peer(row, ranks, in_group=in_group)) >= 0
        ]
        if found:
            return tuple(found)
    return ()


def _sorts(rows: Sequence[HostRow]) -> Iterator[list[HostRow]]:
    """Records of sends and receives by sort, the one that says most first."""
    records = [row for row in rows if _operation(row) in _ONE_WAY]
    for sort in (_is_parameter_record, _is_operator, _is_annotation):
        yield list(filter(sort, records))


def _one_way_rows(rows: Sequence[HostRow]) -> list[HostRow]:
    return next(filter(None, _sorts(rows)), [])


def _message_of_batch(rows: Sequence[HostRow], name: str) -> Message:
    """Several sends and receives at once: what is sent counts, else what is received."""
    sends = [row for row in rows if _operation(row) is CollectiveKind.SEND]
    sizes = [_one_way_size(row) for row in sends or rows]
    size = sum(sizes) if UNKNOWN_SIZE not in sizes else UNKNOWN_SIZE
    dtypes = {dtype_code(row.args.get("dtype")) for row in rows}
    dtype = dtypes.pop() if len(dtypes) == 1 else UNKNOWN_DTYPE
    return Message(CollectiveKind.SEND_RECV, dtype, size, name)


def _is_parameter_record(row: HostRow) -> bool:
    return "Collective name" in row.args


def _is_operator(row: HostRow) -> bool:
    return row.name.startswith("c10d::")


def _is_annotation(row: HostRow) -> bool:
    return _ARROW.search(row.name) is not None


def _named_peer(row: HostRow) -> int | None:
    """`Dst Rank` of a send, `Src Rank` of a receive."""
    operation = _operation(row)
    if operation not in _ONE_WAY:
        return None
    peer = integer(row.args.get("Dst Rank" if operation is CollectiveKind.SEND else "Src Rank"))
    return peer if peer is not None and peer >= 0 else None


def _peer(row: HostRow, ranks: Sequence[int], *, in_group: bool) -> int:
    peer = _named_peer(row)
    if peer is not None:
        return _global(peer, ranks) if in_group else peer
    if _is_parameter_record(row):
        return _global(integer(row.args.get("Rank")), ranks)
    if arrow := _ARROW.search(row.name):
        return _global(int(arrow["peer"]), ranks)
    return _global(_concrete(row, 2), ranks)


def _one_way_size(row: HostRow) -> int:
    kind = _operation(row)
    dtype, size = _from_elements(kind, (row,), UNKNOWN_SIZE)
    return size if size >= 0 else _from_dims(kind, (row,), UNKNOWN_SIZE, dtype)[1]


def _operation(row: HostRow) -> CollectiveKind:
    name = row.args.get("Collective name")
    if isinstance(name, str) and name:
        return kind_of_operation(name)
    match = _HOST_RECORD.match(row.name)
    return kind_of_operation(match["op"] or "") if match else CollectiveKind.UNKNOWN


def _concrete(row: HostRow, position: int) -> int | None:
    """A plain value among the arguments of a `c10d::*` operator."""
    inputs = items(row.args.get("Concrete Inputs")) if _is_operator(row) else ()
    return integer(inputs[position]) if len(inputs) > position else None


def _global(in_group: int | None, ranks: Sequence[int]) -> int:
    if in_group is None or in_group < 0:
        return -1
    return ranks[in_group] if in_group < len(ranks) else in_group


def _recorded_kind(rows: Sequence[HostRow]) -> tuple[str, CollectiveKind]:
    names = [str(row.args.get("Collective name") or "") for row in rows]
    names += [match["op"] or "" for row in rows[1:] if (match := _HOST_RECORD.match(row.name))]
    for text in names:
        kind = kind_of_operation(text)
        if kind is not CollectiveKind.UNKNOWN:
            return text, kind
    return "", CollectiveKind.UNKNOWN


def _from_elements(
    kind: CollectiveKind, rows: Sequence[HostRow], group_size: int
) -> tuple[int, int]:
    for row in rows:
        received = integer(row.args.get("Out msg nelems"))
        sent = integer(row.args.get("In msg nelems"))
        if sent is None and received is None:
            continue
        dtype = dtype_code(row.args.get("dtype"))
        count = _total(kind, max(sent or 0, 0), max(received or 0, 0), group_size)
        return dtype, _bytes_of(count, dtype)
    return UNKNOWN_DTYPE, UNKNOWN_SIZE


def _total(kind: CollectiveKind, sent: int, received: int, group_size: int) -> int:
    """Elements in the sense of nccl-tests from the input and the output of one member."""
    if kind in {CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_TO_ALL, CollectiveKind.SEND}:
        return sent or (-1 if received else 0)
    if kind in {CollectiveKind.ALL_GATHER, CollectiveKind.GATHER}:
        return received or (sent * group_size if group_size > 0 else -1)
    if kind is CollectiveKind.SCATTER:
        return received * group_size if group_size > 0 else -1
    return max(sent, received)


class _Tensors(NamedTuple):
    elements: int
    dtype: int


def _from_dims(
    kind: CollectiveKind, rows: Sequence[HostRow], group_size: int, dtype: int
) -> tuple[int, int]:
    """Size from the recorded shapes: the exact output of an all-gather, else the inputs."""
    total = UNKNOWN_SIZE
    for row in rows:
        if not is_communication_record(row.name):
            continue
        own = row.name == "record_param_comms" or not row.name.startswith(("c10d::", "_c10d"))
        found = _inputs(row) if own else _operands(kind, row)
        if found is None:
            continue
        if dtype == UNKNOWN_DTYPE:
            dtype = found.dtype
        if total == UNKNOWN_SIZE:
            is_total = not own and kind is CollectiveKind.ALL_GATHER
            total = found.elements if is_total else _total(kind, found.elements, 0, group_size)
    return dtype, _bytes_of(total, dtype)


def _bytes_of(elements: int, dtype: int) -> int:
    if dtype == UNKNOWN_DTYPE or not 0 <= elements < _BEYOND_ANY_SIZE:
        return UNKNOWN_SIZE
    return elements * DTYPE_BYTES[dtype]


def _inputs(row: HostRow) -> _Tensors | None:
    """All tensors of the backend's own record (`nccl:*`, `gloo:*`): these are the inputs."""
    found = [tensors for _, tensors in _arguments(row)]
    if row.name == "record_param_comms":
        found = found[:1]
    if not found:
        return None
    return _Tensors(sum(tensors.elements for tensors in found), found[0].dtype)


def _operands(kind: CollectiveKind, row: HostRow) -> _Tensors | None:
    """The operand of a `c10d::*` operator that holds the whole message.

    `_allgather_base_`, `_reduce_scatter_base_` and `alltoall_base_` list the output first.
    """
    position = 1 if kind in {CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_TO_ALL} else 0
    return dict(_arguments(row)).get(position)


def _arguments(row: HostRow) -> Iterator[tuple[int, _Tensors]]:
    dims, types = items(row.args.get("Input Dims")), items(row.args.get("Input type"))
    for position, (shape, type_name) in enumerate(zip(dims, types, strict=False)):
        if not isinstance(shape, list | tuple):
            continue
        if type_name == "TensorList":
            if shape and all(isinstance(tensor, list | tuple) for tensor in shape):
                elements = sum(prod(_sizes(tensor)) for tensor in shape)
                yield position, _Tensors(elements, UNKNOWN_DTYPE)
        elif (dtype := dtype_code(type_name)) != UNKNOWN_DTYPE:
            yield position, _Tensors(prod(_sizes(shape)), dtype)


def _sizes(shape: object) -> list[int]:
    return [value for size in items(shape) if (value := integer(size)) is not None]


@lru_cache(maxsize=4096)
def _dtype_of_kernel(name: str) -> int:
    stem = re.split(r"[<(]", name, maxsplit=1)[0]
    match = _KERNEL_DTYPE.search(stem)
    if match is None:
        return UNKNOWN_DTYPE
    word = match[0][1:].removesuffix("_t")
    return _DTYPE_BY_NAME.get("bf16" if "bfloat16" in word else word, UNKNOWN_DTYPE)
