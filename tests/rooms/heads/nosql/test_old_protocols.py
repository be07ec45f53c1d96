"""Clients of older versions of the protocol: what they cannot read is told to them as it was then."""

from __future__ import annotations

import re
from typing import Any

import pytest

CONTAINER = ["dbs", "old-protocols", "colls", "c"]
UPSERT = {"x-ms-documentdb-is-upsert": "True"}
OLD = {"x-ms-version": "2017-11-15"}
SIMPLE = re.compile(r"\w+:\d+")
VECTOR = re.compile(r"\w+:\d+#\d+")


@pytest.fixture(scope="module")
def items(wire: Any) -> Any:
    wire.send("POST", ["dbs"], {"id": CONTAINER[1]})
    key = {"paths": ["/pk"], "kind": "Hash"}
    wire.send("POST", CONTAINER[:3], {"id": "c", "partitionKey": key})
    assert wire.send("POST", [*CONTAINER, "docs"], {"id": "1", "pk": "a"}, key=["a"]).status == 201
    return wire


def answers(wire: Any, version: dict[str, str]) -> dict[str, Any]:
    docs = [*CONTAINER, "docs"]
    query = {"content-type": "application/query+json", **version}
    batch = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True", **version}
    absent = [{"operationType": "Read", "id": "absent"}]
    return {
        "upsert": wire.send("POST", docs, {"id": "2", "pk": "a"}, {**version, **UPSERT}, ["a"]),
        "read": wire.send("GET", [*docs, "1"], headers=version, key=["a"]),
        "feed": wire.send("GET", docs, headers=version),
        "query": wire.send("POST", docs, {"query": "SELECT * FROM c"}, query, ["a"]),
        "not found": wire.send("GET", [*docs, "absent"], headers=version, key=["a"]),
        "failed batch": wire.send("POST", docs, absent, batch, ["a"]),
    }


def test_a_client_from_before_vectors_is_given_session_tokens_of_a_range_and_an_lsn(items: Any) -> None:
    for name, answer in answers(items, OLD).items():
        token = answer.headers["x-ms-session-token"]
        assert SIMPLE.fullmatch(token), f"{name}: {token}"
        assert token.endswith(f":{answer.headers['lsn']}")


@pytest.mark.parametrize("version", ["2018-06-18", "2018-12-31", "2020-07-15"])
def test_a_later_client_is_given_vectors(items: Any, version: str) -> None:
    for name, answer in answers(items, {"x-ms-version": version}).items():
        token = answer.headers["x-ms-session-token"]
        assert VECTOR.fullmatch(token), f"{name}: {token}"


def test_a_token_of_the_old_form_is_obeyed(items: Any) -> None:
    read = answers(items, OLD)["read"]
    range_id, _, lsn = read.headers["x-ms-session-token"].partition(":")
    path = [*CONTAINER, "docs", "1"]
    seen = {**OLD, "x-ms-session-token": f"{range_id}:{lsn}"}
    assert items.send("GET", path, headers=seen, key=["a"]).status == 200
    ahead = items.send(
        "GET", path, headers={**OLD, "x-ms-session-token": f"{range_id}:{int(lsn) + 1000}"}, key=["a"]
    )
    assert (ahead.status, ahead.substatus) == (404, 1002)


def test_a_token_holds_no_read_of_the_first_protocols_up(items: Any) -> None:
    path = [*CONTAINER, "docs", "1"]
    for version, status in (("2015-12-16", 200), ("2016-05-30", 404)):
        headers = {"x-ms-version": version, "x-ms-session-token": "0:999999"}
        answer = items.send("GET", path, headers=headers, key=["a"])
        assert answer.status == status, version
        assert ("x-ms-session-token" in answer.headers) == (status == 200)


@pytest.mark.parametrize(
    "name",
    ["x-ms-documentdb-query-enablecrosspartition", "x-ms-documentdb-query-parallelizecrosspartitionquery"],
)
def test_a_flag_of_partitions_is_true_or_false(items: Any, name: str) -> None:
    across = {"x-ms-documentdb-query-enablecrosspartition": "True"}
    for _ in range(2):  # the second time the query is known
        for value, status in (("bad", 400), ("True", 200), ("true", 200)):
            query = {"content-type": "application/query+json", "x-ms-documentdb-isquery": "True", **across}
            answer = items.send(
                "POST", [*CONTAINER, "docs"], {"query": "SELECT * FROM c"}, {**query, name: value}
            )
            assert answer.status == status, value
            if status == 400:
                assert answer.message.startswith(
                    f"Value 'bad' specified for the header '{name}' is invalid. "
                )
