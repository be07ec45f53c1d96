"""The order of types, for each API: which kinds of values it has, and where each stands.

Two kinds of one rank are compared by value, as the numbers of most APIs are. What an API has no type for it sees as
items keep it (``stored``): a tagged object. So no rank has a gap, and the NoSQL API orders a date of another API
where an index over the stored JSON puts it.

The numbers of NOSQL are in the entries of path indexes and in tokens: they never change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Any, Final

from pleiad.values import scalars
from pleiad.values.undefined import Undefined


class Kind(Enum):
    """The types of all APIs together."""

    MIN_KEY = auto()
    UNDEFINED = auto()
    NULL = auto()
    BOOLEAN = auto()
    INTEGER = auto()
    """a JSON integer"""
    DOUBLE = auto()
    INT64 = auto()
    DECIMAL128 = auto()
    SMALL_INT = auto()
    TINY_INT = auto()
    VARINT = auto()
    BIG_DECIMAL = auto()
    FLOAT32 = auto()
    STRING = auto()
    ARRAY = auto()
    OBJECT = auto()
    BINARY = auto()
    OBJECT_ID = auto()
    DATE_TIME = auto()
    TIMESTAMP = auto()
    REGEX = auto()
    CODE = auto()
    CODE_WITH_SCOPE = auto()
    GUID = auto()
    TIME_UUID = auto()
    INET = auto()
    DATE = auto()
    TIME = auto()
    DURATION = auto()
    MAX_KEY = auto()


NUMBERS: Final = (
    *(Kind.INTEGER, Kind.DOUBLE, Kind.INT64, Kind.DECIMAL128, Kind.SMALL_INT, Kind.TINY_INT),
    *(Kind.VARINT, Kind.BIG_DECIMAL, Kind.FLOAT32),
)
KINDS: Final[Mapping[type, Kind]] = MappingProxyType(
    {
        Undefined: Kind.UNDEFINED,
        type(None): Kind.NULL,
        bool: Kind.BOOLEAN,
        int: Kind.INTEGER,
        float: Kind.DOUBLE,
        str: Kind.STRING,
        list: Kind.ARRAY,
        tuple: Kind.ARRAY,
        dict: Kind.OBJECT,
        scalars.MinKey: Kind.MIN_KEY,
        scalars.Int64: Kind.INT64,
        scalars.Decimal128: Kind.DECIMAL128,
        scalars.SmallInt: Kind.SMALL_INT,
        scalars.TinyInt: Kind.TINY_INT,
        scalars.Varint: Kind.VARINT,
        scalars.BigDecimal: Kind.BIG_DECIMAL,
        scalars.Float32: Kind.FLOAT32,
        scalars.Binary: Kind.BINARY,
        scalars.ObjectId: Kind.OBJECT_ID,
        scalars.DateTime: Kind.DATE_TIME,
        scalars.Timestamp: Kind.TIMESTAMP,
        scalars.Regex: Kind.REGEX,
        scalars.Code: Kind.CODE,
        scalars.CodeWithScope: Kind.CODE_WITH_SCOPE,
        scalars.Guid: Kind.GUID,
        scalars.TimeUuid: Kind.TIME_UUID,
        scalars.Inet: Kind.INET,
        scalars.Date: Kind.DATE,
        scalars.Time: Kind.TIME,
        scalars.Duration: Kind.DURATION,
        scalars.MaxKey: Kind.MAX_KEY,
    }
)
"""The kind of each class; subclasses are not values."""


class TextOrder(Enum):
    """How strings compare."""

    UTF_8 = auto()
    """by code point"""
    UTF_16 = auto()
    """by code unit"""


class ObjectOrder(Enum):
    """What of an object counts."""

    AS_WRITTEN = auto()
    """its properties in their order"""
    BY_NAME = auto()
    """its properties, whatever their order"""


class BinaryOrder(Enum):
    """How bytes compare."""

    BYTES = auto()
    LENGTH_FIRST = auto()
    """by length, then subtype, then bytes"""


class GuidOrder(Enum):
    """How UUIDs compare."""

    BYTES = auto()
    VERSION_FIRST = auto()
    """by version, those of version 1 by their time, then bytes"""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The order of values that one API has."""

    name: str
    ranks: Mapping[Kind, int]
    """Where each kind stands, from 0; a kind that is not here is seen as its stored form."""
    orders_types: bool
    """Whether values of different ranks stand in one order; without it a comparison of two is no match."""
    text: TextOrder = TextOrder.UTF_16
    objects: ObjectOrder = ObjectOrder.BY_NAME
    binary: BinaryOrder = BinaryOrder.BYTES
    guids: GuidOrder = GuidOrder.BYTES
    is_typed: bool = False
    """Whether a schema says the type of each value, so that no rank is written before it."""

    def rank_of(self, kind: Kind) -> int:
        """Where a kind stands."""
        return self.ranks[kind if kind in self.ranks else Kind.OBJECT]

    def are_comparable(self, left: Any, right: Any) -> bool:
        """Whether one of the two can come before the other, or both be equal."""
        ranks = self.rank_of(KINDS[left.__class__]), self.rank_of(KINDS[right.__class__])
        return self.orders_types or ranks[0] == ranks[1]


