"""What a client asks for by a query: a page of it, within a scope."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pleiad.engine.query.resume import ResumePoint
from pleiad.keys.range import EpkRange
from pleiad.keys.value import KeyValue
from pleiad.partition.governor import NORMAL, Lane

TOKEN_BYTES_MAX = 4096
"""A token travels in a header line, and usual HTTP clients read lines of 8 KB."""


class QueryRequest(NamedTuple):
    """What a client asks: the text and its parameters, the scope, and the page."""

    text: str
    parameters: Mapping[str, Any]
    span: EpkRange
    items_max: int
    key: tuple[KeyValue, ...] | None = None
    is_confined: bool = False
    """The request names a key or a range itself."""
    may_fan_out: bool = True
    is_paged: bool = False
    """The client asked for pages of a size of its own, so it wants to go on by their tokens."""
    ends_with_partition: bool = False
    """A page that has results ends where its physical partition does, as those of the service's gateway do."""
    is_sized: bool = False
    """The client asked for pages of a size: a partition without results is none, which spares requests."""
    merges_values: bool = False
    """The client can also make one of equal results, and one aggregate of those of partitions."""
    merges_partitions: bool = False
    """The client can merge partitions by a query plan, and expects to for searches and aggregates in objects."""
    token: str = ""
    resume: ResumePoint | None = None
    token_bytes_max: int = TOKEN_BYTES_MAX
    multiplier: int = 1
    lane: Lane = NORMAL
