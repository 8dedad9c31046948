"""Who may ask, what there is, and mistakes as answers."""

import json
from http import HTTPStatus
from typing import Any

import pytest

from replay.serve.app import App, Request, Response
from replay.serve.document import document
from tests.unit.serve.run import session

TOKEN = "secret"
OURS = {"host": "127.0.0.1:8000", "x-replay-token": TOKEN, "content-type": "application/json"}
APP = App(session(), document(), TOKEN)


def _get(target: str, **headers: str) -> Response:
    return APP.respond(Request(method="GET", target=target, headers=OURS | _named(headers)))


def _post(target: str, body: bytes, **headers: str) -> Response:
    sent = OURS | _named(headers)
    return APP.respond(Request(method="POST", target=target, headers=sent, body=body))


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def _told(response: Response) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(response.body)
    return told


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "0.0.0.0:8000", ""]
)
def test_another_name_for_this_machine_is_refused(host: str) -> None:
    """A name of somebody else's that resolves to 127.0.0.1 would make its page of one origin."""
    response = _get("/api/run", host=host)
    assert response.status == HTTPStatus.FORBIDDEN
    assert "127.0.0.1" in _told(response)["error"]


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost:8123", "localhost"])
def test_a_tunnel_may_have_another_port(host: str) -> None:
    assert _get("/api/run", host=host).status == HTTPStatus.OK


@pytest.mark.parametrize("path", ["/", "/api/run", "/api/what-if", "/favicon.ico"])
@pytest.mark.parametrize("token", ["", "secre", "secret2", "gëheim"])
def test_nothing_is_told_without_the_token(path: str, token: str) -> None:
    response = _get(path, x_replay_token=token)
    assert response.status == HTTPStatus.FORBIDDEN
    assert set(_told(response)) == {"error", "hint"}


@pytest.mark.parametrize("target", ["http://[/", "//[::1", "http://[x]/?token=secret"])
def test_what_is_no_address_is_refused(target: str) -> None:
    assert _get(target, x_replay_token="").status == HTTPStatus.FORBIDDEN
    assert _get(target).status == HTTPStatus.NOT_FOUND


def test_the_token_may_stand_in_the_address() -> None:
    assert _get(f"/?token={TOKEN}", x_replay_token="").status == HTTPStatus.OK
    assert _get("/?token=other", x_replay_token="").status == HTTPStatus.FORBIDDEN


def test_the_page_may_load_nothing_from_elsewhere() -> None:
    response = _get("/")
    policy = dict(
        part.strip().split(" ", 1)
        for part in response.headers["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert policy["script-src"].startswith("'sha256-")
    assert "unsafe" not in response.headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in response.headers
    assert b"http://" not in response.body
    assert b"https://" not in response.body
    assert len(response.body) < 100_000


def test_what_is_not_there_names_what_is() -> None:
    response = _get("/api/nothing")
    assert response.status == HTTPStatus.NOT_FOUND
    assert "/api/what-if" in _told(response)["hint"]


def test_a_question_is_posted_and_the_run_is_got() -> None:
    assert _get("/api/what-if").status == HTTPStatus.METHOD_NOT_ALLOWED
    response = _post("/api/run", b"{}")
    assert response.status == HTTPStatus.METHOD_NOT_ALLOWED
    assert response.headers["Allow"] == "GET"


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"", "no question"),
        (b"{", "no question"),
        (b"[]", "no question"),
        (b'{"flags": "--nvlink x2"}', "no question"),
        (b'{"flags": [1]}', "no question"),
        (b'{"flag": []}', "unknown field"),
        (b'{"flags": ["--nvlink"]}', "has no value"),
        (b'{"flags": ["--scenario", "/etc/passwd"]}', "is no what-if"),
        (b'{"flags": ["--gpu", "H1000"]}', "no accelerator"),
    ],
)
def test_a_mistake_is_told_in_one_line_with_a_hint(body: bytes, word: str) -> None:
    response = _post("/api/what-if", body)
    assert response.status == HTTPStatus.BAD_REQUEST
    told = _told(response)
    assert word in told["error"]
    assert "\n" not in told["error"]
    assert told["hint"]


def test_a_form_of_another_page_is_no_question() -> None:
    """Browsers send forms across origins without asking; JSON they do not."""
    response = _post("/api/what-if", b'{"flags": []}', content_type="text/plain")
    assert response.status == HTTPStatus.BAD_REQUEST


def test_an_answer_is_the_object_of_the_contract() -> None:
    told = _told(_post("/api/what-if", b'{"flags": ["--nvlink", "x2"]}'))
    assert told["schema_version"] == 1
    assert told["prediction"]["scenario"] == ["nvlink x2"]


def test_a_question_may_say_how_it_is_written() -> None:
    response = _post("/api/what-if", b"{}", content_type="application/json; charset=utf-8")
    assert response.status == HTTPStatus.OK
