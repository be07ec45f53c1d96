"""One account with something of every kind in it, and every kind of caller to try it with.

Requests go to the head itself, without a socket, so that thousands of them are a matter of seconds.
"""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any
from urllib.parse import quote

from pleiad.account.keys import KeysInForce
from pleiad.catalog.throughput import Throughput
from pleiad.engine.desk import Desk
from pleiad.engine.engine import Engine
from pleiad.heads.admin.head import AdminOperations
from pleiad.heads.explorer.page import ExplorerPage
from pleiad.heads.nosql.auth import Authenticator
from pleiad.heads.nosql.head import NoSqlHead
from pleiad.job.advice.advices import Advices
from pleiad.job.copy.copies import Copies
from pleiad.keys.range import WHOLE
from pleiad.server.http.message import Request
from pleiad.store.selection import Selection

MASTER_KEY = base64.b64encode(b"m" * 64).decode()
READ_ONLY_KEY = base64.b64encode(b"r" * 64).decode()
WRONG_KEY = base64.b64encode(b"w" * 64).decode()
KEY_HEADER = "x-ms-documentdb-partitionkey"
VICTIM, TWIN = "victim", "t7zfsqvnjzm7fbjJ\ud6d5\x12\x7f|+`f3q\x0e\u0259 "
"""Two values with one hash of version 2; the second was worked out backwards, in seconds."""

Headers = Mapping[str, str]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def is_refused(self) -> bool:
        """Whether the caller was not let in, whatever else is wrong with the request."""
        return self.status in (401, 403)


def signed(key: str, method: str, segments: list[str]) -> dict[str, str]:
    """The headers of a request that is signed with a key, for a path by names."""
    date = formatdate(usegmt=True)
    owner = segments[:4] if len(segments) == 6 and segments[4] == "operations" else segments
    if owner[:1] == ["offers"]:
        kind, link = "offers", "".join(owner[1:]).lower()
    elif len(owner) % 2:
        kind, link = owner[-1], "/".join(owner[:-1])
    else:
        kind, link = (owner[-2] if owner else ""), "/".join(owner)
    text = f"{method.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
    proof = base64.b64encode(hmac.digest(base64.b64decode(key), text.encode(), "sha256")).decode()
    token = quote(f"type=master&ver=1.0&sig={proof}", safe="")
    return {"x-ms-date": date, "authorization": token}


def identity_token(key: str = MASTER_KEY, seconds: int = 3600) -> str:
    """The identity token of the emulators: its signature is the master key."""
    now = int(time.time())
    head = {"typ": "JWT", "alg": "RS256", "kid": "CosmosEmulatorPrimaryMaster"}
    claims = {"aud": "https://localhost.localhost", "iat": now, "nbf": now, "exp": now + seconds}
    parts = (json.dumps(head).encode(), json.dumps(claims).encode(), key.encode())
    return "type=aad&ver=1.0&sig=" + ".".join(
        base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts
    )


Caller = Callable[[str, list[str]], dict[str, str]]
"""The headers with which a caller proves who it is, for a method and a path."""


def holder_of(token: str) -> Caller:
    return lambda method, segments: {"authorization": quote(token, safe="")}


