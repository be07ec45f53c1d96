"""A digest of what a range of a segment holds: equal on two stores when rows and versions are equal.

A store keeps the JSON of an item and may drop the white space between its tokens, as SQLite does; the digest is of the
text without it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from pleiad.keys.range import EpkRange
from pleiad.store.move import PAGE_ROWS_FIRST, next_page_rows
from pleiad.store.rows import Row, Version
from pleiad.store.segments import Segment

_STRING_OR_SPACE = re.compile(rb'("[^"\\]*(?:\\.[^"\\]*)*")|[ \t\r\n]+')


@dataclass(frozen=True, slots=True)
class RangeDigest:
    """How many rows and versions a range holds, and a checksum over all of them in order."""

    items: int
    versions: int
    checksum: str


async def digest_range(segment: Segment, span: EpkRange, tell: Callable[[int], None]) -> RangeDigest:
    """Reads everything a range holds; `tell` learns of each page of rows how many they were."""
    # The text of a tuple tells where each value begins and ends, so no two rows look alike.
    digest = blake2b(digest_size=16)
    items = versions = 0
    async for rows in pages(segment, span, after=0):
        for row in rows:
            digest.update(repr((*row[:-1], compact(row.body))).encode())
        items += len(rows)
        tell(len(rows))
    async for page in version_pages(segment, span, after_lsn=0):
        for version in page:
            images = compact(version.body), compact(version.previous_body)
            digest.update(repr((*version._replace(body=b"", previous_body=b""), images)).encode())
        versions += len(page)
    return RangeDigest(items, versions, digest.hexdigest())


async def pages(segment: Segment, span: EpkRange, after: int) -> AsyncIterator[Sequence[Row]]:
    """The rows of a range behind a document number, in pages of a few megabytes, in the order of the numbers."""
    limit = PAGE_ROWS_FIRST
    while rows := await segment.scan(span, after, limit):
        yield rows
        after = rows[-1].number
        limit = next_page_rows(len(rows), sum(len(row.body) for row in rows))


async def version_pages(segment: Segment, span: EpkRange, after_lsn: int) -> AsyncIterator[Sequence[Version]]:
    """The versions of a range behind an LSN in their order; a page ends with the last version of an LSN."""
    limit = PAGE_ROWS_FIRST
    while page := await segment.versions(span, after_lsn, limit):
        yield page
        after_lsn = page[-1].lsn
        limit = next_page_rows(len(page), sum(len(each.body) + len(each.previous_body) for each in page))


def compact(body: bytes) -> bytes:
    """A JSON text without white space between its tokens."""
    return _STRING_OR_SPACE.sub(lambda match: match[1] or b"", body)
