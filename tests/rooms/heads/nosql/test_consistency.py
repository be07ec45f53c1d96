"""Consistency levels on the wire: what the account says, what a request may ask for, and what a read costs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pleiad.engine.consistency import Consistency
from pleiad.settings import Settings

LEVELS = list(Consistency)
KEY = {"paths": ["/pk"], "kind": "Hash", "version": 2}
PATH = ["dbs", "d", "colls", "c"]


@pytest.fixture(scope="module", params=LEVELS, ids=lambda level: level.option)
def account(request: pytest.FixtureRequest, wire: Any) -> Iterator[tuple[Consistency, Any]]:
    """An account of each level with one item."""
    with wire.serve(Settings(port=0, consistency=request.param)) as own:
        own.send("POST", ["dbs"], {"id": "d"})
        own.send("POST", ["dbs", "d", "colls"], {"id": "c", "partitionKey": KEY})
        assert own.send("POST", [*PATH, "docs"], {"id": "1", "pk": "a"}, key=["a"]).status == 201
        yield request.param, own


def read(wire: Any, **headers: str) -> Any:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return wire.send("GET", [*PATH, "docs", "1"], headers=fields, key=["a"])


def charge(answer: Any) -> float:
    assert answer.status in (200, 207, 404), answer.body
    return float(answer.headers["x-ms-request-charge"])


def query(wire: Any, **headers: str) -> Any:
    fields = {"content-type": "application/query+json", **headers}
    return wire.send("POST", [*PATH, "docs"], {"query": "SELECT * FROM c"}, fields, ["a"])


def test_the_account_document_tells_the_level(account: tuple[Consistency, Any]) -> None:
    level, wire = account
    policy = wire.send("GET", []).json["userConsistencyPolicy"]
    assert policy["defaultConsistencyLevel"] == level.word
    assert ("maxStalenessPrefix" in policy) is (level is Consistency.BOUNDED_STALENESS)


def test_every_level_up_to_the_account_is_served_and_stronger_ones_are_400(
    account: tuple[Consistency, Any],
) -> None:
    level, wire = account
    for asked in LEVELS:
        answer = read(wire, x_ms_consistency_level=asked.word)
        if LEVELS.index(asked) <= LEVELS.index(level):
            assert answer.status == 200
        else:
            assert answer.status == 400
            assert asked.word in answer.message
            assert level.word in answer.message


def test_a_read_strategy_is_had_on_every_account_but_for_that_of_strong_ones(
    account: tuple[Consistency, Any],
) -> None:
    level, wire = account
    times = {"Eventual": 1, "Session": 1, "LatestCommitted": 2, "Default": level.read_multiplier}
    for strategy, price in times.items():
        # A client in direct mode names the level that it reads with too, whatever the account has.
        for besides in ({}, {"x_ms_consistency_level": "BoundedStaleness"}):
            answer = read(wire, x_ms_cosmos_read_consistency_strategy=strategy, **besides)
            assert (answer.status, charge(answer)) == (200, price), strategy
        assert query(wire, **{"x-ms-cosmos-read-consistency-strategy": strategy}).status == 200
    strong = read(wire, x_ms_cosmos_read_consistency_strategy="GlobalStrong")
    assert strong.status == (200 if level is Consistency.STRONG else 400)
    unknown = read(wire, x_ms_cosmos_read_consistency_strategy="Newest")
    assert (unknown.status, "Newest" in unknown.message) == (400, True)


def test_reads_queries_feeds_and_batches_cost_twice_at_the_two_strongest_levels(
    account: tuple[Consistency, Any],
) -> None:
    level, wire = account
    times = 2 if level in (Consistency.STRONG, Consistency.BOUNDED_STALENESS) else 1
    weak = {"x-ms-consistency-level": "Eventual"}
    batch = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
    operations = [{"operationType": "Read", "id": "1"}]
    paths: dict[str, tuple[float, float]] = {
        "read": (charge(read(wire)), charge(read(wire, **weak))),
        "query": (charge(query(wire)), charge(query(wire, **weak))),
        "feed": (
            charge(wire.send("GET", [*PATH, "docs"])),
            charge(wire.send("GET", [*PATH, "docs"], headers=weak)),
        ),
        "changes": (
            charge(wire.send("GET", [*PATH, "docs"], headers={"a-im": "Incremental Feed"})),
            charge(wire.send("GET", [*PATH, "docs"], headers={"a-im": "Incremental Feed", **weak})),
        ),
        "batch": (
            charge(wire.send("POST", [*PATH, "docs"], operations, batch, ["a"])),
            charge(wire.send("POST", [*PATH, "docs"], operations, {**batch, **weak}, ["a"])),
        ),
    }
    for strong, once in paths.values():
        assert once > 0
        assert strong == pytest.approx(times * once, abs=0.011)
    assert charge(read(wire)) == times * 1.0


def test_writes_cost_the_same_at_every_level(account: tuple[Consistency, Any]) -> None:
    _, wire = account
    answer = wire.send("POST", [*PATH, "docs"], {"id": "w", "pk": "w"}, key=["w"])
    assert answer.status == 201
    assert answer.headers["x-ms-request-charge"] == "5.52"
    assert wire.send("DELETE", [*PATH, "docs", "w"], key=["w"]).status == 204


def test_a_token_from_the_future_stops_reads_at_session_level_only(account: tuple[Consistency, Any]) -> None:
    level, wire = account
    token = read(wire).headers["x-ms-session-token"]
    range_id, vector = token.split(":")
    version, lsn = vector.split("#")
    future = {"x-ms-session-token": f"{range_id}:{version}#{int(lsn) + 1000}"}
    expected = (404, 1002) if level is Consistency.SESSION else (200, 0)
    for answer in (
        read(wire, **future),
        query(wire, **future),
        wire.send("GET", [*PATH, "docs"], headers=future),
        wire.send("GET", [*PATH, "docs"], headers={"a-im": "Incremental Feed", **future}),
    ):
        assert (answer.status, answer.substatus) == expected
    if LEVELS.index(level) >= LEVELS.index(Consistency.SESSION):
        assert read(wire, x_ms_consistency_level="Session", **future).substatus == 1002
        assert read(wire, x_ms_consistency_level="Eventual", **future).status == 200


def test_a_token_of_the_present_is_honoured_everywhere(account: tuple[Consistency, Any]) -> None:
    _, wire = account
    token = {"x-ms-session-token": read(wire).headers["x-ms-session-token"]}
    for answer in (read(wire, **token), query(wire, **token)):
        assert answer.status == 200
    assert json.loads(query(wire, **token).body)["_count"] == 1
