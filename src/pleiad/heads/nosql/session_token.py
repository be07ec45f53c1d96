"""Session tokens: what a reader has seen, as clients carry it from answer to request.

A token is a comma list of `range:version#lsn`; the version is the number of the container. The old form `range:lsn` has
none. Clients of the protocol before `VECTORS_SINCE` read the old form only, and are answered with it; either is taken
from any client, and obeyed since `OBEYED_SINCE`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pleiad.engine.session import Seen, Session
from pleiad.heads.nosql.failures import BAD_SESSION_TOKEN

VECTORS_SINCE = b"2018-06-18"
"""The version of the protocol from which on tokens name a version beside the LSN."""

OBEYED_SINCE = b"2016-05-30"
"""A token of a client of an older protocol holds no read up, as on the service."""

_VECTOR = re.compile(r"([^:,\s]+):\d+#(\d+)")
_SHOWN_CHARS_MAX = 200
REMEMBERED_CHARS_MAX = 4_096
"""Longer tokens are read each time, so that what is remembered has a bound."""


def written(range_id: str, container_number: int, lsn: int) -> str:
    """The token of one physical partition."""
    return f"{range_id}:{container_number}#{lsn}"


def simple(token: str) -> str:
    """A token in the old form."""
    return _VECTOR.sub(r"\1:\2", token)


def read(token: str) -> Session:
    """What a token says; BAD_SESSION_TOKEN for a text that is none."""
    return remembered(token) if len(token) <= REMEMBERED_CHARS_MAX else _read(token)


def _read(token: str) -> Session:
    try:
        return tuple([_seen(part.strip()) for part in token.split(",")])
    except ValueError:
        raise BAD_SESSION_TOKEN(token=token[:_SHOWN_CHARS_MAX]) from None


remembered = lru_cache(maxsize=256)(_read)
"""The same of a short token: clients send one with every read until they have seen more."""


def _seen(part: str) -> Seen:
    range_id, colon, vector = part.partition(":")
    if not colon or not range_id:
        raise ValueError(part)
    fields = vector.split("#")
    if len(fields) < 2:
        return Seen(range_id, 0, int(fields[0]))
    return Seen(range_id, int(fields[0]), int(fields[1]))
