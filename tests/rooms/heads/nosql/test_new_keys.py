"""New keys of a running account: what goes on to hold, and what ends at once."""

from __future__ import annotations

import base64
import json
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from attack.callers import signature
from pleiad.account.keys import EMULATOR_KEY
from pleiad.settings import Settings
from tests.rooms.cli.test_serve import refused, serving
from tests.rooms.heads.nosql.conftest import Wire
from tests.waiting import SECONDS_MAX, wait_until

OLD, OTHER, NEW, READ, READ_TOO = (
    base64.b64encode(letter * 64).decode() for letter in (b"o", b"t", b"n", b"r", b"s")
)
NAMES = ("primaryMasterKey", "secondaryMasterKey", "primaryReadonlyMasterKey", "secondaryReadonlyMasterKey")


@pytest.fixture
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes the keys in the order of `NAMES`, by a rename."""
    monkeypatch.setattr("pleiad.node.LOOK_SECONDS", 0.02)

    def write(*keys: str | None) -> Path:
        part = tmp_path / "keys.part"
        part.write_text(json.dumps(dict(zip(NAMES, keys, strict=False))))
        part.chmod(0o600)
        return part.replace(tmp_path / "keys.json")

    return write


@pytest.fixture
def served(wire: Any, key_file: Callable[..., Path]) -> Iterator[Any]:
    """A connection to a server whose keys are in a file: OLD and OTHER to begin with, READ and READ_TOO to read."""
    with wire.serve(Settings(port=0, key_file=key_file(OLD, OTHER, READ, READ_TOO))) as here:
        yield here


def ask(
    wire: Any, key: str, method: str = "GET", segments: tuple[str, ...] = ("dbs",), body: Any = None
) -> Any:
    headers = wire.signed(method, segments, key=key)
    return wire.send(method, segments, body, headers)


def keys_of(wire: Any, key: str) -> Any:
    answer = ask(wire, key, segments=("_pleiad", "v1", "keys"))
    assert answer.status == 200, answer.body
    return answer.json


def test_all_four_keys_sign_and_two_of_them_only_read(served: Any) -> None:
    for number, key in enumerate((OLD, OTHER)):
        assert ask(served, key).status == 200
        assert ask(served, key, "POST", body={"id": f"d{number}"}).status == 201
        # By the path of nearly all requests, and by the long way.
        assert ask(served, key, segments=("dbs", f"d{number}")).status == 200
        assert (
            served.send_raw(
                "GET", f"/dbs/%64{number}", None, served.signed("GET", ("dbs", f"d{number}"), key=key)
            ).status
            == 200
        )
    for key in (READ, READ_TOO):
        assert ask(served, key).status == 200
        assert ask(served, key, "POST", body={"id": "x"}).status == 403
        assert ask(served, key, segments=("_pleiad", "v1", "keys")).status == 200
    assert ask(served, NEW).status == 401


def test_the_admin_api_tells_which_keys_are_in_force_and_not_what_they_are(
    served: Any, key_file: Callable[..., Path]
) -> None:
    before = ask(served, READ, segments=("_pleiad", "v1", "keys"))
    assert [(each["name"], each["may"]) for each in before.json["keys"]] == list(
        zip(NAMES, ("everything", "everything", "read", "read"), strict=True)
    )
    assert before.json["source"] == "file"
    assert not any(key.encode() in before.body for key in (OLD, OTHER, READ, READ_TOO))
    key_file(NEW, OTHER)
    assert wait_until(lambda: len(keys_of(served, OTHER)["keys"]) == 2)
    after = keys_of(served, OTHER)
    assert after["since"] > before.json["since"]
    prints = [[each["fingerprint"] for each in answer["keys"]] for answer in (before.json, after)]
    assert prints[1][0] not in prints[0]
    assert prints[1][1] == prints[0][1]


def test_a_server_without_a_file_tells_its_keys_too(wire: Any) -> None:
    answer = wire.send("GET", ["_pleiad", "v1", "keys"])
    assert [each["name"] for each in answer.json["keys"]] == ["primaryMasterKey"]
    assert answer.json["source"] == "options"


def test_a_key_that_is_gone_is_refused_at_once_also_where_its_proof_was_kept(
    served: Any, key_file: Callable[..., Path]
) -> None:
    signed = {key: served.signed("GET", ("dbs",), key=key) for key in (OLD, OTHER, READ)}
    for _ in range(2):  # the second time by what was kept of the first
        for headers in signed.values():
            assert served.send_raw("GET", "/dbs", None, headers).status == 200
    key_file(OTHER, NEW)
    assert wait_until(lambda: ask(served, NEW).status == 200)
    assert served.send_raw("GET", "/dbs", None, signed[OTHER]).status == 200
    assert served.send_raw("GET", "/dbs", None, signed[OLD]).status == 401
    assert served.send_raw("GET", "/dbs", None, signed[READ]).status == 401


@pytest.mark.parametrize("encoded", [False, True], ids=["by the short way", "by the long way"])
def test_a_body_that_is_still_on_the_way_comes_too_late(
    served: Any, key_file: Callable[..., Path], encoded: bool
) -> None:
    body = b'{"id": "late"}'
    headers = {
        **served.signed("POST", ("dbs",), key=OLD),
        "content-length": str(len(body)),
        "expect": "100-continue",
    }
    path = "/%64bs" if encoded else "/dbs"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with socket.create_connection(("127.0.0.1", served.server.port), timeout=SECONDS_MAX) as late:
        late.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode())
        assert late.recv(1000).startswith(b"HTTP/1.1 100")  # the key was good
        key_file(OTHER)
        assert wait_until(lambda: ask(served, OLD).status == 401)
        late.sendall(body)
        assert late.recv(1000).startswith(b"HTTP/1.1 401")
    assert ask(served, OTHER, segments=("dbs", "late")).status == 404


def test_resource_tokens_last_as_long_as_the_key_that_signed_them(
    served: Any, key_file: Callable[..., Path]
) -> None:
    assert ask(served, OLD, "POST", body={"id": "d"}).status == 201
    container = {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}}
    assert ask(served, OLD, "POST", ("dbs", "d", "colls"), container).status == 201
    assert ask(served, OLD, "POST", ("dbs", "d", "users"), {"id": "u"}).status == 201
    permission = {"id": "p", "permissionMode": "Read", "resource": "dbs/d/colls/c"}
    place = ("dbs", "d", "users", "u", "permissions")
    # The primary signs, whoever asks.
    token = ask(served, OTHER, "POST", place, permission).json["_token"]

    def reads(token: str) -> int:
        headers = {"authorization": quote(token, safe="")}
        return int(served.send_raw("GET", "/dbs/d/colls/c", None, headers).status)

    assert reads(token) == 200
    key_file(NEW, OLD)  # exchanged: the old one is the secondary
    assert wait_until(lambda: ask(served, NEW).status == 200)
    assert reads(token) == 200
    newer = ask(served, NEW, segments=(*place, "p")).json["_token"]
    key_file(NEW)
    assert wait_until(lambda: ask(served, OLD).status == 401)
    assert (reads(token), reads(newer)) == (401, 200)


def test_continuation_tokens_outlive_new_keys(served: Any, key_file: Callable[..., Path]) -> None:
    assert ask(served, OLD, "POST", body={"id": "pages"}).status == 201
    container = {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}}
    assert ask(served, OLD, "POST", ("dbs", "pages", "colls"), container).status == 201
    docs = ("dbs", "pages", "colls", "c", "docs")

    def send(key: str, method: str, body: Any = None, **headers: str) -> Any:
        dashed = {name.replace("_", "-"): text for name, text in headers.items()}
        fields = {**served.signed(method, docs, key=key), **dashed}
        return served.send(method, docs, body, fields)

    for number in range(4):
        item = {"id": str(number), "pk": "a"}
        assert send(OLD, "POST", item, x_ms_documentdb_partitionkey='["a"]').status == 201
    first = send(OLD, "GET", x_ms_max_item_count="2")
    key_file(NEW)
    assert wait_until(lambda: ask(served, NEW).status == 200)
    rest = send(NEW, "GET", x_ms_max_item_count="2", x_ms_continuation=first.headers["x-ms-continuation"])
    assert [each["id"] for each in rest.json["Documents"]] == ["2", "3"]


def test_a_file_that_is_wrong_leaves_the_keys_as_they_are(
    served: Any, key_file: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    path = key_file(OLD, OTHER)
    assert wait_until(lambda: len(keys_of(served, OLD)["keys"]) == 2)
    with caplog.at_level(logging.ERROR):
        path.write_text(json.dumps({"primaryMasterKey": NEW})[:-1])
        assert wait_until(lambda: "not JSON" in keys_of(served, OLD).get("problem", ""))
        path.unlink()
        assert wait_until(lambda: "No such file" in keys_of(served, OLD).get("problem", ""))
    assert "the keys of before stay in force" in caplog.text
    assert ask(served, OTHER).status == 200
    assert ask(served, NEW).status == 401
    key_file(NEW)
    assert wait_until(lambda: ask(served, NEW).status == 200)
    assert "problem" not in keys_of(served, NEW)
    assert not any(key in caplog.text for key in (OLD, OTHER, NEW))


def test_no_request_that_is_signed_with_a_key_in_force_is_lost(
    served: Any, key_file: Callable[..., Path]
) -> None:
    """Clients go from key to key as the documentation says, while requests run without a pause."""
    assert ask(served, OLD, "POST", body={"id": "load"}).status == 201
    wanted = OTHER
    in_use = [""] * 4
    statuses: list[int] = []
    ended = threading.Event()

    def work(number: int) -> None:
        own = Wire(served.server, served._store_of)
        while not ended.is_set():
            key = in_use[number] = wanted
            statuses.append(ask(own, key, segments=("dbs", "load")).status)
            statuses.append(ask(own, key).status)
        own.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(in_use))]
    for thread in threads:
        thread.start()
    try:
        assert wait_until(lambda: set(in_use) == {OTHER})
        # Each time the key that nobody uses is replaced, and then everybody goes over to the new one.
        for primary, secondary, new in ((NEW, OTHER, NEW), (NEW, OLD, OLD), (OTHER, OLD, OTHER)):
            key_file(primary, secondary)
            assert wait_until(partial(is_taken, served, new))
            wanted = new
            assert wait_until(partial(all_use, in_use, new))
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert set(statuses) == {200}


def is_taken(wire: Any, key: str) -> bool:
    return bool(ask(wire, key).status == 200)


def all_use(in_use: list[str], key: str) -> bool:
    return set(in_use) == {key}


# -- a process of its own ------------------------------------------------------------------------------


def test_a_process_reads_its_file_anew_on_hangup(key_file: Callable[..., Path], tmp_path: Path) -> None:
    path = key_file(OLD)
    with serving("--ephemeral", "--port", 0, "--key-file", path) as server:
        assert "<your key>" in server.banner
        assert OLD not in server.banner
        key_file(NEW)
        # The signal need not wait for the next look at the file; either way the server lives on and takes the new key.
        server.process.send_signal(signal.SIGHUP)

        def status(key: str) -> int:
            date = formatdate(usegmt=True)
            proof = signature(key, "GET", "dbs", "", date)
            return server.get("/dbs", **{"x-ms-date": date, "authorization": proof})[0]

        assert wait_until(lambda: status(NEW) == 200)
        assert status(OLD) == 401
        assert server.process.poll() is None


def test_a_file_and_options_at_once_are_refused(key_file: Callable[..., Path], tmp_path: Path) -> None:
    path = key_file(OLD)
    assert "given twice" in refused("--ephemeral", "--port", 0, "--key-file", path, "--key", NEW)
    assert "given twice" in refused(
        "--ephemeral", "--port", 0, PLEIAD_KEY_FILE=str(path), PLEIAD_READ_ONLY_KEY=READ
    )
    complaint = refused("--ephemeral", "--port", 0, "--key-file", tmp_path / "none")
    assert "No such file" in complaint


def test_the_emulators_key_in_a_file_is_refused_beyond_loopback(
    key_file: Callable[..., Path], wire: Any, caplog: pytest.LogCaptureFixture
) -> None:
    path = key_file(OLD, EMULATOR_KEY)
    assert "would let anyone in" in refused(
        "--ephemeral", "--port", 0, "--host", "0.0.0.0", "--key-file", path
    )
    key_file(OLD)
    with wire.serve(Settings(port=0, host="0.0.0.0", key_file=path)) as here:
        assert ask(here, OLD).status == 200
        key_file(OLD, EMULATOR_KEY)
        assert wait_until(lambda: "would let anyone in" in keys_of(here, OLD).get("problem", ""))
        assert ask(here, EMULATOR_KEY).status == 401
