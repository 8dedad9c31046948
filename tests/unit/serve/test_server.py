"""The socket: this machine alone, sizes bounded, a port that is taken."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from threading import Thread

import pytest

from ingest.errors import UsageError
from replay.serve.app import GUARDS, MOST_BODY_BYTES, Request, Response, refusal
from replay.serve.server import ANY_PORT, LOOPBACK, Server


def _echo(request: Request) -> Response:
    """What arrived, as an answer."""
    if request.target == "/bug":
        raise AssertionError("a bug")
    text = f"{request.method} {request.target} {request.headers['host']} {len(request.body)}"
    return refusal(200, text)  # type: ignore[arg-type]


@contextmanager
def _serving() -> Iterator[int]:
    with Server(ANY_PORT) as server:
        thread = Thread(target=server.answer, args=(_echo,))
        thread.start()
        try:
            yield server.port
        finally:
            server.shutdown()
            thread.join()


def _asked(port: int, text: str) -> str:
    """The whole answer to raw text, until the connection is closed."""
    with socket.create_connection((LOOPBACK, port), timeout=10) as connection:
        connection.sendall(text.encode())
        connection.shutdown(socket.SHUT_WR)
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts).decode()


def test_it_listens_on_this_machine_alone() -> None:
    with Server(ANY_PORT) as server:
        assert server.server_address[0] == "127.0.0.1"
        assert server.port > 0


def test_a_connection_serves_several_questions() -> None:
    with _serving() as port:
        connection = HTTPConnection(LOOPBACK, port, timeout=10)
        for body in (b"abc", b"", b"abcdef"):
            connection.request("POST", "/here", body=body)
            answer = connection.getresponse()
            assert answer.status == 200
            assert f"POST /here {LOOPBACK}:{port} {len(body)}" in answer.read().decode()
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
        connection.close()


@pytest.mark.parametrize(
    ("length", "status"),
    [
        (f"Content-Length: {MOST_BODY_BYTES + 1}\r\n", "413"),
        ("Content-Length: 99999999999999999999\r\n", "413"),
        (f"Content-Length: {'9' * 5000}\r\n", "413"),
        ("Content-Length: -1\r\n", "411"),
        ("Content-Length: many\r\n", "411"),
        ("Transfer-Encoding: chunked\r\n", "411"),
        ("", "411"),
    ],
)
def test_a_question_without_bounds_is_refused_unread(length: str, status: str) -> None:
    with _serving() as port:
        answer = _asked(port, f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n{length}\r\n")
    assert answer.startswith(f"HTTP/1.1 {status} ")
    assert "Connection: close" in answer


@pytest.mark.parametrize("method", ["PUT", "HEAD", "<b>"])
def test_other_methods_are_refused_behind_the_same_guards(method: str) -> None:
    with _serving() as port:
        answer = _asked(port, f"{method} / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    head, _, body = answer.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 501 ")
    assert [
        f"{name}: {value}" for name, value in GUARDS.items() if f"{name}: {value}" not in head
    ] == []
    assert "Content-Type: application/json" in head
    assert bool(body) == (method != "HEAD")


def test_what_is_no_request_is_refused_behind_the_same_guards() -> None:
    with _serving() as port:
        answer = _asked(port, "GET /a b HTTP/1.1\r\n\r\n")
    assert answer.startswith("HTTP/1.1 400 ")
    assert "X-Content-Type-Options: nosniff" in answer


def test_a_bug_is_told_and_the_server_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    with _serving() as port:
        answer = _asked(port, "GET /bug HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert answer.startswith("HTTP/1.1 500 ")
        assert "AssertionError" not in answer
        assert _asked(port, "GET /fine HTTP/1.0\r\nHost: x\r\n\r\n").startswith("HTTP/1.1 200 ")
    assert "AssertionError: a bug" in capsys.readouterr().err


def test_a_port_that_is_taken_is_told_with_the_way_out() -> None:
    with Server(ANY_PORT) as server:
        with pytest.raises(UsageError, match=f"port {server.port} cannot be had") as caught:
            Server(server.port)
        assert "--port" in (caught.value.hint or "")
