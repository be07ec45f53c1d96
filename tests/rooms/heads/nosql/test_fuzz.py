"""Whatever a client with the right key sends to any route, it gets an answer: never a 500, never silence.

Requests come from the generator of the attack suite, by seed. The number of examples follows PLEIAD_FUZZ_EXAMPLES.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from attack.fuzzing.requests import RequestMaker, as_bytes
from attack.fuzzing.vocabulary import CONTAINER, GOOD_REQUESTS, HEADERS, KEY, NASTY_TEXTS

EXAMPLES = int(os.environ.get("PLEIAD_FUZZ_EXAMPLES", 800))


@pytest.fixture(scope="module")
def fuzz_wire(wire: Any) -> Iterator[Any]:
    wire.send("POST", ["dbs"], {"id": "fuzz"})
    wire.send("POST", ["dbs", "fuzz", "users"], {"id": "u"})
    yield wire
    for database in wire.send("GET", ["dbs"]).json["Databases"]:
        wire.send("DELETE", ["dbs", database["id"]])


def throw(
    wire: Any, method: str, path: list[str], headers: dict[str, str], body: Any, slash: bool = False
) -> None:
    """Sends one request at a container with one item, and looks at the answer."""
    wire.send("POST", ["dbs", "fuzz", "colls"], {"id": "things", "partitionKey": KEY})
    wire.send("POST", [*CONTAINER, "docs"], {"id": "1", "pk": "a", "list": [1], "a": {"b": 1}}, key=["a"])
    answer = wire.send(method, path, as_bytes(body), headers, slash=slash)
    told = (method, path, headers, body, answer.body)
    assert answer.status < 500, told
    if answer.status >= 400 and method != "HEAD":
        assert answer.json["code"], told
        assert answer.json["message"], told


@pytest.mark.parametrize("good", GOOD_REQUESTS, ids=lambda good: f"{good[0]} {'/'.join(good[1])}")
def test_no_header_of_a_good_request_can_be_so_odd_that_it_is_a_500(good: Any, fuzz_wire: Any) -> None:
    method, path, usual, body = good
    throw(fuzz_wire, method, path, {"x-ms-documentdb-partitionkey": '["a"]', **usual}, body)
    for name in HEADERS:
        for value in NASTY_TEXTS:
            fields = {"x-ms-documentdb-partitionkey": '["a"]', **usual, name: value}
            answer = fuzz_wire.send(method, path, as_bytes(body), fields)
            assert answer.status < 500, (name, value[:50], answer.body)


@pytest.mark.timeout(max(900, EXAMPLES))
def test_no_request_to_any_route_is_answered_with_a_500(fuzz_wire: Any) -> None:
    for seed in range(2 * EXAMPLES):
        request = RequestMaker(seed).make()
        throw(fuzz_wire, request.method, request.segments, request.headers, request.body, request.slash)
