"""What a signature proves: one verb on one resource, and nothing beside it."""

from __future__ import annotations

import base64
import hmac
import json
from email.utils import formatdate
from typing import Any
from urllib.parse import quote

import pytest

from tests.proofs.rights.account import (
    KEY_HEADER,
    MASTER_KEY,
    READ_ONLY_KEY,
    WRONG_KEY,
    OpenAccount,
    identity_token,
    signed,
)

CONTAINER = ["dbs", "d", "colls", "c"]
DOCS = [*CONTAINER, "docs"]


def signed_link(method: str, kind: str, link: str, key: str = MASTER_KEY) -> dict[str, str]:
    """The headers of a signature over any type and link."""
    date = formatdate(usegmt=True)
    text = f"{method.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
    proof = base64.b64encode(hmac.digest(base64.b64decode(key), text.encode(), "sha256")).decode()
    return {"x-ms-date": date, "authorization": quote(f"type=master&ver=1.0&sig={proof}", safe="")}


async def test_the_signature_of_one_documents_rid_opens_no_document_of_another_container(
    account: OpenAccount,
) -> None:
    async with account() as a:
        key = {KEY_HEADER: '["a"]'}
        mine = (await a.as_master("GET", [*DOCS, "1"], None, key)).json["_self"].strip("/").split("/")
        theirs = await a.as_master("GET", ["dbs", "d", "colls", "other", "docs", "1"], None, key)
        other = theirs.json["_self"].strip("/").split("/")
        assert mine[5] != other[5]
        proof = signed_link("GET", "docs", mine[5].lower())
        assert (await a.send("GET", mine, proof, None, key)).json["where"] == "c"
        for path in (
            [*other[:5], mine[5]],
            other,
            ["dbs", "d", "colls", "other", "docs", mine[5]],
            [*mine[:5], "1"],
        ):
            answer = await a.send("GET", path, proof, None, key)
            assert answer.status in (401, 404), path
        for method in ("PUT", "PATCH", "DELETE"):
            before = await a.state()
            proof = signed_link(method, "docs", mine[5].lower())
            body: Any = {"id": "1", "pk": "a", "n": 666}
            if method == "PATCH":
                body = {"operations": [{"op": "set", "path": "/n", "value": 666}]}
            answer = await a.send(method, [*other[:5], mine[5]], proof, body, key)
            assert answer.status == 404
            assert await a.state() == before


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_a_rid_goes_with_the_partition_key_of_its_item_only(method: str, account: OpenAccount) -> None:
    async with account() as a:
        one = await a.as_master("GET", [*DOCS, "1"], None, {KEY_HEADER: '["a"]'})
        path = one.json["_self"].strip("/").split("/")
        proof = signed_link(method, "docs", path[5].lower())
        body = {"id": "1", "pk": "b"} if method == "PUT" else None
        assert (await a.send(method, path, proof, body, {KEY_HEADER: '["b"]'})).status == 404


async def test_a_rid_of_another_place_finds_nothing_of_any_kind(account: OpenAccount) -> None:
    async with account() as a:
        engine = a.engine
        await engine.create_database({"id": "e"}, None)
        await a.as_master("POST", ["dbs", "e", "users"], {"id": "eve"})
        key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
        await a.as_master("POST", ["dbs", "e", "colls"], {"id": "c", "partitionKey": key})
        e = (await a.as_master("GET", ["dbs", "e"])).json["_self"]
        eve = (await a.as_master("GET", ["dbs", "e", "users", "eve"])).json["_self"]
        coll = (await a.as_master("GET", ["dbs", "e", "colls", "c"])).json["_self"]
        for segments, owner in (
            (["dbs", "d", "users", "ann"], e),
            (["dbs", "d", "users", "ann", "permissions", "perm"], eve),
            (["dbs", "d", "clientencryptionkeys", "cek"], e),
            (CONTAINER, e),
            ([*CONTAINER, "sprocs", "proc"], coll),
            ([*CONTAINER, "triggers", "trig"], coll),
            ([*CONTAINER, "udfs", "func"], coll),
        ):
            own = (await a.as_master("GET", segments)).json["_self"].strip("/").split("/")
            kind, rid = own[-2:]
            proof = signed_link("GET", kind, rid.lower())
            assert (await a.send("GET", own, proof)).status == 200
            moved = [*owner.strip("/").split("/"), kind, rid]
            assert (await a.send("GET", moved, proof)).status == 404


