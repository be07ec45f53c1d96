"""Who asks: signatures, dates, the read-only key, and what a refusal tells the caller."""

from __future__ import annotations

import base64
import contextlib
import hmac
import json
import logging
import socket
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from typing import Any
from urllib.parse import quote

import pytest

from pleiad.account.keys import EMULATOR_KEY, AccountKeys, KeysInForce
from pleiad.errors import PleiadError
from pleiad.heads.nosql.auth import Authenticator
from pleiad.heads.nosql.failures import CLOCK_SKEW
from pleiad.limits import Limits
from pleiad.settings import Settings
from tests.stores import StartServer
from tests.waiting import SECONDS_MAX

OTHER_KEY = base64.b64encode(b"k" * 64).decode()


def test_a_wrong_signature_is_401_and_the_message_says_what_was_signed(place: Any, wire: Any) -> None:
    headers = wire.signed("GET", place.path, key=OTHER_KEY)
    answer = wire.send_raw("GET", "/" + "/".join(place.path), None, headers)
    assert (answer.status, answer.json["code"]) == (401, "Unauthorized")
    signed = f"get\\ncolls\\n{'/'.join(place.path)}\\n{headers['x-ms-date'].lower()}\\n\\n"
    assert f"'{signed}'" in answer.message


@pytest.mark.parametrize(
    "header",
    ["", "x", "type=master&ver=1.0&sig=", "type%3Dmaster", "type=resource&ver=1&sig=a;b;",
     "type=aad&ver=1.0&sig=a.b.c", "type=sas&x", "%", "type=resource&ver=1&sig=\xe9;b;",
     "type=aad&ver=1.0&sig=bnVsbA.bnVsbA.eA"],
)  # fmt: skip
def test_a_header_that_proves_nothing_is_401(header: str, wire: Any) -> None:
    answer = wire.send("GET", ["dbs"], headers={"authorization": header})
    assert (answer.status, answer.json["code"]) == (401, "Unauthorized")


def _identity_token(key: str) -> str:
    """The value of an authorization header before a client encodes it."""
    claims: list[dict[str, Any]] = [{"kid": "CosmosEmulatorPrimaryMaster"}, {"exp": int(time.time()) + 600}]
    parts = [*(json.dumps(each).encode() for each in claims), key.encode()]
    return "type=aad&ver=1.0&sig=" + ".".join(
        base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts
    )


@pytest.mark.parametrize(
    "written",
    [
        str,
        lambda text: quote(text, safe=""),
        lambda text: quote(text, safe="").replace("%3D", "%3d"),
        lambda text: text.replace("=", "%3d", 3).replace("&", "%26"),
        lambda text: quote(text, safe="*-._"),
    ],
    ids=["plain", "encoded", "encoded in lower case", "encoded up to the token", "as a form"],
)
def test_an_identity_token_is_taken_as_every_client_writes_it(
    written: Callable[[str], str], place: Any, wire: Any
) -> None:
    headers = {"authorization": written(_identity_token(wire.server.key))}
    assert place.wire.send("GET", place.path, headers=headers).status == 200
    assert (
        place.wire.send("POST", [*place.path, "docs"], {"id": "1", "pk": "a"}, headers, ["a"]).status == 201
    )
    assert place.wire.send("POST", ["dbs"], {"id": "mine"}, headers).status == 403


def test_a_request_without_an_authorization_header_is_401(wire: Any) -> None:
    for path in ("/", "/dbs", "/dbs/x/colls/y/docs/1"):
        answer = wire.send_raw("GET", path, None, {})
        assert answer.status == 401
        assert "authorization is missing" in answer.message


@pytest.mark.parametrize("minutes", [-16, 16, -60 * 24 * 365])
def test_a_date_more_than_fifteen_minutes_away_is_403(minutes: int, wire: Any) -> None:
    headers = wire.signed("GET", ["dbs"], moment=time.time() + 60 * minutes)
    answer = wire.send_raw("GET", "/dbs", None, headers)
    assert (answer.status, answer.json["code"]) == (403, "Forbidden")
    assert headers["x-ms-date"] in answer.message
    assert "15 minutes" in answer.message


