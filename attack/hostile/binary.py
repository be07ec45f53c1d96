"""Bodies in binary JSON that stand for far more text than they have bytes: one string, and references to it."""

from __future__ import annotations

from attack.hostile.collisions import on_the_way_of_zero
from pleiad.wire.hybridrow.recordio import write_rows
from pleiad.wire.hybridrow.row import RowCodec
from pleiad.wire.hybridrow.schema import BATCH_OPERATION

_UNIT_BYTES = 1_000
_CREATE, _DOCUMENT = 0, 2


def _string(text: str) -> bytes:
    """A short string."""
    return bytes([0x80 + len(text)]) + text.encode()


def _sized(marker: int, content: bytes) -> bytes:
    """A container with its length in four bytes."""
    return bytes([marker]) + len(content).to_bytes(4, "little") + content


def item(id: str, pk: str, text_bytes: int) -> bytes:
    """An item that stands for about so much text."""
    named = ((b"\x82id", _string(id)), (b"\x82pk", _string(pk)))
    start = b"".join(name + value for name, value in named) + _string("pad")
    place = 6 + len(start) + 5  # behind the heads of the object and of the array
    first = b"\xc1" + _UNIT_BYTES.to_bytes(2, "little") + b"x" * _UNIT_BYTES
    references = (b"\xc4" + place.to_bytes(2, "little")) * (text_bytes // _UNIT_BYTES)
    return b"\x80" + _sized(0xEC, start + _sized(0xE4, first + references))


def item_of_places(id: str, pk: str, repetitions: int = 300_000) -> bytes:
    """An item of references to very many empty strings, whose places fall into one place of a dict."""
    way = on_the_way_of_zero(17, in_a_row=1)
    named = ((b"\x82id", _string(id)), (b"\x82pk", _string(pk)))
    start = b"".join(name + value for name, value in named) + _string("pad")
    strings = _string("") * (2 << 17)
    behind = len(start) + 20
    # Places are counted from a multiple of the size of that dict, so that they fall where the numbers do.
    places = [(number % (1 << 17)) or 1 << 17 for number in way]
    references = b"".join(b"\xc5" + place.to_bytes(3, "little") for place in places if place > behind)
    again = (b"\xc6" + (1 << 17).to_bytes(4, "little")) * repetitions
    return b"\x80" + _sized(0xEC, start + _sized(0xE4, strings + references + again))


def batch(pk: str, items: int, text_bytes: int) -> bytes:
    """A bulk request of so many such items, as the .NET client writes it."""
    codec = RowCodec(BATCH_OPERATION)
    return write_rows(
        codec.write(
            {
                "operationType": _CREATE,
                "resourceType": _DOCUMENT,
                "resourceBody": item(f"b{number}", pk, text_bytes),
            }
        )
        for number in range(items)
    )
