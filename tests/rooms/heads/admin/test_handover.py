"""The link that works once, and everybody who should not be able to use it."""

from __future__ import annotations

import base64
import http.client
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from pleiad.account.keys import AccountKeys, KeysInForce
from pleiad.errors import TOO_MANY_HANDOVERS, UNAUTHORIZED, PleiadError
from pleiad.heads.admin.handover import Handover
from pleiad.limits import Limits
from tests.waiting import SECONDS_MAX

from .conftest import Running

KEY = base64.b64encode(b"h" * 64).decode()


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def running(run: Callable[..., Running]) -> Running:
    return run(key=KEY, log_requests=True)


def link_of(running: Running) -> tuple[str, str]:
    """The host and the token of a new link."""
    link = running.node.new_link()
    assert link is not None
    address, _, token = link.partition("/#handover=")
    return address.removeprefix("http://"), token


def bring(
    running: Running,
    token: str,
    host: str,
    path: str = "/_pleiad/handover",
    body: bytes | None = None,
    method: str = "POST",
    **headers: str | None,
) -> tuple[int, Any, dict[str, str]]:
    """Sends a token as the page does; a header may be changed, and None leaves it out."""
    fields: dict[str, str | None] = {
        "host": host,
        "origin": f"http://{host}",
        "x-pleiad-handover": token,
        "sec-fetch-site": "same-origin",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    connection = http.client.HTTPConnection("127.0.0.1", running.server.port, timeout=SECONDS_MAX)
    try:
        connection.putrequest(method, path, skip_host=True)
        for name, value in fields.items():
            if value is not None:
                connection.putheader(name, value)
        connection.putheader("content-length", str(len(body or b"")))
        connection.endheaders(body)
        response = connection.getresponse()
        content = response.read()
        answer = json.loads(content) if content else None
        return response.status, answer, {name.lower(): value for name, value in response.getheaders()}
    finally:
        connection.close()


def test_a_link_brings_the_key_once(running: Running) -> None:
    host, token = link_of(running)
    status, answer, headers = bring(running, token, host)
    assert (status, answer) == (200, {"key": KEY})
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    status, answer, _ = bring(running, token, host)
    assert status == 401
    assert KEY not in json.dumps(answer)


def test_a_new_link_takes_the_place_of_the_one_before(running: Running) -> None:
    host, before = link_of(running)
    _, token = link_of(running)
    assert before != token
    assert len(token) >= 43
    assert bring(running, before, host)[0] == 401
    assert bring(running, token, host)[0] == 200


@pytest.mark.parametrize(
    "changed",
    [
        {"origin": "http://evil.example"},
        {"origin": "http://localhost:1"},
        {"origin": "http://127.0.0.1"},
        {"origin": "https://{host}"},
        {"origin": "http://{host}.evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": None},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "none"},
    ],
    ids=str,
)
def test_no_page_of_another_origin_can_use_a_link(running: Running, changed: dict[str, str | None]) -> None:
    host, token = link_of(running)
    sent: dict[str, Any] = {name: value and value.replace("{host}", host) for name, value in changed.items()}
    status, answer, _ = bring(running, token, host, **sent)
    assert status == 401, answer
    assert KEY not in json.dumps(answer)
    assert bring(running, token, host)[0] == 200, "the refused try must not use the link up"


def test_a_name_that_was_made_to_mean_this_machine_gets_nothing(running: Running) -> None:
    host, token = link_of(running)
    evil = f"evil.example:{running.server.port}"
    status, answer, _ = bring(running, token, evil)
    assert status == 400
    assert "none of this server's names" in answer["message"]
    status, answer, _ = bring(running, token, host, path=f"http://{evil}/_pleiad/handover")
    assert status == 400
    assert bring(running, token, host)[0] == 200


def test_no_browser_gets_leave_to_send_the_header_from_elsewhere(running: Running) -> None:
    host, _ = link_of(running)
    status, _, headers = bring(
        running,
        "",
        host,
        method="OPTIONS",
        origin="http://evil.example",
        access_control_request_method="POST",
        access_control_request_headers="x-pleiad-handover",
    )
    assert status == 405
    assert not [name for name in headers if name.startswith("access-control")]


def test_a_form_of_another_page_carries_no_token(running: Running) -> None:
    host, token = link_of(running)
    for body in (f"x-pleiad-handover={token}".encode(), json.dumps({"token": token}).encode()):
        assert bring(running, "", host, body=body)[0] == 400
    assert bring(running, "", host, path=f"/_pleiad/handover?x-pleiad-handover={token}")[0] == 401
    assert bring(running, token, host, method="GET")[0] == 404
    assert bring(running, token, host, path="/_pleiad/health")[0] == 404
    assert bring(running, token, host)[0] == 200


def test_nothing_of_a_link_is_logged(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        host, token = link_of(running)
        bring(running, token[:-1] + "!", host)
        bring(running, token, host)
    assert "hand_over" in caplog.text
    assert token not in caplog.text
    assert token[:10] not in caplog.text
    assert KEY not in caplog.text


def test_who_guesses_is_refused_after_some_tries(running: Running) -> None:
    host, token = link_of(running)
    tries = Limits().handover_tries_per_minute
    assert {bring(running, f"guess-{number}", host)[0] for number in range(tries)} == {401}
    status, answer, headers = bring(running, token, host)
    assert status == 429
    assert KEY not in json.dumps(answer)
    assert 0 < int(headers["x-ms-retry-after-ms"]) <= 60_001


def test_a_server_beyond_loopback_has_no_links(run: Callable[..., Running]) -> None:
    running = run(key=KEY, host="0.0.0.0")
    assert running.node.new_link() is None
    host = f"localhost:{running.server.port}"
    assert bring(running, "", host)[0] == 401


# -- time, which the test turns --------------------------------------------------------------------------


def handover(clock: Clock) -> Handover:
    return Handover(KeysInForce(AccountKeys(KEY)), Limits(), clock)


def refusal(handing: Handover, token: str) -> PleiadError:
    with pytest.raises(PleiadError) as refused:
        handing.exchange(token)
    return refused.value


def test_a_link_is_over_after_its_time() -> None:
    clock = Clock()
    handing = handover(clock)
    token = handing.new_token()
    clock.now += Limits().handover_seconds
    assert refusal(handing, token).row is UNAUTHORIZED
    assert handing.exchange(handing.new_token()) == KEY


def test_a_refusal_for_guessing_ends_after_a_minute() -> None:
    clock = Clock()
    handing = handover(clock)
    token = handing.new_token()
    for _ in range(Limits().handover_tries_per_minute):
        assert refusal(handing, "wrong").row is UNAUTHORIZED
    error = refusal(handing, token)
    assert error.row is TOO_MANY_HANDOVERS
    assert error.retry_after_ms is not None
    clock.now += error.retry_after_ms / 1000
    assert handing.exchange(token) == KEY


def test_without_a_link_no_token_is_right() -> None:
    handing = handover(Clock())
    for token in ("", "\0" * 32, "None"):
        assert refusal(handing, token).row is UNAUTHORIZED


def test_the_key_is_the_one_that_is_in_force_when_the_link_is_used() -> None:
    keys = KeysInForce(AccountKeys(KEY))
    handing = Handover(keys, Limits(), Clock())
    token = handing.new_token()
    newer = base64.b64encode(b"n" * 64).decode()
    keys.replace(AccountKeys(newer))
    assert handing.exchange(token) == newer
