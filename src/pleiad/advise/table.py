"""Items as columns: what advising keeps of a file or a container while it reads it once.

Invariants
- One pass, in the order in which items come; what is kept of an item is its size, its index terms, its time, and the
  codes of its values at the paths that may become keys.
- With more items than ``rows_max`` what is kept is a uniform sample of them: each time twice as many are there, every
  row stays with probability one half, and so does every later item.
- What cannot be read costs itself only, and is told with its line.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np
import orjson
from numpy.random import default_rng
from numpy.typing import NDArray

from pleiad.advise.column import Column, ColumnBuilder, Hashes, mapped
from pleiad.advise.key import ID_PATH
from pleiad.advise.moment import UNITS, best_time_path, rolled_up, seconds_of
from pleiad.errors import PleiadError
from pleiad.index.policy import IndexingPolicy
from pleiad.index.terms import TermCounter
from pleiad.item.body import SYSTEM_PROPERTIES, strip_system
from pleiad.job.item_file.entry import Entry
from pleiad.keys.definition import split_path
from pleiad.limits import Limits, size_text
from pleiad.values.undefined import UNDEFINED

ROWS_MAX = 2_000_000
PATHS_MAX = 24
PROBLEMS_SHOWN = 20
_BATCH_ROWS = 1_000
_HEAD_ROWS = 5_000
"""The paths are found in so many items."""
_HEAD_SHARE = 0.5
"""A path that fewer of them have is no candidate."""
_DEPTH_MAX = 4
_LOOKED_AT = 2_000
"""Of those, so many are looked at for times."""
_TERMS_EXACT_ROWS = 10_000
_TERMS_STRIDE = 50
"""Behind those, the terms of one in so many items are counted, and the others follow from their size."""
_TIME_PATH = "/_ts"
_HOUR_CHARACTERS = len("2025-01-31T12")


@dataclass(frozen=True, slots=True)
class Problem:
    """What was passed over, and where."""

    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line:,}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """What to keep of items."""

    rows_max: int = ROWS_MAX
    paths: tuple[str, ...] = ()
    """Paths that are read whether many items have them or not."""
    finds_paths: bool = True
    """Whether other paths are kept as well, those that many items have."""
    rolled_up: tuple[tuple[str, str], ...] = ()
    """Paths with units, beside those that are found."""
    indexing: Any = None
    """The indexing policy of the container; by default everything is indexed."""
    limits: Limits = field(default_factory=Limits)
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Table:
    """What was kept of the items of a source."""

    items: int
    """All that were read."""
    rows: int
    """Those that were kept."""
    total_bytes: int
    """Of all items, as they are stored."""
    sizes: NDArray[np.int64]
    terms: NDArray[np.int64]
    times: NDArray[np.float64] | None
    """In seconds since the epoch; not a number where an item has none."""
    order: NDArray[np.int64]
    """The rows in the order of their times, or as they were read."""
    time_path: str | None
    columns: dict[str, Column]
    paths: tuple[str, ...]
    """Where many of the first items have a scalar, kept or not."""
    problems: tuple[Problem, ...]
    problem_count: int

    @property
    def is_sample(self) -> bool:
        return self.rows < self.items

    @property
    def scale(self) -> float:
        """How many items a row stands for."""
        return self.items / self.rows if self.rows else 0.0

    @property
    def ids(self) -> Column:
        return self.columns[ID_PATH]


def read_table(
    entries: Iterable[Entry],
    options: ReadingOptions,
    tell: Callable[[int], None] = lambda items: None,
    leave_out_but: Callable[[Iterable[str]], None] = lambda names: None,
) -> Table:
    """Reads all items; `tell` hears after each batch how many there were.

    `leave_out_but` hears which names are looked at, if from then on items may come without the others.
    """
    reader = _Reader(options)
    waiting = iter(entries)
    with _without_cycles():
        reader.begin(list(islice(waiting, _HEAD_ROWS)))
        if reader.needs_no_others:
            leave_out_but(reader.names)
        reader.stream(waiting, tell)
        return reader.finish()


@contextmanager
def _without_cycles() -> Iterator[None]:
    """Items refer to nothing but what is in them, so looking for cycles among them takes time and finds none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Reader:
    """The state of a reading."""

    def __init__(self, options: ReadingOptions) -> None:
        self._options = options
        self._counter = TermCounter(IndexingPolicy.from_json(options.indexing, options.limits))
        self._random = default_rng(options.seed)
        self._chance = 1.0
        self._is_compact = False
        """Whether the texts of the file are as long as what is stored of them."""
        self._cells = _Cells((), ())
        self._time_path: str | None = None
        self._paths: tuple[str, ...] = ()
        self._sizes: list[NDArray[np.int64]] = []
        self._terms: list[NDArray[np.int64]] = []
        self._problems: list[Problem] = []
        self._problem_count = 0
        self._total_bytes = 0
        self._rows = 0
        self.items = 0

    @property
    def needs_no_others(self) -> bool:
        """Whether of an item that is not whole its text tells everything else."""
        return self._is_compact

    @property
    def names(self) -> Iterable[str]:
        return self._cells.names

    def finish(self) -> Table:
        sizes = np.concatenate(self._sizes) if self._sizes else np.empty(0, np.int64)
        terms = np.concatenate(self._terms) if self._terms else np.empty(0, np.int64)
        columns = self._cells.finish()
        times = _times_of(columns.get(f"hour({self._time_path})"))
        return Table(
            items=self.items,
            rows=self._rows,
            total_bytes=self._total_bytes,
            sizes=sizes,
            terms=_filled_terms(sizes, terms),
            times=times,
            order=np.arange(len(sizes)) if times is None else np.argsort(times, kind="stable"),
            time_path=self._time_path,
            columns=columns,
            paths=self._paths,
            problems=tuple(self._problems),
            problem_count=self._problem_count,
        )

    def begin(self, head: list[Entry]) -> None:
        """Decides by the first items which paths are kept, and takes these items in."""
        items = [each.value for each in head if each.value is not None]
        some = items[:_LOOKED_AT]
        self._is_compact = all(
            len(each.text) == len(orjson.dumps(each.value)) and "_rid" not in each.value
            for each in head
            if each.value is not None
        )
        self._paths = tuple(_paths_of(items, (), True))
        found = _paths_of(items, self._options.paths, self._options.finds_paths)
        told = {
            path: [value for value in _values(some, path) if value is not UNDEFINED]
            for path in (*_paths_of(items, found, True), _TIME_PATH)
        }
        self._time_path = best_time_path(
            {path: each for path, each in told.items() if 2 * len(each) > len(some)}
        )
        rolled = [path for path, _ in self._options.rolled_up]
        if self._time_path is not None:
            rolled.append(self._time_path)
        self._cells = _Cells(found, list(dict.fromkeys(rolled)))
        self.stream(head, lambda items: None)

    def stream(self, entries: Iterable[Entry], tell: Callable[[int], None]) -> None:
        """Takes items in. None is held longer than it takes to look at it, so all are read into the same memory."""
        row_of, count, size_of = self._cells.row_of, self._counter.count, self._size
        is_compact, bytes_max = self._is_compact, self._options.limits.item_bytes
        rows: list[tuple[Any, ...]] = []
        sizes: list[int] = []
        terms: list[int] = []
        stride = self._stride
        for entry in entries:
            item, size_bytes = entry.value, len(entry.text)
            if item is None or size_bytes > bytes_max:
                self._note(entry)
                continue
            rows.append(row_of(item))
            sizes.append(size_bytes if is_compact else size_of(item))
            terms.append(-1 if len(terms) % stride else count(_whole(entry) if is_compact else item))
            if len(rows) == _BATCH_ROWS:
                self._add(rows, sizes, terms)
                rows, sizes, terms = [], [], []
                stride = self._stride
                tell(self.items)
        self._add(rows, sizes, terms)

    @property
    def _stride(self) -> int:
        return 1 if self._rows < _TERMS_EXACT_ROWS else _TERMS_STRIDE

    def _note(self, entry: Entry) -> None:
        """What is wrong with an entry."""
        self._problem_count += 1
        if len(self._problems) < PROBLEMS_SHOWN:
            too_large = entry.value is not None
            text = _too_large(len(entry.text), self._options.limits) if too_large else entry.problem
            self._problems.append(Problem(entry.line, text))

    def _add(self, rows: list[tuple[Any, ...]], sizes: list[int], terms: list[int]) -> None:
        if not rows:
            return
        first = self.items + 1
        self.items += len(rows)
        self._total_bytes += sum(sizes)
        columns = self._cells.columns_of(rows, first)
        kept = None
        if self._chance < 1.0:
            kept = self._random.random(len(rows)) < self._chance
        self._cells.add(columns, kept)
        chosen = slice(None) if kept is None else kept
        self._sizes.append(np.array(sizes, dtype=np.int64)[chosen])
        self._terms.append(np.array(terms, dtype=np.int64)[chosen])
        self._rows += len(self._sizes[-1])
        if self._rows > (self._options.rows_max if self._chance < 1.0 else 2 * self._options.rows_max):
            self._thin()

    def _size(self, item: dict[str, Any]) -> int:
        """The bytes an item is stored in, without what the server adds to it."""
        if not SYSTEM_PROPERTIES.isdisjoint(item):
            strip_system(item)
        return len(orjson.dumps(item))

    def _thin(self) -> None:
        """Every row stays with probability one half."""
        if self._chance == 1.0:
            self._cells.begin_sketch()
        masks = [self._random.random(len(chunk)) < 0.5 for chunk in self._sizes]
        self._sizes = [chunk[mask] for chunk, mask in zip(self._sizes, masks, strict=True)]
        self._terms = [chunk[mask] for chunk, mask in zip(self._terms, masks, strict=True)]
        self._cells.thin(masks)
        self._rows = sum(map(len, self._sizes))
        self._chance /= 2


