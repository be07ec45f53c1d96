"""The balance of a container: what is said of which numbers."""

from __future__ import annotations

import pytest

from pleiad.engine.watch.balance import REQUESTS_MIN, Balance, HotValue, Kind, Level, Load, balance_of


def load(id: str, used: float, refused: int = 0, requests: int = 1_000, **more: float) -> Load:
    """A partition of a quarter of the hash space that used so many percent of its 1,000 RU/s."""
    return Load(
        id=id,
        used_ru=used / 100 * 60 * 1_000,
        allowed_ru=1_000,
        requests=requests,
        refused=refused,
        size_bytes=int(more.get("size_bytes", 1_000)),
        width=0.25,
    )


def judged(*loads: Load, hot: HotValue | None = None, keys: int = 500) -> Balance:
    return balance_of(loads, hot, keys)


@pytest.mark.requirement("R150")
def test_an_even_load_is_balanced_and_all_of_the_throughput_can_be_used() -> None:
    found = judged(*(load(str(number), 60) for number in range(4)), hot=HotValue('"a"', 0.04))
    assert (found.level, found.kind) == (Level.GOOD, Kind.BALANCED)
    assert found.usable_percent == 100
    assert found.sentence == "The load is spread evenly: 100 % of the throughput can be used."
    assert '"a", takes 0.04 % of the request units' in found.why


@pytest.mark.requirement("R151")
def test_one_value_that_needs_more_than_a_partition_has_is_named() -> None:
    loads = [load("0", 25), load("3", 8), load("4", 100, refused=380), load("2", 21)]
    found = judged(*loads, hot=HotValue('"Beef Products"', 61))
    assert (found.level, found.kind) == (Level.BAD, Kind.HOT_VALUE)
    assert found.sentence == 'One value, "Beef Products", takes 61 % of the request units.'
    assert "partition 4, which refuses 38 % of its requests, while the others use 18 % of theirs" in found.why
    assert "A split does not help" in found.why
    assert found.usable_percent == pytest.approx(38.5)
    assert found.facts.hottest_partition == "4"


def test_a_value_that_a_partition_can_serve_is_no_hot_one() -> None:
    found = judged(*(load(str(number), 50) for number in range(3)), hot=HotValue('"a"', 30))
    assert found.kind is Kind.BALANCED


def test_a_partition_that_works_hardest_without_one_value_to_blame_is_uneven() -> None:
    found = judged(load("0", 90), load("1", 10), load("2", 10), load("3", 10), hot=HotValue('"a"', 2))
    assert (found.level, found.kind) == (Level.WARN, Kind.UNEVEN)
    assert found.sentence == (
        "Partition 0 works hardest: it uses 90 % of what it is allowed, the others 10 %."
    )
    assert found.usable_percent == pytest.approx(33.3, abs=0.1)


def test_too_few_values_are_told_before_the_hottest_of_them() -> None:
    found = judged(load("0", 80), load("1", 80), load("2", 0), load("3", 0), hot=HotValue("1", 50), keys=2)
    assert found.kind is Kind.FEW_VALUES
    assert found.sentence == "Only 2 values of the partition key are at work on 4 physical partitions."


def test_evenly_refused_requests_ask_for_throughput_and_not_for_another_key() -> None:
    found = judged(*(load(str(number), 100, refused=300) for number in range(4)))
    assert (found.level, found.kind) == (Level.WARN, Kind.FULL)
    assert "more throughput helps" in found.why
    alone = judged(load("0", 100, refused=300), hot=HotValue('"a"', 30))
    assert alone.sentence == "The one physical partition refuses 30 % of its requests."


def test_one_physical_partition_is_no_matter_of_balance() -> None:
    found = judged(load("0", 10), hot=HotValue('"a"', 100), keys=1)
    assert (found.level, found.kind) == (Level.GOOD, Kind.BALANCED)
    assert "one physical partition" in found.sentence


@pytest.mark.parametrize(("requests", "said"), [(0, "No request"), (1, "1 request"), (59, "59 requests")])
def test_little_traffic_is_not_judged(requests: int, said: str) -> None:
    assert requests < REQUESTS_MIN
    found = judged(load("0", 100, requests=requests), load("1", 0, requests=0))
    assert (found.level, found.kind, found.usable_percent) == (Level.UNKNOWN, Kind.IDLE, None)
    assert found.sentence == f"{said} in the last minute: too few to judge by."


def test_storage_that_is_spread_unevenly_shows_also_without_traffic() -> None:
    found = judged(load("0", 0, requests=0, size_bytes=9_000), load("1", 0, requests=0, size_bytes=1_000))
    assert found.facts.storage_spread == 9
    assert "9.0 times" in found.why
    empty = judged(load("0", 0, requests=0, size_bytes=9_000), load("1", 0, requests=0, size_bytes=0))
    assert empty.facts.storage_spread is None


def test_a_very_long_value_is_cut() -> None:
    found = judged(load("0", 100), load("1", 0), hot=HotValue('"' + "x" * 5_000 + '"', 90))
    assert found.kind is Kind.HOT_VALUE
    assert len(found.sentence) < 200


def test_partitions_without_throughput_break_nothing() -> None:
    nothing = Load(id="0", used_ru=5, allowed_ru=0, requests=99, refused=0, size_bytes=0, width=0)
    assert balance_of([nothing], None, 0).usable_percent == 100
