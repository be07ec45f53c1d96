"""Keys compare as values do, are equal exactly when values are, never begin one another, and are read back."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pleiad.values.encoding import (
    CQL_KEYS,
    GREMLIN_KEYS,
    MONGO_KEYS,
    NOSQL_KEYS,
    TABLE_KEYS,
    KeyEncoding,
    descending,
)
from pleiad.values.number import DIGITS_MAX, decode_number, encode_number
from pleiad.values.ranks import KINDS, Kind
from pleiad.values.refusal import RefusedValue
from pleiad.values.scalars import (
    Binary,
    DateTime,
    Decimal128,
    Guid,
    Int64,
    MaxKey,
    MinKey,
    ObjectId,
    TimeUuid,
    Varint,
)
from pleiad.values.stored import to_stored
from pleiad.values.undefined import UNDEFINED

ENCODINGS = (NOSQL_KEYS, MONGO_KEYS, TABLE_KEYS, CQL_KEYS, GREMLIN_KEYS)
RANKED = (NOSQL_KEYS, MONGO_KEYS, TABLE_KEYS, GREMLIN_KEYS)
named = pytest.mark.parametrize("keys", RANKED, ids=lambda keys: keys.profile.name)


def sign(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def check_pairs(keys: KeyEncoding, oracle: Any, strategy: Any, examples: int = 300) -> None:
    """Every pair of such values compares as the oracle says, and no key begins another."""

    @settings(max_examples=examples, deadline=None)
    @given(st.lists(strategy, min_size=2, max_size=5))
    def compare(several: list[Any]) -> None:
        made = [(keys.encode(value), oracle(value), value) for value in several]
        for left, slow_left, one in made:
            for right, slow_right, two in made:
                assert sign(left, right) == sign(slow_left, slow_right), (one, two)
                assert sign(descending(right), descending(left)) == sign(left, right)
                assert left == right or not right.startswith(left), (one, two)

    compare()


def test_numbers_of_all_types_compare_exactly(values: Any, mongo_oracle: Any) -> None:
    check_pairs(MONGO_KEYS, mongo_oracle.number, values.mongo_numbers)


def test_numbers_that_are_close_compare_exactly(values: Any, mongo_oracle: Any) -> None:
    check_pairs(
        MONGO_KEYS,
        mongo_oracle.number,
        values.near.map(str).filter(values.fits).map(Decimal128) | values.doubles,
    )


def test_numbers_of_cql_compare_exactly(values: Any, mongo_oracle: Any) -> None:
    check_pairs(CQL_KEYS, mongo_oracle.number, values.typed_numbers | values.int64)


def test_strings_compare_by_code_point_or_by_code_unit(
    values: Any, mongo_oracle: Any, nosql_oracle: Any
) -> None:
    texts = values.text | values.surrogate_text
    check_pairs(MONGO_KEYS, mongo_oracle.text, texts)
    check_pairs(NOSQL_KEYS, nosql_oracle.text, texts)


def test_values_of_mongo_compare_as_its_types_do(values: Any, mongo_oracle: Any) -> None:
    check_pairs(MONGO_KEYS, mongo_oracle.key, values.nested(values.mongo_scalars), 500)


def test_json_scalars_compare_as_the_query_language_orders_them(values: Any, nosql_oracle: Any) -> None:
    check_pairs(NOSQL_KEYS, nosql_oracle.key, values.json_scalars | st.just(UNDEFINED))


def test_json_values_have_one_key_exactly_when_they_are_equal(values: Any, nosql_oracle: Any) -> None:
    @settings(max_examples=300, deadline=None)
    @given(values.nested_json(), values.nested_json())
    def compare(left: Any, right: Any) -> None:
        is_equal = nosql_oracle.key(left) == nosql_oracle.key(right)
        assert (NOSQL_KEYS.encode(left) == NOSQL_KEYS.encode(right)) == is_equal

    compare()


def test_the_order_of_properties_counts_for_mongo_alone() -> None:
    one, two = {"a": 1, "b": [{"c": 1, "d": 2}]}, {"b": [{"d": 2.0, "c": 1.0}], "a": 1.0}
    assert NOSQL_KEYS.encode(one) == NOSQL_KEYS.encode(two)
    assert MONGO_KEYS.encode(one) != MONGO_KEYS.encode(two)


@pytest.mark.parametrize("keys", [MONGO_KEYS, CQL_KEYS], ids=("mongo", "cql"))
def test_equal_numbers_share_one_key_of_nine_bytes(keys: KeyEncoding) -> None:
    same = [1, 1.0, Int64(1), Decimal128("1"), Decimal128("1.00")]
    assert len({keys.encode(number) for number in same}) == 1
    assert len(encode_number(1)) == 9
    assert keys.encode(True) != keys.encode(1)
    assert (
        len({keys.encode(zero) for zero in (0, 0.0, -0.0, Int64(0), Decimal128("-0"), Decimal128("0E+9"))})
        == 1
    )
    assert len({keys.encode(nan) for nan in (math.nan, -math.nan, Decimal128("NaN"))}) == 1
    large = {keys.encode(number) for number in (2**53, 2.0**53, Int64(2**53), Decimal128("9007199254740992"))}
    assert len(large) == 1
    assert keys.encode(2**53 + 1) not in large


def test_nan_is_first_and_what_no_double_reaches_is_in_its_place() -> None:
    rising = [
        *(
            math.nan,
            -math.inf,
            Decimal128("-9.000000000000000000000000000000000E+6144"),
            Decimal128("-1E+309"),
            -1.7976931348623157e308,
        ),
        *(-(2**63), -(2**53) - 1, -(2.0**53), -1, Decimal128("-0.1"), -0.1 + 2e-17, -5e-324),
        *(Decimal128("-1E-6000"), 0, Decimal128("1E-6176"), Decimal128("1E-400"), 5e-324, 0.1 - 2e-17),
        *(
            Decimal128("0.09999999999999999999"),
            Decimal128("0.1"),
            0.1,
            Decimal128("0.1000000000000000056"),
            1,
        ),
        *(2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1, 2.0**63, 1.7976931348623157e308, Decimal128("1E+309")),
        *(Decimal128("9.000000000000000000000000000000000E+6144"), math.inf),
    ]
    made = [MONGO_KEYS.encode(number) for number in rising]
    assert made == sorted(set(made))


@named
def test_every_value_is_read_back(keys: KeyEncoding, values: Any) -> None:
    """What comes back has the same key: types that are equal to the API may have become one."""

    @settings(max_examples=250, deadline=None)
    @given(values.nested(values.scalars))
    def read_back(value: Any) -> None:
        key = keys.encode(value)
        found = keys.decode(key)
        assert keys.encode(found) == key
        if KINDS[type(value)] not in keys.profile.ranks:
            assert keys.encode(to_stored(value)) == key

    read_back()


def test_scalars_of_one_form_are_read_back_as_they_are(values: Any) -> None:
    strategy = st.one_of(
        *(values.text, values.binary, values.object_id, values.date_time, values.timestamp, st.booleans()),
        *(st.none(), st.just(MinKey()), st.just(MaxKey())),
    )

    @given(strategy, values.int64, values.doubles)
    def same(value: Any, integer: int, double: float) -> None:
        assert MONGO_KEYS.decode(MONGO_KEYS.encode(value)) == value
        assert decode_number(encode_number(integer), 0) == (integer, len(encode_number(integer)))
        found, _ = decode_number(encode_number(double), 0)
        assert found == double or (found != found and double != double)

    same()


def test_numbers_are_read_back_to_the_last_digit(values: Any) -> None:
    @given(values.decimal128 | values.big_decimal | values.varint)
    def same(number: Any) -> None:
        given_number = getattr(number, "number", None)
        wanted = number.value if given_number is None else given_number
        found, _ = decode_number(encode_number(wanted), 0)
        assert found == wanted or (found != found and wanted != wanted)

    same()


def test_typed_columns_are_read_back_one_after_the_other_in_both_directions(values: Any) -> None:
    """Clustering keys: no rank, some descending, concatenated."""
    strategy = st.one_of(values.typed_numbers, values.guid, values.time_uuid, values.cql_times, values.inet)

    @given(st.lists(st.tuples(strategy | values.binary | values.text, st.booleans()), max_size=4))
    def same(columns: list[tuple[Any, bool]]) -> None:
        made = [CQL_KEYS.encode(value) for value, _ in columns]
        joined = b"".join(
            descending(key) if is_falling else key for key, (_, is_falling) in zip(made, columns, strict=True)
        )
        start = 0
        for key, (value, is_falling) in zip(made, columns, strict=True):
            rest = descending(joined[start:]) if is_falling else joined[start:]
            found, end = CQL_KEYS.decode_at(rest, 0, KINDS[type(value)])
            assert CQL_KEYS.encode(found) == key
            assert type(found) is type(value)
            start += end
        assert start == len(joined)

    same()


def test_keys_of_several_values_compare_value_by_value(values: Any, mongo_oracle: Any) -> None:
    @given(*[st.tuples(values.mongo_scalars, values.mongo_scalars)] * 2)
    def compare(left: Any, right: Any) -> None:
        slow = sign(tuple(map(mongo_oracle.key, left)), tuple(map(mongo_oracle.key, right)))
        assert sign(MONGO_KEYS.encode_all(left), MONGO_KEYS.encode_all(right)) == slow

    compare()


def test_uuids_of_cql_compare_by_version_and_time() -> None:
    early = bytes.fromhex("ffffffff000010008000000000000000")
    late = bytes.fromhex("00000000000110008000000000000000")
    other = bytes.fromhex("00000000000040008000000000000000")
    made = [CQL_KEYS.encode(Guid(each)) for each in (early, late, other)]
    assert made == sorted(made)
    assert TABLE_KEYS.encode(Guid(early)) > TABLE_KEYS.encode(Guid(late))
    assert CQL_KEYS.encode(TimeUuid(early)) < CQL_KEYS.encode(TimeUuid(late))
    negative = early[:8] + bytes([0x80]) + bytes(7)
    positive = early[:8] + bytes([0x7F]) + bytes(7)
    assert CQL_KEYS.encode(TimeUuid(negative)) < CQL_KEYS.encode(TimeUuid(positive))


def test_binary_data_of_mongo_compares_by_length_first() -> None:
    one, two = Binary(b"\xff"), Binary(b"\x00\x00")
    assert MONGO_KEYS.encode(one) < MONGO_KEYS.encode(two)
    assert CQL_KEYS.encode(one) > CQL_KEYS.encode(two)
    assert MONGO_KEYS.encode(Binary(b"\xff", 4)) > MONGO_KEYS.encode(one)


def test_kinds_that_an_api_does_not_have_are_what_items_keep_for_them() -> None:
    assert NOSQL_KEYS.encode(Int64(5)) == NOSQL_KEYS.encode({"$t": 18, "$v": "5"})
    assert NOSQL_KEYS.encode([DateTime(0)]) == NOSQL_KEYS.encode([{"$t": 9, "$v": "0" * 20}])
    assert MONGO_KEYS.encode(Varint(5)) == MONGO_KEYS.encode({"$t": 64, "$v": "5"})


def test_any_bytes_are_a_key_or_a_value_error(values: Any) -> None:
    """And what is read has that key and no other."""

    @settings(max_examples=800, deadline=None)
    @given(
        st.sampled_from(ENCODINGS),
        st.sampled_from(Kind),
        st.binary(max_size=40) | st.lists(st.sampled_from([0, 1, 2, 3, 5, 255]), max_size=30).map(bytes),
    )
    def read(keys: KeyEncoding, kind: Kind, data: bytes) -> None:
        try:
            found = keys.decode(data, kind)
        except ValueError:
            return
        assert keys.profile.objects.name == "BY_NAME" or keys.encode(found) == data
        assert keys.encode(keys.decode(keys.encode(found), kind)) == keys.encode(found)

    read()


@named
def test_a_key_with_bytes_missing_or_added_is_refused(keys: KeyEncoding) -> None:
    key = keys.encode([{"a": [1, 2**53 + 1, "x"]}, True, None])
    for end in range(len(key)):
        with pytest.raises(ValueError):
            keys.decode(key[:end])
    with pytest.raises(ValueError):
        keys.decode(key + b"\x00")


def test_hostile_values_are_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    bomb = b"\x06" * 100_000
    for keys in ENCODINGS:
        with pytest.raises(RefusedValue):
            keys.encode(deep)
        with pytest.raises(ValueError):
            keys.decode(bomb, Kind.ARRAY)
    for number in (10**5000, -(10**5000), Decimal("1E+3000000000"), Decimal("1" * (DIGITS_MAX + 1))):
        with pytest.raises(RefusedValue):
            encode_number(number)
    assert encode_number(Decimal("1E+2000000000")) > encode_number(math.nextafter(math.inf, 0))
    assert decode_number(encode_number(Decimal("1E+2000000000")), 0)[0] == Decimal("1E+2000000000")
    with pytest.raises(RefusedValue):
        NOSQL_KEYS.encode(["x" * 9_000_000] * 3)
    with pytest.raises(RefusedValue):
        NOSQL_KEYS.encode(object())
    del deep


def test_an_object_id_sorts_between_binary_data_and_booleans() -> None:
    assert MONGO_KEYS.encode(Binary(b"\xff" * 9)) < MONGO_KEYS.encode(ObjectId(bytes(12)))
    assert MONGO_KEYS.encode(ObjectId(b"\xff" * 12)) < MONGO_KEYS.encode(False)
