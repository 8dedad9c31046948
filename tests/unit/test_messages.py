"""What one communication row says: kind, element type, size."""

import pytest

from ingest.normalise.messages import (
    DTYPE_BYTES,
    HostRow,
    Partner,
    dtype_code,
    kind_of_kernel,
    message_of_device_row,
    message_of_host_row,
    partners_of,
    root_of,
)
from ingest.vocab import CollectiveKind as Kind

NCCL = "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long)", Kind.ALL_REDUCE),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgs)", Kind.REDUCE_SCATTER),
        ("nccldevkernel_sendrecv(nccldevkernelargsstorage<4096ul>)", Kind.SEND_RECV),
        ("ncclAllReduceRingLLKernel_sum_f32(ncclColl)", Kind.ALL_REDUCE),
        ("ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevComm*)", Kind.REDUCE),
        ("void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(RankData*)", Kind.ALL_REDUCE),
        ("void (anonymous namespace)::multimem_all_reduce_kernel<BFloat16, 16>", Kind.ALL_REDUCE),
        ("void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)", Kind.ALL_TO_ALL),
        ("oneccl_reduce_base<float, 4, 32, 1, 1, 2>", Kind.UNKNOWN),
        (NCCL, Kind.UNKNOWN),
    ],
)
def test_kernel_names_of_all_ages_tell_their_kind(name: str, kind: Kind) -> None:
    assert kind_of_kernel(name) is kind


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("Float8_e4m3fn", 1),
        ("Float8_e5m2fnuz", 1),
        ("Char", 1),
        ("UInt16", 2),
        ("ComplexFloat", 8),
        ("ComplexDouble", 16),
        ("c10::BFloat16", 2),
        ("c10::complex<float>", 8),
        ("signed char", 1),
        ("long int", 8),
    ],
)
def test_every_element_type_has_its_size(name: str, size: int) -> None:
    assert DTYPE_BYTES[dtype_code(name)] == size


def test_codes_of_element_types_are_those_of_c10() -> None:
    assert [dtype_code(name) for name in ("Byte", "Float", "BFloat16", "Float8_e8m0fnu")] == [
        0,
        6,
        15,
        44,
    ]


@pytest.mark.parametrize(
    ("operation", "sent", "received", "elements"),
    [
        ("allreduce", 100, 100, 100),
        ("_allgather_base", 100, 400, 400),
        ("_reduce_scatter_base", 400, 100, 400),
        ("all_to_all", 300, 500, 300),
        ("broadcast", 70, 70, 70),
        ("send", 50, 50, 50),
    ],
)
def test_size_is_that_of_nccl_tests(
    operation: str, sent: int, received: int, elements: int
) -> None:
    args = {
        "Collective name": operation,
        "In msg nelems": sent,
        "Out msg nelems": received,
        "dtype": "BFloat16",
    }
    assert message_of_device_row(NCCL, args, (), group_size=4).size_bytes == 2 * elements


def test_kernel_arguments_win_over_host_rows_and_host_rows_over_the_name() -> None:
    host = (HostRow("record_param_comms", {"Collective name": "allreduce"}),)
    assert message_of_device_row(NCCL, {}, host, group_size=2).kind is Kind.ALL_REDUCE
    args = {"Collective name": "broadcast"}
    assert message_of_device_row(NCCL, args, host, group_size=2).kind is Kind.BROADCAST


def test_old_sendrecv_kernel_under_an_all_reduce_is_an_all_reduce() -> None:
    host = (HostRow("nccl:all_reduce", {"Input Dims": [[394241]], "Input type": ["float"]}),)
    name = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)"
    message = message_of_device_row(name, {}, host, group_size=8)
    assert (message.kind, message.size_bytes) == (Kind.ALL_REDUCE, 394241 * 4)


