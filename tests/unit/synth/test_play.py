"""Scripts played against times known by hand."""

import pytest

from ingest.errors import ScenarioError
from ingest.vocab import CollectiveKind
from whatif.synth.calibrate import AS_MODELLED
from whatif.synth.play import (
    CALL_NS,
    EVENT_LAG_NS,
    LAUNCH_LAG_NS,
    SHORT_CALL_NS,
    STREAM_GAP_NS,
    play,
)
from whatif.synth.script import Exchange, Group, Kernel, Script, Sort

GROUP = Group(name="1", description="pair", ranks=(0, 1), stream=20)


def kernel(dur_ns: float) -> Kernel:
    return Kernel(name="k", dur_ns=dur_ns)


def message(kind: CollectiveKind, transfer_ns: float) -> Exchange:
    return Exchange(
        kind=kind,
        group=GROUP,
        sent=1,
        received=1,
        dtype="BFloat16",
        transfer_ns=transfer_ns,
        peer=1 if kind is CollectiveKind.SEND else 0,
        meeting=(7,),
    )


def test_works_of_a_stream_follow_one_another() -> None:
    script = Script(rank=0)
    script.launch(kernel(100_000))
    script.launch(kernel(50_000))
    (played,) = play([script], AS_MODELLED)
    first, second = played.works
    assert first.start_ns == CALL_NS + LAUNCH_LAG_NS
    assert second.start_ns == first.end_ns + STREAM_GAP_NS
    assert played.end_ns == second.end_ns == first.start_ns + 150_000 + STREAM_GAP_NS


def test_a_collective_waits_for_compute_and_compute_for_it() -> None:
    script = Script(rank=0)
    script.launch(kernel(100_000))
    joined = script.join(
        kernel(0),
        Exchange(
            kind=CollectiveKind.ALL_REDUCE,
            group=GROUP,
            sent=8,
            received=8,
            dtype="Float",
            transfer_ns=30_000,
        ),
    )
    script.wait(joined)
    script.launch(kernel(10_000))
    (played,) = play([script], AS_MODELLED)
    first, reduced, last = played.works
    assert reduced.start_ns == first.end_ns + EVENT_LAG_NS
    assert reduced.end_ns == reduced.start_ns + 30_000
    assert last.start_ns == reduced.end_ns + EVENT_LAG_NS
    assert [(wait.stream, wait.on_stream) for wait in played.waits] == [(20, 7), (7, 20)]


def test_a_message_moves_when_both_ends_are_there() -> None:
    sender, receiver = Script(rank=0), Script(rank=1)
    sender.launch(kernel(200_000))
    sender.join(kernel(0), message(CollectiveKind.SEND, 5_000))
    received = receiver.join(kernel(0), message(CollectiveKind.RECV, 5_000), after=())
    receiver.wait(received)
    receiver.launch(kernel(1_000))
    one, other = play([receiver, sender], AS_MODELLED)
    assert one.works[0].start_ns == CALL_NS + LAUNCH_LAG_NS
    assert one.works[0].end_ns == other.works[1].end_ns == other.works[0].end_ns + 6_000
    assert one.works[1].start_ns == one.works[0].end_ns + EVENT_LAG_NS


def test_who_waits_for_a_message_that_nobody_sends_is_refused() -> None:
    receiver = Script(rank=1)
    receiver.join(kernel(0), message(CollectiveKind.RECV, 5_000), after=())
    with pytest.raises(ScenarioError, match="wait for each other"):
        play([receiver], AS_MODELLED)


def test_factors_scale_what_they_name() -> None:
    script = Script(rank=0)
    script.launch(kernel(100_000), fixed_ns=7_000)
    (played,) = play([script], {Sort.COMPUTE: 0.5, Sort.COMMUNICATION: 3.0})
    assert played.works[0].end_ns - played.works[0].start_ns == 57_000
    assert played.host_ns == CALL_NS
    assert SHORT_CALL_NS < CALL_NS
