"""Tokens: an id of two bytes, a type of one, and the value; and tables of the tokens that a frame may have.

A table is a class whose attributes are made by `token`; `tokens` makes them plain numbers and gives the codec of the
table, so that names, types, reading and writing come from one description.

Invariants
- A token of an unknown id is stepped over by its type; one of an unknown type is refused, for where it ends is unknown.
- A known token has its type or one of the same form (text and bytes, signed and unsigned), is read as its own type
  says, and comes once.
- Nothing is read behind the last byte, and values together are no longer than the bytes they came in.

The requests of a client differ in little but their values: the same tokens in the same order, most of the same length.
A table remembers such layouts by the length of the whole, and reads what has one of them in one step, to the same end.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import partial
from operator import itemgetter
from typing import Any

from pleiad.wire.rntbd import BadFrame, UnwritableToken

TokenValue = int | float | bytes
"""Text stays the bytes it came in, as does a Guid."""

STRING_BYTES_MAX = 0xFFFF
"""What a token of the type String or Bytes holds."""
TOKENS_MAX = 1_024
"""What a frame may have: several times what any table knows, so that reading one is short work."""

_HEAD_BYTES = 3
_LAYOUTS_MAX = 256
_LAYOUT_BYTES_MAX = 1_024
_UNLIKE_PER_LAYOUT = 8
"""To remember a layout costs as much as to read a few frames, so not each is remembered that is seen."""


class TokenType(IntEnum):
    """How the value of a token is written."""

    BYTE = 0x00
    USHORT = 0x01
    ULONG = 0x02
    LONG = 0x03
    ULONG_LONG = 0x04
    LONG_LONG = 0x05
    GUID = 0x06
    SMALL_STRING = 0x07
    STRING = 0x08
    ULONG_STRING = 0x09
    SMALL_BYTES = 0x0A
    BYTES = 0x0B
    ULONG_BYTES = 0x0C
    FLOAT = 0x0D
    DOUBLE = 0x0E
    INVALID = 0xFF
    """It has no value; there is no such token in any table."""


_NUMBERS = {
    TokenType.BYTE: "B",
    TokenType.USHORT: "H",
    TokenType.ULONG: "I",
    TokenType.LONG: "i",
    TokenType.ULONG_LONG: "Q",
    TokenType.LONG_LONG: "q",
    TokenType.FLOAT: "f",
    TokenType.DOUBLE: "d",
}
_LENGTHS = {
    TokenType.SMALL_STRING: "B",
    TokenType.STRING: "H",
    TokenType.ULONG_STRING: "I",
    TokenType.SMALL_BYTES: "B",
    TokenType.BYTES: "H",
    TokenType.ULONG_BYTES: "I",
}
_ALIKE = (
    {TokenType.ULONG, TokenType.LONG},
    {TokenType.ULONG_LONG, TokenType.LONG_LONG},
    {TokenType.SMALL_STRING, TokenType.SMALL_BYTES},
    {TokenType.STRING, TokenType.BYTES},
    {TokenType.ULONG_STRING, TokenType.ULONG_BYTES},
)
_GUID_BYTES = 16

Unpack = Callable[[bytes, int], tuple[Any]]


def _size_of(kind: TokenType) -> int:
    """The bytes of a value; where a length stands before it, the bytes of that, negative."""
    if kind in _NUMBERS:
        return struct.calcsize("<" + _NUMBERS[kind])
    if kind in _LENGTHS:
        return -struct.calcsize("<" + _LENGTHS[kind])
    return _GUID_BYTES if kind is TokenType.GUID else 0


_SIZES = {int(kind): _size_of(kind) for kind in TokenType}


class _Described(int):
    """A token's id, with its type, until its table is made."""

    kind: TokenType


def token(token_id: int, kind: TokenType) -> int:
    """A row of a table."""
    described = _Described(token_id)
    described.kind = kind
    return described


