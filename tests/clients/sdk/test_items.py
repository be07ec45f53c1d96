"""Items through the official client: every operation, versions, sessions, and ids of all kinds."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.cosmos import ContainerProxy, PartitionKey

from tests.waiting import wait_until


def test_create_read_upsert_replace_and_delete(container: ContainerProxy, refused: Any) -> None:
    created = container.create_item({"id": "1", "pk": "a", "n": 1})
    assert {name: created[name] for name in ("id", "pk", "n")} == {"id": "1", "pk": "a", "n": 1}
    assert container.read_item("1", "a") == created
    upserted = container.upsert_item({"id": "1", "pk": "a", "n": 2})
    assert (upserted["n"], upserted["_rid"]) == (2, created["_rid"])
    assert upserted["_etag"] != created["_etag"]
    replaced = container.replace_item("1", {"id": "1", "pk": "a", "n": 3})
    assert container.read_item("1", "a") == replaced
    container.delete_item("1", "a")
    with refused(404, 0):
        container.read_item("1", "a")


def test_an_item_has_its_system_properties(container: ContainerProxy) -> None:
    item = container.create_item({"id": "1", "pk": "a"})
    properties = container.read()
    assert item["_self"] == f"{properties['_self']}docs/{item['_rid']}/"
    assert item["_attachments"] == "attachments/"
    assert item["_etag"].startswith('"')
    assert item["_etag"].endswith('"')
    assert isinstance(item["_ts"], int)


def test_what_is_missing_is_404_and_what_exists_is_409(container: ContainerProxy, refused: Any) -> None:
    item = {"id": "1", "pk": "a"}
    for operation in (
        lambda: container.read_item("1", "a"),
        lambda: container.replace_item("1", item),
        lambda: container.delete_item("1", "a"),
        lambda: container.patch_item("1", "a", [{"op": "add", "path": "/n", "value": 1}]),
    ):
        with refused(404, 0):
            operation()
    container.create_item(item)
    with refused(409, 0):
        container.create_item(item)


def test_a_replace_with_another_id_renames_the_item(container: ContainerProxy, refused: Any) -> None:
    before = container.create_item({"id": "1", "pk": "a"})
    after = container.replace_item("1", {"id": "2", "pk": "a"})
    assert (after["id"], after["_rid"]) == ("2", before["_rid"])
    with refused(404):
        container.read_item("1", "a")
    container.create_item({"id": "1", "pk": "a"})
    with refused(409):
        container.replace_item("1", {"id": "2", "pk": "a"})


@pytest.mark.parametrize(
    ("operations", "after"),
    [
        ([{"op": "add", "path": "/new", "value": 1}], {"new": 1}),
        ([{"op": "add", "path": "/list/1", "value": 9}], {"list": [1, 9, 2]}),
        ([{"op": "add", "path": "/list/-", "value": 9}], {"list": [1, 2, 9]}),
        ([{"op": "set", "path": "/list/1", "value": 9}], {"list": [1, 9]}),
        ([{"op": "set", "path": "/deep/b", "value": {"c": None}}], {"deep": {"a": 1, "b": {"c": None}}}),
        ([{"op": "replace", "path": "/n", "value": "five"}], {"n": "five"}),
        ([{"op": "remove", "path": "/deep/a"}], {"deep": {}}),
        ([{"op": "incr", "path": "/n", "value": 3}], {"n": 8}),
        ([{"op": "incr", "path": "/n", "value": -0.5}], {"n": 4.5}),
        ([{"op": "incr", "path": "/new", "value": 7}], {"new": 7}),
        ([{"op": "move", "from": "/n", "path": "/deep/n"}], {"n": None, "deep": {"a": 1, "n": 5}}),
        (
            [{"op": "set", "path": "/x", "value": 1}, {"op": "incr", "path": "/x", "value": 1}],
            {"x": 2},
        ),
    ],
)
def test_every_patch_operation(
    operations: list[dict[str, Any]], after: dict[str, Any], container: ContainerProxy
) -> None:
    container.create_item({"id": "1", "pk": "a", "n": 5, "list": [1, 2], "deep": {"a": 1}})
    patched = container.patch_item("1", "a", operations)
    assert {name: patched.get(name) for name in after} == after
    assert container.read_item("1", "a") == patched


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/none", "value": 1},
        {"op": "remove", "path": "/none"},
        {"op": "incr", "path": "/text", "value": 1},
        {"op": "move", "from": "/none", "path": "/x"},
        {"op": "set", "path": "/id", "value": "2"},
        {"op": "set", "path": "/pk", "value": "b"},
        {"op": "set", "path": "/_ts", "value": 1},
        {"op": "remove", "path": "/pk"},
        {"op": "explode", "path": "/n", "value": 1},
    ],
)
def test_a_patch_that_cannot_be_applied_is_400_and_changes_nothing(
    operation: dict[str, Any], container: ContainerProxy, refused: Any
) -> None:
    before = container.create_item({"id": "1", "pk": "a", "text": "t"})
    with refused(400):
        container.patch_item("1", "a", [{"op": "set", "path": "/first", "value": 1}, operation])
    assert container.read_item("1", "a") == before


def test_a_patch_has_at_most_ten_operations(container: ContainerProxy, refused: Any) -> None:
    container.create_item({"id": "1", "pk": "a"})
    many = [{"op": "set", "path": f"/n{number}", "value": number} for number in range(11)]
    with refused(400):
        container.patch_item("1", "a", many)
    assert container.patch_item("1", "a", many[:10])["n9"] == 9


def test_a_patch_with_a_condition_is_applied_only_where_it_holds(
    container: ContainerProxy, refused: Any
) -> None:
    container.create_item({"id": "1", "pk": "a", "n": 1})
    operations = [{"op": "incr", "path": "/n", "value": 1}]
    assert container.patch_item("1", "a", operations, filter_predicate="from c where c.n = 1")["n"] == 2
    with refused(412):
        container.patch_item("1", "a", operations, filter_predicate="from c where c.n = 1")
    assert container.read_item("1", "a")["n"] == 2


def test_an_etag_guards_against_lost_updates(container: ContainerProxy, refused: Any) -> None:
    first = container.create_item({"id": "1", "pk": "a", "n": 1})
    second = container.replace_item("1", {**first, "n": 2})
    stale = {"etag": first["_etag"], "match_condition": MatchConditions.IfNotModified}
    with refused(412):
        container.replace_item("1", {**first, "n": 3}, **stale)
    with refused(412):
        container.upsert_item({"id": "1", "pk": "a", "n": 3}, **stale)
    with refused(412):
        container.delete_item("1", "a", **stale)
    with refused(412):
        container.patch_item("1", "a", [{"op": "set", "path": "/n", "value": 3}], **stale)
    assert container.read_item("1", "a") == second
    fresh = {"etag": second["_etag"], "match_condition": MatchConditions.IfNotModified}
    third = container.replace_item("1", {**first, "n": 3}, **fresh)
    container.delete_item("1", "a", etag=third["_etag"], match_condition=MatchConditions.IfNotModified)


def test_an_upsert_may_demand_that_the_item_is_there_or_is_not(
    container: ContainerProxy, refused: Any
) -> None:
    item = {"id": "1", "pk": "a"}
    container.upsert_item(item, match_condition=MatchConditions.IfMissing)
    with refused(412):
        container.upsert_item({**item, "n": 1}, match_condition=MatchConditions.IfMissing)
    container.replace_item("1", {**item, "n": 2}, match_condition=MatchConditions.IfPresent)
    assert container.read_item("1", "a")["n"] == 2


def test_a_read_of_a_known_version_is_304(container: ContainerProxy) -> None:
    item = container.create_item({"id": "1", "pk": "a"})
    statuses: list[int] = []
    known = {"etag": item["_etag"], "match_condition": MatchConditions.IfModified}
    known["raw_response_hook"] = lambda response: statuses.append(response.http_response.status_code)
    container.read_item("1", "a", **known)
    container.replace_item("1", {"id": "1", "pk": "a", "n": 1})
    assert container.read_item("1", "a", **known)["n"] == 1
    assert statuses == [304, 200]


def test_no_response_writes_and_returns_nothing(container: ContainerProxy) -> None:
    assert container.create_item({"id": "1", "pk": "a"}, no_response=True) == {}
    assert container.upsert_item({"id": "1", "pk": "a", "n": 1}, no_response=True) == {}
    assert container.read_item("1", "a")["n"] == 1


def test_reading_all_items_and_one_partition_of_them(container: ContainerProxy) -> None:
    for number in range(30):
        container.create_item({"id": str(number), "pk": "even" if number % 2 == 0 else "odd"})
    assert {item["id"] for item in container.read_all_items(max_item_count=7)} == {str(n) for n in range(30)}
    pages = list(container.read_all_items(max_item_count=7).by_page())
    assert max(len(list(page)) for page in pages) <= 7


def test_deleting_all_items_of_a_partition_key_leaves_the_others(container: ContainerProxy) -> None:
    for number in range(10):
        container.create_item({"id": str(number), "pk": "a"})
        container.create_item({"id": str(number), "pk": "b"})
    container.delete_all_items_by_partition_key("a")
    assert {item["pk"] for item in container.read_all_items()} == {"b"}
    container.delete_all_items_by_partition_key("a")
    container.create_item({"id": "1", "pk": "a"})


def test_a_session_token_rises_with_every_write_and_is_honoured(
    container: ContainerProxy, refused: Any
) -> None:
    tokens: list[str] = []
    for number in range(3):
        item = {"id": str(number), "pk": "a"}
        tokens.append(container.create_item(item).get_response_headers()["x-ms-session-token"])
    numbers = [int(token.split("#")[1]) for token in tokens]
    assert numbers == sorted(set(numbers))
    assert container.read_item("0", "a", session_token=tokens[-1])["id"] == "0"
    with refused(404, 1002):
        container.read_item("0", "a", session_token=f"0:0#{numbers[-1] + 1000}")


IDS = [
    "plain", "with space", " leading space", "a+b", "a%b", "%20", "a%2Fb", "a&b=c", "a;b,c", "a:b@c",
    "'quote'", '"double"', "(round)[square]{curly}", "<angle>", "a|b^c`d~e", "a!b*c$d", "äöü", "Ünïcødé",
    "日本語", "Привет", "עברית", "😀", "\u00e9", "e\u0301", "\u200bzero width", "-", "_", "AAAAAQ==",
    "x" * 1023, "ü" * 511, "null", "true", "0",
]  # fmt: skip


@pytest.mark.parametrize("id", IDS, ids=[f"id{number}" for number in range(len(IDS))])
def test_an_item_is_found_again_by_any_id(id: str, container: ContainerProxy) -> None:
    item = container.create_item({"id": id, "pk": "a"})
    assert item["id"] == id
    assert container.read_item(id, "a") == item
    assert container.replace_item(id, {"id": id, "pk": "a", "n": 1})["n"] == 1
    container.delete_item(id, "a")
    assert list(container.read_all_items()) == []


def test_ids_differ_by_case_and_by_unicode_form(container: ContainerProxy) -> None:
    for id in ("a", "A", "\u00e9", "e\u0301"):
        container.create_item({"id": id, "pk": "a"})
    assert len(list(container.read_all_items())) == 4


def test_any_json_value_comes_back_as_it_was(container: ContainerProxy) -> None:
    value: dict[str, Any] = {
        "null": None,
        "bools": [True, False],
        "numbers": [0, -1, 1.5, 1e300, 5e-324, 2**53, -(2**63)],
        "text": 'é😀\u2028\t"\\/',
        "nested": {"a": [{"b": [[], {}]}]},
        "": "an empty name",
        "a b/c.d": "a strange name",
    }
    id = str(uuid.uuid4())
    container.create_item({"id": id, "pk": "a", "value": value})
    assert container.read_item(id, "a")["value"] == value


def test_a_unique_key_is_unique_in_its_logical_partition(pleiad_database: Any, refused: Any) -> None:
    policy = {"uniqueKeys": [{"paths": ["/email"]}, {"paths": ["/first", "/last"]}]}
    users = pleiad_database.create_container("users", PartitionKey("/pk"), unique_key_policy=policy)
    users.create_item({"id": "1", "pk": "a", "email": "e", "first": "x", "last": "y"})
    with refused(409):
        users.create_item({"id": "2", "pk": "a", "email": "e", "first": "z", "last": "y"})
    with refused(409):
        users.upsert_item({"id": "2", "pk": "a", "email": "f", "first": "x", "last": "y"})
    users.create_item({"id": "2", "pk": "b", "email": "e", "first": "x", "last": "y"})
    users.upsert_item({"id": "1", "pk": "a", "email": "e", "first": "x", "last": "changed"})


def test_items_expire_by_their_own_and_by_the_containers_time_to_live(
    pleiad_database: Any, refused: Any
) -> None:
    things = pleiad_database.create_container("short", PartitionKey("/pk"), default_ttl=1)
    things.create_item({"id": "default", "pk": "a"})
    things.create_item({"id": "never", "pk": "a", "ttl": -1})
    things.create_item({"id": "long", "pk": "a", "ttl": 1000})
    with refused(400):
        things.create_item({"id": "zero", "pk": "a", "ttl": 0})
    assert wait_until(lambda: {item["id"] for item in things.read_all_items()} == {"never", "long"})
    with refused(404):
        things.read_item("default", "a")
    things.create_item({"id": "default", "pk": "a"})
