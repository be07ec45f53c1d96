"""The checksum that rows carry, so that a damaged one is found when it is read.

It is kept beside the row and covers all of it: the Adler-32 sum of the body, which costs a third of a CRC, goes into a
CRC of the figures, of the hash of the key and of the id, and that is combined with document number and LSN so that a
database may take the last two in when it gives them out. Every flipped bit is found, and every damage of one byte; of
larger ones all but one in billions. It is no protection against somebody who means to deceive.

Rows of the first versions have none, and are not verified until they are written again.
"""

from __future__ import annotations

from struct import Struct
from zlib import adler32, crc32

FIGURES = Struct("<qqqq")
NO_TTL = -(1 << 62)
LSN_SHIFT = 16
"""Where the LSN begins in a checksum; document number and LSN together fill its 63 bits."""


class DamagedRowError(Exception):
    """A stored row is not what was written."""


def content_checksum(
    epk: bytes, id: bytes, ts: int, ttl: int | None, size_bytes: int, terms: int, body: bytes
) -> int:
    """The part of a row's checksum that is known before the row has a number and an LSN."""
    figures = FIGURES.pack(ts, NO_TTL if ttl is None else ttl, size_bytes, terms)
    return crc32(figures + epk + id, adler32(body))


def row_checksum(content: int, number: int, lsn: int) -> int:
    """The checksum of a row with that content."""
    return content ^ number ^ lsn << LSN_SHIFT


def fields_checksum(*fields: str | bytes | int | None) -> int:
    """The checksum of a row of mixed fields: each is told by its type and length, so no two rows look alike."""
    # What repr gives has no lone surrogates: those are escaped.
    texts = [each if each.__class__ is bytes else repr(each).encode() for each in fields]
    return crc32(b"".join([b"%d;%b" % (len(text), text) for text in texts]))


def created_checksum(
    lsn: int, epk: bytes, position: int, ts: int, number: int, id: str, size_bytes: int, body: bytes
) -> int:
    """What `fields_checksum` gives for the version of a create, without a list of its fields.

    Every write of a container whose changes are remembered makes one.
    """
    first, place, moment, own, name, size = map(repr, (lsn, position, ts, number, id, size_bytes))
    head = f"{len(first)};{first}{len(epk)};"
    name_bytes = name.encode()
    middle = (
        f"{len(place)};{place}8;'create'1;0{len(moment)};{moment}{len(own)};{own}{len(name_bytes)};{name}"
        f"{len(size)};{size}{len(body)};"
    )
    return crc32(b"1;01;04;None", crc32(body, crc32(middle.encode(), crc32(epk, crc32(head.encode())))))
