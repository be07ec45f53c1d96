"""A container's definition: what is refused, what is filled in, and what is for its lifetime."""

from __future__ import annotations

from typing import Any

import pytest

from pleiad.catalog.container import define, define_new, is_ttl_recounted, redefine
from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.server.http.failures import status_of

LIMITS = Limits()


def body(**more: Any) -> dict[str, Any]:
    return {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}, **more}


def status_for(given: dict[str, Any]) -> int:
    with pytest.raises(PleiadError) as caught:
        define(given, LIMITS)
    return status_of(caught.value)


def unique(*keys: list[str]) -> dict[str, Any]:
    return {"uniqueKeys": [{"paths": paths} for paths in keys]}


def test_what_a_client_leaves_out_is_filled_in() -> None:
    properties = define(body(), LIMITS).properties
    assert properties["uniqueKeyPolicy"] == {"uniqueKeys": []}
    assert properties["geospatialConfig"] == {"type": "Geography"}
    assert properties["conflictResolutionPolicy"]["mode"] == "LastWriterWins"
    assert properties["conflictResolutionPolicy"]["conflictResolutionPath"] == "/_ts"
    assert properties["indexingPolicy"]["indexingMode"] == "consistent"
    assert "defaultTtl" not in properties


def test_a_definition_read_back_defines_the_same_container() -> None:
    first = define(
        body(
            defaultTtl=60,
            uniqueKeyPolicy=unique(["/a", "/b/c"], ["/d"]),
            computedProperties=[{"name": "low", "query": "SELECT VALUE LOWER(c.n) FROM c"}],
            changeFeedPolicy={"retentionDuration": 5},
        ),
        LIMITS,
    )
    assert define(first.properties, LIMITS) == first


