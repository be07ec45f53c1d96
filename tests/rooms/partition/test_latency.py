"""Percentiles from classes of times."""

from __future__ import annotations

import pytest

from pleiad.partition.latency import BOUNDS_SECONDS, CLASSES, percentile_ms


def counts(**by_class: int) -> list[int]:
    found = [0] * CLASSES
    for name, count in by_class.items():
        found[int(name[1:])] = count
    return found


def test_without_requests_there_is_no_time_to_tell() -> None:
    assert percentile_ms([0] * CLASSES, 99) is None


def test_a_percentile_lies_in_the_class_of_its_request() -> None:
    found = counts(c0=98, c9=2)
    p50, p99 = percentile_ms(found, 50), percentile_ms(found, 99)
    assert p50 is not None
    assert p99 is not None
    assert 0 < p50 <= 1_000 * BOUNDS_SECONDS[0]
    assert 1_000 * BOUNDS_SECONDS[8] < p99 <= 1_000 * BOUNDS_SECONDS[9]


def test_what_took_longer_than_the_last_bound_is_told_as_that() -> None:
    assert percentile_ms(counts(**{f"c{CLASSES - 1}": 1}), 50) == 1_000 * BOUNDS_SECONDS[-1]


@pytest.mark.parametrize("number", range(CLASSES))
def test_no_percentile_is_above_a_higher_one(number: int) -> None:
    found = counts(c3=10)
    found[number] += 5
    told = [percentile_ms(found, percent) or 0 for percent in (1, 25, 50, 75, 99, 100)]
    assert told == sorted(told)
