"""Replica paths: the part of an address that clients send back with every frame, and so the way to say what it is of.

There is one copy of everything here, and two addresses of it: clients read with strong consistency from secondaries
only, and would look for one before every such read.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

REPLICAS = ("1p", "2s")
"""The primary, and the same as a secondary."""
_PATH = "/apps/pleiad/services/nosql/partitions/{partition}/replicas/{replica}/"
_OF_RANGE = re.compile(rb"/apps/pleiad/services/nosql/partitions/([^/_]+)_([^/]+)/replicas/[^/]+/?")
_MASTER = "master"
PATH_BYTES_MAX = 256
"""A longer path is none of those that were written here; so what is remembered of strangers has a bound."""


class RangeAddress(NamedTuple):
    """A range of a container, as an address names it."""

    container_rid: str
    range_id: str


def written(address: RangeAddress | None, replica: str) -> str:
    """The path of a replica; without a range that of what belongs to no container."""
    partition = _MASTER if address is None else f"{address.container_rid}_{address.range_id}"
    return _PATH.format(partition=partition, replica=replica)


def read(path: bytes) -> RangeAddress | None:
    """The range that a path names; None for that of the master, or of a server that writes paths otherwise."""
    return remembered(path) if len(path) <= PATH_BYTES_MAX else None


@lru_cache(maxsize=1024)
def remembered(path: bytes) -> RangeAddress | None:
    """What is read of a path, once."""
    match = _OF_RANGE.fullmatch(path)
    return None if match is None else RangeAddress(match[1].decode("latin-1"), match[2].decode("latin-1"))
