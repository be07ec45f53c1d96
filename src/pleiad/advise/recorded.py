"""A workload record as requests to try keys with: joined with the items that it speaks of.

A request on one item is joined by id, and by the key that the container has now where ids repeat. Which paths that key
has is told by the container, or found out: those whose values in the joined items are the keys of the requests.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pleiad.advise.column import hashes_of
from pleiad.advise.demand import LOOKUP_RU, REQUESTS_MAX, VISIT_RU, Basis, Demands, Way
from pleiad.advise.gather import Gathering, key_values, mixed
from pleiad.advise.key import ID_PATH
from pleiad.advise.table import Table, codes_of
from pleiad.errors import PleiadError
from pleiad.keys.definition import split_path
from pleiad.workload.record import WRITES, Operation, Request

_WHOLE_ITEM = frozenset({Operation.CREATE, Operation.UPSERT, Operation.REPLACE})
_ONE_ITEM = _WHOLE_ITEM | {Operation.READ, Operation.PATCH, Operation.DELETE}
_TOGETHER = frozenset({Operation.BATCH, Operation.SCRIPT})
_FEEDS = frozenset({Operation.READ_FEED, Operation.CHANGE_FEED})
_CHANGING = frozenset({Operation.REPLACE, Operation.UPSERT, Operation.PATCH})
_REFUSED = 429
_FOUND_SHARE = 0.99
_LOOKED_AT = 5_000
SECONDS_MAX = 86_400
"""Requests are looked at second by second, and there is a number for each second and partition."""


@dataclass(frozen=True, slots=True)
class Record:
    """The requests of one container, the newest that are kept."""

    requests: tuple[Request, ...]
    seen: int
    container: str = ""
    others: tuple[str, ...] = ()
    """Containers of which requests were passed over."""
    old: int = 0
    """Requests that were passed over because they are more than `SECONDS_MAX` older than the newest."""
    problems: tuple[str, ...] = ()
    problem_count: int = 0


@dataclass(slots=True)
class RecordReader:
    """Takes requests of a record as they come."""

    container: str = ""
    """Requests of others are passed over; without it the first one met is taken."""
    _kept: deque[Request] = field(default_factory=lambda: deque(maxlen=REQUESTS_MAX))
    _seen: int = 0
    _others: Counter[str] = field(default_factory=Counter)

    def take(self, requests: Iterable[Request]) -> None:
        for request in requests:
            if request.container and not self.container:
                self.container = request.container
            if request.container and request.container != self.container:
                self._others[request.container] += 1
                continue
            self._seen += 1
            self._kept.append(request)

    def finish(self, problems: Sequence[str] = (), problem_count: int = 0) -> Record:
        newest = max((request.at for request in self._kept), default=0.0)
        requests = tuple(request for request in self._kept if request.at > newest - SECONDS_MAX)
        return Record(
            requests,
            self._seen,
            self.container,
            tuple(self._others),
            len(self._kept) - len(requests),
            tuple(problems),
            problem_count,
        )


def paths_in(record: Record) -> tuple[str, ...]:
    """The paths that its filters compare and its writes change, the most frequent first."""
    counts: Counter[str] = Counter()
    for request in record.requests:
        counts.update(request.equals.keys())  # as a mapping it would add up the values
        counts.update(request.ranges)
    return tuple([path for path, _ in counts.most_common() if _is_path(path)][:16])


def _is_path(path: str) -> bool:
    """Whether a path of a record, which anybody may have made, leads to a property."""
    try:
        split_path(path)
    except PleiadError:
        return False
    return True


def record_demands(record: Record, table: Table, key_paths: Sequence[str] = ()) -> Demands:
    """The requests of a record; ``key_paths`` are those of the container's key, where they are known."""
    requests = sorted(record.requests, key=lambda request: request.at)
    join = _Join(table, requests, key_paths)
    gathering = Gathering(table)
    means = _mean_charges(requests)
    batches: list[NDArray[np.int64]] = []
    joined = joinable = 0
    for number, request in enumerate(requests):
        row = join.row_of(number)
        if request.operation in _ONE_ITEM:
            joinable += 1
            joined += row >= 0
        if request.operation in _TOGETHER and len(request.members) > 1:
            rows = join.rows_of_members(number)
            if (rows >= 0).all():
                batches.append(rows)
            row = int(rows[0])
        _add(gathering, request, row, join, means)
    changed: Counter[str] = Counter()
    for request in requests:
        if request.operation in _CHANGING:
            changed.update(set(request.changed))
    return gathering.finish(
        Basis.RECORD,
        known_paths=frozenset(join.key_paths),
        batches=tuple(batches),
        replaces=sum(request.operation in _CHANGING for request in requests),
        changes=dict(changed),
        requests=record.seen,
        joined=joined,
        joinable=joinable,
        refused=sum(request.status == _REFUSED for request in requests),
        is_hashed=any(request.hashed for request in requests),
    )


