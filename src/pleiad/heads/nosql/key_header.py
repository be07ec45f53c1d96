"""The partition key of a request: the JSON array of scalars that its header carries."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from pleiad import errors
from pleiad.heads.http import key_text
from pleiad.keys.value import KeyValue

NAME = b"x-ms-documentdb-partitionkey"
REMEMBERED_BYTES_MAX = 256
"""Longer headers are read each time, so that what is remembered has a bound."""


def of(headers: Mapping[bytes, bytes]) -> tuple[KeyValue, ...] | None:
    """The partition key of a request with these headers, or None when it names none."""
    header = headers.get(NAME)
    if header is None:
        return None
    return remembered(header) if len(header) <= REMEMBERED_BYTES_MAX else _of_header(header)


def _of_header(header: bytes) -> tuple[KeyValue, ...]:
    try:
        return key_text.read(header.decode())
    except UnicodeDecodeError:
        raise errors.BAD_PARTITION_KEY(reason="the header is not UTF-8.") from None


remembered = lru_cache(maxsize=4_096)(_of_header)
"""The same of a short header: clients ask for the same keys again and again."""