@pytest.mark.parametrize("minutes", [-14, 14])
def test_a_date_less_than_fifteen_minutes_away_is_accepted(minutes: int, wire: Any) -> None:
    headers = wire.signed("GET", ["dbs"], moment=time.time() + 60 * minutes)
    assert wire.send_raw("GET", "/dbs", None, headers).status == 200


@pytest.mark.parametrize("date", ["yesterday", "", "Mon, 01 Jan 0000 00:00:00 GMT", "9" * 400])
def test_a_date_that_is_none_is_refused(date: str, wire: Any) -> None:
    proof = wire.proof("GET", "dbs", "", date)
    answer = wire.send_raw("GET", "/dbs", None, {"x-ms-date": date, "authorization": proof})
    assert answer.status in (401, 403)


def test_a_signature_is_for_one_verb_and_one_resource(place: Any, wire: Any) -> None:
    headers = wire.signed("GET", place.path)
    path = "/" + "/".join(place.path)
    assert wire.send_raw("GET", path, None, headers).status == 200
    assert wire.send_raw("DELETE", path, None, headers).status == 401
    assert wire.send_raw("GET", "/dbs", None, headers).status == 401


def test_a_signature_that_was_proven_once_proves_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    authenticator = Authenticator(KeysInForce(AccountKeys(OTHER_KEY)), Limits())
    date = formatdate(time.time(), usegmt=True)
    text = f"post\ndocs\ndbs/d/colls/c\n{date.lower()}\n\n"
    proof = base64.b64encode(hmac.digest(base64.b64decode(OTHER_KEY), text.encode(), "sha256")).decode()
    token = quote(f"type=master&ver=1.0&sig={proof}", safe="").encode()
    headers = {b"authorization": token, b"x-ms-date": date.encode()}
    path = b"/dbs/d/colls/c/docs"
    for _ in range(2):
        assert authenticator.proves_master_key("POST", path, headers)
    later = {**headers, b"x-ms-date": formatdate(time.time() + 60, usegmt=True).encode()}
    assert not authenticator.proves_master_key("POST", path, later)
    assert not authenticator.proves_master_key("PUT", path, headers)
    assert not authenticator.proves_master_key("POST", b"/dbs/d/colls/other/docs", headers)
    assert not authenticator.proves_master_key("POST", b"/dbs/d/colls/c/sprocs", headers)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3_600)
    with pytest.raises(PleiadError) as refused:
        authenticator.proves_master_key("POST", path, headers)
    assert refused.value.row is CLOCK_SKEW


def test_names_are_signed_as_they_are_with_their_case(wire: Any) -> None:
    name = "Größe A+b%20"
    assert wire.send("POST", ["dbs"], {"id": name}).status == 201
    assert wire.send("GET", ["dbs", name]).json["id"] == name
    lower = wire.signed("GET", ["dbs", name.lower()])
    assert wire.send_raw("GET", "/dbs/" + quote(name), None, lower).status == 401
    assert wire.send("DELETE", ["dbs", name]).status == 204


def test_a_token_may_come_percent_encoded_or_plain(wire: Any) -> None:
    headers = wire.signed("GET", ["dbs"])
    from urllib.parse import unquote

    plain = {**headers, "authorization": unquote(headers["authorization"])}
    assert wire.send_raw("GET", "/dbs", None, plain).status == 200


@pytest.fixture(scope="module")
def two_key_wire(wire: Any) -> Iterator[Any]:
    """A server with a read-only key, and a connection to it."""
    with wire.serve(Settings(port=0, read_only_key=OTHER_KEY)) as connection:
        yield connection


def send_read_only(wire: Any, method: str, segments: list[str], body: Any = None, **headers: str) -> Any:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return wire.send(method, segments, body, {**wire.signed(method, segments, key=OTHER_KEY), **fields})


