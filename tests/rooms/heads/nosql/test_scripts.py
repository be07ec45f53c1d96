"""Scripts on the wire: what no client library would send, and what it would not show."""

from __future__ import annotations

import base64
import json
import os
from typing import Any

import pytest

from pleiad.settings import Settings
from tests.rooms.heads.nosql.conftest import Place, Wire

ECHO = "function () { __.response.setBody(Array.prototype.slice.call(arguments)); }"
WRITE = "function () { __.createDocument(__.getSelfLink(), { id: 'x', pk: 'a' }); }"


def define(place: Place, id: str, body: str, kind: str = "sprocs", **more: Any) -> dict[str, Any]:
    answer = place.wire.send("POST", [*place.path, kind], {"id": id, "body": body, **more})
    assert answer.status == 201, answer.body
    made: dict[str, Any] = answer.json
    return made


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (b"", []),
        (b"[]", []),
        (b' [1, "two", {"three": [null]}] ', [1, "two", {"three": [None]}]),
        (b'{"one": 1}', []),
        (b"null", []),
        (b'{"0": "a", "1": "b", "length": "1.5"}', ["a"]),
        (b'["\\ud83d\\ude00"]', ["\N{GRINNING FACE}"]),
    ],
)
def test_the_body_of_an_execution_is_its_arguments(place: Place, body: bytes, answer: list[Any]) -> None:
    define(place, "echo", ECHO)
    done = place.wire.send("POST", [*place.path, "sprocs", "echo"], body, key=["a"])
    assert done.status == 200
    assert done.json == answer
    for name in ("x-ms-session-token", "x-ms-documentdb-partitionkeyrangeid", "x-ms-alt-content-path"):
        assert done.headers[name]


@pytest.mark.parametrize(
    "body",
    [
        *(
            b"[",
            b"nonsense",
            b"[1,]",
            b"\xff",
            b'["\\ud800"]',
            b'[{"\\udc00": 1}]',
            b"[" * 2000 + b"]" * 2000,
        ),
        *(b"1", b'"text"', b"true", b'{"length": 600000}', b'[], "source": "function () {}"'),
    ],
)
def test_arguments_that_are_no_json_are_a_400(place: Place, body: bytes) -> None:
    define(place, "echo", ECHO)
    assert place.wire.send("POST", [*place.path, "sprocs", "echo"], body, key=["a"]).status == 400


def test_arguments_may_fill_a_request(place: Place) -> None:
    define(place, "count", "function (list) { __.response.setBody(list.length); }")
    body = b"[[" + b",".join([b"0"] * 2_000_000) + b"]]"
    done = place.wire.send("POST", [*place.path, "sprocs", "count"], body, key=["a"])
    assert (done.status, done.json) == (200, 2_000_000)


def test_a_procedure_without_answer_has_an_empty_body(place: Place) -> None:
    define(place, "nothing", "function () {}")
    done = place.wire.send("POST", [*place.path, "sprocs", "nothing"], b"", key=["a"])
    assert (done.status, done.body) == (200, b"")


def test_an_execution_needs_a_whole_key(hierarchical_place: Place) -> None:
    place = hierarchical_place
    define(place, "echo", ECHO)
    path = [*place.path, "sprocs", "echo"]
    assert place.wire.send("POST", path, b"[]").status == 400
    assert place.wire.send("POST", path, b"[]", key=["t"]).status == 400
    assert place.wire.send("POST", path, b"[]", key=["t", "u", "s"]).status == 200


def test_methods_that_scripts_do_not_have(place: Place) -> None:
    define(place, "p", ECHO)
    define(place, "f", ECHO, "udfs")
    for method, path in (
        ("PUT", ["sprocs"]),
        ("DELETE", ["udfs"]),
        ("PATCH", ["sprocs", "p"]),
        ("POST", ["udfs", "f"]),
        ("POST", ["triggers", "t"]),
    ):
        assert place.wire.send(method, [*place.path, *path], b"[]", key=["a"]).status == 405


def test_a_replacement_honours_the_etag(place: Place) -> None:
    made = define(place, "p", ECHO)
    path = [*place.path, "sprocs", "p"]
    assert place.wire.send("PUT", path, {"id": "p", "body": WRITE}, {"if-match": '"other"'}).status == 412
    changed = place.wire.send("PUT", path, {"id": "p", "body": WRITE}, {"if-match": made["_etag"]})
    assert changed.status == 200
    assert changed.headers["etag"] == changed.json["_etag"]
    assert place.wire.send("DELETE", path, None, {"if-match": made["_etag"]}).status == 412
    assert place.wire.send("DELETE", path, None, {"if-match": changed.json["_etag"]}).status == 204


def test_an_upsert_replaces_a_script(place: Place) -> None:
    define(place, "p", ECHO)
    upsert = {"x-ms-documentdb-is-upsert": "true"}
    body = {"id": "p", "body": "function () { __.response.setBody('new'); }"}
    assert place.wire.send("POST", [*place.path, "sprocs"], body, upsert).status == 200
    assert place.wire.send("POST", [*place.path, "sprocs", "p"], b"", key=["a"]).json == "new"


