"""Requests to the change feed that make no sense, and those that only look so: a documented answer each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from azure.cosmos import PartitionKey

if TYPE_CHECKING:
    from tests.clients.changes.conftest import FeedWire


@pytest.fixture
def link(pleiad_database: Any) -> str:
    """A container of two physical partitions with four items."""
    container = pleiad_database.create_container("c", PartitionKey("/pk"), offer_throughput=12_000)
    for key in "abcd":
        container.create_item({"id": key, "pk": key})
    found: str = container.container_link
    return found


@pytest.mark.parametrize(
    "headers",
    [
        {"If_None_Match": '"not a place"'},
        {"If_None_Match": '"-1"'},
        {"If_None_Match": '"1.5"'},
        {"If_None_Match": '"99999999999999999999"'},
        {"If_None_Match": '"1,2"'},
        {"If_None_Match": '"eyJmIjoxLCJwIjpbXX0="'},
        {"If_None_Match": '"' + "A" * 9_000 + '"'},
        {"If_None_Match": "W/\u00bd"},
        {"If_Modified_Since": "yesterday"},
        {"If_Modified_Since": "Thu, 99 Jan 2026 00:00:00 GMT"},
        {"A_IM": ""},
        {"A_IM": "Incremental Feed, Full-Fidelity Feed"},
        {"x_ms_max_item_count": "0"},
        {"x_ms_max_item_count": "many"},
        {"x_ms_documentdb_partitionkey": '["a", "b"]'},
        {"x_ms_documentdb_partitionkey": "a"},
        {"x_ms_start_epk": "XY", "x_ms_end_epk": "FF"},
        {"x_ms_start_epk": "30", "x_ms_end_epk": "20"},
        {"x_ms_documentdb_partitionkeyrangeid": "0", "x_ms_start_epk": "3F", "x_ms_end_epk": "FF"},
        {"x_ms_consistency_level": "Strong"},
        {"x_ms_cosmos_changefeed_wire_format_version": "2020-01-01"},
    ],
    ids=str,
)
def test_a_wrong_header_is_answered_with_400(link: str, wire: FeedWire, headers: dict[str, Any]) -> None:
    reply = wire.get(link, **headers)
    assert reply.status == 400
    assert json.loads(reply.body)["code"] == "BadRequest"
    assert wire.get(link).status == 200, "the connection and the server go on"


def test_a_range_id_that_is_no_more_is_gone(link: str, wire: FeedWire) -> None:
    reply = wire.get(link, x_ms_documentdb_partitionkeyrangeid="17")
    assert (reply.status, reply.headers["x-ms-substatus"]) == (410, "1002")


def test_a_place_is_bound_to_its_range_unless_it_is_a_number(link: str, wire: FeedWire) -> None:
    place = wire.get(link).place
    assert place.strip('"').isalnum() or "=" in place
    assert wire.get(link, If_None_Match=place).status == 304
    assert wire.get(link, If_None_Match=place, x_ms_documentdb_partitionkeyrangeid="1").status == 304
    of_one = wire.get(link, x_ms_documentdb_partitionkeyrangeid="0")
    assert of_one.place.strip('"').isdigit(), "one physical partition's place is its LSN"
    assert (
        wire.get(link, If_None_Match='"0"', x_ms_documentdb_partitionkeyrangeid="0").entries == of_one.entries
    )


def test_places_beyond_the_end_wait_there(link: str, wire: FeedWire) -> None:
    reply = wire.get(link, If_None_Match='"1000"', x_ms_documentdb_partitionkeyrangeid="0")
    assert (reply.status, reply.place, reply.body) == (304, '"1000"', b"")


def test_a_place_may_be_as_far_beyond_the_end_as_a_number_of_64_bits(link: str, wire: FeedWire) -> None:
    for number in (2**31, 2**62, 2**63 - 1):
        assert wire.get(link, If_None_Match=f'"{number}"').status == 304
        of_one = wire.get(link, If_None_Match=f'"{number}"', x_ms_documentdb_partitionkeyrangeid="0")
        assert (of_one.status, of_one.body) == (304, b"")
        assert wire.get(link, If_None_Match=of_one.place).status == 304


def test_a_client_that_names_the_wire_format_has_items_apart_from_their_metadata(
    link: str, wire: FeedWire
) -> None:
    plain = wire.get(link)
    apart = wire.get(link, x_ms_cosmos_changefeed_wire_format_version="2021-09-15")
    assert [set(entry) for entry in apart.entries] == [{"current", "metadata"}] * 4
    for entry, item in zip(apart.entries, plain.entries, strict=True):
        lsn = item.pop("_lsn")
        assert entry == {"current": item, "metadata": {"lsn": lsn, "crts": item["_ts"]}}
    assert apart.place == plain.place
    filtered = wire.get(
        link, {"query": "SELECT * FROM c"}, x_ms_cosmos_changefeed_wire_format_version="2021-09-15"
    )
    assert filtered.entries == apart.entries


def test_the_scopes_agree(link: str, wire: FeedWire) -> None:
    """By key, by range id, by epks, and the whole."""
    whole = {entry["id"] for entry in wire.get(link).entries}
    by_id = [wire.get(link, x_ms_documentdb_partitionkeyrangeid=id).entries for id in ("0", "1")]
    by_epk = [
        wire.get(link, x_ms_read_key_type="EffectivePartitionKeyRange", x_ms_start_epk=low, x_ms_end_epk=high)
        for low, high in (("", "20"), ("20", "FF"))
    ]
    by_key = [wire.get(link, x_ms_documentdb_partitionkey=f'["{key}"]').entries for key in "abcd"]
    assert whole == set("abcd")
    assert {entry["id"] for part in by_id for entry in part} == whole
    assert {entry["id"] for part in by_epk for entry in part.entries} == whole
    assert [[entry["id"] for entry in part] for part in by_key] == [["a"], ["b"], ["c"], ["d"]]


def test_a_start_time_is_kept_with_a_later_place(link: str, wire: FeedWire) -> None:
    """As clients do that send it with every request."""
    long_ago, far_ahead = "Thu, 01 Jan 2015 00:00:00 GMT", "Thu, 01 Jan 2099 00:00:00 GMT"
    first = wire.get(link, If_Modified_Since=long_ago, x_ms_max_item_count="1")
    assert len(first.entries) == 1
    rest = wire.get(link, If_Modified_Since=long_ago, If_None_Match=first.place)
    assert len(first.entries + rest.entries) == 4
    assert wire.get(link, If_Modified_Since=far_ahead).status == 304


def test_the_charge_of_a_page_depends_on_what_it_holds(link: str, wire: FeedWire) -> None:
    charges = {wire.get(link).headers["x-ms-request-charge"] for _ in range(3)}
    assert charges == {"4.00"}
    assert wire.get(link, If_None_Match="*").headers["x-ms-request-charge"] == "2.00"
