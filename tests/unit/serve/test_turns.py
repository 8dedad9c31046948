"""Replays take turns, and a newer question of a page makes its older ones idle."""

from threading import Event, Thread
from time import sleep

import pytest

from replay.serve.turns import MOST_PAGES, SupersededError, Turns


def _ask(turns: Turns, page: str, told: list[str], name: str) -> None:
    try:
        with turns.turn(page):
            told.append(name)
    except SupersededError:
        told.append(f"{name} superseded")


def _wait_for(turns: Turns, count: int) -> None:
    """Until so many questions have been asked: threads are started one after the other."""
    while turns._count < count:
        sleep(0.001)


def test_of_those_that_wait_only_the_newest_of_each_page_is_answered() -> None:
    turns = Turns()
    told: list[str] = []
    waiting = []
    asked = (("a", "a2"), ("b", "b1"), ("a", "a3"), ("", "none1"), ("", "none2"))
    with turns.turn("a"):
        for count, (page, name) in enumerate(asked, start=2):
            waiting.append(Thread(target=_ask, args=(turns, page, told, name)))
            waiting[-1].start()
            _wait_for(turns, count)
    for thread in waiting:
        thread.join()
    assert sorted(told) == ["a2 superseded", "a3", "b1", "none1", "none2"]


def test_who_has_the_turn_learns_that_it_is_no_longer_wanted() -> None:
    turns, inside, newer = Turns(), Event(), Event()
    told: list[str] = []

    def long() -> None:
        with turns.turn("a") as go_on:
            go_on()
            inside.set()
            newer.wait()
            with pytest.raises(SupersededError):
                go_on()
            told.append("gave up")

    thread = Thread(target=long)
    thread.start()
    inside.wait()
    second = Thread(target=_ask, args=(turns, "a", told, "second"))
    second.start()
    _wait_for(turns, 2)
    newer.set()
    thread.join()
    second.join()
    assert told == ["gave up", "second"]


def test_a_question_is_overtaken_by_what_is_done_elsewhere() -> None:
    turns = Turns()
    with turns.turn("a") as go_on:
        go_on()
        turns.overtake("b")
        go_on()
        turns.overtake("a")
        with pytest.raises(SupersededError):
            go_on()


def test_a_turn_that_fails_is_given_back() -> None:
    turns = Turns()
    with pytest.raises(ZeroDivisionError), turns.turn("a"):
        raise ZeroDivisionError
    with turns.turn("a") as go_on:
        go_on()


def test_pages_that_are_long_gone_are_forgotten() -> None:
    turns = Turns()
    for page in range(3 * MOST_PAGES):
        with turns.turn(str(page)):
            pass
    assert len(turns._newest) == MOST_PAGES