class _Cells:
    """The columns while they are read: names at the top of items in one look, deeper paths one by one."""

    def __init__(self, paths: Sequence[str], rolled_up_paths: Sequence[str]) -> None:
        steps = {path: split_path(path) for path in (*paths, *rolled_up_paths)}
        self._paths = [
            *(path for path in steps if len(steps[path]) == 1),
            *(path for path in steps if len(steps[path]) > 1),
        ]
        self._deep = [found for found in steps.values() if len(found) > 1]
        self._names = [steps[path][0] for path in self._paths if len(steps[path]) == 1]
        # A getter of one name gives the value itself, and not a row of one, so there is always a second.
        self._get = itemgetter("id", *self._names)
        self.names = {found[0] for found in steps.values()}
        """What items are looked at for."""
        self._builders = {path: ColumnBuilder(path) for path in paths}
        self._hours = {path: ColumnBuilder(f"hour({path})") for path in rolled_up_paths}

    def row_of(self, item: dict[str, Any]) -> tuple[Any, ...]:
        """The values of an item that are kept, behind one that is not."""
        try:
            row: tuple[Any, ...] = self._get(item)
        except KeyError:
            row = (None, *[item.get(name, UNDEFINED) for name in self._names])
        return row + tuple([_value_at(item, steps) for steps in self._deep]) if self._deep else row

    def columns_of(self, rows: list[tuple[Any, ...]], first: int) -> dict[str, list[Any]]:
        """The values of rows by path; the number of the first row names items that have no id."""
        columns = dict(zip(self._paths, map(list, list(zip(*rows, strict=True))[1:]), strict=True))
        ids = columns[ID_PATH]
        if set(map(type, ids)) != {str}:
            # An import gives an id to what has none; so it is one of its own here as well.
            columns[ID_PATH] = [
                id if id.__class__ is str else f"item {number}" for number, id in enumerate(ids, first)
            ]
        return columns

    def add(self, columns: dict[str, list[Any]], kept: NDArray[np.bool_] | None) -> None:
        """Takes in rows, all of them or those that are kept."""
        for path, hours in self._hours.items():
            hours.add(
                [v[:_HOUR_CHARACTERS] if v.__class__ is str else rolled_up(v, "hour") for v in columns[path]],
                kept,
            )
        for path, builder in self._builders.items():
            builder.add(columns[path], kept)

    def begin_sketch(self) -> None:
        for builder in self._builders.values():
            builder.begin_sketch()

    def thin(self, masks: Sequence[NDArray[np.bool_]]) -> None:
        for builder in (*self._builders.values(), *self._hours.values()):
            builder.thin(masks)

    def finish(self) -> dict[str, Column]:
        columns = {path: builder.finish() for path, builder in self._builders.items()}
        for path, builder in self._hours.items():
            hours = builder.finish()
            columns[hours.name] = hours
            for unit in UNITS[1:]:
                name = f"{unit}({path})"
                columns[name] = mapped(hours, name, partial(rolled_up, unit=unit))
        return columns


