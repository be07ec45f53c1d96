"""A workload for items of which no request is known: each is written once in its order, and read as often.

Writes come in the order of the items' times, or of the file, as they would in life: a second of them are neighbours. So
a key whose values follow each other in time is hot at every moment, however evenly it holds the data in the end. The
seconds are taken from all over the data. Reads are of any item, and know the key.
"""

from __future__ import annotations

import numpy as np
from numpy.random import default_rng

from pleiad.advise.demand import Basis, Demands, Way, read_charges, write_charges
from pleiad.advise.table import Table

LOAD = 0.7
"""The part of the throughput that the requests need when they are spread evenly."""
_SECONDS = 20
_REQUESTS_MAX = 16_000


def uniform_demands(table: Table, throughput_ru: float, seed: int = 1) -> Demands:
    """Some seconds of writing and reading the items of a table at a share of the throughput."""
    if not table.rows:
        return empty_demands(Basis.UNIFORM)
    random = default_rng(seed)
    write_ru, read_ru = write_charges(table), read_charges(table)
    pair_ru = float(write_ru.mean() + read_ru.mean())
    rate = max(1, int(LOAD * throughput_ru / pair_ru))
    seconds = int(min(_SECONDS, max(5, _REQUESTS_MAX // (2 * rate))))
    rate = min(rate, _REQUESTS_MAX // (2 * seconds))
    starts = np.linspace(0, max(0, table.rows - rate), seconds).astype(np.int64)
    # Of fewer items than a second has room for, each is written as often as any other.
    written = table.order[(starts[:, None] + np.arange(rate)[None, :]) % table.rows].ravel()
    read = random.integers(0, table.rows, len(written))
    at = np.repeat(np.arange(seconds, dtype=np.float64), rate) + random.random(len(written))
    rows = np.concatenate([written, read])
    times = np.concatenate(
        [at, np.repeat(np.arange(seconds, dtype=np.float64), rate) + random.random(len(read))]
    )
    sequence = np.argsort(times, kind="stable")
    is_write = np.concatenate([np.ones(len(written), bool), np.zeros(len(read), bool)])[sequence]
    rows = rows[sequence]
    return Demands(
        basis=Basis.UNIFORM,
        at=times[sequence],
        operations=("create", "read"),
        operation=np.where(is_write, 0, 1).astype(np.int16),
        ways=np.full(len(rows), Way.ITEM, np.int8),
        rows=rows,
        own_ru=np.where(is_write, write_ru[rows], read_ru[rows]),
        visit_ru=np.zeros(len(rows)),
        equals={},
        several={},
        ranges={},
        marks=table.ids.hashes[table.ids.codes[rows]],
        is_write=is_write,
        requests=len(rows),
    )


def empty_demands(basis: Basis) -> Demands:
    """No requests at all."""
    return Demands(
        basis=basis,
        at=np.empty(0),
        operations=(),
        operation=np.empty(0, np.int16),
        ways=np.empty(0, np.int8),
        rows=np.empty(0, np.int64),
        own_ru=np.empty(0),
        visit_ru=np.empty(0),
        equals={},
        several={},
        ranges={},
        marks=np.empty(0, np.uint64),
        is_write=np.empty(0, bool),
    )
