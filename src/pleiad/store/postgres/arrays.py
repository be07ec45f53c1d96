"""Arrays as PostgreSQL takes them in binary form, written in one go.

The driver looks at every element of a list to find out what it is; here it is known. A value made here goes to the
server as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct, pack

from psycopg.abc import AdaptContext
from psycopg.adapt import Dumper
from psycopg.pq import Format

_INT4, _INT8, _TEXT, _BYTEA = 23, 20, 25, 17
_LENGTH = Struct(">i")
_NULL = b"\xff\xff\xff\xff"
_TOGETHER_MAX = 256
"""How many integers are written at once; for each number of them the way to do it is kept."""


class Int4Array(bytes):
    """An `int[]`."""


class Int8Array(bytes):
    """A `bigint[]`."""


class TextArray(bytes):
    """A `text[]`."""


class ByteaArray(bytes):
    """A `bytea[]`."""


def int4s(values: Sequence[int]) -> Int4Array:
    """Integers of four bytes."""
    return Int4Array(_head(_INT4, len(values)) + _integers("ii", 4, values))


def int8s(values: Sequence[int | None]) -> Int8Array:
    """Integers of eight bytes, where None is NULL."""
    count = len(values)
    missing = values.count(None)
    if missing == 0:
        return Int8Array(_head(_INT8, count) + _integers("iq", 8, values))
    if missing == count:
        return Int8Array(_head(_INT8, count, has_null=True) + _NULL * count)
    written = [_NULL if value is None else pack(">iq", 8, value) for value in values]
    return Int8Array(_head(_INT8, count, has_null=True) + b"".join(written))


def texts(values: Sequence[str | None]) -> TextArray:
    """Texts, where None is NULL."""
    return TextArray(_strings(_TEXT, [None if value is None else value.encode() for value in values]))


def byteas(values: Sequence[bytes]) -> ByteaArray:
    """Strings of bytes."""
    return ByteaArray(_strings(_BYTEA, values))


def _strings(element: int, values: Sequence[bytes | None]) -> bytes:
    parts = [_head(element, len(values), has_null=None in values)]
    length = _LENGTH.pack
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            parts.append(length(len(value)))
            parts.append(value)
    return b"".join(parts)


@lru_cache(2048)
def _head(element: int, count: int, has_null: bool = False) -> bytes:
    """What stands before the elements: dimensions, whether one is NULL, their type, how many, and the first index."""
    if count == 0:
        return pack(">iii", 0, 0, element)
    return pack(">iiiii", 1, has_null, element, count, 1)


def _integers(form: str, length: int, values: Sequence[int | None]) -> bytes:
    if len(values) > _TOGETHER_MAX:
        pieces = (values[at : at + _TOGETHER_MAX] for at in range(0, len(values), _TOGETHER_MAX))
        return b"".join(_integers(form, length, piece) for piece in pieces)
    pairs: list[int | None] = [length] * (2 * len(values))
    pairs[1::2] = values
    return _struct(form, len(values)).pack(*pairs)


@lru_cache(2 * _TOGETHER_MAX)
def _struct(form: str, count: int) -> Struct:
    return Struct(">" + form * count)


class _AsItIs(Dumper):
    format = Format.BINARY

    def dump(self, obj: bytes) -> bytes:
        return obj


class _Int4ArrayDumper(_AsItIs):
    oid = 1007


class _Int8ArrayDumper(_AsItIs):
    oid = 1016


class _TextArrayDumper(_AsItIs):
    oid = 1009


class _ByteaArrayDumper(_AsItIs):
    oid = 1001


def register(context: AdaptContext) -> None:
    """Lets a connection send these arrays."""
    adapters = context.adapters
    adapters.register_dumper(Int4Array, _Int4ArrayDumper)
    adapters.register_dumper(Int8Array, _Int8ArrayDumper)
    adapters.register_dumper(TextArray, _TextArrayDumper)
    adapters.register_dumper(ByteaArray, _ByteaArrayDumper)
