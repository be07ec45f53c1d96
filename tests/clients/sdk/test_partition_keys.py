"""The partition key as users meet it: paths, values of every kind, its limits, and that it is for ever."""

from __future__ import annotations

from typing import Any

import pytest
from azure.core import MatchConditions
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from azure.cosmos.exceptions import CosmosAccessConditionFailedError, CosmosResourceNotFoundError
from azure.cosmos.partition_key import NonePartitionKeyValue, NullPartitionKeyValue

V1 = PartitionKey("/pk", version=1)


@pytest.mark.requirement("R66")
def test_a_partition_key_is_a_path_and_a_value(pleiad_database: DatabaseProxy) -> None:
    users = pleiad_database.create_container("users", PartitionKey("/userId"))
    users.create_item({"id": "1", "userId": "Andrew", "worksFor": "Microsoft"})
    assert users.read()["partitionKey"]["paths"] == ["/userId"]
    assert users.read_item("1", "Andrew")["worksFor"] == "Microsoft"


@pytest.mark.requirement("R67")
@pytest.mark.parametrize(
    ("path", "item"),
    [
        ("/user_id2", {"user_id2": "v"}),
        ("/address/city", {"address": {"city": "v"}}),
        ("/a/b/c/d", {"a": {"b": {"c": {"d": "v"}}}}),
        ('/"first name"/x', {"first name": {"x": "v"}}),
    ],
)
def test_a_path_leads_into_nested_objects(
    path: str, item: dict[str, Any], pleiad_database: DatabaseProxy
) -> None:
    container = pleiad_database.create_container("nested", PartitionKey(path))
    container.create_item({"id": "1", **item})
    assert container.read_item("1", "v")["id"] == "1"


@pytest.mark.requirement("R67")
@pytest.mark.parametrize("path", ["noslash", "/two words", "/a/", "//a", "/a#b", "/a*", "/(a)"])
def test_a_path_with_other_characters_is_refused(
    path: str, pleiad_database: DatabaseProxy, refused: Any
) -> None:
    with refused(400):
        pleiad_database.create_container("bad", PartitionKey(path))


@pytest.mark.requirement("R68")
@pytest.mark.parametrize(
    "value",
    ["text", "", "1", "true", "null", "é😀", " ", 0, 1, -1, 1.5, -0.5, 1e300, 5e-324, 2**53, True, False],
)
@pytest.mark.parametrize("key", [PartitionKey("/pk"), V1], ids=["V2", "V1"])
def test_an_item_is_found_by_any_key_value(
    value: Any, key: PartitionKey, pleiad_database: DatabaseProxy
) -> None:
    container = pleiad_database.create_container("values", key)
    item = container.create_item({"id": "1", "pk": value})
    assert container.read_item("1", value) == item
    container.upsert_item({"id": "1", "pk": value, "n": 1})
    container.delete_item("1", value)
    assert list(container.read_all_items()) == []


def test_missing_null_false_zero_and_empty_are_five_different_keys(container: ContainerProxy) -> None:
    container.create_item({"id": "1"})
    container.create_item({"id": "1", "pk": None})
    container.create_item({"id": "1", "pk": False})
    container.create_item({"id": "1", "pk": 0})
    container.create_item({"id": "1", "pk": ""})
    assert "pk" not in container.read_item("1", NonePartitionKeyValue)
    assert container.read_item("1", NullPartitionKeyValue)["pk"] is None
    for value in (False, 0, ""):
        assert container.read_item("1", value)["pk"] == value
        assert type(container.read_item("1", value)["pk"]) is type(value)


def test_an_object_as_key_counts_as_missing(container: ContainerProxy) -> None:
    container.create_item({"id": "1", "pk": {"a": 1}})
    assert container.read_item("1", NonePartitionKeyValue)["pk"] == {"a": 1}


@pytest.mark.requirement("R71")
def test_the_key_property_of_an_item_is_immutable(container: ContainerProxy, refused: Any) -> None:
    before = container.create_item({"id": "1", "pk": "a", "n": 1})
    with refused(400):
        container.patch_item("1", "a", [{"op": "replace", "path": "/pk", "value": "b"}])
    with refused(404):
        container.replace_item("1", {"id": "1", "pk": "b"})
    container.upsert_item({"id": "1", "pk": "b"})
    assert container.read_item("1", "a") == before, "an upsert with another key is another item"


@pytest.mark.requirement("R72")
def test_numbers_beyond_binary64_are_refused_as_keys_and_strings_keep_apart(
    container: ContainerProxy, refused: Any
) -> None:
    for number in (2**53 + 1, 10**30 + 1, -(2**53) - 1):
        with refused(400, text="IEEE 754"):
            container.create_item({"id": "1", "pk": number})
        container.create_item({"id": "1", "pk": str(number)})
        container.create_item({"id": "1", "pk": str(number + 1)})
    assert len(list(container.read_all_items())) == 6