def test_the_read_only_key_reads_and_never_writes(two_key_wire: Any) -> None:
    wire = two_key_wire
    wire.send("POST", ["dbs"], {"id": "d"})
    wire.send("POST", ["dbs", "d", "colls"], {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}})
    docs = ["dbs", "d", "colls", "c", "docs"]
    wire.send("POST", docs, {"id": "1", "pk": "a"}, key=["a"])
    key = '["a"]'
    assert send_read_only(wire, "GET", ["dbs"]).status == 200
    assert send_read_only(wire, "GET", [*docs, "1"], x_ms_documentdb_partitionkey=key).status == 200
    assert send_read_only(wire, "GET", [*docs[:4], "pkranges"]).status == 200
    query = {"query": "SELECT * FROM c"}
    found = send_read_only(
        wire, "POST", docs, query, x_ms_documentdb_isquery="True", x_ms_documentdb_partitionkey=key
    )
    assert found.status == 200
    writes: list[tuple[str, list[str], Any]] = [
        ("POST", ["dbs"], {"id": "e"}),
        ("DELETE", ["dbs", "d"], None),
        ("DELETE", docs[:4], None),
        ("POST", docs, {"id": "2", "pk": "a"}),
        ("PUT", [*docs, "1"], {"id": "1", "pk": "a"}),
        ("PATCH", [*docs, "1"], {"operations": []}),
        ("DELETE", [*docs, "1"], None),
        ("POST", [*docs[:4], "operations", "partitionkeydelete"], None),
    ]
    for method, segments, body in writes:
        answer = send_read_only(wire, method, segments, body, x_ms_documentdb_partitionkey=key)
        assert (answer.status, answer.json["code"]) == (403, "Forbidden"), (method, segments)


def test_the_read_only_key_cannot_read_the_tokens_of_permissions(two_key_wire: Any) -> None:
    """A permission is answered with a token, and a token may write: reading one would be a way around."""
    wire = two_key_wire
    wire.send("POST", ["dbs"], {"id": "p"})
    wire.send("POST", ["dbs", "p", "users"], {"id": "u"})
    permissions = ["dbs", "p", "users", "u", "permissions"]
    body = {"id": "all", "permissionMode": "All", "resource": "dbs/p/colls/c"}
    assert wire.send("POST", permissions, body).status == 201
    assert send_read_only(wire, "GET", ["dbs", "p", "users", "u"]).status == 200
    for path in (permissions, [*permissions, "all"]):
        assert send_read_only(wire, "GET", path).status == 403
    asked = {"query": "SELECT * FROM c"}
    assert send_read_only(wire, "POST", permissions, asked, x_ms_documentdb_isquery="True").status == 403


def test_a_permission_is_for_a_container_or_an_item_and_nothing_wider(place: Any, wire: Any) -> None:
    wire.send("POST", ["dbs", place.database, "users"], {"id": "u"})
    path = ["dbs", place.database, "users", "u", "permissions"]
    for resource in (
        "",
        "dbs",
        "dbs/",
        "dbs/x",
        "dbs/x/users/u",
        "dbs/x/colls",
        "dbs/x/colls/c/sprocs/s",
        "x/y",
        5,
        None,
    ):
        answer = wire.send("POST", path, {"id": "p", "permissionMode": "All", "resource": resource})
        assert answer.status == 400, resource


