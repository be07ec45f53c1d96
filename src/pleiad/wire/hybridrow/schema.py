"""What HybridRow rows hold: the types of values, the shape of a description, and the descriptions themselves.

A description is all the codec knows of a row. Columns stand in the order of their kinds (fixed, variable, sparse),
because presence bits and tokens are counted in that order.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class ColumnType(Enum):
    """A type that a described column may have: its code in sparse fields, and its struct format where it has one."""

    BOOL = (3, "")
    INT32 = (7, "i")
    UINT32 = (11, "I")
    FLOAT64 = (16, "d")
    UTF8 = (20, "")
    BINARY = (21, "")

    @property
    def code(self) -> int:
        return self.value[0]

    @property
    def struct_format(self) -> str:
        return self.value[1]


class Storage(Enum):
    """Where a column stands in a row."""

    FIXED = 0
    VARIABLE = 1
    SPARSE = 2


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    storage: Storage
    type: ColumnType
    nullable: bool = True
    """Whether a fixed or variable column may be absent, and so has a presence bit."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The description of one kind of row."""

    name: str
    id: int
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        order = [column.storage.value for column in self.columns]
        if order != sorted(order):
            raise ValueError(f"{self.name}: columns must stand in the order fixed, variable, sparse")
        for column in self.columns:
            has_format = bool(column.type.struct_format)
            if column.storage is Storage.FIXED and not has_format:
                raise ValueError(f"{self.name}: {column.name} has no fixed size")
            if column.storage is Storage.VARIABLE and column.type not in _WITH_LENGTH:
                raise ValueError(f"{self.name}: {column.name} has no length of its own")


_WITH_LENGTH = (ColumnType.UTF8, ColumnType.BINARY)

SPARSE_SIZES: Final = {
    1: 0,  # null
    2: 0,  # false
    3: 0,  # true
    5: 1,  # int8
    6: 2,  # int16
    7: 4,  # int32
    8: 8,  # int64
    9: 1,  # uint8
    10: 2,  # uint16
    11: 4,  # uint32
    12: 8,  # uint64
    15: 4,  # float32
    16: 8,  # float64
    17: 16,  # decimal
    18: 8,  # datetime
    19: 16,  # guid
    22: 16,  # float128
    23: 8,  # unix datetime
    24: 12,  # object id
}
"""The bytes of a sparse value by its type code, for stepping over fields that no description names."""
NULL_CODE: Final = 1
FALSE_CODE: Final = 2
VARINT_CODES: Final = (13, 14)
LENGTH_CODES: Final = (20, 21)


def _fixed(name: str, type: ColumnType, nullable: bool = True) -> Column:
    return Column(name, Storage.FIXED, type, nullable)


def _variable(name: str, type: ColumnType) -> Column:
    return Column(name, Storage.VARIABLE, type)


def _sparse(name: str, type: ColumnType) -> Column:
    return Column(name, Storage.SPARSE, type)


SEGMENT: Final = Schema("segment", 2147473648, (_fixed("length", ColumnType.INT32),))
"""The header of a segment. What may follow its length (a comment, descriptions) is stepped over by that length."""

RECORD: Final = Schema(
    "record",
    2147473649,
    (_fixed("length", ColumnType.INT32, nullable=False), _fixed("crc32", ColumnType.UINT32, nullable=False)),
)

BATCH_OPERATION: Final = Schema(
    "batch operation",
    2145473648,
    (
        _fixed("operationType", ColumnType.INT32),
        _fixed("resourceType", ColumnType.INT32),
        _variable("partitionKey", ColumnType.UTF8),
        _variable("effectivePartitionKey", ColumnType.BINARY),
        _variable("id", ColumnType.UTF8),
        _variable("binaryId", ColumnType.BINARY),
        _variable("resourceBody", ColumnType.BINARY),
        _sparse("indexingDirective", ColumnType.UTF8),
        _sparse("ifMatch", ColumnType.UTF8),
        _sparse("ifNoneMatch", ColumnType.UTF8),
        _sparse("timeToLiveInSeconds", ColumnType.INT32),
        _sparse("minimalReturnPreference", ColumnType.BOOL),
    ),
)

BATCH_RESULT: Final = Schema(
    "batch result",
    2145473649,
    (
        _fixed("statusCode", ColumnType.INT32),
        _fixed("subStatusCode", ColumnType.INT32),
        _variable("eTag", ColumnType.UTF8),
        _variable("resourceBody", ColumnType.BINARY),
        _sparse("retryAfterMilliseconds", ColumnType.UINT32),
        _sparse("requestCharge", ColumnType.FLOAT64),
    ),
)