@pytest.mark.requirement("R73")
@pytest.mark.parametrize("key", [PartitionKey("/pk"), V1], ids=["V2", "V1"])
def test_a_key_value_has_a_limit_in_bytes(
    key: PartitionKey, pleiad_database: DatabaseProxy, refused: Any
) -> None:
    limit = 2048
    container = pleiad_database.create_container("long", key)
    container.create_item({"id": "1", "pk": "x" * limit})
    assert container.read_item("1", "x" * limit)["id"] == "1"
    for value in ("x" * (limit + 1), "é" * (limit // 2 + 1)):
        with refused(400, text=f"{limit} bytes"):
            container.create_item({"id": "1", "pk": value})


@pytest.mark.requirement("R73")
def test_without_large_keys_values_that_are_alike_for_101_bytes_share_a_logical_partition(
    pleiad_database: DatabaseProxy, refused: Any
) -> None:
    container = pleiad_database.create_container("short", V1)
    container.create_item({"id": "1", "pk": "x" * 200})
    with refused(409):
        container.create_item({"id": "1", "pk": "x" * 300})
    container.create_item({"id": "1", "pk": "y" + "x" * 300})


@pytest.mark.requirement("R94")
@pytest.mark.parametrize("throughput", [400, 30_000])
def test_the_id_is_a_key_for_a_small_container_and_for_one_of_any_size(
    throughput: int, laboratory: Any
) -> None:
    container = laboratory.database.create_container(
        f"by-id-{throughput}", PartitionKey("/id"), offer_throughput=throughput
    )
    for number in range(50):
        container.create_item({"id": f"item-{number}"})
    for number in range(50):
        assert container.read_item(f"item-{number}", f"item-{number}")["id"] == f"item-{number}"


@pytest.mark.requirement("R95")
def test_with_the_id_as_key_each_item_is_a_logical_partition_and_they_are_spread(laboratory: Any) -> None:
    container = laboratory.database.create_container(
        "spread-id", PartitionKey("/id"), offer_throughput=12_000
    )
    for number in range(200):
        container.create_item({"id": f"item-{number}"})
    by_range = laboratory.logical_partitions(container)
    assert sum(len(found) for found in by_range.values()) == 200
    assert {partition.items for found in by_range.values() for partition in found} == {1}
    assert all(60 <= len(found) <= 140 for found in by_range.values())


@pytest.mark.requirement("R96")
def test_with_the_id_as_key_an_id_occurs_once_in_the_container(laboratory: Any, refused: Any) -> None:
    container = laboratory.database.create_container(
        "unique-id", PartitionKey("/id"), offer_throughput=12_000
    )
    container.create_item({"id": "same"})
    with refused(409):
        container.create_item({"id": "same", "other": 1})
    assert len(list(container.read_all_items())) == 1


LEVELS = PartitionKey(["/tenant", "/user", "/session"], kind="MultiHash")


def test_a_hierarchical_key_has_up_to_three_levels(pleiad_database: DatabaseProxy) -> None:
    container = pleiad_database.create_container("levels", LEVELS)
    assert container.read()["partitionKey"] == {
        "paths": ["/tenant", "/user", "/session"],
        "kind": "MultiHash",
        "version": 2,
    }
    keys: list[list[Any]] = [
        ["t1", "u1", "s1"],
        ["t1", "u1", "s2"],
        ["t1", "u2", "s1"],
        ["t2", "u1", "s1"],
        ["t1", 1, True],
    ]
    for tenant, user, session in keys:
        container.create_item({"id": "same", "tenant": tenant, "user": user, "session": session})
    for key in keys:
        found = container.read_item("same", key)
        assert [found["tenant"], found["user"], found["session"]] == key
    container.delete_all_items_by_partition_key(["t1", "u1", "s1"])
    assert len(list(container.read_all_items())) == 4
    container.replace_item("same", {"id": "same", "tenant": "t2", "user": "u1", "session": "s1", "n": 1})
    container.delete_item("same", ["t2", "u1", "s1"])


def test_the_levels_of_a_hierarchical_key_are_immutable(pleiad_database: DatabaseProxy, refused: Any) -> None:
    container = pleiad_database.create_container("levels", LEVELS)
    container.create_item({"id": "1", "tenant": "t", "user": "u", "session": "s"})
    for path in ("/tenant", "/user", "/session"):
        with refused(400):
            container.patch_item("1", ["t", "u", "s"], [{"op": "set", "path": path, "value": "x"}])


@pytest.mark.requirement("R102")
def test_a_synthetic_key_joins_device_and_year(pleiad_database: DatabaseProxy) -> None:
    devices = pleiad_database.create_container("devices", PartitionKey("/partitionKey"))
    reading = {"deviceId": "abc-123", "date": 2018}
    key = f"{reading['deviceId']}-{reading['date']}"
    devices.create_item({"id": "1", **reading, "partitionKey": key})
    assert devices.read_item("1", "abc-123-2018")["deviceId"] == "abc-123"


@pytest.mark.requirement("R112")
def test_a_self_partitioned_entity_is_read_by_its_id_alone(pleiad_database: DatabaseProxy) -> None:
    entities = pleiad_database.create_container("entities", PartitionKey("/partitionKey"))
    entities.upsert_item({"id": "w1", "partitionKey": "w1", "docType": "workspace"})
    assert entities.read_item("w1", "w1")["docType"] == "workspace"


@pytest.mark.requirement("R113")
def test_the_children_of_a_parent_are_one_logical_partition(laboratory: Any) -> None:
    projects = laboratory.database.create_container(
        "projects", PartitionKey("/workspaceId"), offer_throughput=30_000
    )
    for number in range(12):
        projects.create_item({"id": f"p{number}", "workspaceId": f"w{number % 3}", "docType": "project"})
    visited: list[str] = []
    found = projects.query_items(
        "SELECT * FROM c WHERE c.docType = 'project'",
        partition_key="w1",
        response_hook=lambda headers, _: visited.append(headers["x-ms-documentdb-partitionkeyrangeid"]),
    )
    assert {project["id"] for project in found} == {"p1", "p4", "p7", "p10"}
    assert len(set(visited)) == 1


@pytest.mark.requirement("R114")
def test_global_entities_share_one_constant_key(laboratory: Any) -> None:
    entities = laboratory.database.create_container("global", PartitionKey("/partitionKey"))
    for kind in ("user", "group", "permission"):
        entities.create_item({"id": f"{kind}-1", "partitionKey": "global", "docType": kind})
    assert laboratory.logical_partition_count(entities) == 1
    assert entities.read_item("group-1", "global")["docType"] == "group"


@pytest.mark.requirement("R118")
def test_an_item_moves_by_upsert_in_the_new_partition_and_delete_in_the_old(
    container: ContainerProxy, refused: Any
) -> None:
    container.create_item({"id": "1", "pk": "old", "n": 5})
    item = dict(container.read_item("1", "old"))
    container.upsert_item({**item, "pk": "new", "updatedAt": "now"})
    container.delete_item("1", "old")
    moved = container.read_item("1", "new")
    assert (moved["n"], moved["updatedAt"]) == (5, "now")
    with refused(404):
        container.read_item("1", "old")


@pytest.mark.requirement("R131")
def test_a_document_is_read_by_its_id_and_its_key_together(
    pleiad_database: DatabaseProxy, refused: Any
) -> None:
    readings = pleiad_database.create_container("coll", PartitionKey("/deviceId"))
    readings.create_item({"id": "XMS-001-FE24C", "deviceId": "XMS-0001", "metricValue": 105})
    assert readings.read_item("XMS-001-FE24C", "XMS-0001")["metricValue"] == 105
    with refused(404):
        readings.read_item("XMS-001-FE24C", "XMS-0002")


class Crash(Exception):
    """The client that moves an item is gone."""


def move(container: Any, id: str, old: str, new: str, crash_at: str = "", meddle: Any = None) -> None:
    """Moves an item to another key as a saga: copy with a mark, delete the original as it was read, clear the mark."""
    item = dict(container.read_item(id, old))
    mark = {"from": old, "etag": item["_etag"]}
    container.upsert_item({**item, "pk": new, "move": mark})
    if crash_at == "copied":
        raise Crash
    if meddle is not None:
        meddle()
    finish(container, container.read_item(id, new), crash_at)


def finish(container: Any, copy: Any, crash_at: str = "") -> None:
    """Brings a move that left its mark to an end; a copy whose original was changed meanwhile is taken back."""
    mark = copy["move"]
    try:
        container.delete_item(
            copy["id"],
            mark["from"],
            etag=mark["etag"],
            match_condition=MatchConditions.IfNotModified,
        )
    except CosmosAccessConditionFailedError:
        container.delete_item(copy["id"], copy["pk"])
        move(container, copy["id"], mark["from"], copy["pk"])
        return
    except CosmosResourceNotFoundError:
        pass  # it was deleted by the one that did not come to an end
    if crash_at == "deleted":
        raise Crash
    container.replace_item(copy["id"], {name: value for name, value in copy.items() if name != "move"})


@pytest.mark.requirement("R120")
@pytest.mark.parametrize("crash_at", ["copied", "deleted", ""])
@pytest.mark.parametrize("is_changed", [False, True])
def test_r120_a_move_that_was_interrupted_is_finished_or_compensated(
    container: ContainerProxy, crash_at: str, is_changed: bool
) -> None:
    container.create_item({"id": "1", "pk": "old", "n": 1})

    def change() -> None:
        container.upsert_item({"id": "1", "pk": "old", "n": 2})

    try:
        move(container, "1", "old", "new", crash_at, change if is_changed else None)
    except Crash:
        if is_changed and crash_at == "copied":
            change()
    for copy in list(
        container.query_items("SELECT * FROM c WHERE IS_DEFINED(c.move)", enable_cross_partition_query=True)
    ):
        finish(container, copy)
    (item,) = container.read_all_items()
    assert (item["pk"], item["n"], "move" in item) == ("new", 2 if is_changed else 1, False)