async def test_the_signature_of_a_last_name_is_none_of_a_path_that_only_begins_with_a_rid(
    account: OpenAccount,
) -> None:
    async with account() as a:
        database = (await a.as_master("GET", ["dbs", "d"])).json["_rid"]
        container = (await a.as_master("GET", CONTAINER)).json["_rid"]
        key = {KEY_HEADER: '["a"]'}
        for path, kind, name in (
            (["dbs", database, "colls", "c"], "colls", "c"),
            (["dbs", database, "colls", "c", "docs"], "docs", "c"),
            (["dbs", database, "colls", container, "docs", "1"], "docs", "1"),
            (["dbs", database, "users", "ann"], "users", "ann"),
        ):
            assert (await a.send("GET", path, signed_link("GET", kind, name), None, key)).status == 401
            assert (await a.send("GET", path, signed(MASTER_KEY, "GET", path), None, key)).status == 200


@pytest.mark.parametrize(
    "path",
    ["/dbs//d", "/DBS/d", "/dbs/D", "/dbs/d/../d", "/dbs/./d", "/dbs/d%2Fcolls%2Fc",
     "/dbs/d/colls/c%2Fdocs", "/dbs%2Fd", "/dbs/d%00", "/dbs/d;x", "/dbs/d/colls/c/docs/..%2F..%2Fother"],
)  # fmt: skip
@pytest.mark.parametrize("key", [MASTER_KEY, READ_ONLY_KEY])
async def test_a_path_written_otherwise_is_not_another_resource(
    path: str, key: str, account: OpenAccount
) -> None:
    """Whatever it is signed for, it is that resource, or nothing."""
    async with account() as a:
        before = await a.state()
        for kind, link in (("dbs", "dbs/d"), ("colls", "dbs/d/colls/c"), ("docs", "dbs/d/colls/c")):
            for method in ("GET", "DELETE", "POST"):
                proof = signed_link(method, kind, link, key)
                answer = await a.send(method, [], proof, None, {KEY_HEADER: '["a"]'}, path)
                assert answer.status in (400, 401, 404, 405), (kind, method)
        assert await a.state() == before


@pytest.mark.parametrize("path", ["//dbs/d", "/dbs/d/", "///dbs/d//", "/%64bs/d", "/dbs/%64"])
async def test_slashes_around_a_path_and_needless_escapes_are_the_same_resource(
    path: str, account: OpenAccount
) -> None:
    async with account() as a:
        before = await a.state()
        for key, status in ((MASTER_KEY, 200), (READ_ONLY_KEY, 200), (WRONG_KEY, 401)):
            assert (
                await a.send("GET", [], signed_link("GET", "dbs", "dbs/d", key), None, {}, path)
            ).status == status
        proof = signed_link("DELETE", "dbs", "dbs/d", READ_ONLY_KEY)
        assert (await a.send("DELETE", [], proof, None, {}, path)).status == 403
        assert await a.state() == before


async def test_the_metrics_take_either_key_as_it_is_and_nothing_else(account: OpenAccount) -> None:
    async with account() as a:
        for given, status in (
            (f"Bearer {MASTER_KEY}", 200),
            (f"bearer {READ_ONLY_KEY}", 200),
            ("Bearer ", 401),
            ("Bearer x", 401),
            (identity_token(), 401),
            ("", 401),
        ):
            assert (await a.send("GET", ["metrics"], {"authorization": given})).status == status


async def test_the_signature_of_a_request_is_none_of_a_token(account: OpenAccount) -> None:
    """They are made with keys of their own, so no text that a client signs is ever a resource token."""
    async with account() as a:
        claims = {"p": "x", "b": ["", ""], "e": 2**40}
        payload = base64.b64encode(json.dumps(claims).encode())
        proof = base64.b64encode(hmac.digest(base64.b64decode(MASTER_KEY), payload, "sha256")).decode()
        token = quote(f"type=resource&ver=1&sig={proof};{payload.decode()};", safe="")
        assert (await a.send("GET", [], {"authorization": token})).status == 401