def test_no_key_and_no_token_is_ever_logged(place: Any, wire: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    headers = wire.signed("GET", place.path)
    wire.send_raw("GET", "/" + "/".join(place.path), None, headers)
    wire.send_raw("GET", "/dbs", None, headers)
    wire.send("POST", [*place.path, "docs"], b"\xff", key=["a"])
    secrets = [EMULATOR_KEY, headers["authorization"], headers["authorization"][-30:]]
    assert not [record for record in caplog.records if any(s in record.getMessage() for s in secrets)]


def test_a_resource_token_that_was_changed_is_401(place: Any, wire: Any) -> None:
    wire.send("POST", ["dbs", place.database, "users"], {"id": "u"})
    body = {"id": "p", "permissionMode": "Read", "resource": "/".join(place.path)}
    token = wire.send("POST", ["dbs", place.database, "users", "u", "permissions"], body).json["_token"]
    proof, payload, _ = token.removeprefix("type=resource&ver=1&sig=").split(";")
    claims = json.loads(base64.b64decode(payload))
    claims["e"] += 1_000_000
    forged = base64.b64encode(json.dumps(claims).encode()).decode()
    for changed in (f"{proof};{forged};", f"{proof[:-4]}AAA=;{payload};", f"{proof};{payload}", ";;", ";;;;"):
        header = quote(f"type=resource&ver=1&sig={changed}", safe="")
        assert wire.send("GET", place.path, headers={"authorization": header}).status == 401
    assert wire.send("GET", place.path, headers={"authorization": quote(token, safe="")}).status == 200


@pytest.mark.parametrize("seconds", ["9", "86401", "x", "-1", "1.5", "9" * 30])
def test_the_life_of_a_token_is_ten_seconds_to_a_day(seconds: str, place: Any, wire: Any) -> None:
    wire.send("POST", ["dbs", place.database, "users"], {"id": "u"})
    body = {"id": "p", "permissionMode": "Read", "resource": "/".join(place.path)}
    path = ["dbs", place.database, "users", "u", "permissions"]
    assert wire.send("POST", path, body, {"x-ms-documentdb-expiry-seconds": seconds}).status == 400
    for fine in ("10", "86400"):
        headers = {"x-ms-documentdb-expiry-seconds": fine, "x-ms-documentdb-is-upsert": "true"}
        assert wire.send("POST", path, body, headers).status in (200, 201)


def test_the_account_with_another_key_refuses_the_well_known_one(start_server: StartServer) -> None:
    with start_server(key=OTHER_KEY) as server:
        import http.client

        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS_MAX)
        connection.request("GET", "/", headers={"authorization": "x"})
        assert connection.getresponse().status == 401
        connection.close()


def test_a_caller_is_known_before_its_body_is_read(place: Any, wire: Any) -> None:
    path = [*place.path, "docs"]
    target = "/" + "/".join(path)
    claim = {"content-length": "2000000", "connection": "keep-alive"}
    unknown: tuple[dict[str, str], ...] = ({}, wire.signed("POST", path, key=OTHER_KEY))
    for headers in unknown:
        status, text = head_only(wire, target, {**headers, **claim})
        assert (status, "Unauthorized" in text) == (401, True)
    assert head_only(wire, "/_pleiad/health", claim)[0] == 400
    expecting = {**wire.signed("POST", path, key=OTHER_KEY), **claim, "expect": "100-continue"}
    assert head_only(wire, target, expecting)[0] == 401
    good = {**wire.signed("POST", path), **claim, "expect": "100-continue"}
    assert head_only(wire, target, good)[0] == 100


def test_a_body_that_comes_late_is_signed_for_like_any_other(place: Any, wire: Any) -> None:
    path = [*place.path, "docs"]
    body = json.dumps({"id": "late", "pk": "a", "text": "x" * 50_000}).encode()
    headers = wire.signed("POST", path) | {"x-ms-documentdb-partitionkey": '["a"]'}
    head = {**headers, "content-length": str(len(body))}
    with connected(wire, "/" + "/".join(path), head) as connection:
        for start in range(0, len(body), 10_000):
            connection.sendall(body[start : start + 10_000])
        assert connection.recv(65536).startswith(b"HTTP/1.1 201")


@contextlib.contextmanager
def connected(wire: Any, target: str, headers: dict[str, str]) -> Iterator[socket.socket]:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with socket.create_connection(("127.0.0.1", wire.server.port), timeout=SECONDS_MAX) as connection:
        connection.sendall(f"POST {target} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode())
        yield connection


def head_only(wire: Any, target: str, headers: dict[str, str]) -> tuple[int, str]:
    """What is answered to a head whose body never comes."""
    with connected(wire, target, headers) as connection:
        answer = connection.recv(65536).decode()
        return int(answer.split(" ")[1]), answer
