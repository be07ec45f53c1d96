"""A value as bytes that compare as the values do, and back: for indexes, keys and ids.

Promised, for each profile: bytes are equal exactly when the values are equal to the API, they compare as the values
do, and no value's bytes begin another's. So keys of several values are their bytes one after the other, and
``descending`` turns the order round.

Layout: the rank as one byte (from 1; 0 is the end of an array or object), then

- numbers as in ``number``; strings, addresses and, with BYTES, binary data escaped and ended as in ``text``;
- booleans one byte; dates ten bytes, other counts of time eight or four, each with its sign bit turned;
- arrays their elements and 0; objects for each property rank, name and value, and 0;
- values of a typed profile without the rank, but not what is inside of them.

Nothing is written for null, undefined, MinKey and MaxKey behind their rank.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, Final

from pleiad.values import ranks
from pleiad.values.payloads import Decoder, Payload, decoders, number_as, payloads
from pleiad.values.ranks import Kind, ObjectOrder, Profile, TextOrder
from pleiad.values.refusal import RefusedValue
from pleiad.values.scalars import CodeWithScope
from pleiad.values.stored import DEPTH_MAX, to_stored
from pleiad.values.text import ended, read_ended, utf8_bytes, utf8_text, utf16_bytes, utf16_text

KEY_BYTES_MAX: Final = 16 * 1024 * 1024

_END: Final = b"\x00"
_INVERTED: Final = bytes(range(255, -1, -1))


def descending(key: bytes) -> bytes:
    """The key that sorts the other way round; of such a key the first one again."""
    return key.translate(_INVERTED)


class KeyEncoding:
    """The encoding of one profile."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._payloads: dict[Kind, Payload] = payloads(profile)
        self._decoders: dict[Kind, Decoder] = decoders(profile)
        self._scalars: dict[type, tuple[bytes, Payload]] = {
            each: (bytes([profile.ranks[kind] + 1]), self._payloads[kind])
            for each, kind in ranks.KINDS.items()
            if kind in self._payloads and kind in profile.ranks
        }
        self._array = bytes([profile.ranks[Kind.ARRAY] + 1])
        self._object = bytes([profile.ranks[Kind.OBJECT] + 1])
        # Kinds of one rank have one form, so the first of them stands for all.
        self._kinds: dict[int, Kind] = {}
        for kind, rank in profile.ranks.items():
            self._kinds.setdefault(rank + 1, kind)
        self._name = utf16_bytes if profile.text is TextOrder.UTF_16 else utf8_bytes
        self._name_of = utf16_text if profile.text is TextOrder.UTF_16 else utf8_text

    # -- to bytes --------------------------------------------------------------------------------

    def encode(self, value: Any) -> bytes:
        """The key of a value; RefusedValue for one that is nested too deeply, too long, or no value at all."""
        scalar = self._scalars.get(value.__class__)
        if scalar is not None:
            rank, payload = scalar
            key = payload(value) if self.profile.is_typed else rank + payload(value)
        else:
            parts = _Parts()
            rank = self._write(value, parts, 0)
            key = b"".join(parts.found) if self.profile.is_typed else rank + b"".join(parts.found)
        if len(key) > KEY_BYTES_MAX:
            raise _too_long()
        return key

    def encode_all(self, values: Iterable[Any]) -> bytes:
        """The key of several values, compared one after the other."""
        return b"".join([self.encode(value) for value in values])

    def _write(self, value: Any, parts: _Parts, depth: int) -> bytes:
        """Adds what stands behind the rank of a value, and gives the rank."""
        kind = value.__class__
        scalar = self._scalars.get(kind)
        if scalar is not None:
            parts.add(scalar[1](value))
            return scalar[0]
        if depth >= DEPTH_MAX:
            raise RefusedValue(f"A value is nested deeper than {DEPTH_MAX} levels.")
        if kind is list or kind is tuple:
            for element in value:
                place = parts.room()
                parts.found[place] = self._write(element, parts, depth + 1)
            parts.add(_END)
            return self._array
        if kind is dict:
            self._write_object(value, parts, depth)
            return self._object
        if kind is CodeWithScope and Kind.CODE_WITH_SCOPE in self.profile.ranks:
            parts.add(ended(self._name(value.text)))
            self._write_object(value.scope, parts, depth)
            return bytes([self.profile.ranks[Kind.CODE_WITH_SCOPE] + 1])
        if kind not in ranks.KINDS:
            raise RefusedValue(f"There is no value of the type {kind.__name__}.")
        self._write_object(to_stored(value), parts, depth)
        return self._object

    def _write_object(self, value: dict[str, Any], parts: _Parts, depth: int) -> None:
        properties: Iterable[tuple[bytes, Any]] = [
            (ended(self._name(name)), each) for name, each in value.items()
        ]
        if self.profile.objects is ObjectOrder.BY_NAME:
            properties = sorted(properties, key=lambda each: each[0])
        for name, each in properties:
            place = parts.room()
            parts.add(name)
            parts.found[place] = self._write(each, parts, depth + 1)
        parts.add(_END)

    # -- from bytes ------------------------------------------------------------------------------

    def decode(self, key: bytes, kind: Kind | None = None) -> Any:
        """A value with that key; ValueError when it is no key. A typed profile needs the kind.

        Types that share a key are one: numbers come back as ``number.decode_number`` says where no type is known,
        undefined as null where the API makes no difference, and a kind the API does not have as its stored form.
        """
        value, end = self.decode_at(key, 0, kind)
        if end != len(key):
            raise ValueError("bytes behind a key")
        return value

    def decode_at(self, data: bytes, start: int, kind: Kind | None = None) -> tuple[Any, int]:
        """The value of the key that begins there, and where it ends."""
        try:
            if not self.profile.is_typed:
                return self._read(data, start + 1, self._kind_at(data, start), 0)
            if kind is None:
                raise ValueError("what has no rank needs its kind")
            if kind in ranks.NUMBERS:
                return number_as(kind)(data, start)
            return self._read(data, start, kind if kind in self.profile.ranks else Kind.OBJECT, 0)
        except (IndexError, struct.error, UnicodeDecodeError) as error:
            raise ValueError("not a key") from error

    def _kind_at(self, data: bytes, start: int) -> Kind:
        kind = self._kinds.get(data[start])
        if kind is None:
            raise ValueError("no type has that rank")
        return kind

    def _read(self, data: bytes, start: int, kind: Kind, depth: int) -> tuple[Any, int]:
        decoder = self._decoders.get(kind)
        if decoder is not None:
            return decoder(data, start)
        if depth >= DEPTH_MAX:
            raise ValueError("a key that is nested too deeply")
        if kind is Kind.ARRAY:
            elements = []
            while data[start]:
                element, start = self._read(data, start + 1, self._kind_at(data, start), depth + 1)
                elements.append(element)
            return elements, start + 1
        if kind is Kind.CODE_WITH_SCOPE:
            text, start = read_ended(data, start)
            scope, start = self._read_object(data, start, depth)
            return CodeWithScope(self._name_of(text), scope), start
        return self._read_object(data, start, depth)

    def _read_object(self, data: bytes, start: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        while data[start]:
            kind = self._kind_at(data, start)
            name, start = read_ended(data, start + 1)
            value, start = self._read(data, start, kind, depth + 1)
            if found.setdefault(self._name_of(name), value) is not value:
                raise ValueError("a name that occurs twice")
        return found, start + 1


class _Parts:
    """The pieces of a key that is being written, with their size."""

    __slots__ = ("found", "left_bytes")

    def __init__(self) -> None:
        self.found: list[bytes] = []
        self.left_bytes = KEY_BYTES_MAX

    def add(self, part: bytes) -> None:
        self.left_bytes -= len(part)
        if self.left_bytes < 0:
            raise _too_long()
        self.found.append(part)

    def room(self) -> int:
        """The place of a rank that is known when its value is written."""
        self.add(_END)
        return len(self.found) - 1


def _too_long() -> RefusedValue:
    return RefusedValue(f"A value takes more than {KEY_BYTES_MAX} bytes as a key.")


NOSQL_KEYS: Final = KeyEncoding(ranks.NOSQL)
MONGO_KEYS: Final = KeyEncoding(ranks.MONGO)
TABLE_KEYS: Final = KeyEncoding(ranks.TABLE)
CQL_KEYS: Final = KeyEncoding(ranks.CQL)
GREMLIN_KEYS: Final = KeyEncoding(ranks.GREMLIN)
