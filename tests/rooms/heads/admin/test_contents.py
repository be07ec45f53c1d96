"""Properties and key values of a container, for who fills in forms: charged, bounded, and of what is there."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey

from pleiad.testing.start import RunningServer

from .conftest import Running
from .test_api import names, send

pytestmark = pytest.mark.every_store


def ask(server: RunningServer, container: ContainerProxy, path: str, status: int = 200) -> Any:
    database, name = names(container)
    found, answer = send(server, "GET", f"/_pleiad/v1/dbs/{database}/colls/{name}/{path}")
    assert found == status, answer
    return answer


def total_ru(server: RunningServer, container: ContainerProxy) -> float:
    return sum(
        float(each["ru"]["total"])
        for each in ask(server, container, "partitions?largest=0&hottest=0")["partitions"]
    )


# -- paths ---------------------------------------------------------------------------------------------------


def test_paths_are_those_of_the_items_with_their_types(
    server: RunningServer, container: ContainerProxy
) -> None:
    container.create_item(
        {"id": "2", "pk": "b", "n": 1, "order": True, "a b": None, "tags": ["x", {"y": 2}], "o": {"p": 1.5}}
    )
    told = ask(server, container, "paths")
    assert told["sampled"] == 2
    found = {each["path"]: each for each in told["paths"]}
    assert found["/id"]["percent"] == 100
    assert found["/n"] == {
        "path": "/n",
        "expression": "c.n",
        "types": ["number"],
        "percent": 50.0,
        "isPartitionKey": False,
    }
    assert found["/pk"]["isPartitionKey"]
    assert found["/order"]["expression"] == 'c["order"]'
    assert found['/"a b"']["expression"] == 'c["a b"]'
    assert found['/"a b"']["types"] == ["null"]
    assert found["/tags/[]"]["types"] == ["object", "string"]
    assert found["/tags/[]"]["expression"] is None
    assert found["/o/p"]["expression"] == "c.o.p"


def test_every_expression_of_a_path_is_one_that_queries_take(
    server: RunningServer, container: ContainerProxy
) -> None:
    odd = [
        "order",
        "value",
        "a.b",
        'q"q',
        "it's",
        "back\\slash",
        "ünï",
        "1st",
        "",
        "null",
        "x-y",
        "new\nline",
    ]
    container.create_item({"id": "odd", "pk": "b", "o": dict.fromkeys(odd, 7)})
    told = ask(server, container, "paths")["paths"]
    expressions = [each["expression"] for each in told if each["path"].startswith("/o/")]
    assert len(expressions) == len(odd)
    for expression in expressions:
        query = f"SELECT VALUE {expression} FROM c WHERE c.id = 'odd'"
        results: list[Any] = list(container.query_items(query, partition_key="b"))
        assert results == [7], expression


def test_reading_paths_and_keys_is_charged_like_other_reads(
    server: RunningServer, container: ContainerProxy
) -> None:
    for path in ("paths", "keys"):
        before = total_ru(server, container)
        ask(server, container, path)
        assert total_ru(server, container) >= before + 1, path


def test_an_empty_container_has_no_paths_and_no_keys(server: RunningServer, client: CosmosClient) -> None:
    empty = client.create_database_if_not_exists("nothing").create_container_if_not_exists(
        "here", PartitionKey("/pk")
    )
    assert ask(server, empty, "paths") == {"sampled": 0, "paths": [], "leftOff": 0}
    assert ask(server, empty, "keys") == {"keys": [], "isComplete": True}


def test_items_of_very_many_and_deep_properties_are_told_in_part(
    server: RunningServer, container: ContainerProxy
) -> None:
    deep: Any = 1
    for _ in range(100):
        deep = {"d": deep}
    container.create_item(
        {"id": "wide", "pk": "b", "deep": deep, **{f"p{number}": number for number in range(7_000)}}
    )
    told = ask(server, container, "paths")
    assert len(told["paths"]) == 500
    assert told["leftOff"] > 1_000


@pytest.mark.parametrize(
    "path",
    [
        "paths?sample=0",
        "paths?sample=1001",
        "paths?sample=x",
        "keys?limit=0",
        "keys?limit=101",
        "keys?under=x",
        'keys?under=["a"]',
        "keys?under=[[1]]",
        "keys?under={}",
        f"keys?prefix={'x' * 3_000}",
        "keys?prefix=%ff",
    ],
)
def test_what_cannot_be_asked_is_refused(server: RunningServer, container: ContainerProxy, path: str) -> None:
    ask(server, container, quote(path, safe="?=&%"), status=400)


# -- keys ----------------------------------------------------------------------------------------------------


def test_keys_are_found_by_how_they_begin(server: RunningServer, container: ContainerProxy) -> None:
    for number, key in enumerate(["Beef", "Beets", "Bread", "beef", "Grün", 7, True, None]):
        container.create_item({"id": f"k{number}", "pk": key})
    assert sorted(ask(server, container, "keys?prefix=Be")["keys"]) == [["Beef"], ["Beets"]]
    assert ask(server, container, f"keys?prefix={quote('Grü')}") == {"keys": [["Grün"]], "isComplete": True}
    assert ask(server, container, "keys?prefix=nothing") == {"keys": [], "isComplete": True}
    told = ask(server, container, "keys?limit=50")
    assert told["isComplete"]
    kinds = {json.dumps(key) for key in told["keys"]}
    assert kinds == {
        '["a"]',
        '["Beef"]',
        '["Beets"]',
        '["Bread"]',
        '["beef"]',
        '["Gr\\u00fcn"]',
        "[7]",
        "[true]",
        "[null]",
    }
    short = ask(server, container, "keys?limit=3")
    assert len(short["keys"]) == 3
    assert not short["isComplete"]


def test_hierarchical_keys_are_found_level_by_level(server: RunningServer, client: CosmosClient) -> None:
    container = client.create_database_if_not_exists("levels").create_container(
        f"c{id(server)}", PartitionKey(["/tenant", "/user"], kind="MultiHash")
    )
    for tenant, user in [("t1", "ann"), ("t1", "bob"), ("t2", "cid")]:
        container.create_item({"id": user, "tenant": tenant, "user": user})
    assert sorted(ask(server, container, "keys")["keys"]) == [["t1"], ["t2"]]
    under = quote('["t1"]')
    assert sorted(ask(server, container, f"keys?under={under}")["keys"]) == [["t1", "ann"], ["t1", "bob"]]
    assert ask(server, container, f"keys?under={under}&prefix=b")["keys"] == [["t1", "bob"]]
    ask(server, container, f"keys?under={quote(json.dumps(['t1', 'ann']))}", status=400)


def test_over_the_throughput_they_are_refused_like_other_reads(run: Callable[..., Running]) -> None:
    running = run(throttle="enforce")
    client = CosmosClient(running.server.endpoint, running.server.key)
    container = client.create_database("d").create_container("c", PartitionKey("/pk"), offer_throughput=400)
    container.create_item({"id": "1", "pk": "a", "text": "x" * 1_900_000})
    found = [send(running.server, "GET", f"/_pleiad/v1/dbs/d/colls/c/{path}") for path in ("paths", "keys")]
    assert [status for status, _ in found] == [429, 429]
