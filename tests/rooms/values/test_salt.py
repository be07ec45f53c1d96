"""Numbers as keys of sets and dicts."""

from __future__ import annotations

from pleiad.query.values import hash_key
from pleiad.values.salt import salted

PLACES = 1 << 20
NUMBERS = 1_000


def test_numbers_that_share_their_last_bits_have_keys_all_over_a_table() -> None:
    for number in (1 << 40, 2.0**500):
        keys = [hash_key(number * factor) for factor in range(1, NUMBERS + 1)]
        assert len({hash(key) % PLACES for key in keys}) > NUMBERS // 2
    places = [salted(float(factor << 30), 0.0) for factor in range(NUMBERS)]
    assert len({hash(place) % PLACES for place in places}) > NUMBERS // 2


def test_a_key_equals_another_where_the_numbers_do() -> None:
    assert salted(1, 2) == salted(1.0, 2)
    assert salted(1) != salted(2)
    assert hash_key(1) == hash_key(1.0)
    assert hash_key([1, {"a": 2}]) == hash_key([1.0, {"a": 2.0}])
    assert len({hash_key(each) for each in (1, True, "1", None, [1], [[1]], {"1": 1})}) == 7
