"""Ids as clients write them in bodies and in paths: what can be created, and what a path then finds."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

FOUND = [
    "a?b",
    "?",
    "a?b=c&d",
    "a b ",
    " a",
    "%",
    "a%20b",
    "a\tb",
    "a\rb",
    "a\nb",
    "é😀",
    "a+b",
    "&=;,:@$!'()*[]{}<>|^`~\"",
]


@pytest.mark.parametrize("id", FOUND)
def test_an_item_is_found_by_its_escaped_id(id: str, place: Any, wire: Any) -> None:
    assert place.create({"id": id, "pk": "a"}, ["a"]).status == 201
    assert place.read(id, ["a"]).json["id"] == id
    path = [*place.path, "docs", id]
    assert wire.send("PUT", path, {"id": id, "pk": "a", "n": 1}, key=["a"]).status == 200
    assert wire.send("DELETE", path, key=["a"]).status == 204
    assert place.read(id, ["a"]).status == 404


@pytest.mark.parametrize("id", ["a?b", "?", "a?b=c&d=e", "a??b"])
def test_a_question_mark_that_a_client_does_not_escape_belongs_to_the_id(
    id: str, place: Any, wire: Any
) -> None:
    assert place.create({"id": id, "pk": "a"}, ["a"]).status == 201
    assert place.create({"id": "a", "pk": "a"}, ["a"]).status == 201
    path = [*place.path, "docs", id]
    headers = {**wire.signed("GET", path), "x-ms-documentdb-partitionkey": '["a"]'}
    answer = wire.send_raw("GET", "/" + "/".join(path), None, headers)
    assert (answer.status, answer.json["id"]) == (200, id)


@pytest.mark.parametrize(("id", "status"), [("a/b", 404), ("a/b/c", 404), ("a#b", 401)])
def test_an_id_that_a_path_cannot_carry_is_created_and_found_by_queries_alone(
    id: str, status: int, place: Any, wire: Any
) -> None:
    assert place.create({"id": id, "pk": "a"}, ["a"]).status == 201
    path = [*place.path, "docs", id]
    headers = {**wire.signed("GET", path), "x-ms-documentdb-partitionkey": '["a"]'}
    # A client that does not escape the number sign sends what stands before it.
    sent = "/" + quote("/".join(path), safe="/#").partition("#")[0]
    assert wire.send_raw("GET", sent, None, headers).status == status
    query = {"query": "SELECT VALUE c.id FROM c", "parameters": []}
    flags = {"x-ms-documentdb-isquery": "True", "content-type": "application/query+json"}
    found = wire.send("POST", [*place.path, "docs"], query, flags, key=["a"])
    assert found.json["Documents"] == [id]


@pytest.mark.parametrize("id", ["a\\b", "\x00"])
def test_a_backslash_and_a_nul_are_refused(id: str, place: Any) -> None:
    assert place.create({"id": id, "pk": "a"}, ["a"]).status == 400


def test_slashes_before_a_path_mean_nothing(place: Any, wire: Any) -> None:
    path = [*place.path, "docs"]
    headers = {**wire.signed("POST", path), "x-ms-documentdb-partitionkey": '["a"]'}
    answer = wire.send_raw("POST", "//" + "/".join(path), b'{"id":"1","pk":"a"}', headers)
    assert answer.status == 201
