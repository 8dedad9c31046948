"""The socket: listens on this machine alone, one thread for each connection.

The standard library serves: a handful of small requests from one person need no framework, and a
page that only this machine may open needs no other server in front.
"""

import errno
import os
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from ingest.errors import UsageError
from replay.serve.app import MOST_BODY_BYTES, Request, Response, refusal

LOOPBACK = "127.0.0.1"
ANY_PORT = 0
IDLE_S = 60
"""A connection that says nothing for so long is closed."""
MOST_DIGITS = 20
"""Of a length: Python reads no number of thousands of digits."""

Respond = Callable[[Request], Response]


class Server(ThreadingHTTPServer):
    """Ends at once: what is still being replayed is nobody's loss."""

    daemon_threads = True
    allow_reuse_address = os.name != "nt"  # there it would let two servers share a port

    def __init__(self, port: int) -> None:
        """Bind the port; who connects waits until `answer` is called.

        Args:
            port: `ANY_PORT` takes a free one.

        Raises:
            UsageError: the port is in use or not to be had.
        """
        self.respond: Respond = _not_yet
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            raise UsageError(
                f"port {port} cannot be had: {error.strerror}",
                hint="give another with --port N, or none: a free one is taken",
            ) from error

    def server_bind(self) -> None:
        """Bind without asking a name server what this machine is called, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, self.port

    def answer(self, respond: Respond) -> None:
        """Answer requests until interrupted; `respond` is called from many threads."""
        self.respond = respond
        self.serve_forever()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  (theirs)
        """A browser that no longer waits is no error; a bug is told on the terminal."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    @property
    def port(self) -> int:
        """That it listens on."""
        return int(self.server_address[1])


def _not_yet(_: Request) -> Response:
    raise AssertionError("nothing is answered before there is a run")


class _Handler(BaseHTTPRequestHandler):
    """Reads a request whole, and writes the answer in one piece."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "replay", ""
    timeout = IDLE_S
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answer."""
        self._answer(b"")

    def do_POST(self) -> None:
        """Read the question, and answer."""
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdecimal():
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "a question says its length")
        elif len(length) > MOST_DIGITS or int(length) > MOST_BODY_BYTES:
            text = f"a question has at most {MOST_BODY_BYTES:,} bytes"
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)
        else:
            self._answer(self.rfile.read(int(length)))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the library refuses (a method, a head that is none) is answered like the rest."""
        status = HTTPStatus(code)
        self._refuse(status, message or explain or status.phrase)

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        """Without reading on, so that the connection is of no more use."""
        self.close_connection = True
        self._send(refusal(status, text, Connection="close"))

    def _answer(self, body: bytes) -> None:
        request = Request(
            method=self.command,
            target=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=body,
        )
        try:
            response = self.server.respond(request)
        except Exception:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "a bug of replay; its terminal tells")
            raise
        self._send(response)

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        self.send_header("Content-Type", response.kind)
        self.send_header("Content-Length", str(len(response.body)))
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Say nothing: addresses hold the token."""
