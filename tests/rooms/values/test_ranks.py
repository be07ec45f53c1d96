"""The rank tables are whole, and what the house orders today it orders by them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad.query.values import hash_key, order_key, type_name, type_rank
from pleiad.store import predicate
from pleiad.values import ranks, scalars
from pleiad.values.encoding import NOSQL_KEYS
from pleiad.values.ranks import GREMLIN, KINDS, MONGO, NOSQL, PROFILES, TABLE, Kind
from pleiad.values.scalars import Decimal128, Int64, MaxKey, MinKey
from pleiad.values.undefined import UNDEFINED


def test_every_class_of_values_has_a_kind_and_every_kind_a_class() -> None:
    classes = {
        each
        for each in vars(scalars).values()
        if isinstance(each, type) and each.__module__ == scalars.__name__
    }
    assert classes <= set(KINDS)
    assert set(KINDS.values()) == set(Kind)


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_every_kind_has_a_place_in_every_profile(profile: ranks.Profile) -> None:
    found = {profile.rank_of(kind) for kind in Kind}
    assert found == set(range(max(found) + 1))
    assert max(found) < 255


def test_tables_are_frozen() -> None:
    with pytest.raises(TypeError):
        NOSQL.ranks[Kind.NULL] = 9  # type: ignore[index]
    with pytest.raises(AttributeError):
        NOSQL.name = "other"  # type: ignore[misc]


def test_the_ranks_of_stored_indexes_and_tokens_never_change() -> None:
    names = ("UNDEFINED", "NULL", "BOOLEAN", "NUMBER", "STRING", "ARRAY", "OBJECT")
    assert [getattr(predicate, f"RANK_{name}") for name in names] == list(range(7))
    one_each: list[Any] = [UNDEFINED, None, True, 1, 1.5, "", [], (), {}]
    assert [type_rank(value) for value in one_each] == [
        0,
        1,
        2,
        3,
        3,
        4,
        5,
        5,
        6,
    ]
    assert type_name(()) == "array"


def test_what_may_be_compared_is_up_to_the_api() -> None:
    assert NOSQL.are_comparable(1, "a")
    assert MONGO.are_comparable(MinKey(), MaxKey())
    assert not GREMLIN.are_comparable(1, "a")
    assert GREMLIN.are_comparable(1, 1.5)
    assert not TABLE.are_comparable(1, Int64(1))
    assert not TABLE.are_comparable(1, 1.0)
    assert TABLE.are_comparable(Int64(2), Int64(1))
    assert MONGO.are_comparable(Decimal128("1"), 1.0)


def test_queries_order_scalars_as_their_keys_are_ordered(values: Any) -> None:
    """Up to where the language orders integers as doubles, and NaN, which no item has."""
    exact = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False)
    scalars_of_items = st.one_of(st.none(), st.booleans(), exact, values.text, st.just(UNDEFINED))

    @given(scalars_of_items, scalars_of_items)
    def compare(left: Any, right: Any) -> None:
        assert (order_key(left) < order_key(right)) == (NOSQL_KEYS.encode(left) < NOSQL_KEYS.encode(right))

    compare()


def test_queries_find_values_equal_exactly_when_their_keys_are(values: Any) -> None:
    @given(values.nested_json(), values.nested_json())
    def compare(left: Any, right: Any) -> None:
        is_same = NOSQL_KEYS.encode(left) == NOSQL_KEYS.encode(right)
        assert (hash_key(left) == hash_key(right)) == is_same

    compare()