class _Layout:
    """The places of values in bytes that have known tokens of known lengths in a known order."""

    __slots__ = ("fields", "heads", "ids", "names", "texts", "values")

    def __init__(
        self,
        form: str,
        heads: tuple[bytes, ...],
        values: Sequence[tuple[int, int]],
        texts: Sequence[tuple[bytes, int]],
    ) -> None:
        self.fields = struct.Struct(form).unpack_from
        """What stands before each value, its length too, and the value, in turns."""
        self.heads = heads
        self.ids = [token_id for token_id, _ in values]
        self.values: Callable[[Any], Any] = itemgetter(*[place for _, place in values])
        self.names = [name for name, _ in texts]
        self.texts: Callable[[Any], Any] = itemgetter(*[place for _, place in texts])


class TokenTable:
    """The codec of one table."""

    def __init__(
        self,
        names: Mapping[str, int],
        types: Mapping[int, TokenType],
        apart: Mapping[int, bytes] | None = None,
    ) -> None:
        self.names = {token_id: name for name, token_id in names.items()}
        self.types = dict(types)
        # The three bytes before a value say all there is to know of it: one look-up finds it. What unpacks a number, or
        # the length before a value, is there too.
        self._known: dict[bytes, tuple[int, int, Unpack | None, bytes | None]] = {}
        apart = apart or {}
        self._packers: dict[int, Callable[..., bytes]] = {}
        self._layouts: dict[int, _Layout] = {}
        """By the number of bytes they are of."""
        self._unlike = 0
        """How many were read that had none of them."""
        for token_id, kind in types.items():
            number = _NUMBERS.get(kind) or _LENGTHS.get(kind)
            unpack = None if number is None else struct.Struct("<" + number).unpack_from
            for sent_as in next((alike for alike in _ALIKE if kind in alike), {kind}):
                description = (token_id, _SIZES[kind], unpack, apart.get(token_id))
                self._known[struct.pack("<HB", token_id, sent_as)] = description
            self._packers[token_id] = _packer(token_id, kind)

    def with_texts_apart(self, apart: Mapping[int, bytes]) -> TokenTable:
        """The same table, whose `read` puts the texts that have a name here apart, under that name."""
        if any(self.types[token_id] not in _LENGTHS for token_id in apart):
            raise ValueError("only texts can be read apart")
        return TokenTable({name: token_id for token_id, name in self.names.items()}, self.types, apart)

    # -- reading -----------------------------------------------------------------------------------

    def read(self, data: bytes, at: int, texts: dict[bytes, bytes] | None = None) -> dict[int, TokenValue]:
        """The known tokens from a place to the end of the bytes; what is read apart is put into `texts`."""
        texts = {} if texts is None else texts
        layout = self._layouts.get(len(data) - at)
        if layout is not None:
            fields = layout.fields(data, at)
            if fields[::2] == layout.heads:
                texts.update(zip(layout.names, layout.texts(fields), strict=True))
                return dict(zip(layout.ids, layout.values(fields), strict=True))
        found = self._read_each(data, at, texts)
        self._unlike += 1
        if self._unlike % _UNLIKE_PER_LAYOUT == 0 and len(data) <= _LAYOUT_BYTES_MAX:
            self._remember(data, at)
        return found

    def _read_each(self, data: bytes, at: int, texts: dict[bytes, bytes]) -> dict[int, TokenValue]:
        """The same, one token after the other."""
        found: dict[int, TokenValue] = {}
        known = self._known.get
        end = len(data)
        count = unknown = 0
        try:
            for count in range(TOKENS_MAX + 1):  # noqa: B007 (how many there were is looked at below)
                if at >= end:
                    break
                value_at = at + 3
                description = known(data[at:value_at])
                if description is None:
                    at = self._step_over(data, at)
                    unknown += 1
                    continue
                token_id, size, unpack, name = description
                if unpack is None:
                    start, at = _extent(data, value_at, size)
                elif size < 0:
                    start = value_at - size
                    at = start + unpack(data, value_at)[0]
                else:
                    found[token_id] = unpack(data, value_at)[0]
                    at = value_at + size
                    continue
                if name is None:
                    found[token_id] = data[start:at]
                else:
                    texts[name] = data[start:at]
            else:
                raise BadFrame(f"a frame has more than {TOKENS_MAX} tokens")
        except (IndexError, struct.error):
            raise BadFrame(f"the tokens are cut off at byte {end}") from None
        if at > end:
            raise BadFrame(f"the last token ends at byte {at}, the tokens at byte {end}")
        if count - unknown != len(found) + len(texts):
            raise BadFrame("a token comes more than once")
        return found

    def _remember(self, data: bytes, at: int) -> None:
        """Keeps the layout of tokens that were found to be good, if all of them are known."""
        start, end, form = at, len(data), "<"
        heads: list[bytes] = []
        values: list[tuple[int, int]] = []
        texts: list[tuple[bytes, int]] = []
        while at < end:
            description = self._known.get(data[at : at + _HEAD_BYTES])
            if description is None:
                return
            token_id, size, _, name = description
            value_at, after = _extent(data, at + _HEAD_BYTES, size)
            form += f"{value_at - at}s{_NUMBERS.get(self.types[token_id]) or f'{after - value_at}s'}"
            place = 2 * len(heads) + 1
            heads.append(data[at:value_at])
            if name is None:
                values.append((token_id, place))
            else:
                texts.append((name, place))
            at = after
        if len(values) < 2 or len(texts) < 2:  # one place alone is not given as a tuple
            return
        if len(self._layouts) >= _LAYOUTS_MAX:
            self._layouts.clear()
        self._layouts[end - start] = _Layout(form, tuple(heads), values, texts)

    def _step_over(self, data: bytes, at: int) -> int:
        """Where a token of an id that is not known ends."""
        token_id, kind = struct.unpack_from("<HB", data, at)
        if token_id in self.types:
            wanted = self.types[token_id].name
            raise BadFrame(f"the token {token_id:04X} at byte {at} has the type {kind:02X} and not {wanted}")
        if kind not in _SIZES:
            raise BadFrame(f"the token {token_id:04X} at byte {at} has the unknown type {kind:02X}")
        return _extent(data, at + _HEAD_BYTES, _SIZES[kind])[1]

    # -- writing -----------------------------------------------------------------------------------

    def write(self, tokens: Mapping[int, TokenValue]) -> bytes:
        """Tokens as bytes, in the order they are given."""
        packers = self._packers
        try:
            return b"".join([packers[token_id](value) for token_id, value in tokens.items()])
        except (KeyError, struct.error, TypeError, OverflowError):
            raise self._unwritable(tokens) from None

    def _unwritable(self, tokens: Mapping[int, TokenValue]) -> UnwritableToken:
        """Which token it was: its name and the length of its value, never the value."""
        for token_id, value in tokens.items():
            if token_id not in self._packers:
                return UnwritableToken(f"there is no token {token_id:04X}")
            try:
                self._packers[token_id](value)
            except (struct.error, TypeError, OverflowError):
                size = f" of {len(value)} bytes" if isinstance(value, bytes) else ""
                kind = self.types[token_id].name
                return UnwritableToken(f"{self.names[token_id]}, a {kind}, cannot hold its value{size}")
        return UnwritableToken("the tokens changed while they were written")


