"""What an advice is made from: the paths to read of items, and the requests that keys are tried with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pleiad.advise import queries, recorded
from pleiad.advise.advice import THROUGHPUT_DEFAULT, AdviceOptions
from pleiad.advise.demand import Demands
from pleiad.advise.key import Key, Kind
from pleiad.advise.queries import Asked, query_demands
from pleiad.advise.recorded import Record, record_demands
from pleiad.advise.table import ReadingOptions, Table
from pleiad.advise.uniform import uniform_demands
from pleiad.advise.words import counted
from pleiad.limits import Limits

_PATHS_TOLD = 5


def reading_options(
    candidates: Sequence[Key],
    asked: list[Asked] | None,
    record: Record | None,
    key_paths: Iterable[str],
    *,
    rows_max: int,
    indexing: Any,
    limits: Limits | None = None,
) -> ReadingOptions:
    """What to keep of items, so that keys can be tried with the requests that are known."""
    paths = [path for each in candidates for path in each.paths]
    paths += queries.paths_of(asked) if asked is not None else ()
    paths += recorded.paths_in(record) if record is not None else ()
    paths += key_paths
    return ReadingOptions(
        rows_max=rows_max,
        paths=tuple(dict.fromkeys(paths)),
        finds_paths=not candidates,
        rolled_up=tuple((each.paths[0], each.unit) for each in candidates if each.kind is Kind.ROLL_UP),
        indexing=indexing,
        limits=limits or Limits(),
    )


def demands_of(
    table: Table, asked: list[Asked] | None, record: Record | None, options: AdviceOptions
) -> tuple[Demands, tuple[str, ...]]:
    """The requests, and what a reader should know about them."""
    if asked is not None:
        return query_demands(asked, table), _unknown_paths(asked, table)
    if record is not None and record.requests:
        notes = [f"The workload record: {text}." for text in record.problems]
        if record.problem_count > len(record.problems):
            notes.append(f"The workload record has {record.problem_count:,} lines that are no requests.")
        if record.old:
            notes.append(
                f"{counted(record.old, 'request')} of more than a day before the newest were passed over: keys are "
                "tried with a day at most."
            )
        if record.others:
            shown = ", ".join(record.others[:3])
            notes.append(f"Requests on other containers than {record.container} were passed over: {shown}.")
        return record_demands(record, table, options.current), tuple(notes)
    return uniform_demands(table, options.throughput_ru or THROUGHPUT_DEFAULT), ()


def _unknown_paths(asked: list[Asked], table: Table) -> tuple[str, ...]:
    """What is told of paths that queries compare and no item has: they are misspelt, more often than not."""
    columns = [(path, table.columns.get(path)) for path in queries.paths_of(asked)]
    unknown = [path for path, each in columns if each and each.kinds.missing == each.kinds.total > 0]
    if not unknown:
        return ()
    shown = ", ".join(unknown[:_PATHS_TOLD])
    more = f" and {len(unknown) - _PATHS_TOLD:,} more" if len(unknown) > _PATHS_TOLD else ""
    return (f"No item has a value at {shown}{more}, which queries compare.",)
