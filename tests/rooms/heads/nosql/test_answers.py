"""What every answer carries, and that an item comes back as it was written, its numbers in their shortest form."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pleiad.engine.engine import Engine
from pleiad.settings import Settings

NUMBERS = {
    "0": "0", "-0": "0", "0.0": "0", "-0.0": "0", "-0e5": "0", "0E-3": "0", "1": "1", "1.0": "1", "-1.0": "-1",
    "1.10": "1.1", "1e2": "100", "1E+2": "100", "1.5E1": "15", "1e-07": "1e-7", "0.1": "0.1", "0.100": "0.1",
    "0.30000000000000004": "0.30000000000000004", "0.1000000000000000055": "0.1", "5e-324": "5e-324",
    "123456789012345678": "123456789012345678", "12345678901234567890": "12345678901234567890",
    "123456789012345678901234567890": "1.2345678901234568e+29", "100000000000000000000": "1e+20",
    "3.141592653589793238462643383279": "3.141592653589793", "1.7976931348623157e308": "1.7976931348623157e+308",
    "9007199254740993": "9007199254740993", "9007199254740992.0": "9007199254740992",
    "-9223372036854775808": "-9223372036854775808", "-9223372036854775809": "-9.223372036854776e+18",
}  # fmt: skip
"""Numbers as a client may write them, and as they come back."""
STRINGS = [
    rb'"plain"', rb'"\u00e9"', '"é"'.encode(), rb'"\/"', rb'"/"', rb'"\ud83d\ude00"', '"😀"'.encode(),
    rb'"\u0000"', rb'"\u2028"', "\"\u2028\"".encode(), rb'"a\tb"', rb'"\""', rb'"\":"',
]  # fmt: skip


@pytest.mark.parametrize("text", NUMBERS)
@pytest.mark.parametrize("form", ['{"id":"1","pk":"a","n":%s}', '{"id":"1", "pk":"a", "n": [ %s ]}'])
def test_a_number_comes_back_in_its_shortest_form(text: str, form: str, place: Any) -> None:
    expected = (form % NUMBERS[text])[:-1].replace(" ", "").encode() + b","
    assert place.create((form % text).encode(), ["a"]).body.replace(b" ", b"").startswith(expected)
    assert place.read("1", ["a"]).body.replace(b" ", b"").startswith(expected)
    answer = place.wire.send(
        "POST",
        [*place.path, "docs"],
        {"query": "SELECT VALUE c.n FROM c"},
        {"content-type": "application/query+json"},
        ["a"],
    )
    assert b'"Documents":[%s]' % expected.rpartition(b'"n":')[2][:-1] in answer.body


def test_the_sign_of_a_zero_that_is_the_partition_key_stays(place: Any) -> None:
    assert place.create(b'{"id":"1","pk":-0.0,"n":[-0.0,-0,1.0]}', [-0.0]).status == 201
    assert place.read("1", [-0.0]).body.startswith(b'{"id":"1","pk":-0.0,"n":[-0.0,0,1],')
    assert place.read("1", [0]).status == 404


def test_what_looks_like_a_number_in_a_string_or_a_name_stays_as_it_is(place: Any) -> None:
    body = rb'{"id":"1","pk":"a","s":"1.0, \"2.0\": 1e2","1.0":{"x \":3.0":[1.50,"4.0"]}}'
    place.create(body, ["a"])
    assert place.read("1", ["a"]).body.startswith(body.replace(b"1.50", b"1.5")[:-1] + b",")


def test_an_item_is_as_large_as_its_shortest_form(place: Any) -> None:
    charges = {
        place.create(b'{"id":"%d","pk":"a","n":[%s]}' % (index, b",".join([text] * 900)), ["a"]).headers[
            "x-ms-request-charge"
        ]
        for index, text in enumerate((b"1", b"1.0", b"1.000000000"))
    }
    assert len(charges) == 1


def test_numbers_survive_a_patch_of_their_neighbours(place: Any, wire: Any) -> None:
    written = b",".join(b'"n%d":%s' % (index, text.encode()) for index, text in enumerate(NUMBERS))
    given = b",".join(b'"n%d":%s' % (index, text.encode()) for index, text in enumerate(NUMBERS.values()))
    place.create(b'{"id":"1","pk":"a",%s}' % written, ["a"])
    patch = b'{"operations":[{"op":"set","path":"/new","value":1.0}]}'
    assert wire.send("PATCH", [*place.path, "docs", "1"], patch, key=["a"]).status == 200
    assert given + b',"new":1,' in place.read("1", ["a"]).body


def test_a_parameter_comes_back_in_its_shortest_form(place: Any, wire: Any) -> None:
    values = b'[{"name":"@a","value":1.0},{"name":"@b","value":{"x":[2.0]}}]'
    body = b'{"query":"SELECT VALUE [@a, @b]","parameters":%s}' % values
    headers = {"content-type": "application/query+json"}
    answer = wire.send("POST", [*place.path, "docs"], body, headers, ["a"])
    assert b'"Documents":[[1,{"x":[2]}]]' in answer.body


@pytest.mark.parametrize("text", STRINGS)
def test_a_string_comes_back_as_it_was_written(text: bytes, place: Any) -> None:
    body = b'{"id":"1","pk":"a","s":%s}' % text
    assert place.create(body, ["a"]).body.startswith(body[:-1] + b",")
    assert place.read("1", ["a"]).body.startswith(body[:-1] + b",")


def test_members_keep_their_order(place: Any) -> None:
    place.create(b'{ "z" : [ 2 , 1 ] , "id":"1","a":{},"pk":"a" }', ["a"])
    assert list(place.read("1", ["a"]).json)[:4] == ["z", "id", "a", "pk"]


def test_system_properties_sent_back_are_replaced_not_kept(place: Any) -> None:
    body = b'{"_rid":"x","id":"1","_ts":5,"pk":"a","_etag":"e","_self":"s","_attachments":"t","_mine":1.5}'
    created = place.create(body, ["a"])
    assert created.body.startswith(b'{"id":"1","pk":"a","_mine":1.5,"_rid":"')
    assert (
        created.body.count(b'"_ts"') == created.body.count(b'"_etag"') == created.body.count(b'"_rid"') == 1
    )


def test_every_item_answer_says_where_it_came_from(spread_place: Any, wire: Any) -> None:
    item = [*spread_place.path, "docs", "1"]
    body = {"id": "1", "pk": "a"}
    answers = [
        spread_place.create(body, ["a"]),
        spread_place.read("1", ["a"]),
        wire.send("PUT", item, body, key=["a"]),
        wire.send("PATCH", item, {"operations": [{"op": "set", "path": "/n", "value": 1}]}, key=["a"]),
        wire.send("GET", [*spread_place.path, "docs"], key=["a"]),
        wire.send(
            "POST", item[:-1], {"query": "SELECT * FROM c"}, {"x-ms-documentdb-isquery": "True"}, ["a"]
        ),
        wire.send("DELETE", item, key=["a"]),
    ]
    ranges = {answer.headers["x-ms-documentdb-partitionkeyrangeid"] for answer in answers}
    assert len(ranges) == 1, "one logical partition is on one physical partition"
    for answer in answers:
        assert answer.status < 300
        assert answer.headers["x-ms-alt-content-path"] == "/".join(spread_place.path)
        assert answer.headers["x-ms-content-path"] == spread_place.rid
        assert re.fullmatch(r"\d+:\d+#\d+", answer.headers["x-ms-session-token"])
        assert answer.headers["x-ms-session-token"].startswith(f"{min(ranges)}:")


def test_a_failed_item_operation_says_where_it_failed(place: Any) -> None:
    place.create({"id": "1", "pk": "a"}, ["a"])
    for answer in (place.read("2", ["a"]), place.create({"id": "1", "pk": "a"}, ["a"])):
        assert re.fullmatch(r"0:[1-9]\d*#1", answer.headers["x-ms-session-token"])
        assert answer.headers["x-ms-documentdb-partitionkeyrangeid"] == "0"
        assert float(answer.headers["x-ms-request-charge"]) >= 1


def test_names_beyond_ascii_are_percent_encoded_in_the_path_header(wire: Any) -> None:
    assert wire.send("POST", ["dbs"], {"id": "größe"}).status == 201
    path = ["dbs", "größe", "colls", "日本"]
    key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
    made = wire.send("POST", path[:3], {"id": "日本", "partitionKey": key})
    assert made.headers["x-ms-alt-content-path"] == "dbs/gr%C3%B6%C3%9Fe"
    created = wire.send("POST", [*path, "docs"], {"id": "1", "pk": "a"}, key=["a"])
    assert created.headers["x-ms-alt-content-path"] == "dbs/gr%C3%B6%C3%9Fe/colls/%E6%97%A5%E6%9C%AC"
    assert wire.send("DELETE", path[:2]).status == 204


def test_every_answer_has_a_charge_and_an_activity_id(place: Any, wire: Any) -> None:
    requests = [
        ("GET", []), ("GET", ["dbs"]), ("GET", place.path), ("GET", [*place.path, "docs"]),
        ("GET", ["nothing"]),
        ("GET", [*place.path, "pkranges"]), ("PUT", ["dbs"]), ("GET", ["dbs", "none"]), ("GET", ["offers"]),
        ("GET", ["dbs", place.database, "users"]), ("GET", [*place.path, "docs", "1"]), ("POST", ["dbs"]),
    ]  # fmt: skip
    for method, path in requests:
        answer = wire.send(method, path)
        assert re.fullmatch(r"\d+\.\d\d", answer.headers["x-ms-request-charge"]), (method, path)
        assert re.fullmatch(r"[0-9a-f-]{36}", answer.headers["x-ms-activity-id"]), (method, path)


def test_the_etag_header_is_the_etag_of_the_body(place: Any, wire: Any) -> None:
    created = place.create({"id": "1", "pk": "a"}, ["a"])
    for answer in (
        created,
        place.read("1", ["a"]),
        wire.send("GET", place.path),
        wire.send("GET", place.path[:2]),
    ):
        assert answer.headers["etag"] == answer.json["_etag"]
        assert re.fullmatch(r'"[0-9a-f-]{36}"', answer.headers["etag"])


def test_a_head_request_is_answered_without_a_body_and_the_connection_goes_on(place: Any, wire: Any) -> None:
    answer = wire.send("HEAD", [*place.path, "docs"])
    assert (answer.status, answer.body) == (405, b"")
    assert wire.send("GET", place.path).status == 200


def test_a_minimal_answer_has_its_headers_and_no_body(place: Any, wire: Any) -> None:
    minimal = {"prefer": "return=minimal"}
    item = [*place.path, "docs", "1"]
    body = {"id": "1", "pk": "a"}
    patch = {"operations": [{"op": "set", "path": "/n", "value": 1}]}
    answers = [
        place.create(body, ["a"], **minimal),
        wire.send("PUT", item, body, minimal, ["a"]),
        wire.send("PATCH", item, patch, minimal, ["a"]),
        wire.send("POST", item[:-1], body, {**minimal, "x-ms-documentdb-is-upsert": "True"}, ["a"]),
    ]
    assert [answer.status for answer in answers] == [201, 200, 200, 200]
    for answer in answers:
        assert answer.body == b""
        assert answer.headers["etag"]
        assert answer.headers["x-ms-session-token"]
    assert place.read("1", ["a"], **minimal).json["id"] == "1", "a read is never minimal"


def test_the_ranges_of_a_container_answer_304_to_their_etag(spread_place: Any, wire: Any) -> None:
    path = [*spread_place.path, "pkranges"]
    first = wire.send("GET", path, headers={"a-im": "Incremental Feed", "x-ms-max-item-count": "-1"})
    assert first.status == 200
    again = wire.send(
        "GET", path, headers={"a-im": "Incremental Feed", "if-none-match": first.headers["etag"]}
    )
    assert (again.status, again.body) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert wire.send("GET", path, headers={"if-none-match": '"other"'}).status == 200


def test_who_follows_the_ranges_is_told_only_what_is_new_since(spread_place: Any, wire: Any) -> None:
    path = [*spread_place.path, "pkranges"]

    def follow(etag: str) -> Any:
        return wire.send("GET", path, headers={"a-im": "Incremental Feed", "if-none-match": etag})

    etag = wire.send("GET", path, headers={"a-im": "Incremental Feed"}).headers["etag"]
    split = wire.send("POST", ["_pleiad", "v1", *spread_place.path, "split"], {"partition": "1"})
    assert split.status == 201, split.body
    news = follow(etag)
    assert {each["id"]: each["parents"] for each in news.json["PartitionKeyRanges"]} == {
        "5": ["1"],
        "6": ["1"],
    }
    assert follow(news.headers["etag"]).status == 304
    for forgotten in ("", '"other"', '"999"', '"-1"', '"²"'):
        assert follow(forgotten).json["_count"] == 6, "an etag of no map that was is told the whole one"
    assert wire.send("GET", path, headers={"if-none-match": etag}).json["_count"] == 6, (
        "no follower, the whole map"
    )


def test_who_follows_the_ranges_is_told_which_begin_and_cease_to_split(
    spread_place: Any, wire: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def follow(etag: str = "") -> Any:
        headers = {"a-im": "Incremental Feed", "if-none-match": etag}
        return wire.send("GET", [*spread_place.path, "pkranges"], headers=headers)

    def told(answer: Any) -> dict[str, str]:
        return {each["id"]: each["status"] for each in answer.json["PartitionKeyRanges"]}

    etag = follow().headers["etag"]
    monkeypatch.setattr(Engine, "splitting", lambda engine, container: {1, 3})
    begun = follow(etag)
    assert told(begun) == {"1": "splitting", "3": "splitting"}
    assert follow(begun.headers["etag"]).status == 304
    assert told(follow()) == {"0": "online", "1": "splitting", "2": "online", "3": "splitting", "4": "online"}
    monkeypatch.setattr(Engine, "splitting", lambda engine, container: {3})
    assert told(follow(begun.headers["etag"])) == {"1": "online"}


def test_the_ranges_of_a_container_tile_the_hash_space(spread_place: Any, wire: Any) -> None:
    feed = wire.send("GET", [*spread_place.path, "pkranges"]).json
    ranges = feed["PartitionKeyRanges"]
    assert (feed["_rid"], feed["_count"], len(ranges)) == (spread_place.rid, 5, 5)
    assert [entry["id"] for entry in ranges] == ["0", "1", "2", "3", "4"]
    edges = [entry["minInclusive"] for entry in ranges] + [ranges[-1]["maxExclusive"]]
    assert edges == ["", *(entry["maxExclusive"] for entry in ranges)]
    assert (edges[0], edges[-1]) == ("", "FF")
    assert all(entry["status"] == "online" and entry["parents"] == [] for entry in ranges)
    assert sum(entry["throughputFraction"] for entry in ranges) == pytest.approx(1)


def test_a_range_that_is_gone_is_410(place: Any, wire: Any) -> None:
    headers = {"x-ms-documentdb-partitionkeyrangeid": "99"}
    answer = wire.send("GET", [*place.path, "docs"], headers=headers)
    assert (answer.status, answer.substatus) == (410, 1002)


def test_the_items_of_each_range_together_are_all_items(spread_place: Any, wire: Any) -> None:
    for number in range(40):
        spread_place.create({"id": str(number), "pk": f"k{number}"}, [f"k{number}"])
    found: list[str] = []
    for range_id in "01234":
        headers = {"x-ms-documentdb-partitionkeyrangeid": range_id}
        page = wire.send("GET", [*spread_place.path, "docs"], headers=headers).json
        found += [item["id"] for item in page["Documents"]]
    assert sorted(found, key=int) == [str(number) for number in range(40)]


def test_a_feed_is_read_page_by_page(spread_place: Any, wire: Any) -> None:
    for number in range(25):
        spread_place.create({"id": str(number), "pk": f"k{number}"}, [f"k{number}"])
    found: list[str] = []
    headers = {"x-ms-max-item-count": "4"}
    for _ in range(30):
        answer = wire.send("GET", [*spread_place.path, "docs"], headers=headers)
        assert answer.json["_count"] <= 4
        assert int(answer.headers["x-ms-item-count"]) == answer.json["_count"]
        found += [item["id"] for item in answer.json["Documents"]]
        if "x-ms-continuation" not in answer.headers:
            break
        headers = {"x-ms-max-item-count": "4", "x-ms-continuation": answer.headers["x-ms-continuation"]}
    assert sorted(found, key=int) == [str(number) for number in range(25)]


def test_a_feed_of_resources_is_read_page_by_page(wire: Any) -> None:
    made = [wire.send("POST", ["dbs"], {"id": f"page-{number}"}).json["id"] for number in range(5)]
    found: list[str] = []
    token = ""
    while True:
        page = wire.send("GET", ["dbs"], headers={"x-ms-max-item-count": "2", "x-ms-continuation": token})
        found += [database["id"] for database in page.json["Databases"]]
        token = page.headers.get("x-ms-continuation", "")
        if not token:
            break
    assert [id for id in found if id.startswith("page-")] == made
    for id in made:
        wire.send("DELETE", ["dbs", id])


@pytest.mark.parametrize(
    "host", ["localhost:8081", "LocalHost", "127.0.0.1:12345", "[::1]:8081", "127.9.9.9", "db.localhost:80"]
)
def test_the_advertised_endpoint_follows_the_host_of_the_request(host: str, wire: Any) -> None:
    account = wire.send("GET", [], headers={"Host": host}).json
    for locations in (account["writableLocations"], account["readableLocations"]):
        assert [place["databaseAccountEndpoint"] for place in locations] == [f"http://{host}/"]
    assert account["id"] != "localhost", "the JavaScript client would read the account before every request"


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8081", "192.0.2.1", "a b", "x/y", '"', "<script>", "é", "a" * 300, ""],
)
def test_a_name_that_is_none_of_the_servers_is_refused_and_the_answer_says_how_to_allow_it(
    host: str, place: Any, wire: Any
) -> None:
    """A page in a browser can make its own name mean this machine, and everybody knows the emulators' key."""
    for segments in ([], ["dbs"], [*place.path, "docs"]):
        answer = wire.send("GET", segments, headers={"Host": host})
        assert answer.status == 400
        assert "--host-name" in answer.message
        assert "databaseAccountEndpoint" not in answer.message
    assert wire.send("POST", ["dbs"], {"id": "by a page"}, {"Host": host}).status == 400
    assert wire.send("GET", ["dbs", "by a page"]).status == 404
    assert wire.send_raw("GET", "/metrics", None, {"Host": host}).status == 400
    assert wire.send_raw("GET", "/_pleiad/health", None, {"Host": host}).status == 200


