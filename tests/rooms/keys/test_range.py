"""Ranges of effective partition keys: even division, prefixes, and where a split cuts."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad.errors import PleiadError
from pleiad.keys.definition import KeyDefinition
from pleiad.keys.hash import epk
from pleiad.keys.range import MAX, MIN, WHOLE, EpkRange, disjoint, even_ranges, midpoint, prefix_range
from pleiad.keys.value import KeyValue
from pleiad.server.http.failures import status_of
from pleiad.values.undefined import UNDEFINED

V1 = KeyDefinition(("/pk",), "Hash", 1)
V2 = KeyDefinition(("/pk",), "Hash", 2)
MULTI = KeyDefinition(("/a", "/b", "/c"), "MultiHash", 2)

key_values = st.one_of(
    st.text(max_size=20), st.integers(-(2**53), 2**53), st.booleans(), st.none(), st.just(UNDEFINED)
)
definitions = st.sampled_from([V1, V2, MULTI])


def inner_boundaries(count: int, definition: KeyDefinition) -> list[str]:
    return [range_.to_hex()[1] for range_ in even_ranges(count, definition)[:-1]]


@pytest.mark.requirement("R47")
@pytest.mark.parametrize(
    ("count", "definition", "boundaries"),
    [
        (1, V2, []),
        (2, V2, ["1F" + "F" * 30]),
        (5, V2, ["0" + "C" * 31, "1" + "9" * 30 + "8", "2" + "6" * 30 + "4", "3" * 31 + "0"]),
        (5, MULTI, ["0" + "C" * 31, "1" + "9" * 30 + "8", "2" + "6" * 30 + "4", "3" * 31 + "0"]),
        (2, V1, ["05C1DFFFFFFFFC"]),
        (3, V1, ["05C1D5AB55AB54", "05C1E5AB55AB54"]),
        (4, V1, ["05C1CFFFFFFFF8", "05C1DFFFFFFFF8", "05C1E7FFFFFFFA"]),
        (5, V1, ["05C1C9CD673398", "05C1D9CD673398", "05C1E399CD6732", "05C1E9CD673398"]),
    ],
)
def test_the_space_is_cut_where_the_service_cuts_it(
    count: int, definition: KeyDefinition, boundaries: list[str]
) -> None:
    assert inner_boundaries(count, definition) == boundaries


@pytest.mark.requirement("R47", "R57")
@given(st.integers(1, 60), definitions, key_values)
def test_a_key_falls_into_exactly_one_of_the_even_ranges(
    count: int, definition: KeyDefinition, value: KeyValue
) -> None:
    key = epk((value,) * definition.levels, definition)
    ranges = even_ranges(count, definition)
    assert sum(range_.contains(key) for range_ in ranges) == 1
    assert ranges[0].min == MIN
    assert ranges[-1].max == MAX
    assert all(left.max == right.min for left, right in pairwise(ranges))


@pytest.mark.requirement("R48")
@pytest.mark.parametrize("definition", [V1, V2])
def test_each_of_five_partitions_hosts_about_a_fifth_of_ten_thousand_keys(definition: KeyDefinition) -> None:
    keys = [epk((f"user-{number}",), definition) for number in range(10_000)]
    for range_ in even_ranges(5, definition):
        assert sum(range_.contains(key) for key in keys) == pytest.approx(2000, rel=0.1)


def test_the_space_cannot_be_divided_into_nothing() -> None:
    with pytest.raises(ValueError, match="one range or more"):
        even_ranges(0, V2)


@given(key_values, key_values, key_values)
def test_a_prefix_range_holds_every_key_beneath_it(a: KeyValue, b: KeyValue, c: KeyValue) -> None:
    key = epk((a, b, c), MULTI)
    for prefix in ((), (a,), (a, b), (a, b, c)):
        assert prefix_range(prefix, MULTI).contains(key)


@given(key_values, key_values, definitions)
def test_the_range_of_a_full_key_holds_that_key_and_no_other(
    a: KeyValue, b: KeyValue, definition: KeyDefinition
) -> None:
    one, other = epk((a,) * definition.levels, definition), epk((b,) * definition.levels, definition)
    assert prefix_range((a,) * definition.levels, definition).contains(other) is (one == other)


def test_the_range_of_a_container_without_a_key_holds_only_the_empty_epk() -> None:
    range_ = prefix_range((), V2)
    assert range_.contains(b"")
    assert not range_.contains(b"\x00")
    assert prefix_range((), MULTI) == WHOLE


@pytest.mark.parametrize("definition", [V1, V2, MULTI])
def test_a_split_of_the_whole_cuts_where_two_even_ranges_meet(definition: KeyDefinition) -> None:
    left, right = even_ranges(2, definition)
    assert midpoint(WHOLE, definition) == left.max == right.min
    assert midpoint(left, definition) == even_ranges(4, definition)[0].max


@pytest.mark.parametrize("definition", [V1, V2, MULTI])
@given(seed=st.integers(min_value=0))
def test_a_range_can_be_split_again_and_again_until_it_cannot_be_cut(
    definition: KeyDefinition, seed: int
) -> None:
    chooser = random.Random(seed)
    range_ = WHOLE
    while (cut := midpoint(range_, definition)) is not None:
        assert range_.min < cut < range_.max
        range_ = EpkRange(range_.min, cut) if chooser.getrandbits(1) else EpkRange(cut, range_.max)


def test_one_tenant_of_a_hierarchical_key_is_split_between_its_users() -> None:
    tenant = prefix_range(("tenant1",), MULTI)
    cut = midpoint(tenant, MULTI)
    assert cut == tenant.min + bytes.fromhex("1F" + "FF" * 15)
    users = [epk(("tenant1", f"user-{number}", "s"), MULTI) for number in range(200)]
    assert 60 < sum(user < cut for user in users) < 140


def test_one_full_key_cannot_be_split() -> None:
    for definition in (V1, V2, MULTI):
        assert midpoint(prefix_range(("a",) * definition.levels, definition), definition) is None


def test_ranges_meet_overlap_and_intersect_as_half_open_ranges() -> None:
    left, right, across = EpkRange(MIN, b"\x10"), EpkRange(b"\x10", MAX), EpkRange(b"\x08", b"\x18")
    assert not left.overlaps(right)
    assert left.intersect(right) is None
    assert left.overlaps(across)
    assert left.intersect(across) == EpkRange(b"\x08", b"\x10")
    assert right.intersect(across) == across.intersect(right) == EpkRange(b"\x10", b"\x18")
    assert not left.contains(b"\x10")
    assert right.contains(b"\x10")
    assert sorted([right, left]) == [left, right]


def test_a_range_goes_to_hex_and_back() -> None:
    assert WHOLE.to_hex() == ("", "FF")
    assert EpkRange.from_hex("", "FF") == WHOLE
    assert EpkRange.from_hex("05c1dffffffffc", "FF").to_hex() == ("05C1DFFFFFFFFC", "FF")


@pytest.mark.parametrize(
    ("low", "high"),
    [("0", "FF"), ("", "XY"), ("", "é"), ("0 0", "FF"), ("10", "10"), ("20", "10"), ("FF", "")],
)
def test_a_range_that_is_not_hex_or_holds_nothing_is_a_bad_request(low: str, high: str) -> None:
    with pytest.raises(PleiadError) as caught:
        EpkRange.from_hex(low, high)
    assert status_of(caught.value) == 400


def test_ranges_that_lie_in_each_other_become_one() -> None:
    def span(low: str, high: str) -> EpkRange:
        return EpkRange.from_hex(low, high)

    given = [span("20", "30"), span("05", "10"), span("22", "23"), span("2F", "31"), span("10", "11")]
    assert disjoint(given) == [span("05", "10"), span("10", "11"), span("20", "31")]
    assert disjoint([]) == []