def _mean_charges(requests: Iterable[Request]) -> dict[Operation, float]:
    sums: dict[Operation, tuple[float, int]] = {}
    for request in requests:
        if request.charge > 0 and request.status != _REFUSED:
            total, count = sums.get(request.operation, (0.0, 0))
            sums[request.operation] = (total + request.charge, count + 1)
    return {operation: total / count for operation, (total, count) in sums.items()}


def _add(
    gathering: Gathering, request: Request, row: int, join: _Join, means: dict[Operation, float]
) -> None:
    operation = request.operation
    # What was refused cost nothing, and was wanted all the same.
    ru = request.charge if request.charge > 0 else means.get(operation, 1.0)
    equals = dict(request.equals)
    way = Way.ID
    visit_ru = 0.0
    if operation in (Operation.QUERY, *_FEEDS):
        way = Way.QUERY if operation is Operation.QUERY else Way.FEED
        visited = request.partitions or 1
        visit_ru = VISIT_RU if operation is Operation.QUERY else 0.0
        asked = max((len(request.equals.get(path, ())) for path in join.key_paths), default=0)
        ru = max(0.0, ru - visit_ru * visited - (LOOKUP_RU * max(0, asked - visited) if asked > 1 else 0.0))
    elif operation in _WHOLE_ITEM or operation in _TOGETHER or operation is Operation.BULK:
        way = Way.ITEM
    if request.key is not None:
        for path, value in zip(join.key_paths, request.key, strict=False):
            equals.setdefault(path, (value,))
    if request.id:
        equals.setdefault(ID_PATH, (request.id,))
    gathering.add(
        at=request.at,
        operation=operation.value,
        way=way,
        mark=request.id or repr(request.key) + repr(sorted(request.equals.items())),
        own_ru=round(ru, 4),
        visit_ru=visit_ru,
        row=row,
        is_write=operation in WRITES,
        equals=equals,
        ranges=request.ranges,
    )


class _Join:
    """Finds the rows that requests speak of."""

    def __init__(self, table: Table, requests: Sequence[Request], key_paths: Sequence[str]) -> None:
        self._table = table
        self._requests = requests
        ids = table.ids
        self._row_of_id = np.full(max(1, ids.distinct), -1, np.int64)
        self._row_of_id[ids.codes[::-1]] = np.arange(table.rows)[::-1]
        self._is_unique = ids.distinct == table.rows
        self._by_id = self._rows_by_id([request.id for request in requests])
        self.key_paths = tuple(key_paths) or self._found_paths()
        if not self._is_unique and self.key_paths and all(path in table.columns for path in self.key_paths):
            self._by_id = self._rows_by_key(
                [request.id for request in requests], [request.key for request in requests]
            )

    def row_of(self, number: int) -> int:
        return int(self._by_id[number]) if self._requests[number].id else -1

    def rows_of_members(self, number: int) -> NDArray[np.int64]:
        request = self._requests[number]
        ids = [member.id for member in request.members]
        if self._is_unique or not self.key_paths:
            return self._rows_by_id(ids)
        return self._rows_by_key(ids, [member.key or request.key for member in request.members])

    def _rows_by_id(self, ids: Sequence[str]) -> NDArray[np.int64]:
        codes = codes_of(self._table.ids, hashes_of(list(ids)))
        return np.where(codes >= 0, self._row_of_id[codes], -1)

    def _rows_by_key(self, ids: Sequence[str], keys: Sequence[Any]) -> NDArray[np.int64]:
        columns = [self._table.columns[path] for path in self.key_paths]
        parts = [self._table.ids, *columns]
        of_rows = mixed([column.hashes[column.codes] for column in parts])
        order = np.argsort(of_rows)
        levels = [
            hashes_of(
                key_values([key[level] if key is not None and level < len(key) else "" for key in keys])
            )
            for level in range(len(columns))
        ]
        wanted = mixed([hashes_of(list(ids)), *levels])
        at = np.minimum(np.searchsorted(of_rows[order], wanted), len(order) - 1)
        return np.where(of_rows[order][at] == wanted, order[at], -1)

    def _found_paths(self) -> tuple[str, ...]:
        """The paths whose values in the items are the keys of the requests on them."""
        numbers = [
            number
            for number, request in enumerate(self._requests)
            if request.key and request.id and self._by_id[number] >= 0
        ][:_LOOKED_AT]
        if not numbers:
            return ()
        levels = len(self._requests[numbers[0]].key or ())
        rows = self._by_id[numbers]
        found: list[str] = []
        for level in range(levels):
            keys = [self._requests[number].key or () for number in numbers]
            wanted = hashes_of(key_values([key[level] if level < len(key) else "" for key in keys]))
            for path, column in self._table.columns.items():
                if path.startswith("/") and path not in found:
                    equal = column.hashes[column.codes[rows]] == wanted
                    if equal.mean() >= _FOUND_SHARE:
                        found.append(path)
                        break
            else:
                return ()
        return tuple(found)