def _whole(entry: Entry) -> Any:
    """The item with all its names; as it came where its text has a number that only who left it out could pass over."""
    try:
        return orjson.loads(entry.text)
    except orjson.JSONDecodeError:
        return entry.value


def _times_of(hours: Column | None) -> NDArray[np.float64] | None:
    """The time of each row, as fine as its hour."""
    if hours is None:
        return None
    found = []
    for code in range(hours.distinct):
        text = str(hours.value_of(code)) if hours.has_name(code) else ""
        found.append(seconds_of(f"{text}:00" if len(text) == _HOUR_CHARACTERS else text))
    seconds = np.array([np.nan if each is None else each for each in found], dtype=np.float64)
    return seconds[hours.codes] if np.isfinite(seconds).any() else None


def _filled_terms(sizes: NDArray[np.int64], terms: NDArray[np.int64]) -> NDArray[np.int64]:
    """The terms of all rows; those that were not counted lie on the line through those that were."""
    counted = terms >= 0
    if counted.all():
        return terms
    known_sizes, known = sizes[counted].astype(np.float64), terms[counted].astype(np.float64)
    spread = known_sizes.var()
    slope = (
        float(np.mean((known_sizes - known_sizes.mean()) * (known - known.mean())) / spread)
        if spread
        else 0.0
    )
    fitted = known.mean() + slope * (sizes - known_sizes.mean())
    return np.where(counted, terms, np.maximum(1, np.rint(fitted))).astype(np.int64)


