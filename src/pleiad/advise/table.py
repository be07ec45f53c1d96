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
from operator import attrgetter
from typing import Any

import numpy as np
import orjson
from numpy.random import default_rng
from numpy.typing import NDArray

from pleiad.advise.column import Column, ColumnBuilder, Hashes, mapped
from pleiad.advise.key import ID_PATH
from pleiad.advise.moment import UNITS, best_time_path, rolled_up, seconds_of
from pleiad.advise.paths import paths_of, values_at
from pleiad.index.policy import IndexingPolicy
from pleiad.index.terms import TermCounter
from pleiad.item.body import SYSTEM_PROPERTIES, strip_system
from pleiad.job.item_file.entry import Batch, Entry
from pleiad.keys.definition import split_path
from pleiad.limits import Limits, size_text
from pleiad.values.undefined import UNDEFINED

ROWS_MAX = 2_000_000
PROBLEMS_SHOWN = 20
_BATCH_ROWS = 1_000
_HEAD_ROWS = 5_000
_HEAD_BYTES = 64 * 1024 * 1024
"""The paths are found in so many items, or in what so many bytes hold."""
_LOOKED_AT = 2_000
"""Of those, so many are looked at for times."""
_TERMS_EXACT_ROWS = 10_000
_TERMS_OFTEN_ROWS = 100_000
_TERMS_STRIDE, _TERMS_STRIDE_LONG = 50, 500
"""Behind the first, the terms of one in so many items are counted, and the others follow from their size."""
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
    batches: Iterable[Batch],
    options: ReadingOptions,
    tell: Callable[[int], None] = lambda items: None,
    leave_out_but: Callable[[Iterable[str]], None] = lambda names: None,
) -> Table:
    """Reads all items; `tell` hears after each batch how many there were.

    `leave_out_but` hears which names are looked at, if from then on items may come without the others.
    """
    reader = _Reader(options)
    waiting = iter(batches)
    with _without_cycles():
        head, rows, size = [], 0, 0
        while rows < _HEAD_ROWS and size < _HEAD_BYTES and (batch := next(waiting, None)) is not None:
            head.append(batch)
            rows += len(batch.values)
            size += sum(map(len, batch.texts))
        reader.begin(head)
        if reader.needs_no_others:
            leave_out_but(reader.names)
        for batch in waiting:
            reader.take(batch)
            tell(reader.items)
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
        self._waiting_sizes: list[int] = []
        self._waiting_terms: list[int] = []
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
        self._add()
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

    def begin(self, head: list[Batch]) -> None:
        """Decides by the first items which paths are kept, and takes these items in."""
        items = [value for batch in head for value in batch.values]
        some = items[:_LOOKED_AT]
        self._is_compact = all(
            len(text) == len(orjson.dumps(value)) and "_rid" not in value
            for batch in head
            for text, value in zip(batch.texts, batch.values, strict=True)
        )
        self._paths = tuple(paths_of(items, (), True))
        found = paths_of(items, self._options.paths, self._options.finds_paths)
        told = {
            path: [value for value in values_at(some, split_path(path)) if value is not UNDEFINED]
            for path in (*paths_of(items, found, True), _TIME_PATH)
        }
        self._time_path = best_time_path(
            {path: each for path, each in told.items() if 2 * len(each) > len(some)}
        )
        rolled = [path for path, _ in self._options.rolled_up]
        if self._time_path is not None:
            rolled.append(self._time_path)
        self._cells = _Cells(found, list(dict.fromkeys(rolled)))
        for batch in head:
            self.take(batch)

    def take(self, batch: Batch) -> None:
        """Takes items in. None is held longer than it takes to look at it, so all are read into the same memory."""
        batch = self._without_the_too_large(batch)
        self._note(batch.problems)
        self._cells.wait(batch.values)
        sizes = map(len, batch.texts) if self._is_compact else map(self._size, batch.values)
        self._waiting_sizes.extend(sizes)
        self._waiting_terms.extend(self._count_terms(batch))
        if len(self._waiting_sizes) >= _BATCH_ROWS:
            self._add()

    def _count_terms(self, batch: Batch) -> list[int]:
        """The index terms of the first rows, later of one in so many, and -1 for the others."""
        terms = [-1] * len(batch.values)
        before = self._rows + len(self._waiting_terms)
        stride = 1 if before < _TERMS_EXACT_ROWS else _TERMS_STRIDE
        if before >= _TERMS_OFTEN_ROWS:
            stride = _TERMS_STRIDE_LONG
        for place in range(-before % stride, len(terms), stride):
            whole = _whole(batch, place) if self._is_compact else batch.values[place]
            terms[place] = self._counter.count(whole)
        return terms

    def _without_the_too_large(self, batch: Batch) -> Batch:
        bytes_max = self._options.limits.item_bytes
        if max(map(len, batch.texts), default=0) <= bytes_max:
            return batch
        kept = Batch([], [], [], list(batch.problems))
        for line, text, value in zip(batch.lines, batch.texts, batch.values, strict=True):
            if len(text) > bytes_max:
                problem = _too_large(len(text), self._options.limits)
                kept.problems.append(Entry(0, line, b"", None, problem))
                continue
            kept.lines.append(line)
            kept.texts.append(text)
            kept.values.append(value)
        return kept

    def _note(self, problems: list[Entry]) -> None:
        """What is wrong with entries."""
        self._problem_count += len(problems)
        room = PROBLEMS_SHOWN - len(self._problems)
        for entry in sorted(problems, key=attrgetter("line"))[:room]:
            self._problems.append(Problem(entry.line, entry.problem))

    def _add(self) -> None:
        """Puts the rows that wait into the columns."""
        sizes = np.array(self._waiting_sizes, dtype=np.int64)
        terms = np.array(self._waiting_terms, dtype=np.int64)
        self._waiting_sizes, self._waiting_terms = [], []
        if not len(sizes):
            return
        self._total_bytes += int(sizes.sum())
        kept = None
        if self._chance < 1.0:
            kept = self._random.random(len(sizes)) < self._chance
        self._cells.add(self.items + 1, kept)
        self.items += len(sizes)
        chosen = slice(None) if kept is None else kept
        self._sizes.append(sizes[chosen])
        self._terms.append(terms[chosen])
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
    """The columns while they are read."""

    def __init__(self, paths: Sequence[str], rolled_up_paths: Sequence[str]) -> None:
        self._steps = {path: split_path(path) for path in (*paths, *rolled_up_paths)}
        self._waiting: dict[str, list[Any]] = {path: [] for path in self._steps}
        self.names = {found[0] for found in self._steps.values()}
        """What items are looked at for."""
        self._builders = {path: ColumnBuilder(path) for path in paths}
        self._hours = {path: ColumnBuilder(f"hour({path})") for path in rolled_up_paths}

    def wait(self, items: Sequence[dict[str, Any]]) -> None:
        """Keeps the values of items until they are added."""
        for path, steps in self._steps.items():
            self._waiting[path].extend(values_at(items, steps))

    def add(self, first: int, kept: NDArray[np.bool_] | None) -> None:
        """Takes in the rows that wait, all or those that are kept; the number of the first names those with no id."""
        columns, self._waiting = self._waiting, {path: [] for path in self._steps}
        ids = columns[ID_PATH]
        if set(map(type, ids)) != {str}:
            # An import gives an id to what has none; so it is one of its own here as well.
            columns[ID_PATH] = [
                id if id.__class__ is str else f"item {number}" for number, id in enumerate(ids, first)
            ]
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


def _whole(batch: Batch, place: int) -> Any:
    """The item with all its names; as it came where its text has a number that only who left it out could pass over."""
    try:
        return orjson.loads(batch.texts[place])
    except orjson.JSONDecodeError:
        return batch.values[place]


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


def codes_of(column: Column, hashes: Hashes) -> NDArray[np.int64]:
    """The codes of values, given as hashes, in a column; -1 for those that are not there."""
    if not column.distinct:
        return np.full(len(hashes), -1, np.int64)
    at = np.minimum(np.searchsorted(column.hashes, hashes), column.distinct - 1)
    return np.where(column.hashes[at] == hashes, at, -1)


def _too_large(size_bytes: int, limits: Limits) -> str:
    return f"the item has {size_text(size_bytes)}, and a container takes {size_text(limits.item_bytes)}"
