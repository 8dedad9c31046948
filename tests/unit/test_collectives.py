"""Columns of members and the communicators they belong to."""

from typing import Any

from ingest.normalise.collectives import MemberSource, describe
from ingest.normalise.groups import FileFacts, ListedGroup, file_facts
from ingest.normalise.messages import HostRow

KERNEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"


def source(file: int, host: tuple[HostRow, ...] = (), **args: object) -> MemberSource:
    return MemberSource(
        file=file, slice_id=0, name=KERNEL, ts_ns=0, dur_ns=10, args=args, host=host
    )


def test_a_shortened_list_of_ranks_is_continued_by_start_and_stride() -> None:
    args: dict[str, Any] = {
        "Process Group Name": "7",
        "Process Group Ranks": "[1, 3, 5, ..., 61]",
        "Group size": 32,
        "Global rank start": 1,
        "Global rank stride": 2,
    }
    described = describe([source(0, **args)], [FileFacts(rank=1, world_size=64)])
    assert described.groups[0].ranks == tuple(range(1, 64, 2))
    assert described.groups[0].exact


def test_a_shortened_list_of_ranks_is_looked_up_where_the_stride_contradicts_it() -> None:
    ranks = (0, 1, 5, 6, 7)
    args: dict[str, Any] = {
        "Process Group Name": "7",
        "Process Group Ranks": "[0, 1, 5, ..., 7]",
        "Group size": 5,
        "Global rank start": 0,
        "Global rank stride": 1,
    }
    facts = FileFacts(rank=0, world_size=8, listed=(ListedGroup("7", ranks, "", ""),))
    described = describe([source(0, **args)], [facts])
    assert (described.groups[0].ranks, described.groups[0].exact) == (ranks, True)


def test_a_guessed_list_of_ranks_says_so() -> None:
    args: dict[str, Any] = {
        "Process Group Name": "7",
        "Process Group Ranks": "[0, 4, 8, ...]",
        "Group size": 6,
    }
    described = describe([source(0, **args)], [FileFacts(rank=0, world_size=64)])
    assert described.groups[0].ranks == (0, 4, 8, 12, 16, 20)
    assert not described.groups[0].exact


def test_a_list_of_blocks_is_continued_by_its_pattern_and_is_a_guess() -> None:
    shown = [rank for rank in range(64) if rank % 16 < 4]
    args: dict[str, Any] = {
        "Process Group Ranks": f"[{', '.join(map(str, shown[:10]))}, ...]",
        "Group size": len(shown),
        "Global rank start": 0,
        "Global rank stride": 1,
    }
    group = describe([source(0, **args)], [FileFacts(rank=0, world_size=64)]).groups[0]
    assert (group.ranks, group.exact) == (tuple(shown), False)


def test_a_shortened_list_without_a_pattern_keeps_its_size() -> None:
    args: dict[str, Any] = {"Process Group Ranks": "[0, 1, 5, 7, 8, ...]", "Group size": 40}
    described = describe([source(0, **args)], [FileFacts(rank=0, world_size=64)])
    assert described.groups[0].ranks == (0, 1, 5, 7, 8)
    assert not described.groups[0].exact
    assert described.members.group_size.tolist() == [40]


def test_numbers_beyond_64_bits_match_and_break_nothing() -> None:
    huge = {"Comms Id": (1 << 64) - 1, "Seq": (1 << 63) + 5, "Process Group Ranks": "[0, 1]"}
    files = [FileFacts(rank=0, world_size=2), FileFacts(rank=1, world_size=2)]
    sources = [source(file, **{**huge, "Comms Id": text}) for file, text in
               enumerate((huge["Comms Id"], str(huge["Comms Id"])))]  # fmt: skip
    members = describe(sources, files).members
    assert members.comms_id.tolist() == [0, 0]
    assert members.seq.tolist() == [-1, -1]


def test_groups_with_equal_ranks_are_told_apart_although_names_differ_between_ranks() -> None:
    def member(file: int, name: str) -> MemberSource:
        return source(
            file,
            **{"Process Group Name": name, "Process Group Ranks": "[0, 1]", "Group size": 2},
        )

    files = [FileFacts(rank=0, world_size=2), FileFacts(rank=1, world_size=2)]
    sources = [member(0, "3"), member(0, "8"), member(1, "5"), member(1, "9")]
    described = describe(sources, files)
    assert described.members.group_key.tolist() == [0, 1, 0, 1]
    assert [group.ordinal for group in described.groups] == [0, 1]


def test_a_shared_name_decides_even_if_one_file_lacks_the_first_group() -> None:
    def member(file: int, name: str) -> MemberSource:
        return source(
            file,
            **{"Process Group Name": name, "Process Group Ranks": "[0, 1]", "Group size": 2},
        )

    files = [FileFacts(rank=0, world_size=2), FileFacts(rank=1, world_size=2)]
    described = describe([member(0, "3"), member(0, "8"), member(1, "8")], files)
    assert described.members.group_key.tolist() == [0, 1, 1]


def test_a_kernel_without_record_belongs_to_the_only_listed_communicator() -> None:
    listed = (ListedGroup("0", (0, 1), "default_pg", "cuda:nccl"),)
    facts = FileFacts(rank=0, world_size=2, listed=listed, listed_all=True)
    described = describe([source(0)], [facts])
    assert described.members.group_key.tolist() == [0]
    assert described.members.size_bytes.tolist() == [-1]
    several = FileFacts(rank=0, world_size=2, listed=listed * 2, listed_all=True)
    assert describe([source(0)], [several]).members.group_key.tolist() == [-1]


def test_old_records_hold_sequence_and_size_by_place() -> None:
    record = HostRow(
        "record_param_comms",
        {"Concrete Inputs": ["", "337", "93825114103440", "0", "", "[]", "[]", "8"]},
    )
    described = describe([source(0, (record,))], [FileFacts(rank=0, world_size=8)])
    assert described.members.seq.tolist() == [337]
    assert described.groups[0].ranks == tuple(range(8))


def test_distributed_info_may_be_the_text_of_a_python_dict() -> None:
    text = (
        "{'backend': 'nccl', 'rank': 0, 'pg_count': 2, 'pg_config': [{'pg_name': '0', 'pg_desc': "
        "'default_pg', 'backend_config': 'cuda:nccl', 'pg_size': 2, 'ranks': [0, 1]}, {'pg_name': "
        "'1', 'pg_desc': 'undefined', 'backend_config': 'cpu:gloo', 'pg_size': 2, 'ranks': [0, 1]}"
        "], 'nccl_version':"
    )
    facts = file_facts(text, rank=0)
    assert [group.name for group in facts.listed] == ["0", "1"]
    assert facts.listed_all


def test_rows_of_the_user_say_nothing_about_a_member() -> None:
    row = HostRow("FSDP::all_gather (layers.0)", {"Input Dims": [[9]], "Input type": ["float"]})
    described = describe([source(0, (row,))], [FileFacts(rank=0)])
    assert described.members.size_bytes.tolist() == [-1]
    assert described.recorded == (KERNEL,)
