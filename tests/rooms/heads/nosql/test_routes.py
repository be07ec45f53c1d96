"""Every path of the protocol: which methods it has, and that names and rids both lead to the resource."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from pleiad.item import rid as rids

ALL = {"GET", "POST", "PUT", "PATCH", "DELETE"}
ROUTES: dict[str, set[str]] = {
    "": {"GET"},
    "dbs": {"GET", "POST"},
    "dbs/{db}": {"GET", "DELETE"},
    "dbs/{db}/colls": {"GET", "POST"},
    "dbs/{db}/colls/{c}": {"GET", "PUT", "DELETE"},
    "dbs/{db}/colls/{c}/docs": {"GET", "POST"},
    "dbs/{db}/colls/{c}/docs/1": {"GET", "PUT", "PATCH", "DELETE"},
    "dbs/{db}/colls/{c}/pkranges": {"GET"},
    "dbs/{db}/colls/{c}/operations/partitionkeydelete": {"POST"},
    "dbs/{db}/users": {"GET", "POST"},
    "dbs/{db}/users/u": {"GET", "PUT", "DELETE"},
    "dbs/{db}/users/u/permissions": {"GET", "POST"},
    "dbs/{db}/users/u/permissions/p": {"GET", "PUT", "DELETE"},
    "dbs/{db}/clientencryptionkeys": {"GET", "POST"},
    "dbs/{db}/clientencryptionkeys/k": {"GET", "PUT", "DELETE"},
    "offers": {"GET", "POST"},
    "offers/abcd": {"GET", "PUT"},
}


def filled(route: str, place: Any) -> list[str]:
    path = route.format(db=place.database, c=place.container)
    return path.split("/") if path else []


@pytest.mark.parametrize("route", ROUTES)
def test_a_method_that_a_route_does_not_have_is_405(route: str, place: Any, wire: Any) -> None:
    for method in sorted(ALL - ROUTES[route]):
        answer = wire.send(method, filled(route, place), {})
        assert (answer.status, answer.json["code"]) == (405, "MethodNotAllowed"), (method, answer.body)
        assert method in answer.message


@pytest.mark.parametrize("route", ROUTES)
def test_a_method_that_a_route_has_is_never_405(route: str, place: Any, wire: Any) -> None:
    for method in sorted(ROUTES[route] - {"DELETE"}):
        assert wire.send(method, filled(route, place), {}, key=["a"]).status not in (405, 500)


@pytest.mark.parametrize(
    "path",
    [
        "nothing",
        "dbs/d/nothing",
        "dbs/d/colls/c/nothing",
        "dbs/d/colls/c/docs/1/attachments",
        "a/b/c/d/e/f/g/h",
        "Dbs",
    ],
)
def test_an_unknown_path_is_404_and_the_message_says_which(path: str, wire: Any) -> None:
    answer = wire.send("GET", path.split("/"))
    assert (answer.status, answer.json["code"]) == (404, "NotFound")
    assert path in answer.message


def test_an_unknown_operation_of_a_container_is_404(place: Any, wire: Any) -> None:
    assert wire.send("POST", [*place.path, "operations", "explode"], None, key=["a"]).status == 404


def test_a_slash_at_the_end_of_a_path_means_nothing(place: Any, wire: Any) -> None:
    place.create({"id": "1", "pk": "a"}, ["a"])
    for path in (["dbs", place.database], place.path, [*place.path, "docs"], [*place.path, "docs", "1"]):
        assert wire.send("GET", path, key=["a"], slash=True).status == 200
        assert wire.send("GET", path, key=["a"], slash=False).status == 200


@pytest.mark.parametrize(
    ("path", "substatus"),
    [
        ("dbs/none", 0),
        ("dbs/none/colls", 1003),
        ("dbs/none/colls/c", 1003),
        ("dbs/{db}/colls/none", 0),
        ("dbs/{db}/colls/none/docs", 1003),
        ("dbs/{db}/colls/none/docs/1", 1003),
        ("dbs/{db}/colls/none/pkranges", 1003),
        ("dbs/{db}/colls/{c}/docs/none", 0),
        ("dbs/{db}/users/none", 0),
        ("dbs/{db}/users/none/permissions", 1003),
        ("offers/none", 0),
    ],
)
def test_a_missing_owner_has_a_substatus_of_its_own(path: str, substatus: int, place: Any, wire: Any) -> None:
    answer = wire.send("GET", filled(path, place), key=["a"])
    assert (answer.status, answer.substatus) == (404, substatus)


def by_rid(
    wire: Any, method: str, link: str, body: bytes | None = None, key: str | None = None, token: str = ""
) -> Any:
    """A request on a self link, signed as clients sign those: the last rid alone, in lower case."""
    segments = link.strip("/").split("/")
    kind = segments[-1] if len(segments) % 2 else segments[-2]
    rid = (segments[-2] if len(segments) % 2 else segments[-1]).lower()
    fields = wire.signed_for(method, kind, rid)
    if key is not None:
        fields["x-ms-documentdb-partitionkey"] = key
    if token:
        fields["x-ms-session-token"] = token
    path = "/" + "/".join(quote(segment, safe="") for segment in segments)
    return wire.send_raw(method, path, body, fields)


def test_every_resource_answers_by_its_self_link(place: Any, wire: Any) -> None:
    item = place.create({"id": "1", "pk": "a"}, ["a"]).json
    database = wire.send("GET", ["dbs", place.database]).json
    assert by_rid(wire, "GET", database["_self"]).json["id"] == place.database
    assert by_rid(wire, "GET", place.self_link).json["id"] == place.container
    assert by_rid(wire, "GET", f"{place.self_link}docs").json["_count"] == 1
    assert by_rid(wire, "GET", f"{place.self_link}pkranges").json["_count"] == 1
    assert by_rid(wire, "GET", item["_self"], key='["a"]').json == item


def test_an_item_is_replaced_and_deleted_by_its_self_link(place: Any, wire: Any) -> None:
    item = place.create({"id": "1", "pk": "a"}, ["a"]).json
    changed = by_rid(wire, "PUT", item["_self"], b'{"id":"1","pk":"a","n":1}', '["a"]')
    assert (changed.status, changed.json["n"], changed.json["_rid"]) == (200, 1, item["_rid"])
    assert by_rid(wire, "DELETE", item["_self"], key='["a"]').status == 204
    assert place.read("1", ["a"]).status == 404


def test_a_missing_item_is_refused_by_its_self_link_with_all_that_its_name_is_refused_with(
    place: Any, wire: Any
) -> None:
    item = place.create({"id": "1", "pk": "a"}, ["a"]).json
    assert by_rid(wire, "DELETE", item["_self"], key='["a"]').status == 204
    for method in ("GET", "DELETE"):
        answer = by_rid(wire, method, item["_self"], key='["a"]')
        named = wire.send(method, [*place.path, "docs", "1"], key=["a"])
        assert (answer.status, answer.substatus) == (named.status, named.substatus) == (404, 0)
        for name in ("lsn", "x-ms-session-token", "x-ms-documentdb-partitionkeyrangeid"):
            assert answer.headers[name] == named.headers[name], name


def test_a_session_that_has_not_come_yet_is_told_of_before_the_item_of_a_self_link(
    place: Any, wire: Any
) -> None:
    made = place.create({"id": "1", "pk": "a"}, ["a"])
    range_and_version, lsn = made.headers["x-ms-session-token"].split("#")
    later = f"{range_and_version}#{int(lsn) + 1000}"
    for key in ('["a"]', '["b"]'):
        answer = by_rid(wire, "GET", made.json["_self"], key=key, token=later)
        assert (answer.status, answer.substatus) == (404, 1002)


def test_a_self_link_of_the_form_before_still_leads_to_its_item(place: Any, wire: Any) -> None:
    for id in ("1", "2", "3"):
        item = place.create({"id": id, "pk": "a"}, ["a"]).json
    before = rids.document_rid_prefix(*rids.document_parts(item["_rid"])[:2])
    before += (rids.document_parts(item["_rid"])[2] << 8).to_bytes(8, "big")
    link = item["_self"].replace(item["_rid"], rids.encode(before))
    assert link != item["_self"]
    assert by_rid(wire, "GET", link, key='["a"]').json == item


def test_a_rid_of_another_container_finds_nothing(place: Any, spread_place: Any, wire: Any) -> None:
    database = wire.send("GET", ["dbs", place.database]).json["_rid"]
    assert by_rid(wire, "GET", f"dbs/{database}/colls/{spread_place.rid}/").status == 404


def test_a_post_of_items_is_told_apart_by_its_headers(place: Any, wire: Any) -> None:
    docs = [*place.path, "docs"]
    item = {"id": "1", "pk": "a"}
    assert wire.send("POST", docs, item, key=["a"]).status == 201
    assert wire.send("POST", docs, item, key=["a"]).status == 409
    assert wire.send("POST", docs, item, {"x-ms-documentdb-is-upsert": "True"}, ["a"]).status == 200
    assert (
        wire.send("POST", docs, {"id": "2", "pk": "a"}, {"x-ms-documentdb-is-upsert": "true"}, ["a"]).status
        == 201
    )
    for headers in ({"x-ms-documentdb-isquery": "True"}, {"content-type": "application/query+json"}):
        found = wire.send("POST", docs, {"query": "SELECT * FROM c"}, headers, ["a"])
        assert (found.status, found.json["_count"]) == (200, 2)


def test_feeds_of_resources_are_queried_by_the_same_headers(place: Any, wire: Any) -> None:
    query = {
        "query": "SELECT * FROM r WHERE r.id = @id",
        "parameters": [{"name": "@id", "value": place.container}],
    }
    found = wire.send("POST", ["dbs", place.database, "colls"], query, {"x-ms-documentdb-isquery": "True"})
    assert [container["id"] for container in found.json["DocumentCollections"]] == [place.container]


@pytest.mark.requirement("R31")
def test_no_request_creates_places_or_removes_a_physical_partition(spread_place: Any, wire: Any) -> None:
    ranges = [*spread_place.path, "pkranges"]
    before = wire.send("GET", ranges).json
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert wire.send(method, ranges, {"id": "9", "minInclusive": "", "maxExclusive": "FF"}).status == 405
        assert wire.send(method, [*ranges, "0"], {"id": "0"}).status == 404
    created = spread_place.create({"id": "1", "pk": "a"}, ["a"])
    home = created.headers["x-ms-documentdb-partitionkeyrangeid"]
    other = "1" if home == "0" else "0"
    asked = spread_place.create({"id": "2", "pk": "a"}, ["a"], x_ms_documentdb_partitionkeyrangeid=other)
    assert asked.status != 201 or asked.headers["x-ms-documentdb-partitionkeyrangeid"] == home
    after = wire.send("GET", ranges).json["PartitionKeyRanges"]
    bounds = [(entry["id"], entry["minInclusive"], entry["maxExclusive"]) for entry in after]
    assert bounds == [
        (entry["id"], entry["minInclusive"], entry["maxExclusive"]) for entry in before["PartitionKeyRanges"]
    ]


@pytest.mark.parametrize(
    "text", ["SELECT VALUE 1", "SELECT VALUE COUNT(1) FROM c WHERE false", "SELECT * FROM c WHERE false"]
)
def test_the_plan_of_a_query_that_looks_at_no_item_names_one_point(text: str, place: Any, wire: Any) -> None:
    """So that a client asks one range, and gets the row that such a query may have."""
    headers = {"content-type": "application/query+json", "x-ms-cosmos-is-query-plan-request": "True"}
    answer = wire.send("POST", [*place.path, "docs"], {"query": text}, headers)
    assert answer.json["queryRanges"] == [
        {"min": "", "max": "", "isMinInclusive": True, "isMaxInclusive": True}
    ]