def test_a_name_that_the_operator_gives_is_taken(wire: Any) -> None:
    with wire.serve(Settings(port=0, host_names=("db.example.com", "pleiad"))) as named:
        for host in ("db.example.com", "DB.Example.com.:443", "pleiad:8081", "localhost"):
            account = named.send("GET", [], headers={"Host": host}).json
            assert account["writableLocations"][0]["databaseAccountEndpoint"] == f"http://{host}/"
        assert named.send("GET", [], headers={"Host": "other.example.com"}).status == 400


def test_the_region_may_have_another_name_than_the_account(wire: Any) -> None:
    """The emulator for Windows tells 127.0.0.1 whoever asks; programs take it for a region beside `localhost`."""
    with wire.serve(Settings(port=0, region_host="127.0.0.1")) as named:
        account = named.send("GET", [], headers={"Host": "localhost:8081"}).json
        for locations in (account["writableLocations"], account["readableLocations"]):
            assert [place["databaseAccountEndpoint"] for place in locations] == ["http://127.0.0.1:8081/"]


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:3000"])
def test_pages_of_other_origins_get_no_leave_to_read_answers(origin: str, wire: Any) -> None:
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    preflight = wire.send_raw("OPTIONS", "/dbs", None, asked)
    answers = [preflight, wire.send("GET", ["dbs"], headers={"Origin": origin})]
    assert preflight.status == 405
    assert not any(name.startswith("access-control-") for answer in answers for name in answer.headers)
    assert (
        wire.send_raw("POST", "/dbs", b'{"id":"x"}', {"Origin": origin, "Content-Type": "text/plain"}).status
        == 401
    )