@pytest.mark.parametrize(
    "more",
    [
        {"defaultTtl": None},
        {"defaultTtl": 0},
        {"defaultTtl": "60"},
        {"defaultTtl": True},
        {"partitionKey": None},
        {"partitionKey": {"paths": []}},
        {"uniqueKeyPolicy": []},
        {"uniqueKeyPolicy": {"uniqueKeys": {}}},
        {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": []}]}},
        {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": [1]}]}},
        {"uniqueKeyPolicy": {"uniqueKeys": ["/a"]}},
        {"uniqueKeyPolicy": unique(["no slash"])},
        {"uniqueKeyPolicy": unique(*([f"/p{n}"] for n in range(11)))},
        {"uniqueKeyPolicy": unique([f"/p{n}" for n in range(17)])},
        {"conflictResolutionPolicy": "LastWriterWins"},
        {"conflictResolutionPolicy": {"mode": "FirstWriterWins"}},
        {"conflictResolutionPolicy": {"mode": 1}},
        {"conflictResolutionPolicy": {"mode": "LastWriterWins", "conflictResolutionPath": 1}},
        {"conflictResolutionPolicy": {"mode": "LastWriterWins", "conflictResolutionPath": "version"}},
        {"conflictResolutionPolicy": {"mode": "Custom", "conflictResolutionProcedure": ["s"]}},
        {"changeFeedPolicy": "always"},
        {"changeFeedPolicy": {"retentionDuration": 0.5}},
        {"changeFeedPolicy": {"retentionDuration": True}},
        {"geospatialConfig": {"type": "Sphere"}},
        {"geospatialConfig": []},
        {"computedProperties": {}},
        {"computedProperties": ["a"]},
        {"computedProperties": [{"name": "a"}]},
        {"computedProperties": [{"name": "", "query": "SELECT VALUE 1 FROM c"}]},
        {"computedProperties": [{"name": "a", "query": 1}]},
        {"computedProperties": [{"name": "_ts", "query": "SELECT VALUE 1 FROM c"}]},
        {"computedProperties": [{"name": "a", "query": "SELECT VALUE 1 FROM c"}] * 2},
        {"computedProperties": [{"name": f"p{n}", "query": "SELECT VALUE 1 FROM c"} for n in range(21)]},
    ],
)
def test_a_definition_that_makes_no_sense_is_a_bad_request(more: dict[str, Any]) -> None:
    assert status_for(body(**more)) == 400


def test_the_limits_of_unique_keys_and_computed_properties_are_reached_exactly() -> None:
    definition = define(
        body(
            uniqueKeyPolicy=unique([f"/p{n}" for n in range(16)], *([f"/q{n}"] for n in range(9))),
            computedProperties=[{"name": f"p{n}", "query": "SELECT VALUE 1 FROM c"} for n in range(20)],
        ),
        LIMITS,
    )
    assert len(definition.unique_keys) == 10
    assert definition.unique_keys[0].steps[3] == ("p3",)


def test_a_custom_conflict_policy_is_kept_as_given() -> None:
    policy = {"mode": "Custom", "conflictResolutionProcedure": "dbs/d/colls/c/sprocs/s"}
    assert (
        define(body(conflictResolutionPolicy=policy), LIMITS).properties["conflictResolutionPolicy"] == policy
    )


def test_the_conflict_resolution_of_a_container_is_for_its_lifetime() -> None:
    policy = {"mode": "LastWriterWins", "conflictResolutionPath": "/version"}
    old = define(body(conflictResolutionPolicy=policy), LIMITS)
    same = {**policy, "mode": "lastWriterWins", "conflictResolutionProcedure": None}
    redefine(old, body(conflictResolutionPolicy=same), LIMITS)
    for other in ({**policy, "conflictResolutionPath": "/_ts"}, {"mode": "Custom"}):
        with pytest.raises(PleiadError) as caught:
            redefine(old, body(conflictResolutionPolicy=other), LIMITS)
        assert status_of(caught.value) == 400


@pytest.mark.parametrize("default_ttl", [-1, 10])
def test_a_property_that_time_to_live_counts_from_is_kept_and_may_be_left_out_again(default_ttl: int) -> None:
    old = define_new(body(defaultTtl=default_ttl, ttlPropertyPath="/a/made"), LIMITS)
    assert (old.ttl_path, old.properties["ttlPropertyPath"]) == (("a", "made"), "/a/made")
    new = redefine(old, body(defaultTtl=default_ttl, ttlPropertyPath=None), LIMITS)
    assert (new.ttl_path, "ttlPropertyPath" in new.properties) == ((), False)
    assert is_ttl_recounted(old, new)
    assert is_ttl_recounted(new, old)
    assert not is_ttl_recounted(old, redefine(old, old.properties, LIMITS))
    assert not is_ttl_recounted(new, redefine(new, body(defaultTtl=77), LIMITS))


@pytest.mark.parametrize(
    "more",
    [
        {"ttlPropertyPath": "/made"},
        {"ttlPropertyPath": "made", "defaultTtl": 1},
        {"ttlPropertyPath": "", "defaultTtl": 1},
        {"ttlPropertyPath": "/", "defaultTtl": 1},
        {"ttlPropertyPath": ["/made"], "defaultTtl": 1},
    ],
)
def test_a_property_that_time_to_live_counts_from_needs_a_default_and_a_path(more: dict[str, Any]) -> None:
    with pytest.raises(PleiadError) as caught:
        define_new(body(**more), LIMITS)
    assert status_of(caught.value) == 400


def test_policies_may_change_and_what_is_left_out_of_a_replacement_stays() -> None:
    old = define(body(uniqueKeyPolicy=unique(["/a"]), defaultTtl=5), LIMITS)
    new = redefine(old, {"id": "c", "indexingPolicy": {"indexingMode": "none", "automatic": False}}, LIMITS)
    assert new.key == old.key
    assert new.unique_keys == old.unique_keys
    assert new.default_ttl is None
    assert new.properties["indexingPolicy"]["indexingMode"] == "none"
    assert redefine(old, {"defaultTtl": -1}, LIMITS).default_ttl == -1


@pytest.mark.parametrize(
    "more",
    [
        {"partitionKey": {"paths": ["/other"], "version": 2}},
        {"partitionKey": {"paths": ["/pk", "/b"], "kind": "MultiHash", "version": 2}},
        {"uniqueKeyPolicy": unique(["/b"])},
        {"uniqueKeyPolicy": unique()},
        {"uniqueKeyPolicy": unique(["/a"], ["/b"])},
    ],
)
def test_the_partition_key_and_the_unique_keys_are_for_the_lifetime_of_a_container(
    more: dict[str, Any],
) -> None:
    old = define(body(uniqueKeyPolicy=unique(["/a"])), LIMITS)
    with pytest.raises(PleiadError) as caught:
        redefine(old, body(**more), LIMITS)
    assert status_of(caught.value) == 400
    assert "cannot be changed" in caught.value.message


@pytest.mark.parametrize("version", [None, 1, 2])
def test_a_replacement_cannot_change_the_version_of_the_hash(version: int | None) -> None:
    old = define({"partitionKey": {"paths": ["/pk"], "version": 1}}, LIMITS)
    key = {"paths": ["/pk"], "kind": "Hash"} | ({} if version is None else {"version": version})
    assert redefine(old, {"partitionKey": key}, LIMITS).key == old.key


def test_a_new_container_keeps_items_by_sealed_keys_for_its_lifetime_and_an_older_one_without() -> None:
    new = define_new(body(), LIMITS)
    assert new.key.is_sealed
    assert define(new.properties, LIMITS).key.is_sealed
    older = define(body(), LIMITS)
    assert not older.key.is_sealed
    for definition in (new, older):
        for given in ({}, {".sealedKeys": True}, {".sealedKeys": False}):
            changed = redefine(definition, body(defaultTtl=60, **given), LIMITS)
            assert changed.key == definition.key
            assert define(changed.properties, LIMITS).key == definition.key
    assert not define_new(body(partitionKey={"paths": ["/pk"]}), LIMITS).key.is_sealed
