"""Reads and writes the rows of one description.

A row is its version and schema id, presence bits, the fixed columns, the variable columns that are present, and the
sparse fields that are present, up to its end.

Invariants: a row is read to its last byte or refused; a column comes at most once; nothing is copied before its
length was found to lie within the row.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from pleiad.wire import MalformedError
from pleiad.wire.hybridrow.schema import (
    FALSE_CODE,
    LENGTH_CODES,
    NULL_CODE,
    SPARSE_SIZES,
    VARINT_CODES,
    Column,
    ColumnType,
    Schema,
    Storage,
)

Value = int | float | bool | str | bytes
Row = dict[str, Value]

VERSION = 0x81
HEADER_BYTES = 5
_VARUINT_BYTES_MAX = 10


class RowCodec:
    """The codec of one description; make one for each and keep it."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._start = struct.pack("<Bi", VERSION, schema.id)
        self._fixed = [column for column in schema.columns if column.storage is Storage.FIXED]
        self._variable = [column for column in schema.columns if column.storage is Storage.VARIABLE]
        self._fixed_struct = struct.Struct("<" + "".join(column.type.struct_format for column in self._fixed))
        nullable = [column for column in (*self._fixed, *self._variable) if column.nullable]
        self._bit = {column.name: 1 << place for place, column in enumerate(nullable)}
        self._presence_bytes = (len(nullable) + 7) // 8
        self._by_token = dict(enumerate(schema.columns, start=1))
        self._literal_from = len(schema.columns) + 1
        self._sparse = {
            column.name: (token, column)
            for token, column in self._by_token.items()
            if column.storage is Storage.SPARSE
        }

    # -- reading -----------------------------------------------------------------------------------

    @property
    def head_bytes(self) -> int:
        """The bytes up to the end of the fixed columns."""
        return HEADER_BYTES + self._presence_bytes + self._fixed_struct.size

    def read_head(self, data: bytes, start: int = 0) -> tuple[Row, int]:
        """The fixed columns of the row that starts there, and the presence bits of all columns."""
        if len(data) - start < self.head_bytes:
            raise MalformedError(f"the {self.schema.name} at byte {start} is cut off")
        if data[start : start + HEADER_BYTES] != self._start:
            raise MalformedError(f"a {self.schema.name} was expected at byte {start}")
        bits_at = start + HEADER_BYTES
        fixed_at = bits_at + self._presence_bytes
        presence = int.from_bytes(data[bits_at:fixed_at], "little")
        values = self._fixed_struct.unpack_from(data, fixed_at)
        present = {
            column.name: value
            for column, value in zip(self._fixed, values, strict=True)
            if not column.nullable or presence & self._bit[column.name]
        }
        return present, presence

    def read(self, data: bytes) -> Row:
        """The columns that a whole row has."""
        row, presence = self.read_head(data)
        place = self.head_bytes
        for column in self._variable:
            if presence & self._bit[column.name]:
                raw, place = _read_sized(data, place)
                row[column.name] = _text(raw) if column.type is ColumnType.UTF8 else raw
        while place < len(data):
            place = self._read_sparse(data, place, row)
        return row

    def _read_sparse(self, data: bytes, place: int, row: Row) -> int:
        """Takes one sparse field into the row, or steps over it when no column has its name."""
        code = data[place]
        token, place = _read_varuint(data, place + 1)
        if token >= self._literal_from:
            name_bytes, place = _cut(data, place, token - self._literal_from)
            _, column = self._sparse.get(_text(name_bytes), (0, None))
        else:
            column = self._by_token.get(token)
            if column is not None and column.storage is not Storage.SPARSE:
                raise MalformedError(f"the column {column.name} stands among the sparse fields")
        raw, place = _read_value(data, place, code)
        if column is None or code == NULL_CODE:
            return place
        if column.name in row:
            raise MalformedError(f"the field {column.name} occurs twice")
        row[column.name] = _sparse_value(column, code, raw)
        return place

    # -- writing -----------------------------------------------------------------------------------

    def write(self, row: Mapping[str, Value | None]) -> bytes:
        """A row with these columns; None means absent. Sparse fields stand in the order of the description."""
        presence = 0
        for name, bit in self._bit.items():
            if row.get(name) is not None:
                presence |= bit
        parts = [
            self._start,
            presence.to_bytes(self._presence_bytes, "little"),
            self._fixed_struct.pack(*(row.get(column.name) or 0 for column in self._fixed)),
        ]
        for column in self._variable:
            value = row.get(column.name)
            if value is not None:
                parts += _sized(value)
        for name, (token, column) in self._sparse.items():
            value = row.get(name)
            if value is not None:
                parts += _sparse_field(token, column, value)
        return b"".join(parts)


def _read_varuint(data: bytes, place: int) -> tuple[int, int]:
    """A number of seven bits a byte, lowest first, and the place behind it."""
    number = 0
    for shift in range(0, 7 * _VARUINT_BYTES_MAX, 7):
        if place >= len(data):
            raise MalformedError("a number at the end of a row is cut off")
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, place
    raise MalformedError("a number has more than 64 bits")


def _cut(data: bytes, place: int, size: int) -> tuple[bytes, int]:
    end = place + size
    if end > len(data):
        raise MalformedError(f"a value of {size} bytes reaches beyond the end of its row")
    return data[place:end], end


def _read_sized(data: bytes, place: int) -> tuple[bytes, int]:
    size, place = _read_varuint(data, place)
    return _cut(data, place, size)


def _read_value(data: bytes, place: int, code: int) -> tuple[bytes, int]:
    """The bytes of a sparse value of a type, and the place behind them."""
    if code in LENGTH_CODES:
        return _read_sized(data, place)
    if code in VARINT_CODES:
        return b"", _read_varuint(data, place)[1]
    size = SPARSE_SIZES.get(code)
    if size is None:
        raise MalformedError(f"a field has the type code {code}, which no row of this kind may have")
    return _cut(data, place, size)


def _sparse_value(column: Column, code: int, raw: bytes) -> Value:
    type = column.type
    if type is ColumnType.BOOL and code == FALSE_CODE:
        return False
    if code != type.code:
        raise MalformedError(f"the field {column.name} has the type code {code} and not {type.code}")
    if type is ColumnType.BOOL:
        return True
    if type.struct_format:
        value: int | float = struct.unpack("<" + type.struct_format, raw)[0]
        return value
    return _text(raw) if type is ColumnType.UTF8 else raw


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise MalformedError("a text is not UTF-8") from None


def _varuint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _sized(value: Value) -> list[bytes]:
    raw = value.encode() if isinstance(value, str) else value
    if not isinstance(raw, bytes):
        raise TypeError(f"{type(value).__name__} has no length to be written")
    return [_varuint(len(raw)), raw]


def _sparse_field(token: int, column: Column, value: Value) -> list[bytes]:
    code = column.type.code
    if column.type is ColumnType.BOOL and value is False:
        code = FALSE_CODE
    start = bytes((code,)) + _varuint(token)
    if column.type is ColumnType.BOOL:
        return [start]
    if column.type.struct_format:
        return [start, struct.pack("<" + column.type.struct_format, value)]
    return [start, *_sized(value)]
