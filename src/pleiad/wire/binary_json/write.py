"""Writes values as binary JSON, in the few forms that every client reads.

Integers, doubles, plain strings, and containers with length and count: what the Rust client writes itself, byte for
byte. No part refers to another, so the encoding of a value does not depend on where it stands.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from pleiad.wire.binary_json import DEPTH_MAX

_INT64 = struct.Struct("<Bq")
_UINT64 = struct.Struct("<BQ")
_DOUBLE = struct.Struct("<Bd")
_SIZES = ((0xFF, struct.Struct("<BBB")), (0xFFFF, struct.Struct("<BHH")), (0xFFFFFFFF, struct.Struct("<BII")))
_LITERAL_MAX = 31
_INT64_MIN = -(2**63)
_INT64_MAX = 2**63 - 1
_UINT64_MAX = 2**64 - 1
_SMALL = [bytes((number,)) for number in range(_LITERAL_MAX + 1)]
_SHORT = [bytes((0x80 + size,)) for size in range(64)]

_Names = dict[str, bytes]


class TooDeepError(ValueError):
    """The value nests deeper than readers of this form allow."""


def to_binary(value: Any) -> bytes:
    """The body of a JSON value as `orjson.loads` gives it."""
    return b"\x80" + _WRITERS[value.__class__](value, {}, 0)


def _string(value: str, names: _Names, depth: int) -> bytes:
    raw = value.encode()
    size = len(raw)
    if size < 64:
        return _SHORT[size] + raw
    if size <= 0xFF:
        return b"\xc0" + bytes((size,)) + raw
    if size <= 0xFFFF:
        return b"\xc1" + size.to_bytes(2, "little") + raw
    return b"\xc2" + size.to_bytes(4, "little") + raw


def _integer(value: int, names: _Names, depth: int) -> bytes:
    if 0 <= value <= _LITERAL_MAX:
        return _SMALL[value]
    if _INT64_MIN <= value <= _INT64_MAX:
        return _INT64.pack(0xCB, value)
    if 0 < value <= _UINT64_MAX:
        return _UINT64.pack(0xC7, value)
    return _DOUBLE.pack(0xCC, value)


def _double(value: float, names: _Names, depth: int) -> bytes:
    return _DOUBLE.pack(0xCC, value) if math.isfinite(value) else b"\xd0"


def _boolean(value: bool, names: _Names, depth: int) -> bytes:
    return b"\xd2" if value else b"\xd1"


def _null(value: None, names: _Names, depth: int) -> bytes:
    return b"\xd0"


def _array(value: list[Any], names: _Names, depth: int) -> bytes:
    if depth == DEPTH_MAX:
        raise TooDeepError(f"it nests deeper than {DEPTH_MAX} levels")
    depth += 1
    return _container(0xE5, [_WRITERS[each.__class__](each, names, depth) for each in value], len(value))


def _object(value: dict[str, Any], names: _Names, depth: int) -> bytes:
    if depth == DEPTH_MAX:
        raise TooDeepError(f"it nests deeper than {DEPTH_MAX} levels")
    depth += 1
    parts: list[bytes] = []
    for name, member in value.items():
        known = names.get(name)
        if known is None:
            # Names come again and again in the documents of a page.
            known = names[name] = _string(name, names, depth)
        parts += (known, _WRITERS[member.__class__](member, names, depth))
    return _container(0xED, parts, len(value))


def _container(marker: int, parts: list[bytes], count: int) -> bytes:
    """The entries behind the narrowest head that holds their length and count."""
    payload = b"".join(parts)
    size = max(len(payload), count)
    for width, (most, head) in enumerate(_SIZES):
        if size <= most:
            return head.pack(marker + width, len(payload), count) + payload
    raise TooDeepError("it is larger than four gigabytes")


_WRITERS: dict[type, Callable[[Any, _Names, int], bytes]] = {
    str: _string,
    int: _integer,
    float: _double,
    bool: _boolean,
    type(None): _null,
    list: _array,
    dict: _object,
}