def tokens(described: type) -> TokenTable:
    """The codec of a table; its class has plain numbers from now on."""
    rows = {name: row for name, row in vars(described).items() if isinstance(row, _Described)}
    types = {int(row): row.kind for row in rows.values()}
    if len(types) != len(rows):
        raise ValueError(f"{described.__name__} gives a number twice")
    names = {name: int(row) for name, row in rows.items()}
    for name, token_id in names.items():
        setattr(described, name, token_id)
    return TokenTable(names, types)


def _extent(data: bytes, at: int, size: int) -> tuple[int, int]:
    """Where a value begins and ends whose type has this size."""
    if size >= 0:
        return at, at + size
    start = at - size
    if start > len(data):
        raise IndexError
    return start, start + int.from_bytes(data[at:start], "little")


def _packer(token_id: int, kind: TokenType) -> Callable[..., bytes]:
    number = int(kind)
    if kind in _NUMBERS:
        return partial(struct.Struct("<HB" + _NUMBERS[kind]).pack, token_id, number)
    if kind in _LENGTHS:
        pack = struct.Struct("<HB" + _LENGTHS[kind]).pack
        return lambda value: pack(token_id, number, len(value)) + value
    head = struct.pack("<HB", token_id, number)

    def pack_guid(value: bytes) -> bytes:
        if len(value) != _GUID_BYTES:
            raise OverflowError
        return head + value

    return pack_guid