def test_shapes_give_the_size_where_no_element_counts_are_recorded() -> None:
    host = (
        HostRow(
            "nccl:_all_gather_base", {"Input Dims": [[16777216]], "Input type": ["signed char"]}
        ),
        HostRow(
            "c10d::_allgather_base_",
            {
                "Input Dims": [[1073741824], [16777216], []],
                "Input type": ["signed char", "signed char", ""],
            },
        ),
    )
    assert message_of_device_row("ncclKernel_SendRecv", {}, host, group_size=-1).size_bytes == 2**30
    assert message_of_device_row("nccl", {}, host[:1], group_size=64).size_bytes == 2**30


def test_a_list_of_tensors_counts_all_of_them_and_a_scalar_counts_one() -> None:
    rows = (
        HostRow("nccl:all_reduce", {"Input Dims": [[]], "Input type": ["c10::Half"]}),
        HostRow(
            "c10d::allreduce_",
            {"Input Dims": [[[4, 2], [3]], []], "Input type": ["TensorList", ""]},
        ),
    )
    assert message_of_device_row("nccl", {}, rows[:1], group_size=2).size_bytes == 2
    listed = message_of_device_row("ncclDevKernel_AllReduce_Sum_f16", {}, rows[1:], group_size=2)
    assert listed.size_bytes == -1, "a tensor list records no element type"


def test_a_member_without_metadata_has_no_size() -> None:
    message = message_of_device_row("ncclDevKernel_AllReduce_Sum_f32_RING_LL", {}, (), group_size=8)
    assert (message.kind, message.size_bytes) == (Kind.ALL_REDUCE, -1)


def test_gloo_runs_a_reduce_scatter_as_an_all_reduce_of_the_full_input() -> None:
    row = {"Input Dims": [[1774464]], "Input type": ["float"]}
    host = (
        HostRow(
            "c10d::_reduce_scatter_base_",
            {"Input Dims": [[887232], [1774464]], "Input type": ["float", "float"]},
        ),
    )
    message = message_of_host_row("gloo:all_reduce", row, host, group_size=2)
    assert (message.kind, message.size_bytes) == (Kind.ALL_REDUCE, 4 * 1774464)


def test_lists_and_numbers_may_be_written_as_text() -> None:
    args = {
        "Collective name": "allreduce",
        "In msg nelems": "8",
        "Out msg nelems": "8",
        "dtype": "Float",
    }
    assert message_of_device_row(NCCL, args, (), group_size=2).size_bytes == 32
    host = (HostRow("nccl:all_reduce", {"Input Dims": "[[8]]", "Input type": '["float"]'}),)
    assert message_of_device_row(NCCL, {}, host, group_size=2).size_bytes == 32


def test_one_send_is_one_partner_however_many_rows_record_it() -> None:
    rows = (
        HostRow("nccl:send 0->1", {}),
        HostRow(
            "record_param_comms",
            {
                "Collective name": "send",
                "Dst Rank": 5,
                "Rank": 1,
                "In msg nelems": 3,
                "dtype": "Int",
            },
        ),
        HostRow("c10d::send", {"Concrete Inputs": ["", "", "1", "0"]}),
    )
    assert partners_of(rows, (4, 5)) == (Partner(sending=True, peer=5, size_bytes=12),)


def test_partners_in_the_group_become_global_ranks() -> None:
    operator = HostRow("c10d::recv_", {"Concrete Inputs": ["", "", "1", "0"]})
    assert partners_of((operator,), (4, 7)) == (Partner(sending=False, peer=7, size_bytes=-1),)
    assert partners_of((HostRow("nccl:recv 0<-1", {}),), (4, 7))[0].peer == 7


def test_the_root_of_a_broadcast_is_a_global_rank() -> None:
    rows = (HostRow("record_param_comms", {"Collective name": "broadcast", "Rank": 1}),)
    assert root_of(Kind.BROADCAST, rows, (2, 6)) == 6
    operator = (HostRow("c10d::broadcast_", {"Concrete Inputs": ["", "", "0", "0", "True"]}),)
    assert root_of(Kind.BROADCAST, operator, (2, 6)) == 2
    assert root_of(Kind.ALL_REDUCE, rows, (2, 6)) == -1
