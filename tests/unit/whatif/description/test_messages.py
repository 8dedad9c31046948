"""Messages between ranks tell the stages, and the order of forward and backward on each."""

from whatif.description.messages import Message, chain_of, orders_of


def posted(*rows: tuple[int, bool, int]) -> list[Message]:
    """Ends of messages of one step: rank, whether it sends, peer; each later than the last."""
    return [Message(rank, 0, time, sends, peer) for time, (rank, sends, peer) in enumerate(rows)]


SEND, RECEIVE = True, False


def test_the_first_message_of_each_link_tells_who_follows_whom() -> None:
    messages = posted(
        *((2, SEND, 0), (0, RECEIVE, 2), (0, SEND, 1), (1, RECEIVE, 0)),
        *((1, SEND, 0), (0, RECEIVE, 1), (0, SEND, 2), (2, RECEIVE, 0)),
    )
    chain = chain_of(messages)
    assert chain is not None
    assert chain.stage_of_rank == {2: 0, 0: 1, 1: 2}
    assert (chain.cyclic, chain.both_ways) == (False, False)


def test_orders_are_forwards_and_backwards_of_each_stage() -> None:
    rows = [(0, SEND, 1), (0, SEND, 1), (0, RECEIVE, 1), (0, SEND, 1), (0, RECEIVE, 1)]
    ends = [(1, RECEIVE, 0), (1, SEND, 0), (1, RECEIVE, 0), (1, SEND, 0)]
    messages = posted(*rows, *ends)
    chain = chain_of(messages)
    assert chain is not None
    assert orders_of(messages, chain) == {0: "FFBFB", 1: "FBFB"}


def test_a_last_stage_that_feeds_the_first_makes_a_cycle() -> None:
    messages = posted((0, SEND, 1), (1, RECEIVE, 0), (1, SEND, 0), (0, RECEIVE, 1))
    several = [*messages, *posted((1, SEND, 2), (2, SEND, 0), (0, SEND, 1))]
    chain = chain_of(several)
    assert chain is not None
    assert chain.cyclic


def test_a_step_that_both_ends_open_by_sending_runs_both_ways() -> None:
    chain = chain_of(posted((0, SEND, 1), (1, SEND, 0), (0, RECEIVE, 1), (1, RECEIVE, 0)))
    assert chain is not None
    assert chain.both_ways


def test_without_messages_there_is_no_chain() -> None:
    assert chain_of([]) is None
    assert chain_of(posted((0, RECEIVE, 1))) is None
