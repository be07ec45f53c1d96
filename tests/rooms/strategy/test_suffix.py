"""Suffixes: spread evenly, drawn once for an item, and computed the same by everybody."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad.strategy import BadKeyPart, ComputedSuffix, JoinedKey, RandomSuffix, TimeRollUp

DAY = "2018-08-09"


def vins(count: int) -> list[str]:
    return [f"1FT{number:014d}" for number in range(count)]


def is_even(counts: Counter[int], of: int) -> bool:
    """Whether counts of so many kinds differ by no more than chance makes them: chi-square within five deviations."""
    mean = counts.total() / of
    chi_square = sum((counts[kind] - mean) ** 2 / mean for kind in range(1, of + 1))
    return abs(chi_square - (of - 1)) < 5 * math.sqrt(2 * (of - 1))


@pytest.mark.requirement("R105", "R106", "R110")
def test_random_suffixes_are_1_to_400_and_spread_evenly() -> None:
    key = RandomSuffix("date", draw=random.Random(2018).randrange)
    drawn = [key.value_of({"date": DAY}) for _ in range(20_000)]
    assert set(drawn) == set(key.values_for(DAY))
    assert key.values_for(DAY)[0] == "2018-08-09.1"
    assert key.values_for(DAY)[-1] == "2018-08-09.400"
    assert is_even(Counter(int(value.rpartition(".")[2]) for value in drawn), 400)


@pytest.mark.requirement("R104", "R107")
def test_an_item_keeps_the_suffix_that_it_was_stored_with() -> None:
    key = RandomSuffix("date")
    stored = key.applied_to({"id": "1", "date": DAY})
    assert all(key.applied_to({**stored, "n": n}) == {**stored, "n": n} for n in range(100))
    moved = key.applied_to({**stored, "date": "2018-08-10"})
    assert moved["partitionKey"].startswith("2018-08-10.")


@pytest.mark.parametrize(
    "other", ["2018-08-09.0", "2018-08-09.401", "2018-08-09.x", "2018-08-09.007", 7, None]
)
def test_what_is_no_suffix_of_the_base_is_drawn_anew(other: Any) -> None:
    key = RandomSuffix("date")
    applied = key.applied_to({"date": DAY, "partitionKey": other})["partitionKey"]
    assert applied in key.values_for(DAY)
    assert applied != other


@pytest.mark.requirement("R108")
def test_computed_suffixes_of_vehicles_are_even_and_every_language_computes_them() -> None:
    key = ComputedSuffix("date", by="vin")
    assert is_even(Counter(map(key.suffix_of, vins(20_000))), 400)
    # printf 1FT00000000000000 | sha256sum, its first 16 digits as a number, modulo 400, plus 1
    assert key.suffix_of("1FT00000000000000") == 1 + 0x8DB4F827D856003A % 400


@pytest.mark.requirement("R109")
@given(vin=st.text(max_size=30), suffixes=st.integers(1, 1_000))
def test_the_key_of_a_date_and_a_vehicle_can_be_computed_again(vin: str, suffixes: int) -> None:
    key = ComputedSuffix("date", by="vin", suffixes=suffixes)
    item = {"id": "1", "date": DAY, "vin": vin}
    assert key.value_of(item) == key.value_from(DAY, vin)
    assert key.value_of(item) in key.values_for(DAY)


def test_a_base_may_be_any_other_key() -> None:
    item = {"id": "1", "at": "2018-08-09T12:30:00Z", "region": "eu", "vin": "x"}
    by_day = ComputedSuffix(TimeRollUp("at"), by="vin", suffixes=1)
    joined = RandomSuffix(JoinedKey("region", "vin"), suffixes=1, separator="#")
    assert (by_day.value_of(item), joined.value_of(item)) == ("2018-08-09.1", "eu-x#1")


@pytest.mark.parametrize("suffixes", [0, -1, 100_001])
def test_there_is_a_suffix_at_least_and_not_too_many(suffixes: int) -> None:
    with pytest.raises(ValueError, match="suffixes"):
        RandomSuffix("date", suffixes=suffixes)


def test_a_suffix_has_no_suffix_and_a_separator_is_one() -> None:
    with pytest.raises(ValueError, match="one suffix"):
        RandomSuffix(ComputedSuffix("date", by="vin"))
    with pytest.raises(ValueError, match="separates"):
        RandomSuffix("date", separator="0")
    with pytest.raises(BadKeyPart):
        ComputedSuffix("date", by="vin").value_from(DAY, None)
