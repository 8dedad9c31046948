"""Requests -> answers, without a socket: who may ask, what there is, and mistakes in words."""

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import SplitResult, parse_qs, urlsplit

import msgspec

from ingest.errors import UsageError, UserError
from replay.serve.contract import Ask, Refusal
from replay.serve.document import Document
from replay.serve.session import Session
from replay.serve.turns import SupersededError

MOST_BODY_BYTES = 64 * 1024
"""A question of a few dozen flags has one kilobyte."""
TOKEN_HEADER = "x-replay-token"
OUR_NAMES = frozenset({"127.0.0.1", "localhost"})
"""Hosts that a browser may have asked for: a name that somebody else's server resolves to this
machine is none of them."""
NOWHERE = SplitResult("", "", "", "", "")
JSON, HTML = "application/json", "text/html; charset=utf-8"
GUARDS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What came in."""

    method: str
    target: str
    """Path and query."""
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What goes out."""

    status: HTTPStatus
    body: bytes
    kind: str = JSON
    headers: Mapping[str, str]


class App:
    """Answers requests for one run."""

    def __init__(self, session: Session, page: Document, token: str) -> None:
        """Begin.

        Args:
            session: answers what-ifs.
            page: what a browser gets first.
            token: whoever does not know it is refused.
        """
        self._page = page
        self._token = token.encode()
        self._told: dict[str, Callable[[], msgspec.Struct]] = {
            "/api/run": session.run,
            "/api/knobs": session.knobs,
        }
        self._asked: dict[str, Callable[[Ask], msgspec.Struct]] = {
            "/api/what-if": session.what_if,
            "/api/path": session.path,
            "/api/states": session.states,
            "/api/levers": session.levers,
            "/api/scenario": session.written,
        }

    def respond(self, request: Request) -> Response:
        """The answer to a request; mistakes of whoever asks are answers, too."""
        refused = self._refused(request)
        if refused is not None:
            return refused
        path = _split(request.target).path
        if path == "/":
            return self._only("GET", request, self._first)
        if path in self._told:
            return self._only("GET", request, lambda: _json(self._told[path]()))
        if path in self._asked:
            return self._only("POST", request, lambda: self._answer(path, request))
        known = ", ".join((*self._told, *self._asked))
        return refusal(HTTPStatus.NOT_FOUND, "there is nothing here", known)

    def _refused(self, request: Request) -> Response | None:
        """Who asks under another name, or without the token, gets nothing."""
        if _host(request.headers.get("host", "")) not in OUR_NAMES:
            text = "this server answers to 127.0.0.1 and localhost only"
            return refusal(HTTPStatus.FORBIDDEN, text)
        given = request.headers.get(TOKEN_HEADER) or _token_in(request.target)
        if not hmac.compare_digest(given.encode(), self._token):
            text = "this address lacks the token of this server"
            return refusal(
                HTTPStatus.FORBIDDEN, text, "open the address that `replay serve` printed"
            )
        return None

    def _only(self, method: str, request: Request, make: Callable[[], Response]) -> Response:
        if request.method != method:
            return refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"{method} is meant", "", Allow=method)
        return make()

    def _first(self) -> Response:
        headers = {**GUARDS, "Content-Security-Policy": self._page.policy}
        return Response(status=HTTPStatus.OK, body=self._page.html, kind=HTML, headers=headers)

    def _answer(self, path: str, request: Request) -> Response:
        try:
            return _json(self._asked[path](_ask(request)))
        except UserError as error:
            return refusal(HTTPStatus.BAD_REQUEST, str(error), error.hint or "")
        except SupersededError:
            return refusal(HTTPStatus.CONFLICT, "a newer question of this page is answered instead")


def refusal(status: HTTPStatus, error: str, hint: str = "", **headers: str) -> Response:
    """Why there is no answer, as JSON."""
    body = msgspec.json.encode(Refusal(error=error, hint=hint))
    return Response(status=status, body=body, headers={**GUARDS, **headers})


def _json(answer: msgspec.Struct) -> Response:
    return Response(status=HTTPStatus.OK, body=msgspec.json.encode(answer), headers=GUARDS)


def _ask(request: Request) -> Ask:
    """The question.

    Raises:
        UsageError: it is none.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise UsageError(f"a question is {JSON}", hint=f"send Content-Type: {JSON}")
    try:
        return msgspec.json.decode(request.body, type=Ask)
    except msgspec.DecodeError as error:
        hint = '{"flags": ["--nvlink", "900GBps"]}'
        raise UsageError(f"no question: {error}", hint=hint) from error


def _host(header: str) -> str:
    """The name in a Host header; the port is that of a tunnel, perhaps."""
    return header.rpartition(":")[0] if ":" in header else header


def _token_in(target: str) -> str:
    return parse_qs(_split(target).query).get("token", [""])[0]


def _split(target: str) -> SplitResult:
    """Path and query; nothing of what is no address, so that whoever asks for it is refused."""
    try:
        return urlsplit(target)
    except ValueError:
        return NOWHERE
