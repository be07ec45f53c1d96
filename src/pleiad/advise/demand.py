"""The requests that keys are tried with, as columns.

A request is known by what its client knows: the whole item, its id and the key that the container has now, or the
values that a query demands of some paths. From that follows under any other key where it would have to go
(`pleiad.advise.routing`).

What it costs is kept in two parts, since a key changes only one of them: ``own_ru``, which is the same wherever the
items are, and ``visit_ru`` for each physical partition that it visits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

import numpy as np
from numpy.typing import NDArray

from pleiad import charge
from pleiad.advise.column import Hashes
from pleiad.advise.table import Table

REQUESTS_MAX = 100_000
VISIT_RU = charge.query(partitions=1).ru
LOOKUP_RU = charge.query(index_lookups=1).ru
SYSTEM_BYTES = 205
"""What the system properties add to an item in the results of a query."""

_LOOKED_UP_MAX = 4_000_000
"""Up to there a table of all numbers is smaller, and quicker, than sorting those that are there."""

NOT_ASKED = -2
"""No value of this path is demanded."""
UNKNOWN = -1
"""A value is demanded that no item of the table has."""
SEVERAL = -3
"""More than one value: see ``Demands.several``."""


class Way(IntEnum):
    """What the client of a request knows of the item."""

    ITEM = 0
    """All of it."""
    ID = 1
    """Its id, and the key that the container has now."""
    QUERY = 2
    """Values that are demanded of some paths."""
    FEED = 3
    """Nothing: all items are read."""


class Basis(StrEnum):
    """Where the requests come from."""

    RECORD = "record"
    QUERIES = "queries"
    UNIFORM = "uniform"


@dataclass(frozen=True)
class Demands:
    """Requests in the order of their time."""

    basis: Basis
    at: NDArray[np.float64]
    operations: tuple[str, ...]
    operation: NDArray[np.int16]
    """Which of those each request is."""
    ways: NDArray[np.int8]
    rows: NDArray[np.int64]
    """The row of its item; -1 where none is known."""
    own_ru: NDArray[np.float64]
    visit_ru: NDArray[np.float64]
    equals: Mapping[str, NDArray[np.int64]]
    """By path the code of the value that is demanded there, or one of the words above."""
    several: Mapping[tuple[int, str], tuple[int, ...]]
    """The codes where several values are demanded, by request and path."""
    ranges: Mapping[str, NDArray[np.bool_]]
    """By path whether it is compared in another way than by equality."""
    marks: Hashes
    """A number for each request that is equal for equal ids and values: the place of what is not in the table."""
    is_write: NDArray[np.bool_]
    known_paths: frozenset[str] = frozenset()
    """What a client that knows the id knows beside it: the paths of the key that the container has now."""
    batches: tuple[NDArray[np.int64], ...] = ()
    """The rows of the items of each transaction."""
    replaces: int = 0
    changes: Mapping[str, int] = field(default_factory=dict)
    """How many of the replaces changed the value at a path."""
    requests: int = 0
    """All that were given, of which those here are a part."""
    joined: int = 0
    """Those on one item that was found in the table."""
    joinable: int = 0
    refused: int = 0
    """Those that the record says were refused with 429."""
    is_hashed: bool = False

    @property
    def count(self) -> int:
        return len(self.at)

    @property
    def seconds(self) -> float:
        """How long they take: whole seconds, one at least."""
        return float(np.floor(self.at[-1] - np.floor(self.at[0])) + 1) if self.count else 1.0

    @property
    def second(self) -> NDArray[np.int64]:
        """The second of each request, from 0."""
        return (
            np.floor(self.at - np.floor(self.at[0])).astype(np.int64) if self.count else np.empty(0, np.int64)
        )

    def equals_at(self, path: str) -> NDArray[np.int64]:
        found = self.equals.get(path)
        return np.full(self.count, NOT_ASKED, np.int64) if found is None else found


def write_charges(table: Table) -> NDArray[np.float64]:
    """What it costs to create the item of each row."""
    width = int(table.terms.max(initial=0)) + 1
    return _for_each(table.sizes * width + table.terms, lambda pair: charge.create(*divmod(pair, width)).ru)


def read_charges(table: Table) -> NDArray[np.float64]:
    """What it costs to read the item of each row."""
    return _for_each(table.sizes, lambda size: charge.read(size).ru)


def lookup_charges(sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """What it costs to find an item of each size by a query, without the partitions that are visited."""
    return _for_each(sizes, lambda size: found_ru(1, size, size + SYSTEM_BYTES))


def _for_each(numbers: NDArray[np.int64], price: Callable[[int], float]) -> NDArray[np.float64]:
    """The price of each number, asked for once for all that are equal."""
    if int(numbers.max(initial=0)) > _LOOKED_UP_MAX:
        distinct, inverse = np.unique(numbers, return_inverse=True)
        return np.array([price(number) for number in distinct.tolist()], dtype=np.float64)[inverse]
    counts = np.bincount(numbers)
    prices = np.zeros(len(counts))
    distinct = np.flatnonzero(counts)
    prices[distinct] = [price(number) for number in distinct.tolist()]
    return prices[numbers]


def found_ru(items: int, bytes_loaded: int, bytes_returned: int, items_returned: int | None = None) -> float:
    """What the items of a query cost, without the partitions that are visited."""
    return charge.query(
        items_loaded=items,
        bytes_loaded=bytes_loaded,
        items_returned=items if items_returned is None else items_returned,
        bytes_returned=bytes_returned,
    ).ru