class Account:
    """The account under test: its head, its callers, and all that could be changed in it."""

    def __init__(self, engine: Engine, keys: KeysInForce) -> None:
        self.engine = engine
        self.copies, self.advices = Copies(engine), Advices(engine)
        self.authenticator = authenticator = Authenticator(keys, engine.limits)
        self.admin = AdminOperations(keys, False, lambda: 0, lambda: self.copies, lambda: self.advices)
        self.head = NoSqlHead(Desk(engine), authenticator, self.admin, page=ExplorerPage())

    async def send(
        self,
        method: str,
        segments: list[str],
        proof: Headers,
        body: Any = None,
        headers: Headers | None = None,
        path: str | None = None,
    ) -> Answer:
        fields = {**proof, **(headers or {})}
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        target = path or "/" + "/".join(quote(segment, safe="") for segment in segments)
        lines = {name.encode(): value.encode("latin-1") for name, value in fields.items()}
        response = await self.head.handle(Request(method, target.encode(), lines, raw))
        pairs = [line.split(": ", 1) for line in response.headers.decode("latin-1").split("\r\n") if line]
        return Answer(response.status, {name.lower(): value for name, value in pairs}, response.body)

    async def as_master(
        self, method: str, segments: list[str], body: Any = None, headers: Headers | None = None
    ) -> Answer:
        answer = await self.send(method, segments, signed(MASTER_KEY, method, segments), body, headers)
        assert answer.status < 300, answer.body
        return answer

    async def token(
        self,
        name: str,
        mode: str,
        link: str,
        key: Any = ...,
        user: str = "ann",
        seconds: int | None = None,
    ) -> str:
        """A token of a new permission."""
        body = {"id": name, "permissionMode": mode, "resource": link}
        if key is not ...:
            body["resourcePartitionKey"] = key
        headers = {} if seconds is None else {"x-ms-documentdb-expiry-seconds": str(seconds)}
        made = await self.as_master("POST", ["dbs", "d", "users", user, "permissions"], body, headers)
        return str(made.json["_token"])

    async def state(self) -> Any:
        """Everything that a request could change."""
        records = sorted(
            (record.kind, record.rid, record.name, json.dumps(record.body, sort_keys=True))
            for record in await self.engine.store.load_records()
        )
        rows: list[Any] = []
        for container in self.engine.containers:
            for partition in container.map.partitions:
                rows += await partition.select(Selection(WHOLE, (), 0, None), 0, 1000)
        recorded = [await self.engine.workload.state(each.resource.rid) for each in self.engine.containers]
        return records, sorted(rows), [rule.id for rule in self.engine.faults.live()], recorded


OpenAccount = Callable[..., AbstractAsyncContextManager[Account]]


async def fill(account: Account) -> Account:
    """Puts something of every kind into a new account."""
    engine, send = account.engine, account.as_master
    await engine.create_database({"id": "d"}, Throughput(400))
    database = engine.database("d")
    for id, paths in (("c", ["/pk"]), ("other", ["/pk"]), ("deep", ["/tenant", "/user"])):
        kind = "Hash" if len(paths) == 1 else "MultiHash"
        key = {"paths": paths, "kind": kind, "version": 2}
        await engine.create_container(database, {"id": id, "partitionKey": key}, Throughput(400))
        await engine.container("d", id)
    for container in ("c", "other"):
        for pk in ("a", "b"):
            for id in ("1", "2"):
                docs = ["dbs", "d", "colls", container, "docs"]
                item = {"id": id, "pk": pk, "where": container}
                await send("POST", docs, item, {KEY_HEADER: json.dumps([pk])})
    path = ["dbs", "d", "colls", "c"]
    script = """function () {
        var items = getContext().getCollection();
        items.createDocument(items.getSelfLink(), {id: "made by a script", pk: "a"});
    }"""
    await send("POST", [*path, "sprocs"], {"id": "proc", "body": script})
    trigger = {"id": "trig", "body": "function () {}", "triggerType": "Pre", "triggerOperation": "All"}
    await send("POST", [*path, "triggers"], trigger)
    await send("POST", [*path, "udfs"], {"id": "func", "body": "function () { return 1; }"})
    await send("POST", ["dbs", "d", "users"], {"id": "ann"})
    permission = {"id": "perm", "permissionMode": "Read", "resource": "dbs/d/colls/other"}
    await send("POST", ["dbs", "d", "users", "ann", "permissions"], permission)
    await send(
        "POST", ["dbs", "d", "clientencryptionkeys"], {"id": "cek", "wrappedDataEncryptionKey": "AA=="}
    )
    await send("POST", ["_pleiad", "v1", *path, "workload"], {"at": 1, "operation": "read"})
    await send("POST", ["_pleiad", "v1", "faults"], {"fault": "late", "delayMs": 1, "database": "no such"})
    await send("POST", ["_pleiad", "v1", "copies"], {"source": "d/other", "target": "d/copy", "online": True})
    return account
