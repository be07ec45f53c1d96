"""What is spread over many key values is read again through both clients of the service."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from azure.cosmos.exceptions import CosmosHttpResponseError

from pleiad.strategy import ComputedSuffix, JoinedKey, RandomSuffix, TimeRollUp, find_item, query_each
from pleiad.strategy.plan import Create, Outcome, Plan, Together, together
from tests.rooms.strategy.conftest import Hand

DAY = "2018-08-09"
SUFFIXES = 20
RANDOM = RandomSuffix("date", SUFFIXES)


def vins(count: int) -> list[str]:
    return [f"1FT{number:014d}" for number in range(count)]


def written(hand: Hand, items: list[dict[str, object]]) -> tuple[Outcome | None, ...]:
    def plan() -> Plan[tuple[Outcome | None, ...]]:
        return (yield from together(Together([Create(item) for item in items])))

    return hand.do(plan())


@pytest.fixture
def days(make_hand: Callable[..., Hand]) -> Hand:
    """A hundred vehicles of a day under random suffixes, on five physical partitions."""
    hand = make_hand(partitions=5)
    written(hand, [RANDOM.applied_to({"id": vin, "date": DAY, "n": n}) for n, vin in enumerate(vins(100))])
    return hand


@pytest.mark.requirement("R105", "R106")
def test_everything_of_a_day_is_read_from_all_suffixes_and_its_charge_is_the_sum(days: Hand) -> None:
    answer = days.carry_out(query_each(RANDOM.values_for(DAY)))
    assert sorted(item["id"] for item in answer.value) == vins(100)
    assert answer.requests == SUFFIXES
    one_by_one = 0.0
    for key in RANDOM.values_for(DAY):
        found = days.container.query_items("SELECT * FROM c", partition_key=key)
        list(found)
        one_by_one += float(found.get_response_headers()["x-ms-request-charge"])
    assert answer.charge_ru == pytest.approx(one_by_one)


def test_ordered_results_of_many_keys_are_merged_in_their_order(days: Hand) -> None:
    plan = query_each(
        RANDOM.values_for(DAY),
        "SELECT VALUE c.n FROM c WHERE c.n >= @least ORDER BY c.n DESC",
        {"@least": 40},
        sorted_by=lambda n: n,
        is_descending=True,
        concurrency_max=3,
    )
    assert days.do(plan) == list(range(99, 39, -1))


@pytest.mark.requirement("R107")
def test_one_item_under_a_random_suffix_is_found_by_asking_for_it_under_each(days: Hand) -> None:
    answer = days.carry_out(find_item(vins(100)[77], RANDOM.values_for(DAY), concurrency_max=1))
    assert answer.value["n"] == 77
    asked = RANDOM.values_for(DAY).index(answer.value["partitionKey"]) + 1
    assert answer.requests == asked
    assert answer.charge_ru == pytest.approx(asked)
    nothing = days.carry_out(find_item("no such vehicle", RANDOM.values_for(DAY)))
    assert (nothing.value, nothing.requests) == (None, SUFFIXES)


@pytest.mark.requirement("R108", "R109", "R110")
def test_a_computed_suffix_is_one_point_read(hand: Hand) -> None:
    key = ComputedSuffix("date", by="vin")
    items = [key.applied_to({"id": vin, "vin": vin, "date": DAY}) for vin in vins(50)]
    written(hand, items)
    assert len({item["partitionKey"] for item in hand.items()}) > 40
    answer = hand.carry_out(find_item(vins(50)[7], [key.value_from(DAY, vins(50)[7])]))
    assert answer.value["vin"] == vins(50)[7]
    assert (answer.requests, answer.charge_ru) == (1, 1.0)


@pytest.mark.requirement("R101", "R111")
def test_a_span_of_time_is_read_from_its_periods_and_from_no_others(hand: Hand) -> None:
    key = TimeRollUp("at")
    moments = [f"2018-08-{day:02d}T{hour:02d}:00:00Z" for day in range(1, 11) for hour in (0, 12)]
    written(hand, [key.applied_to({"id": moment, "at": moment}) for moment in moments])
    span = (datetime(2018, 8, 3, 6, tzinfo=UTC), datetime(2018, 8, 6, tzinfo=UTC))
    keys = key.values_between(*span)
    plan = query_each(
        keys,
        "SELECT VALUE c.at FROM c WHERE c.at >= @begin AND c.at < @end ORDER BY c.at",
        {"@begin": "2018-08-03T06", "@end": "2018-08-06"},
        sorted_by=lambda at: at,
    )
    answer = hand.carry_out(plan)
    assert answer.value == moments[5:10]
    assert (keys, answer.requests) == (("2018-08-03", "2018-08-04", "2018-08-05"), 3)


def test_the_same_key_is_asked_once_and_none_is_no_request(hand: Hand) -> None:
    assert hand.carry_out(query_each(["a", "a", "b"])).requests == 2
    assert hand.carry_out(query_each([])).requests == 0
    assert hand.carry_out(find_item("1", [])).requests == 0


def test_a_failure_of_one_is_the_failure_of_all(hand: Hand) -> None:
    with pytest.raises(CosmosHttpResponseError) as caught:
        hand.carry_out(query_each([f"k{n}" for n in range(40)], "SELECT * FROM c WHERE"))
    assert caught.value.status_code == 400


@pytest.mark.requirement("R102", "R104")
def test_a_joined_key_finds_its_item_again(hand: Hand) -> None:
    key = JoinedKey("deviceId", "date")
    written(hand, [key.applied_to({"id": "1", "deviceId": "abc-123", "date": 2018})])
    (stored,) = hand.items()
    assert stored["partitionKey"] == "abc-123-2018"
    assert key.applied_to(stored) == stored
    found = hand.do(find_item("1", [key.value_from("abc-123", 2018)]))
    assert found is not None
    assert found["date"] == 2018
