"""Rows of heat: everything that was spent is in one of the slices."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad.engine.watch.heat_map import Stretch, heat_row, joined, spent_on


def test_what_was_spent_on_keys_stays_where_the_keys_are() -> None:
    assert heat_row([0, 5, 0, 0], 5, [Stretch(0, 1, 5)]) == [0, 5, 0, 0]


def test_what_was_spent_without_a_key_is_spread_over_its_partition() -> None:
    halves = [Stretch(0, 0.5, 4), Stretch(0.5, 1, 8)]
    assert heat_row([0, 2, 0, 0], 12, halves) == [1, 3, 4, 4]


def test_where_partitions_share_a_budget_it_is_spread_over_all() -> None:
    assert heat_row([0, 0, 0, 4], 8, [Stretch(0, 0.5), Stretch(0.5, 1)]) == [1, 1, 1, 5]


def test_a_partition_that_ends_within_a_slice_has_a_part_of_it() -> None:
    stretches = [Stretch(0, 0.375, 3), Stretch(0.375, 1, 0)]
    assert heat_row([0, 0], 3, stretches) == pytest.approx([3, 0])
    assert spent_on([8, 4], Stretch(0.25, 0.75)) == 6


def test_fewer_slices_are_sums_of_neighbours() -> None:
    assert joined([1, 2, 3, 4, 5, 6], 3) == [3, 7, 11]
    assert joined([1, 2, 3], 1) == [6]


@given(
    keyed=st.lists(st.floats(0, 1e6), min_size=12, max_size=12),
    rest=st.floats(0, 1e6),
    cuts=st.sets(st.floats(0.01, 0.99), max_size=6),
    data=st.data(),
)
def test_all_slices_together_have_what_was_spent(
    keyed: list[float], rest: float, cuts: set[float], data: st.DataObject
) -> None:
    edges = [0.0, *sorted(cuts), 1.0]
    spent = st.one_of(st.none(), st.floats(0, 1e6))
    stretches = [Stretch(low, high, data.draw(spent)) for low, high in pairwise(edges)]
    row = heat_row(keyed, sum(keyed) + rest, stretches)
    assert sum(row) == pytest.approx(sum(keyed) + rest, abs=1e-3)
    assert all(after >= before - 1e-9 for after, before in zip(row, keyed, strict=True))
    assert sum(spent_on(row, each) for each in stretches) == pytest.approx(sum(row), abs=1e-3)