def _in_order(*places: Kind | tuple[Kind, ...]) -> Mapping[Kind, int]:
    ranks: dict[Kind, int] = {}
    for rank, place in enumerate(places):
        ranks.update(dict.fromkeys(place if isinstance(place, tuple) else (place,), rank))
    return MappingProxyType(ranks)


UNDEFINED_RANK, NULL_RANK, BOOLEAN_RANK, NUMBER_RANK, STRING_RANK, ARRAY_RANK, OBJECT_RANK = range(7)
"""The ranks of NOSQL by name."""

NOSQL: Final = Profile(
    "nosql",
    _in_order(
        *(Kind.UNDEFINED, Kind.NULL, Kind.BOOLEAN, (Kind.INTEGER, Kind.DOUBLE)),
        *(Kind.STRING, Kind.ARRAY, Kind.OBJECT),
    ),
    orders_types=True,
)
MONGO: Final = Profile(
    "mongo",
    _in_order(
        *(Kind.MIN_KEY, (Kind.NULL, Kind.UNDEFINED)),
        (Kind.INTEGER, Kind.DOUBLE, Kind.INT64, Kind.DECIMAL128),
        *(Kind.STRING, Kind.OBJECT, Kind.ARRAY, Kind.BINARY, Kind.OBJECT_ID, Kind.BOOLEAN),
        *(Kind.DATE_TIME, Kind.TIMESTAMP, Kind.REGEX, Kind.CODE, Kind.CODE_WITH_SCOPE, Kind.MAX_KEY),
    ),
    orders_types=True,
    text=TextOrder.UTF_8,
    objects=ObjectOrder.AS_WRITTEN,
    binary=BinaryOrder.LENGTH_FIRST,
)
TABLE: Final = Profile(
    "table",
    _in_order(
        *(Kind.UNDEFINED, Kind.NULL, Kind.BOOLEAN, Kind.INTEGER, Kind.INT64, Kind.DOUBLE, Kind.STRING),
        *(Kind.GUID, Kind.DATE_TIME, Kind.BINARY, Kind.ARRAY, Kind.OBJECT),
    ),
    orders_types=False,
)
CQL: Final = Profile(
    "cql",
    _in_order(
        *(Kind.UNDEFINED, Kind.NULL, Kind.BOOLEAN, NUMBERS, Kind.STRING, Kind.BINARY, Kind.GUID),
        *(Kind.TIME_UUID, Kind.INET, Kind.DATE_TIME, Kind.DATE, Kind.TIME, Kind.DURATION, Kind.ARRAY),
        Kind.OBJECT,
    ),
    orders_types=False,
    text=TextOrder.UTF_8,
    guids=GuidOrder.VERSION_FIRST,
    is_typed=True,
)
GREMLIN: Final = Profile("gremlin", NOSQL.ranks, orders_types=False)
PROFILES: Final = (NOSQL, MONGO, TABLE, CQL, GREMLIN)
