"""The stored form: every value comes back to the letter, and nothing that looks like a tag is lost or fails."""

from __future__ import annotations

import json
import math
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pleiad.values import scalars
from pleiad.values.refusal import RefusedValue
from pleiad.values.scalars import (
    Binary,
    DateTime,
    Decimal128,
    Duration,
    Float32,
    Guid,
    Int64,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
    SmallInt,
    Time,
    Timestamp,
    TimeUuid,
    TinyInt,
)
from pleiad.values.stored import DEPTH_MAX, from_stored, to_stored
from pleiad.values.undefined import UNDEFINED


def to_the_letter(value: Any) -> Any:
    """A form in which 1, 1.0 and true differ, as do the zeros, and NaN is NaN."""
    if isinstance(value, dict):
        return [(name, to_the_letter(each)) for name, each in value.items()]
    if isinstance(value, list | tuple):
        return [to_the_letter(each) for each in value]
    return repr(value)


def test_every_value_is_read_back_to_the_letter_through_json(values: Any) -> None:
    @settings(max_examples=500, deadline=None)
    @given(values.nested(values.scalars))
    def same(value: Any) -> None:
        stored = to_stored(value)
        assert to_the_letter(from_stored(stored)) == to_the_letter(value)
        if has_surrogates(value):  # no item is stored with them
            return
        assert to_the_letter(from_stored(orjson.loads(orjson.dumps(stored)))) == to_the_letter(value)
        assert to_the_letter(from_stored(json.loads(json.dumps(stored)))) == to_the_letter(value)

    same()


def has_surrogates(value: Any) -> bool:
    return "\\ud" in repr(value)


def test_plain_json_is_stored_as_it_is(values: Any) -> None:
    finite = values.json_scalars.filter(lambda value: not isinstance(value, float) or math.isfinite(value))
    plain = st.recursive(
        finite,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(values.text.filter(lambda name: name != "$t"), inner, max_size=3)
        ),
    )

    @given(plain)
    def same(value: Any) -> None:
        assert to_the_letter(to_stored(value)) == to_the_letter(value)
        assert to_the_letter(from_stored(value)) == to_the_letter(value)

    same()


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (Guid(bytes(range(16))), {"$t": 0, "$v": "00010203-0405-0607-0809-0a0b0c0d0e0f"}),
        (math.inf, {"$t": 1, "$v": "Infinity"}),
        ({"$t": 1}, {"$t": 3, "$v": {"$t": 1}}),
        (Binary(b"\x00\xff"), {"$t": 5, "$v": "AP8="}),
        (Binary(b"\x00\xff", 4), {"$t": 5, "$v": "AP8=", "$s": 4}),
        (UNDEFINED, {"$t": 6, "$v": None}),
        (MinKey(), {"$t": -1, "$v": None}),
        (MaxKey(), {"$t": 127, "$v": None}),
        (ObjectId(bytes(range(12))), {"$t": 7, "$v": "000102030405060708090a0b"}),
        (DateTime.of_milliseconds(0), {"$t": 9, "$v": "00621355968000000000"}),
        (Regex("^a", "i"), {"$t": 11, "$v": {"pattern": "^a", "options": "i"}}),
        (Timestamp(5), {"$t": 17, "$v": "00000000000000000005"}),
        (Int64(-5), {"$t": 18, "$v": "-5"}),
        (Decimal128("1.00"), {"$t": 19, "$v": "1.00"}),
        (Float32(0.5), {"$t": 70, "$v": "0.5"}),
    ],
)
def test_the_codes_are_those_of_the_service_and_of_bson(value: Any, stored: Any) -> None:
    assert to_stored(value) == stored
    assert to_the_letter(from_stored(stored)) == to_the_letter(value)


@pytest.mark.parametrize(
    "given_object",
    [
        *(
            {"$t": 18},
            {"$t": 18, "$v": 5},
            {"$t": 18, "$v": "05"},
            {"$t": 18, "$v": "5", "x": 1},
            {"$t": None},
        ),
        *(
            {"$t": True, "$v": "NaN"},
            {"$t": 1.0, "$v": "NaN"},
            {"$t": 18, "$v": "9" * 30},
            {"$t": "18", "$v": "5"},
        ),
        *({"$t": 19, "$v": "1.0 "}, {"$t": 19, "$v": "sNaN"}, {"$t": 7, "$v": "00"}, {"$t": 9, "$v": "5"}),
        *({"$t": 5, "$v": "!"}, {"$t": 5, "$v": "AP8=", "$s": 0}, {"$t": 5, "$v": "AP8=", "$s": True}),
        *({"$t": 3, "$v": {"a": 1}}, {"$t": 3, "$v": 1}, {"$t": 99, "$v": 1}, {"$t": 6, "$v": 1}, {"$v": 1}),
        *(
            {"$t": 15, "$v": {"code": 1, "scope": {}}},
            {"$t": 15, "$v": {"code": "", "scope": []}},
            {"$t": 15, "$v": 0},
        ),
        *(
            {"$t": 69, "$v": {"months": 1.0, "days": 0, "nanoseconds": 0}},
            {"$t": 69, "$v": {}},
            {"$t": 11, "$v": []},
        ),
        *(
            {"$t": 0, "$v": "0" * 36},
            {"$t": 18, "$v": "9" * 5_000},
            {"$t": [], "$v": {}},
            {"$t": 64, "$v": "1_0"},
        ),
    ],
)
def test_an_object_that_only_looks_like_a_tag_is_the_object_it_is(given_object: Any) -> None:
    assert to_the_letter(from_stored(given_object)) == to_the_letter(given_object)
    again = from_stored(to_stored(from_stored(given_object)))
    assert to_the_letter(again) == to_the_letter(given_object)