def test_the_read_only_key_runs_no_script_even_in_the_guise_of_a_query(wire: Wire) -> None:
    read_only = base64.b64encode(os.urandom(64)).decode()
    with wire.serve(Settings(port=0, read_only_key=read_only)) as other:
        assert other.send("POST", ["dbs"], {"id": "d"}).status == 201
        definition = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
        assert other.send("POST", ["dbs", "d", "colls"], definition).status == 201
        path = ["dbs", "d", "colls", "c", "sprocs"]
        assert other.send("POST", path, {"id": "w", "body": WRITE}).status == 201
        signed = other.signed("POST", [*path, "w"], key=read_only)
        for guise in ({}, {"x-ms-documentdb-isquery": "true"}, {"content-type": "application/query+json"}):
            refused = other.send("POST", [*path, "w"], b"[]", {**signed, **guise}, key=["a"])
            assert refused.status == 403
        read = other.send("GET", [*path, "w"], None, other.signed("GET", [*path, "w"], key=read_only))
        assert read.status == 200
        missing = other.send("GET", ["dbs", "d", "colls", "c", "docs", "x"], None, key=["a"])
        assert missing.status == 404


def test_names_of_triggers_that_are_no_text_are_a_400(place: Place) -> None:
    headers = {"x-ms-documentdb-pre-trigger-include": "\xff\xfe"}
    item = {"id": "1", "pk": "a"}
    assert place.wire.send("POST", [*place.path, "docs"], item, headers, ["a"]).status == 400
    empty = {"x-ms-documentdb-pre-trigger-include": ""}
    assert place.wire.send("POST", [*place.path, "docs"], item, empty, ["a"]).status == 201


def test_minimal_answers_hold_with_triggers(place: Place) -> None:
    post = "function () { __.response.setBody('shown'); }"
    define(place, "t", post, "triggers", triggerType="Post", triggerOperation="All")
    headers = {"x-ms-documentdb-post-trigger-include": "t"}
    item = {"id": "1", "pk": "a"}
    assert place.wire.send("POST", [*place.path, "docs"], item, headers, ["a"]).json == "shown"
    minimal = {**headers, "prefer": "return=minimal"}
    answer = place.wire.send("PUT", [*place.path, "docs", "1"], item, minimal, ["a"])
    assert (answer.status, answer.body) == (200, b"")


def test_a_container_counts_its_scripts(place: Place) -> None:
    define(place, "p", ECHO)
    define(place, "f", ECHO, "udfs")
    answer = place.wire.send("GET", place.path, None, {"x-ms-documentdb-populatequotainfo": "true"})
    assert "functions=1;storedProcedures=1;triggers=0;" in answer.headers["x-ms-resource-usage"]
    assert "functions=50;storedProcedures=100;triggers=25;" in answer.headers["x-ms-resource-quota"]


def test_feeds_of_scripts_come_in_pages(place: Place) -> None:
    for number in range(5):
        define(place, f"p{number}", ECHO)
    found: list[str] = []
    token = ""
    while True:
        headers = {"x-ms-max-item-count": "2"} | ({"x-ms-continuation": token} if token else {})
        page = place.wire.send("GET", [*place.path, "sprocs"], None, headers)
        found += [each["id"] for each in page.json["StoredProcedures"]]
        assert page.json["_count"] == len(page.json["StoredProcedures"]) <= 2
        assert page.json["_rid"] == place.rid
        token = page.headers.get("x-ms-continuation", "")
        if not token:
            break
    assert found == [f"p{number}" for number in range(5)]


def test_what_a_script_answers_is_json_whatever_it_sets(place: Place) -> None:
    define(
        place,
        "odd",
        "function () { __.response.setBody({ a: undefined, b: NaN, c: 'é\\u0000\\ud800', d: new Date(0) }); }",
    )
    done = place.wire.send("POST", [*place.path, "sprocs", "odd"], b"", key=["a"])
    assert done.status == 200
    text = done.body.decode()
    assert json.loads(text)["d"] == "1970-01-01T00:00:00.000Z"
    assert "\\ud800" in text


def test_a_trigger_without_its_time_or_operation_is_told_what_is_missing(place: Place) -> None:
    whole = {"id": "t", "body": "function () {}", "triggerType": "Pre", "triggerOperation": "All"}
    for name in ("body", "triggerType", "triggerOperation"):
        body = {key: value for key, value in whole.items() if key != name}
        answer = place.wire.send("POST", [*place.path, "triggers"], body)
        missing = f"the required properties - '{name}; ' - are missing"
        assert (answer.status, missing in answer.message) == (400, True)


def test_every_container_has_the_procedure_that_answers_with_its_argument(place: Place) -> None:
    path = [*place.path, "sprocs", "__.sys.echo"]
    answer = place.wire.send("POST", path, ["foobar"], None, ["any"])
    assert (answer.status, answer.json) == (200, "foobar")
    assert place.wire.send("GET", path).status == 404, "it is nobody's to read or change"


def test_the_option_by_which_scripts_have_items_indexed_must_be_one_there_is(place: Place) -> None:
    source = """function (action) {
      __.createDocument(__.getSelfLink(), { id: action, pk: "a" }, { indexAction: action }, function (error) {
        if (error) throw error;
      });
    }"""
    place.wire.send("POST", [*place.path, "sprocs"], {"id": "p", "body": source})
    path = [*place.path, "sprocs", "p"]
    assert place.wire.send("POST", path, ["exclude"], None, ["a"]).status == 200
    assert place.wire.send("POST", path, ["Invalid Value"], None, ["a"]).status == 400
