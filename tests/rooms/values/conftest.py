"""What the tests of values share: values of every type, and a slow, obvious order to hold the encoding against."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import strategies as st

from pleiad.values.scalars import (
    BigDecimal,
    Binary,
    Code,
    CodeWithScope,
    Date,
    DateTime,
    Decimal128,
    Duration,
    Float32,
    Guid,
    Inet,
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
    Varint,
)
from pleiad.values.undefined import UNDEFINED, Undefined

INTERESTING = (
    *(0, 1, -1, 2**31, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63), 10**18),
)
DOUBLES = (0.0, -0.0, 1.0, 0.1, 0.5, 2.0**53, 2.0**63, 5e-324, -5e-324, 1.7976931348623157e308, math.inf)
DECIMALS = (
    *("0", "-0", "1", "1.0", "1.00", "0.1", "0.10000000000000000555", "9007199254740993", "1E+3", "NaN"),
    *("Infinity", "-Infinity", "1E-6176", "9.999999999999999999999999999999999E+6144", "-1E+400", "1E-400"),
    *("-1E-400", "0.09999999999999999999", "9007199254740992.5", "1E+309", "2E-324", "5E-324"),
)


class Values:
    """Strategies for each type, and for anything that an API can hold."""

    int64 = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(INTERESTING)
    doubles = st.floats() | st.sampled_from(DOUBLES) | int64.map(float)
    # Dense around the doubles, where the digits behind them decide.
    near = st.tuples(doubles.filter(math.isfinite), st.integers(-9, 9), st.integers(-6, 6)).map(
        lambda each: Values.rounded(Decimal(each[0]) + each[1] * Decimal(10) ** each[2])
    )
    spread = st.tuples(st.integers(-(10**34) + 1, 10**34 - 1), st.integers(-6176, 6111)).map(
        lambda each: Decimal(f"{each[0]}E{each[1]}")
    )
    decimals = (near | spread | int64.map(Decimal)).map(str).filter(lambda text: Values.fits(text))
    decimal128 = (decimals | st.sampled_from(DECIMALS)).map(Decimal128)
    big_decimal = st.tuples(st.integers(-(10**60), 10**60), st.integers(-400, 400)).map(
        lambda each: BigDecimal(str(Decimal(f"{each[0]}E{each[1]}")))
    )
    varint = (st.integers(-(10**40), 10**40) | int64).map(Varint)
    float32 = st.floats(width=32).map(Float32)
    typed_numbers = st.one_of(
        *(int64.map(Int64), decimal128, big_decimal, varint, float32),
        *(st.integers(-(2**15), 2**15 - 1).map(SmallInt), st.integers(-128, 127).map(TinyInt)),
    )
    mongo_numbers = st.one_of(int64, doubles, int64.map(Int64), decimal128)
    text = st.text(
        st.characters(exclude_categories=["Cs"])
        | st.sampled_from("\0\x01a\x7f\xff\ud7ff\ue000\uffff\U00010000\U0010ffff"),
        max_size=6,
    )
    surrogate_text = st.text(st.sampled_from("\0a\ud800\udc00\udfff\ue000\U00010000"), max_size=5)
    data = st.binary(max_size=6) | st.lists(st.sampled_from([0, 1, 255]), max_size=5).map(bytes)
    binary = st.builds(Binary, data, st.sampled_from([0, 2, 4, 5, 128, 255]))
    guid_data = st.binary(min_size=16, max_size=16)
    guid = guid_data.map(Guid)
    time_uuid = guid_data.map(lambda each: TimeUuid(each[:6] + bytes([each[6] & 15 | 16]) + each[7:]))
    object_id = st.binary(min_size=12, max_size=12).map(ObjectId)
    date_time = (st.integers(-(2**63), 2**63 - 1) | st.integers(0, 10**12)).map(DateTime.of_milliseconds)
    timestamp = st.integers(0, 2**64 - 1).map(Timestamp)
    cql_times = st.one_of(
        st.integers(-(2**31), 2**31 - 1).map(Date), st.integers(0, 86_400_000_000_000 - 1).map(Time)
    )
    duration = st.builds(
        Duration,
        st.integers(-(2**31), 2**31 - 1),
        st.integers(-(2**31), 2**31 - 1),
        st.integers(-(2**63), 2**63 - 1),
    )
    inet = (st.binary(min_size=4, max_size=4) | guid_data).map(Inet)
    json_scalars = st.one_of(st.none(), st.booleans(), int64, doubles, text)
    mongo_scalars = st.one_of(
        *(json_scalars, mongo_numbers, binary, object_id, date_time, timestamp, st.just(UNDEFINED)),
        *(st.builds(Regex, text, text), st.builds(Code, text), st.just(MinKey()), st.just(MaxKey())),
    )
    scalars = st.one_of(
        mongo_scalars, typed_numbers, guid, time_uuid, cql_times, duration, inet, surrogate_text
    )
    names = text | st.sampled_from(["$t", "$v", "$s", "a"])

    @staticmethod
    def rounded(number: Decimal) -> Decimal:
        """The number with at most 34 digits."""
        return Decimal(f"{number:.33E}")

    @staticmethod
    def fits(text: str) -> bool:
        try:
            Decimal128(text)
        except ValueError:
            return False
        return True

    @classmethod
    def nested(cls, scalars: Any) -> Any:
        """Values with arrays, objects and code with a scope in each other."""
        return st.recursive(
            scalars,
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(cls.names, inner, max_size=3)
                | st.builds(CodeWithScope, cls.text, st.dictionaries(cls.names, inner, max_size=2))
            ),
            max_leaves=6,
        )

    @classmethod
    def nested_json(cls) -> Any:
        return st.recursive(
            cls.json_scalars,
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(cls.names, inner, max_size=3),
            max_leaves=6,
        )


MONGO_ORDER = (
    (MinKey,),
    (type(None), Undefined),
    (int, float, Int64, Decimal128),
    *((str,), (dict,), (list,), (Binary,), (ObjectId,), (bool,), (DateTime,), (Timestamp,), (Regex,)),
    *((Code,), (CodeWithScope,), (MaxKey,)),
)
NOSQL_ORDER = ((Undefined,), (type(None),), (bool,), (int, float), (str,), (list,), (dict,))


class Oracle:
    """The order of values said slowly: a key of plain Python values that compares as the API does."""

    def __init__(self, order: tuple[tuple[type, ...], ...], is_utf16: bool) -> None:
        self.rank_of = {kind: rank for rank, kinds in enumerate(order) for kind in kinds}
        self.is_utf16 = is_utf16

    def key(self, value: Any) -> tuple[Any, ...]:
        return (self.rank_of[type(value)], self._value(value))

    def number(self, value: Any) -> tuple[int, Any]:
        """Fractions are exact, and compare slowly."""
        number: Any = getattr(value, "number", getattr(value, "value", value))
        if number != number:
            return (0, 0)
        if number in (math.inf, -math.inf):
            return (1 if number < 0 else 3, 0)
        return (2, Fraction(number))

    def text(self, text: str) -> Any:
        return text.encode("utf-16-be", "surrogatepass") if self.is_utf16 else [ord(char) for char in text]

    def _value(self, value: Any) -> Any:
        match value:
            case bool():
                return value
            case int() | float() | Int64() | Decimal128():
                return self.number(value)
            case str():
                return self.text(value)
            case list():
                return [self.key(each) for each in value]
            case dict() if self.is_utf16:
                return sorted((self.text(name), self.key(each)) for name, each in value.items())
            case dict():
                return self._properties(value)
            case Binary(data=data, subtype=subtype):
                return (len(data), subtype, data)
            case Regex(pattern=pattern, options=options):
                return (self.text(pattern), self.text(options))
            case CodeWithScope(text=text, scope=scope):
                return (self.text(text), self._properties(scope))
            case ObjectId(data=data):
                return data
            case DateTime(ticks=ticks):
                return ticks
            case Timestamp(value=number):
                return number
            case Code(text=text):
                return self.text(text)
        return 0

    def _properties(self, value: dict[str, Any]) -> list[Any]:
        found = []
        for name, each in value.items():
            rank, key = self.key(each)
            found.append((rank, self.text(name), key))
        return found


@pytest.fixture(scope="session")
def values() -> type[Values]:
    return Values


@pytest.fixture(scope="session")
def mongo_oracle() -> Oracle:
    return Oracle(MONGO_ORDER, is_utf16=False)


@pytest.fixture(scope="session")
def nosql_oracle() -> Oracle:
    return Oracle(NOSQL_ORDER, is_utf16=True)