def test_reading_never_fails_and_writing_gives_the_same_meaning(values: Any) -> None:
    scalars_of_tags = st.sampled_from(
        ["NaN", "5", "AP8=", "1.0", "0" * 24, "00621355968000000000", None, 5, True]
    )
    tags = st.fixed_dictionaries(
        {"$t": st.integers(-2, 20) | st.integers(60, 75) | st.sampled_from([127, 1.0, True, "5"])},
        optional={"$v": st.deferred(lambda: anything), "$s": st.integers(0, 300), "x": st.none()},
    )
    anything: Any = st.recursive(
        values.json_scalars | scalars_of_tags, lambda inner: st.lists(inner, max_size=2) | tags, max_leaves=5
    )

    @settings(max_examples=500, deadline=None)
    @given(anything | tags)
    def read(given_value: Any) -> None:
        value = from_stored(given_value)
        assert to_the_letter(from_stored(to_stored(value))) == to_the_letter(value)

    read()


def test_usual_dates_have_texts_in_their_order(values: Any) -> None:
    @given(*[st.integers(0, 10**20 - 1).filter(lambda ticks: ticks < 9 * 10**19)] * 2)
    def ordered(left: int, right: int) -> None:
        texts = [to_stored(DateTime(ticks))["$v"] for ticks in (left, right)]
        assert (texts[0] < texts[1]) == (left < right)
        assert len(texts[0]) == 20

    ordered()


def test_dates_reach_as_far_as_milliseconds_of_64_bits() -> None:
    for milliseconds in (-(2**63), -1, 0, 2**63 - 1):
        date = DateTime.of_milliseconds(milliseconds)
        assert date.milliseconds == milliseconds
        assert from_stored(to_stored(date)) == date
    with pytest.raises(RefusedValue):
        DateTime.of_milliseconds(2**63)


def made(scalar: Any, *arguments: Any) -> Any:
    """A scalar of what it is not made of."""
    return scalar(*arguments)


@pytest.mark.parametrize(
    "make",
    [
        *(
            lambda: Int64(2**63),
            lambda: Int64(True),
            lambda: made(Int64, 1.0),
            lambda: SmallInt(2**15),
            lambda: TinyInt(128),
        ),
        *(lambda: Float32(0.1), lambda: Float32(1e300), lambda: Float32(1), lambda: Decimal128("1" * 35)),
        *(
            lambda: Decimal128("1E+6112"),
            lambda: Decimal128("-NaN"),
            lambda: Decimal128("01"),
            lambda: Decimal128("x"),
        ),
        *(
            lambda: made(Decimal128, 1),
            lambda: scalars.BigDecimal("NaN"),
            lambda: scalars.BigDecimal("1E+3000000000"),
        ),
        *(lambda: scalars.Varint(10**4_096), lambda: Timestamp(-1), lambda: Time(86_400_000_000_000)),
        *(
            lambda: Duration(2**31, 0, 0),
            lambda: Guid(b"1"),
            lambda: TimeUuid(bytes(16)),
            lambda: made(ObjectId, "a" * 12),
        ),
        *(
            lambda: made(Binary, "a"),
            lambda: Binary(b"", 256),
            lambda: scalars.Inet(b"123"),
            lambda: made(Regex, "a", None),
        ),
        *(
            lambda: made(scalars.Code, 1),
            lambda: made(scalars.CodeWithScope, "", []),
            lambda: scalars.Date(2**31),
        ),
    ],
)
def test_a_scalar_out_of_its_range_is_refused(make: Any) -> None:
    with pytest.raises(RefusedValue):
        make()


def test_hostile_nesting_and_foreign_classes_are_refused() -> None:
    deep: Any = []
    for _ in range(DEPTH_MAX - 1):
        deep = [deep]
    assert from_stored(to_stored(deep)) == deep
    for _ in range(5_000):
        deep = [deep]
    scope: Any = {}
    for _ in range(5_000):
        scope = {"$t": scalars.CodeWithScope("", scope)}
    for refused in (deep, scope, object(), {"a": b"bytes"}, 2**64):
        with pytest.raises(RefusedValue):
            to_stored(refused)
    with pytest.raises(RefusedValue):
        from_stored(deep)