@pytest.mark.parametrize("path", ["/_pleiad/health", "/probe"])
def test_health_answers_without_a_key(wire: Any, path: str) -> None:
    answer = wire.send_raw("GET", path, None, {})
    assert (answer.status, answer.json) == (200, {"status": "ok"})


def test_usage_of_a_container_is_told_when_asked_for(place: Any, wire: Any) -> None:
    for number in range(3):
        place.create({"id": str(number), "pk": "a"}, ["a"])
    assert "x-ms-resource-usage" not in wire.send("GET", place.path).headers
    answer = wire.send("GET", place.path, headers={"x-ms-documentdb-populatequotainfo": "True"})
    assert "documentsCount=3;" in answer.headers["x-ms-resource-usage"]
    room = "documentSize=51200;documentsSize=52428800;documentsCount=-1;collectionSize=52428800;"
    assert answer.headers["x-ms-resource-quota"].endswith(room)


def test_a_failure_tells_how_long_it_took(place: Any, wire: Any) -> None:
    missing = wire.send("GET", [*place.path, "docs", "none"], key=["a"])
    nowhere = wire.send("GET", ["nothing"])
    unsigned = wire.send("GET", place.path, headers={"authorization": "none"})
    assert [missing.status, nowhere.status, unsigned.status] == [404, 404, 401]
    for answer in (missing, nowhere, unsigned):
        assert float(answer.headers["x-ms-request-duration-ms"]) >= 0
