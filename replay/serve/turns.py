"""One replay at a time; of the questions of a page that wait, only the newest is answered."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

MOST_PAGES = 64
"""Pages that are told apart; of more, the oldest is forgotten."""


class SupersededError(Exception):
    """A newer question of the same page makes this one idle."""


class Turns:
    """Hands out turns in the order in which they come free."""

    def __init__(self) -> None:
        self._turn = Lock()
        self._counting = Lock()
        self._count = 0
        self._newest: dict[str, int] = {}

    @contextmanager
    def turn(self, page: str) -> Iterator[Callable[[], None]]:
        """Wait for a turn; inside, call what is given to learn whether to go on.

        Args:
            page: whose question it is; one without a name is never superseded.

        Raises:
            SupersededError: a newer question of the page has come; also of the function given.
        """
        mine = self._numbered(page)

        def go_on() -> None:
            if page and self._newest.get(page, mine) != mine:
                raise SupersededError

        with self._turn:
            go_on()
            yield go_on

    def overtake(self, page: str) -> None:
        """Make the questions of a page that are there idle, without another one."""
        self._numbered(page)

    def _numbered(self, page: str) -> int:
        with self._counting:
            self._count += 1
            self._newest.pop(page, None)
            self._newest[page] = self._count
            while len(self._newest) > MOST_PAGES:
                del self._newest[next(iter(self._newest))]
            return self._count
