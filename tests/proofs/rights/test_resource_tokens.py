"""What a resource token opens: the container, key or item that its permission meant when it was issued, no more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pleiad.catalog.resource import Kind
from pleiad.keys.definition import KeyDefinition
from pleiad.keys.hash import epk
from tests.proofs.rights.account import (
    KEY_HEADER,
    MASTER_KEY,
    TWIN,
    VICTIM,
    Account,
    Answer,
    OpenAccount,
    holder_of,
    signed,
)

CONTAINER = ["dbs", "d", "colls", "c"]
DOCS = [*CONTAINER, "docs"]
PERMISSIONS = ["dbs", "d", "users", "ann", "permissions"]
QUERY = {"x-ms-documentdb-isquery": "true", "x-ms-documentdb-query-enablecrosspartition": "true"}
ODD_KEYS: tuple[Any, ...] = ([], {}, None, "", "a", 0, False, [[]], [["a"]], [{"a": 1}], [1e400], {"0": "a"})


async def with_token(
    account: Account,
    token: str,
    method: str,
    segments: list[str],
    key: Any = ...,
    body: Any = None,
    **headers: str,
) -> Answer:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    if key is not ...:
        fields[KEY_HEADER] = json.dumps(key)
    return await account.send(method, segments, holder_of(token)(method, segments), body, fields)


# -- partition keys --------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ODD_KEYS, ids=json.dumps)
@pytest.mark.parametrize("how", ["create", "upsert", "replace"])
async def test_a_permission_for_what_is_no_partition_key_is_refused(
    key: Any, how: str, account: OpenAccount
) -> None:
    async with account() as a:
        before = await a.state()
        raw = json.dumps(
            {"id": "perm", "permissionMode": "All", "resource": "dbs/d/colls/c", "resourcePartitionKey": key}
        )
        method, path = ("PUT", [*PERMISSIONS, "perm"]) if how == "replace" else ("POST", PERMISSIONS)
        headers = {"x-ms-documentdb-is-upsert": "true"} if how == "upsert" else {}
        raw = raw.replace("Infinity", "1e400")
        answer = await a.send(method, path, signed(MASTER_KEY, method, path), raw.encode(), headers)
        assert answer.status == 400
        assert await a.state() == before


@pytest.mark.parametrize("key", [[], [[]], [{"a": 1}], ["a", "b"]], ids=json.dumps)
async def test_a_permission_of_older_days_for_no_partition_key_opens_no_items(
    key: Any, account: OpenAccount
) -> None:
    """Earlier versions took any list, and an empty one for all keys."""
    async with account() as a:
        token = await a.token("old", "All", "dbs/d/colls/c", ["a"])
        await _put_key(a, "old", key)
        token = (await a.as_master("GET", [*PERMISSIONS, "old"])).json["_token"]
        keys: tuple[Any, ...] = (..., [], [{}], ["a"], key)
        for given in keys:
            for method, segments, body, headers in (
                ("GET", [*DOCS, "1"], None, {}),
                ("GET", DOCS, None, {}),
                ("GET", DOCS, None, {"a_im": "Incremental Feed"}),
                ("POST", DOCS, {"query": "SELECT * FROM c"}, QUERY),
                ("POST", DOCS, {"id": "new", "pk": "a"}, {}),
                ("DELETE", [*DOCS, "1"], None, {}),
                ("GET", [*CONTAINER, "sprocs"], None, {}),
            ):
                answer = await with_token(a, token, method, segments, given, body, **headers)
                assert answer.is_refused or answer.status == 400, (given, method, segments, answer.body)


async def _put_key(account: Account, id: str, key: Any) -> None:
    """Writes what no request may write any more."""
    catalog = account.engine.catalog
    old = next(each for each in catalog.all(Kind.PERMISSION) if each.id == id)
    await catalog.replace(old, old.changed({**old.properties, "resourcePartitionKey": key}))


async def test_a_token_for_one_key_sees_that_key_only_however_it_asks(account: OpenAccount) -> None:
    async with account() as a:
        token = await a.token("mine", "All", "dbs/d/colls/c", ["a"])
        allowed: list[tuple[str, list[str], Any, dict[str, str]]] = [
            ("GET", [*DOCS, "1"], None, {}),
            ("GET", DOCS, None, {}),
            ("GET", DOCS, None, {"a_im": "Incremental Feed"}),
            ("POST", DOCS, {"query": "SELECT * FROM c"}, QUERY),
        ]
        others: tuple[Any, ...] = (["b"], [], [{}], [None], ["a", "b"], ...)
        for method, segments, body, headers in allowed:
            answer = await with_token(a, token, method, segments, ["a"], body, **headers)
            assert answer.status == 200
            found = answer.json.get("Documents", [answer.json])
            assert {item["pk"] for item in found} == {"a"}
            for other in others:
                answer = await with_token(a, token, method, segments, other, body, **headers)
                assert answer.is_refused, (other, answer.body)
        whole = {"x_ms_start_epk": "", "x_ms_end_epk": "FF", "x_ms_documentdb_partitionkeyrangeid": "0"}
        answer = await with_token(a, token, "GET", DOCS, ["a"], None, **whole)
        assert {item["pk"] for item in answer.json["Documents"]} == {"a"}


async def test_a_batch_with_a_token_for_one_key_holds_items_of_that_key_only(account: OpenAccount) -> None:
    async with account() as a:
        token = await a.token("mine", "All", "dbs/d/colls/c", ["a"])
        before = await a.state()
        for atomic in ("true", "false"):
            flags = {"x_ms_cosmos_is_batch_request": "true", "x_ms_cosmos_batch_atomic": atomic}
            for operation in (
                {
                    "operationType": "Create",
                    "resourceBody": {"id": "new", "pk": "b"},
                    "partitionKey": '["b"]',
                },
                {"operationType": "Create", "resourceBody": {"id": "new", "pk": "b"}},
                {"operationType": "Read", "id": "1", "partitionKey": ["b"]},
                {"operationType": "Delete", "id": "1", "partitionKey": '["b"]'},
            ):
                answer = await with_token(a, token, "POST", DOCS, ["a"], [operation], **flags)
                assert answer.status in (400, 207), answer.body
                assert b'"pk":"b"' not in answer.body
                answer = await with_token(a, token, "POST", DOCS, ..., [operation], **flags)
                assert answer.is_refused
        assert await a.state() == before


async def test_a_hierarchical_key_is_granted_whole(account: OpenAccount) -> None:
    """As on the service: a permission names every level, and opens neither its prefix nor a sister."""
    async with account() as a:
        docs = ["dbs", "d", "colls", "deep", "docs"]
        for user in ("x", "y"):
            item = {"id": user, "tenant": "t", "user": user}
            await a.as_master("POST", docs, item, {KEY_HEADER: json.dumps(["t", user])})
        body = {
            "id": "p",
            "permissionMode": "All",
            "resource": "dbs/d/colls/deep",
            "resourcePartitionKey": ["t"],
        }
        proof = signed(MASTER_KEY, "POST", PERMISSIONS)
        assert (await a.send("POST", PERMISSIONS, proof, body)).status == 400
        token = await a.token("whole", "All", "dbs/d/colls/deep", ["t", "x"])
        answer = await with_token(a, token, "POST", docs, ["t", "x"], {"query": "SELECT * FROM c"}, **QUERY)
        assert [item["id"] for item in answer.json["Documents"]] == ["x"]
        for other in (["t"], ["t", "y"], ["t", {}], ["t", "x", "z"], [], ...):
            for method, segments, sent, headers in (
                ("POST", docs, {"query": "SELECT * FROM c"}, QUERY),
                ("GET", docs, None, {}),
                ("GET", [*docs, "y"], None, {}),
                ("POST", [*docs[:-1], "operations", "partitionkeydelete"], None, {}),
            ):
                answer = await with_token(a, token, method, segments, other, sent, **headers)
                assert answer.is_refused, (other, answer.status)
        await _put_key(a, "whole", ["t"])
        prefix = (await a.as_master("GET", [*PERMISSIONS, "whole"])).json["_token"]
        for key in (["t"], ["t", "x"]):
            answer = await with_token(a, prefix, "GET", docs, key)
            assert answer.is_refused


# -- the container itself --------------------------------------------------------------------------


async def test_only_a_token_with_all_rights_on_a_container_deletes_it_as_on_the_service(
    account: OpenAccount,
) -> None:
    async with account() as a:
        for mode, link, key in (
            ("Read", "dbs/d/colls/c", ...),
            ("All", "dbs/d/colls/c", ["a"]),
            ("All", "dbs/d/colls/c/docs/1", ["a"]),
        ):
            token = await a.token("less", mode, link, key)
            assert (await with_token(a, token, "DELETE", CONTAINER)).status == 403
            await a.as_master("DELETE", [*PERMISSIONS, "less"])
        token = await a.token("whole", "All", "dbs/d/colls/c")
        assert (await with_token(a, token, "PUT", CONTAINER, body={"id": "c"})).status == 403
        assert (await with_token(a, token, "DELETE", CONTAINER)).status == 204
        gone = await a.send("GET", CONTAINER, signed(MASTER_KEY, "GET", CONTAINER), None, {})
        assert gone.status == 404


# -- created anew ----------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["container", "key", "item", "item without key"])
async def test_a_token_does_not_open_a_container_created_anew_under_its_name(
    what: str, account: OpenAccount
) -> None:
    async with account() as a:
        link = "dbs/d/colls/c" + ("/docs/1" if what.startswith("item") else "")
        key = ["a"] if what in ("key", "item") else ...
        token = await a.token("mine", "All", link, key)
        assert (await with_token(a, token, "GET", [*DOCS, "1"], ["a"])).status == 200
        definition = (await a.as_master("GET", CONTAINER)).json
        await a.as_master("DELETE", CONTAINER)
        await a.as_master("POST", CONTAINER[:3], {"id": "c", "partitionKey": definition["partitionKey"]})
        await a.as_master("POST", DOCS, {"id": "1", "pk": "a", "new": True}, {KEY_HEADER: '["a"]'})
        for segments in (CONTAINER, [*DOCS, "1"], [*CONTAINER, "pkranges"]):
            assert (await with_token(a, token, "GET", segments, ["a"])).status == 403
        assert (await with_token(a, token, "DELETE", [*DOCS, "1"], ["a"])).status == 403
        fresh = (await a.as_master("GET", [*PERMISSIONS, "mine"])).json["_token"]
        assert (await with_token(a, fresh, "GET", [*DOCS, "1"], ["a"])).json["new"] is True


async def test_a_token_does_not_open_a_database_created_anew_under_its_name(account: OpenAccount) -> None:
    async with account() as a:
        await a.as_master("POST", ["dbs"], {"id": "e"})
        await a.as_master("POST", ["dbs", "e", "users"], {"id": "eve"})
        path = ["dbs", "e", "users", "eve", "permissions"]
        made = await a.as_master(
            "POST", path, {"id": "p", "permissionMode": "All", "resource": "dbs/d/colls/c"}
        )
        token = made.json["_token"]
        assert (await with_token(a, token, "GET", [*DOCS, "1"], ["a"])).status == 200
        definition = (await a.as_master("GET", CONTAINER)).json
        await a.as_master("DELETE", ["dbs", "d"])
        await a.as_master("POST", ["dbs"], {"id": "d"})
        await a.as_master("POST", CONTAINER[:3], {"id": "c", "partitionKey": definition["partitionKey"]})
        assert (await with_token(a, token, "GET", CONTAINER, ["a"])).status == 403


async def test_a_token_ends_with_its_user_also_when_the_user_is_created_anew(account: OpenAccount) -> None:
    async with account() as a:
        token = await a.token("mine", "All", "dbs/d/colls/c")
        await a.as_master("DELETE", PERMISSIONS[:4])
        await a.as_master("POST", PERMISSIONS[:3], {"id": "ann"})
        await a.token("mine", "All", "dbs/d/colls/c")
        assert (await with_token(a, token, "GET", [*DOCS, "1"], ["a"])).status == 403


async def test_a_token_for_an_item_does_not_open_one_created_anew_under_its_name(
    account: OpenAccount,
) -> None:
    async with account() as a:
        own = (await a.as_master("GET", [*DOCS, "1"], None, {KEY_HEADER: '["a"]'})).json["_self"]
        tokens = [
            await a.token("by-name", "All", "dbs/d/colls/c/docs/1", ["a"]),
            await a.token("by-rid", "All", own),
        ]
        for token in tokens:
            assert (await with_token(a, token, "GET", [*DOCS, "1"], ["a"])).status == 200
            assert (await with_token(a, token, "GET", [*DOCS, "1"], ["b"])).status == 403
            assert (await with_token(a, token, "GET", [*DOCS, "2"], ["a"])).status == 403
        await a.as_master("DELETE", [*DOCS, "1"], None, {KEY_HEADER: '["a"]'})
        for token in tokens:
            assert (await with_token(a, token, "GET", [*DOCS, "1"], ["a"])).status == 404
        await a.as_master("POST", DOCS, {"id": "1", "pk": "a", "new": True}, {KEY_HEADER: '["a"]'})
        for token in tokens:
            for method in ("GET", "DELETE"):
                assert (await with_token(a, token, method, [*DOCS, "1"], ["a"])).status == 403
        fresh = (await a.as_master("GET", [*PERMISSIONS, "by-name"])).json["_token"]
        assert (await with_token(a, fresh, "GET", [*DOCS, "1"], ["a"])).json["new"] is True


async def test_a_token_goes_on_over_a_replace_of_its_item(account: OpenAccount) -> None:
    async with account() as a:
        token = await a.token("mine", "All", "dbs/d/colls/c/docs/1", ["a"])
        for _ in range(2):
            changed = await with_token(a, token, "PUT", [*DOCS, "1"], ["a"], {"id": "1", "pk": "a", "n": 1})
            assert changed.status == 200


async def test_a_token_follows_its_item_to_a_new_name(account: OpenAccount) -> None:
    async with account() as a:
        token = await a.token("mine", "All", "dbs/d/colls/c/docs/1", ["a"])
        renamed = await with_token(a, token, "PUT", [*DOCS, "1"], ["a"], {"id": "named anew", "pk": "a"})
        assert renamed.status == 200
        assert (await with_token(a, token, "GET", [*DOCS, "named anew"], ["a"])).status == 200
        await a.as_master("POST", DOCS, {"id": "1", "pk": "a"}, {KEY_HEADER: '["a"]'})
        assert (await with_token(a, token, "GET", [*DOCS, "1"], ["a"])).status == 403


async def test_a_token_made_before_there_was_anything_opens_nothing(account: OpenAccount) -> None:
    async with account() as a:
        container = await a.token("c", "All", "dbs/d/colls/later")
        item = await a.token("i", "All", "dbs/d/colls/c/docs/later", ["a"])
        key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
        await a.as_master("POST", CONTAINER[:3], {"id": "later", "partitionKey": key})
        await a.as_master("POST", DOCS, {"id": "later", "pk": "a"}, {KEY_HEADER: '["a"]'})
        assert (await with_token(a, container, "GET", [*CONTAINER[:3], "later"])).status == 403
        assert (await with_token(a, item, "GET", [*DOCS, "later"], ["a"])).status == 403


# -- the permission changes ------------------------------------------------------------------------


async def test_a_token_follows_the_mode_of_its_permission_and_ends_when_that_names_something_else(
    account: OpenAccount,
) -> None:
    async with account() as a:
        token = await a.token("mine", "All", "dbs/d/colls/c")
        item = {"id": "1", "pk": "a"}
        assert (await with_token(a, token, "PUT", [*DOCS, "1"], ["a"], item)).status == 200
        path = [*PERMISSIONS, "mine"]
        await a.as_master("PUT", path, {"id": "mine", "permissionMode": "Read", "resource": "dbs/d/colls/c"})
        assert (await with_token(a, token, "PUT", [*DOCS, "1"], ["a"], item)).status == 403
        assert (await with_token(a, token, "GET", [*DOCS, "1"], ["a"])).status == 200
        narrower = {
            "id": "mine",
            "permissionMode": "All",
            "resource": "dbs/d/colls/c",
            "resourcePartitionKey": ["b"],
        }
        await a.as_master("PUT", path, narrower)
        assert (await with_token(a, token, "GET", [*DOCS, "1"], ["a"])).status == 403


async def test_the_life_of_a_token_has_bounds(account: OpenAccount) -> None:
    async with account() as a:
        body = {"id": "x", "permissionMode": "All", "resource": "dbs/d/colls/c"}
        before = await a.state()
        for seconds in ("0", "9", "-1", "86401", "1e3", "3600.5", "0x10", "９", "99999999999"):
            headers = {"x-ms-documentdb-expiry-seconds": seconds.encode().decode("latin-1")}
            proof = signed(MASTER_KEY, "POST", PERMISSIONS)
            assert (await a.send("POST", PERMISSIONS, proof, body, headers)).status == 400
        assert await a.state() == before


async def test_an_item_token_by_id_alone_opens_no_other_id(account: OpenAccount) -> None:
    async with account() as a:
        token = await a.token("mine", "Read", "dbs/d/colls/c/docs/1")
        assert (await with_token(a, token, "GET", [*DOCS, "1"], ["a"])).status == 200
        for segments in ([*DOCS, "2"], DOCS, [*CONTAINER, "sprocs"], [*CONTAINER, "udfs"], ["dbs"]):
            assert (await with_token(a, token, "GET", segments, ["a"])).status == 403


async def test_an_item_token_changes_its_item_and_nothing_beside_it(account: OpenAccount) -> None:
    """Neither by the id of another in the body, nor by a trigger, whose script could write any item of the key."""
    async with account() as a:
        script = """function () {
            var items = getContext().getCollection();
            items.createDocument(items.getSelfLink(), {id: "by a trigger", pk: "a"});
        }"""
        trigger = {"id": "writes", "body": script, "triggerType": "Post", "triggerOperation": "All"}
        await a.as_master("POST", [*CONTAINER, "triggers"], trigger)
        named = {"x_ms_documentdb_post_trigger_include": "writes"}
        item, key = (
            await a.token("item", "All", "dbs/d/colls/c/docs/1", ["a"]),
            await a.token("key", "All", "dbs/d/colls/c", ["a"]),
        )
        before = await a.state()
        for body, status in (({"id": "2", "pk": "a", "n": 1}, 409), ({"id": "1", "pk": "b"}, 400)):
            assert (await with_token(a, item, "PUT", [*DOCS, "1"], ["a"], body)).status == status
        change = {"operations": [{"op": "set", "path": "/id", "value": "2"}]}
        assert (await with_token(a, item, "PATCH", [*DOCS, "1"], ["a"], change)).status in (400, 403)
        assert (await with_token(a, item, "DELETE", [*DOCS, "1"], ["a"], **named)).status == 403
        body = {"id": "1", "pk": "a"}
        assert (await with_token(a, item, "PUT", [*DOCS, "1"], ["a"], body, **named)).status == 403
        assert await a.state() == before
        assert (await with_token(a, key, "PUT", [*DOCS, "1"], ["a"], body, **named)).status == 200


# -- names and rids --------------------------------------------------------------------------------


async def test_a_token_opens_the_same_things_by_name_and_by_rid(account: OpenAccount) -> None:
    async with account() as a:
        item = (await a.as_master("GET", [*DOCS, "1"], None, {KEY_HEADER: '["a"]'})).json["_self"]
        other = await a.as_master(
            "GET", ["dbs", "d", "colls", "other", "docs", "1"], None, {KEY_HEADER: '["a"]'}
        )
        mine = await a.token("mine", "Read", "dbs/d/colls/c/docs/1", ["a"])
        path = item.strip("/").split("/")
        assert (await with_token(a, mine, "GET", path, ["a"])).json["id"] == "1"
        assert (await with_token(a, mine, "GET", path, ["b"])).status == 403
        theirs = other.json["_self"].strip("/").split("/")
        for wrong in (theirs, [*theirs[:4], "docs", path[5]], [*path[:5], theirs[5]], [*DOCS, path[5]]):
            assert (await with_token(a, mine, "GET", wrong, ["a"])).status in (403, 404)


async def test_a_name_that_looks_like_a_rid_leads_nobody_astray(account: OpenAccount) -> None:
    """A database and a container that are named like the rids of others are those that are named."""
    async with account() as a:
        database = (await a.as_master("GET", ["dbs", "d"])).json["_rid"]
        container = (await a.as_master("GET", CONTAINER)).json["_rid"]
        token = await a.token("mine", "All", f"dbs/{database}/colls/{container}")
        by_rid = ["dbs", database, "colls", container]
        assert (await with_token(a, token, "GET", by_rid)).status == 200
        await a.engine.create_database({"id": database}, None)
        key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
        await a.engine.create_container(
            a.engine.database(database), {"id": container, "partitionKey": key}, None
        )
        assert (await with_token(a, token, "GET", by_rid)).status == 403
        assert (await with_token(a, token, "GET", [*by_rid, "docs"], ["a"])).status == 403
        assert (await with_token(a, token, "GET", CONTAINER)).status == 200


# -- values with one hash ----------------------------------------------------------------------------


@pytest.mark.every_store
async def test_a_value_made_to_have_the_hash_of_another_opens_nothing_of_it(account: OpenAccount) -> None:
    hashed = KeyDefinition(("/pk",), "Hash", 2)
    assert epk((VICTIM,), hashed) == epk((TWIN,), hashed)
    async with account() as a:
        script = (
            "function () { __.queryDocuments(__.getSelfLink(), 'SELECT * FROM c', {}, "
            "function (error, found) { __.response.setBody(found); }); }"
        )
        assert (
            await a.as_master("POST", [*CONTAINER, "sprocs"], {"id": "all", "body": script})
        ).status == 201
        of_victim = {KEY_HEADER: json.dumps([VICTIM])}
        for id in ("1", "2"):
            item = {"id": id, "pk": VICTIM, "said": "SECRET"}
            assert (await a.as_master("POST", DOCS, item, of_victim)).status == 201
        token = await a.token("twin", "All", "dbs/d/colls/c", [TWIN])
        own = {"id": "1", "pk": TWIN}
        patch = {"operations": [{"op": "set", "path": "/said", "value": "x"}]}
        batch = [{"operationType": kind, "id": "1"} for kind in ("Read", "Delete")]
        is_batch = {"x_ms_cosmos_is_batch_request": "true", "x_ms_cosmos_batch_atomic": "true"}
        for method, segments, body, headers in (
            ("GET", [*DOCS, "1"], None, {}),
            ("GET", DOCS, None, {}),
            ("GET", DOCS, None, {"a_im": "Incremental Feed"}),
            ("POST", DOCS, {"query": "SELECT * FROM c"}, QUERY),
            ("POST", DOCS, batch, is_batch),
            ("PATCH", [*DOCS, "1"], patch, {}),
            ("PUT", [*DOCS, "1"], own, {}),
            ("DELETE", [*DOCS, "1"], None, {}),
            ("POST", [*CONTAINER, "sprocs", "all"], [], {}),
            ("POST", [*CONTAINER, "operations", "partitionkeydelete"], None, {}),
            ("POST", DOCS, own, {"x_ms_documentdb_is_upsert": "true"}),
        ):
            answer = await with_token(a, token, method, segments, [TWIN], body, **headers)
            assert b"SECRET" not in answer.body, (method, segments, headers)
        for id in ("1", "2"):
            found = await a.as_master("GET", [*DOCS, id], None, of_victim)
            assert (found.status, found.json["said"], found.json["pk"]) == (200, "SECRET", VICTIM)
        mine = await with_token(a, token, "GET", [*DOCS, "1"], [TWIN])
        assert (mine.status, mine.json["pk"]) == (200, TWIN)
