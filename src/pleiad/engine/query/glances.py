"""Glances at rows, evaluated many at a time: the way of queries that look at a few properties only.

A chunk of glances goes through one loop of generated code, which tells the document number of each row beside its
values. What comes of it is what the items come to one by one, and so is the charge: where some items together take more
steps than are part of loading one, each of them is watched, and an item that takes more sends its chunk, and all that
follow, the way of single items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from pleiad.charge import STEPS_FREE
from pleiad.engine.query.job import ROW_STEPS, QueryJob
from pleiad.errors import PleiadError
from pleiad.query.pace import NO_END, TooManyStepsError
from pleiad.store.glances import Glance, Glances, lacks_some
from pleiad.store.rows import Row
from pleiad.values.undefined import UNDEFINED

_ITEMS_OF_A_LOOK = 192
_STEPS_AT_ONCE = 20_000
"""About so many rows are held at once, however many an item gives."""
_ROWS_OF_A_KIND = 2
_SHARE_SIFTED = 2
"""Rows are sifted before they are evaluated one by one, as long as no more than one of so many passes."""
_LINE_END: Final = "\n"
_SIEVED_BYTES_MAX = 8_000
"""Up to this size evaluating an item up to a missing string takes no steps beyond those of loading it."""
_STEPS_MAX = STEPS_FREE - 16
"""Steps of an item in a loop over many, up to which alone, where it begins a loop, it takes none beyond loading."""

Loop = Callable[[Iterable[tuple[int, dict[str, Any]]]], Iterator[Any]]
"""Generated code over numbers and items."""


class Alike(NamedTuple):
    """Rows of which many are alike, and the first of each kind."""

    keys: Sequence[Any]
    counts: Mapping[Any, int]
    first: Glances

    @classmethod
    def of(cls, looked: Glances) -> Alike | None:
        """The kinds of rows; None where they are too many to be worth it."""
        keys = looked.keys
        counts = Counter(keys)
        if _ROWS_OF_A_KIND * len(counts) > len(keys):
            return None
        numbers: dict[Any, int] = {}
        for place, key in enumerate(keys):
            if key not in numbers:
                numbers[key] = looked.numbers[place]
                if len(numbers) == len(counts):
                    break
        texts = [list(counts)] if len(looked.texts) == 1 else list(zip(*counts, strict=True))
        return cls(keys, counts, Glances(list(numbers.values()), (), texts))

    def counted(self, kinds: int) -> tuple[int, dict[int, int]]:
        """How many rows are of the first kinds only, up to one that is not, and how many of them each first one is."""
        counts, taken = self.counts, len(self.keys)
        if kinds < len(counts):
            taken = self.keys.index(list(counts)[kinds])
            counts = Counter(self.keys[:taken])
        return taken, dict(zip(self.first.numbers, counts.values(), strict=False))


def row_of(glance: Glance, names: Sequence[str]) -> Row:
    """A row to look at: it has no more than its number, its size and these properties."""
    members = [
        b"%s:%s" % (orjson.dumps(name), text.encode())
        for name, text in zip(names, glance[2:], strict=True)
        if text is not None
    ]
    return Row(glance[0], b"", "", 0, 0, None, glance[1], 0, b"{%s}" % b",".join(members))


def evaluated(job: QueryJob, loop: Loop, looked: Glances) -> tuple[list[Any], int] | None:
    """What a loop gives for rows, until it is much or the time is over, and for how many of them.

    None when it takes single items.
    """
    pace = job.pace
    near = _sieved(job, looked)
    fewer = looked if near is None else looked.at(near)
    while job.takes_many:
        fed = _Fed(job, fewer)
        before = pace.steps
        try:
            rows = list(loop(fed.pairs()))
            if near is None:
                return rows, fed.taken
            return rows, near[fed.taken] if fed.taken < len(near) else len(looked)
        except TooManyStepsError:
            job.takes_many, job.items_watched = job.items_watched > 1, 1
        except (PleiadError, RecursionError):
            job.takes_many = False  # the item that is to blame fails, and those before it are paid for
        finally:
            pace.steps_max = NO_END
        pace.steps = before
        pace.look()
    return None


def places_found(job: QueryJob, looked: Glances) -> set[int] | None:
    """The numbers of the rows that pass the filter; None where that is not told beforehand."""
    block, loop = job.query.block, job.execution.placed
    is_filtered = block.where is not None or len(block.sources) > 1
    if loop is None or not is_filtered or block.is_grouped or not (job.sifts and job.takes_many):
        return None
    found = evaluated(job, loop, looked)
    if found is None or found[1] < len(looked):
        return None
    numbers = {row[0] for row in found[0]} if job.query.plain.sorts else set(found[0])
    job.sifts = _SHARE_SIFTED * len(numbers) <= len(looked)
    return numbers


def _sieved(job: QueryJob, looked: Glances) -> list[int] | None:
    """The places of the rows that may pass the filter; None for all, as where these are many."""
    if not job.needles or not looked.sizes or max(looked.sizes) > _SIEVED_BYTES_MAX:
        return None
    found: list[int] = []
    for number, needle in enumerate(job.needles):
        job.pace.worked(len(looked))
        places = needle.places(looked.lines(job.names.index(needle.name)))
        found = sorted(set(found).intersection(places)) if number else places
    if _SHARE_SIFTED * len(found) > len(looked):
        job.needles = ()
        return None
    return found


class _Fed:
    """The items of a loop, and what they take."""

    def __init__(self, job: QueryJob, looked: Glances) -> None:
        self._job = job
        self._looked = looked
        self.taken = 0

    def pairs(self) -> Iterator[tuple[int, dict[str, Any]]]:
        job, pace = self._job, self._job.pace
        numbers, texts = self._looked.numbers, self._looked.texts
        steps_end = pace.steps + _STEPS_AT_ONCE
        while self.taken < len(numbers):
            if self.taken and (pace.steps > steps_end or job.is_out_of_time()):
                return
            start, end = self.taken, self.taken + (_ITEMS_OF_A_LOOK if self.taken else 1)
            items = _items(job.names, [column[start:end] for column in texts])
            pace.worked(ROW_STEPS * len(items))
            pairs = list(zip(numbers[start:end], items, strict=True))
            for first in range(0, len(pairs), job.items_watched):
                pace.passing_bytes = 0
                pace.steps_max = pace.steps + _STEPS_MAX
                yield from pairs[first : first + job.items_watched]
                if pace.steps > pace.steps_max:
                    raise TooManyStepsError
            self.taken += len(items)


def _items(names: Sequence[str], columns: Sequence[Sequence[str | None]]) -> list[dict[str, Any]]:
    """Items of no more than the properties in some columns."""
    items: list[dict[str, Any]] = [{} for _ in columns[0]]
    for name, texts in zip(names, columns, strict=True):
        for item, value in zip(items, values_of(texts), strict=True):
            item[name] = value
        if None in texts:
            for item, text in zip(items, texts, strict=True):
                if text is None:
                    del item[name]
    return items


def values_at(looked: Glances, at: int, count: int) -> list[Any]:
    """The values of a property in the first rows, undefined for nothing."""
    if count == len(looked) and not lacks_some(lines := looked.lines(at)):
        values: list[Any] = orjson.loads(f"[{lines.replace(_LINE_END, ',')}]")
        return values
    return values_of(looked.texts[at][:count])


def values_of(texts: Sequence[str | None]) -> list[Any]:
    """The values of JSON texts, undefined for nothing."""
    try:
        values: list[Any] = orjson.loads(f"[{','.join(texts)}]")  # type: ignore[arg-type]
    except TypeError:  # some of them are nothing
        values = orjson.loads(f"[{','.join([text or 'null' for text in texts])}]")
        return [UNDEFINED if text is None else value for text, value in zip(texts, values, strict=True)]
    return values
