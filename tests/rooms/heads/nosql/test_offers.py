"""Offers over the wire: what their headers tell, migration between manual and autoscale, throughput buckets."""

from __future__ import annotations

from typing import Any

import pytest

TO_AUTOSCALE = "x-ms-cosmos-migrate-offer-to-autopilot"
TO_MANUAL = "x-ms-cosmos-migrate-offer-to-manual-throughput"


@pytest.fixture
def offer(wire: Any, place: Any) -> dict[str, Any]:
    """The offer of a container with 400 RU/s."""
    answer = wire.send("GET", ["offers"], headers={"x-ms-max-item-count": "1000"})
    (found,) = [each for each in answer.json["Offers"] if each["offerResourceId"] == place.rid]
    return dict(found)


def put(wire: Any, offer: dict[str, Any], content: dict[str, Any], **headers: str) -> Any:
    return wire.send("PUT", ["offers", offer["id"]], {**offer, "content": content}, headers)


def test_reading_and_replacing_tell_the_minimum_and_the_instant_maximum(
    wire: Any, offer: dict[str, Any]
) -> None:
    read = wire.send("GET", ["offers", offer["id"]])
    assert read.status == 200
    assert read.headers["x-ms-cosmos-min-throughput"] == "400"
    assert read.headers["x-ms-cosmos-instant-scale-up-value"] == "10000"
    assert read.headers["x-ms-offer-replace-pending"] == "false"
    assert put(wire, offer, {"offerThroughput": 10_000}).status == 200
    assert put(wire, offer, {"offerThroughput": 400}).headers["x-ms-cosmos-min-throughput"] == "400"


def test_a_migration_to_autoscale_and_back_works_out_the_figure(wire: Any, offer: dict[str, Any]) -> None:
    autoscale = put(wire, offer, {"offerThroughput": 1}, **{TO_AUTOSCALE: "true"})
    assert autoscale.status == 200
    settings = autoscale.json["content"]["offerAutopilotSettings"]
    assert settings["maxThroughput"] == 1_000
    assert autoscale.headers["x-ms-cosmos-min-throughput"] == "1000"
    manual = put(wire, offer, autoscale.json["content"], **{TO_MANUAL: "True"})
    assert manual.status == 200
    assert manual.json["content"]["offerThroughput"] == 1_000
    assert "offerAutopilotSettings" not in manual.json["content"]


def test_the_kind_of_a_throughput_changes_by_migration_only(wire: Any, offer: dict[str, Any]) -> None:
    answer = put(wire, offer, {"offerAutopilotSettings": {"maxThroughput": 4_000}})
    assert answer.status == 400
    assert TO_AUTOSCALE in answer.message
    both = {TO_AUTOSCALE: "true", TO_MANUAL: "true"}
    assert put(wire, offer, {"offerThroughput": 400}, **both).status == 400
    assert put(wire, offer, {"offerThroughput": 400}, **{TO_AUTOSCALE: "true"}).status == 200
    answer = put(wire, offer, {"offerThroughput": 400})
    assert answer.status == 400
    assert TO_MANUAL in answer.message


def test_throughput_buckets_are_part_of_the_offer_and_change_once_in_ten_minutes(
    wire: Any, offer: dict[str, Any]
) -> None:
    content = {"offerThroughput": 400, "throughputBuckets": [{"id": 1, "maxThroughputPercentage": 30}]}
    kept = put(wire, offer, content).json["content"]
    assert kept["throughputBuckets"] == [{"id": 1, "maxThroughputPercentage": 30, "isDefaultBucket": False}]
    later = put(wire, offer, {**kept, "offerThroughput": 500})
    assert later.status == 200
    assert later.json["content"]["throughputBuckets"] == kept["throughputBuckets"]
    assert put(wire, offer, {"offerThroughput": 600}).json["content"]["throughputBuckets"]
    answer = put(wire, offer, {**kept, "throughputBuckets": []})
    assert (answer.status, answer.substatus) == (429, 3213)
    assert 590_000 < int(answer.headers["x-ms-retry-after-ms"]) <= 600_000


@pytest.mark.parametrize(
    "buckets",
    [
        "1",
        {},
        [1],
        [{}],
        [{"id": 6, "maxThroughputPercentage": 30}],
        [{"id": 0, "maxThroughputPercentage": 30}],
        [{"id": True, "maxThroughputPercentage": 30}],
        [{"id": 1, "maxThroughputPercentage": 101}],
        [{"id": 1, "maxThroughputPercentage": 0.5}],
        [{"id": 1, "maxThroughputPercentage": 30}] * 2,
        [{"id": id, "maxThroughputPercentage": 30, "isDefaultBucket": True} for id in (1, 2)],
    ],
)
def test_buckets_that_are_none_are_400(wire: Any, offer: dict[str, Any], buckets: Any) -> None:
    assert put(wire, offer, {"offerThroughput": 400, "throughputBuckets": buckets}).status == 400


@pytest.mark.parametrize("bucket", ["0", "6", "-1", "x", "1.5", "9" * 5_000, "001" + "5" * 5_000, "\u0661"])
def test_a_bucket_header_that_names_none_is_400(place: Any, bucket: str) -> None:
    place.create({"id": "a", "pk": "a"}, ["a"])
    answer = place.read("a", ["a"], x_ms_cosmos_throughput_bucket=bucket.encode().decode("latin-1"))
    assert answer.status == 400
    assert "specified for the header 'x-ms-cosmos-throughput-bucket' is invalid." in answer.message