# -- paths -----------------------------------------------------------------------------------------


def _paths_of(items: Sequence[dict[str, Any]], wanted: Sequence[str], finds_others: bool) -> list[str]:
    """The id, the wanted paths, and the scalar paths that many items have, those with most values first."""
    if not finds_others:
        return list(dict.fromkeys([ID_PATH, *wanted]))
    counts: dict[tuple[str, ...], int] = {}
    for item in items:
        _count_paths(item, (), counts)
    often = [steps for steps, count in counts.items() if count >= _HEAD_SHARE * len(items)]
    distinct = {}
    for steps in often:
        path = _path_text(steps)
        if path is not None and path != ID_PATH:
            values = _at(items[:5000], steps)
            distinct[path] = len({value if value.__class__ is str else repr(value) for value in values})
    ordered = sorted(distinct, key=lambda path: (-min(distinct[path], 100), path.count("/"), path))
    return list(dict.fromkeys([ID_PATH, *wanted, *ordered]))[: max(PATHS_MAX, len(wanted) + 1)]


def _count_paths(item: dict[str, Any], above: tuple[str, ...], counts: dict[tuple[str, ...], int]) -> None:
    for name, value in item.items():
        if not above and name.startswith("_"):
            continue
        steps = (*above, name)
        if value.__class__ is dict:
            if len(steps) < _DEPTH_MAX:
                _count_paths(value, steps, counts)
        elif value.__class__ is not list:
            counts[steps] = counts.get(steps, 0) + 1


def _path_text(steps: tuple[str, ...]) -> str | None:
    """The path of these names, in quotes where they need them; None where no path can name them."""
    plain = "".join(f"/{name}" for name in steps)
    if any(not name or any(letter.isspace() for letter in name) for name in steps):
        return None
    quoted = "".join('/"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"' for name in steps)
    for text in (plain, quoted):
        try:
            if split_path(text) == steps:
                return text
        except PleiadError:
            continue
    return None


def _values(items: Sequence[dict[str, Any]], path: str) -> list[Any]:
    return _at(items, split_path(path))


def _value_at(item: dict[str, Any], steps: tuple[str, ...]) -> Any:
    value: Any = item
    for name in steps:
        if value.__class__ is not dict:
            return UNDEFINED
        value = value.get(name, UNDEFINED)
    return value


def _at(items: Sequence[dict[str, Any]], steps: tuple[str, ...]) -> list[Any]:
    """The values at a path; UNDEFINED where there is none."""
    name = steps[0]
    values = [item.get(name, UNDEFINED) for item in items]
    for name in steps[1:]:
        values = [value.get(name, UNDEFINED) if value.__class__ is dict else UNDEFINED for value in values]
    return values


def codes_of(column: Column, hashes: Hashes) -> NDArray[np.int64]:
    """The codes of values, given as hashes, in a column; -1 for those that are not there."""
    if not column.distinct:
        return np.full(len(hashes), -1, np.int64)
    at = np.minimum(np.searchsorted(column.hashes, hashes), column.distinct - 1)
    return np.where(column.hashes[at] == hashes, at, -1)


def _too_large(size_bytes: int, limits: Limits) -> str:
    return f"the item has {size_text(size_bytes)}, and a container takes {size_text(limits.item_bytes)}"
