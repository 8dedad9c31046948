"""What is found again in another run, and by what."""

from dataclasses import replace

from whatif.compare.leaves import Idle, Key, Leaf, Part
from whatif.compare.match import How, match

GEMM = Key(
    part=Part.COMPUTE,
    cause="gemm",
    name="ampere_sgemm_64x64",
    op="aten::mm",
    module="Linear_0",
    phase="forward",
    shape=11,
    size_bytes=-1,
    group="",
)
HOST = Key(
    part=Part.IDLE,
    cause=Idle.HOST,
    name="aten::mm",
    op="",
    module="",
    phase="",
    shape=-1,
    size_bytes=-1,
    group="",
)
REDUCE = replace(GEMM, part=Part.TRANSFER, cause="all_reduce", size_bytes=4096, group="dp, 8 ranks")


def leaf(key: Key) -> Leaf:
    return Leaf(key=key, spent_ns=10, per_step_ns=(10.0,), count=1.0, raw_ns=10.0)


def found(a: Key, b: Key, *, by_class: bool = False) -> list[How]:
    return [one.how for one in match([leaf(a)], [leaf(b)], by_class=by_class)]


def test_the_more_is_the_same_the_better_the_match() -> None:
    other = replace(GEMM, name="Cijk", shape=2, module="x")
    for changed, how in (
        (GEMM, How.SAME),
        (replace(GEMM, shape=12), How.RESHAPED),
        (replace(GEMM, module="Linear_7"), How.RESHAPED),
        (replace(GEMM, op="aten::addmm"), How.MOVED),
        (replace(GEMM, phase="backward"), How.MOVED),
        (other, How.RENAMED),
        (replace(other, cause="other"), How.RENAMED),
        (replace(GEMM, name="ampere_sgemm_128x32", op="triton"), How.RENUMBERED),
    ):
        assert found(GEMM, changed) == [how]


def test_kernels_without_an_operator_are_joined_by_class_between_other_gpus_only() -> None:
    a, b = replace(GEMM, op=""), replace(GEMM, op="", name="Cijk")
    assert found(a, b) == [How.GONE, How.NEW]
    assert found(a, b, by_class=True) == [How.SAME_CLASS]


def test_collectives_are_found_by_kind_communicator_and_size() -> None:
    for changed, how in (
        (replace(REDUCE, name="another_protocol"), How.SAME),
        (replace(REDUCE, size_bytes=2048), How.RESHAPED),
        (replace(REDUCE, group="dp, 16 ranks"), How.MOVED),
        (replace(REDUCE, group="dp, 16 ranks", size_bytes=1), How.RENAMED),
    ):
        assert found(REDUCE, changed) == [how]
    assert found(REDUCE, replace(REDUCE, cause="all_gather")) == [How.GONE, How.NEW]


def test_host_work_is_the_same_only_with_its_name() -> None:
    assert found(HOST, replace(HOST, phase="backward")) == [How.SAME]
    assert found(HOST, replace(HOST, name="aten::add")) == [How.GONE, How.NEW]
    launches = (replace(HOST, name=name) for name in ("cudaLaunchKernel", "hipExtLaunch"))
    assert found(*launches) == [How.RENAMED]


def test_the_parts_are_never_mixed() -> None:
    assert found(GEMM, replace(GEMM, part=Part.MEMCPY)) == [How.GONE, How.NEW]


def test_every_leaf_is_in_one_match() -> None:
    a = [leaf(replace(GEMM, shape=shape)) for shape in range(5)]
    b = [leaf(replace(GEMM, shape=shape, name=f"k{shape % 2}")) for shape in range(3)]
    matches = match(a, b, by_class=False)
    assert sorted(one.key for each in matches for one in each.a) == sorted(one.key for one in a)
    assert sorted(one.key for each in matches for one in each.b) == sorted(one.key for one in b)


def test_other_kernels_of_an_operator_are_paired_by_their_place_in_the_step() -> None:
    """Of six products the second and fifth are other shapes: A and B choose other kernels."""

    def runs(*names: str) -> list[Leaf]:
        places = ((0, 2, 3, 5), (1, 4))
        return [
            replace(leaf(replace(GEMM, name=name, shape=0)), places=at)
            for name, at in zip(names, places, strict=True)
        ]

    matches = match(runs("large", "small"), runs("Cijk_1", "Cijk_2"), by_class=True)
    pairs = {(one.a[0].key.name, one.b[0].key.name) for one in matches}
    assert pairs == {("large", "Cijk_1"), ("small", "Cijk_2")}


def test_operators_that_launch_another_number_of_kernels_are_paired_as_a_whole() -> None:
    a = [replace(leaf(GEMM), places=(0, 1))]
    b = [
        replace(leaf(replace(GEMM, name=name)), places=at)
        for name, at in (("x", (0, 2)), ("y", (1, 3)))
    ]
    (found,) = match(a, b, by_class=True)
    assert (found.how, len(found.a), len(found.b)) == (How.RENAMED, 1, 2)
