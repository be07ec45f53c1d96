"""Measuring one key: what its values are like, where requests go, and what happens on physical partitions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pleiad.advise.column import Column
from pleiad.advise.demand import Basis, Demands
from pleiad.advise.key import ID_PATH, Key, Kind
from pleiad.advise.placement import Placement, place, shown_value
from pleiad.advise.report import Measures, Routed
from pleiad.advise.routing import SCOPE_WORDS, Routes, route
from pleiad.advise.setting import Setting
from pleiad.advise.simulate import (
    P99,
    REPLAYED_VISITS_MAX,
    Simulation,
    Visits,
    per_window,
    simulate,
    visits_of,
)
from pleiad.advise.skew import rank_correlation, skew_of, sums
from pleiad.advise.table import Table

Amounts = NDArray[np.float64]

_WINDOW_REQUESTS = 200
_ORDER_ROWS = 20_000
_HEAT_WINDOWS = 48
_REPLAYED_BESIDE = 4_000
"""On other numbers of partitions than the one that keys are judged on, so many visits tell enough."""
_SYSTEM_KINDS = ("missing", "null", "boolean", "number", "text")


@dataclass(frozen=True)
class Assessment:
    """A key with all that was found out about it."""

    key: Key
    placement: Placement
    routes: Routes
    bytes: Amounts
    """By logical partition."""
    items: Amounts
    ru: Amounts
    """A second, by logical partition."""
    measures: Measures
    simulations: tuple[Simulation, ...]
    heat: tuple[tuple[float, ...], ...]

    def on(self, physical: int) -> Simulation:
        return next(each for each in self.simulations if each.physical == physical)


def assess(key: Key, setting: Setting) -> Assessment:
    """Measures and simulates one key."""
    table, demands = setting.table, setting.demands
    placement = place(key, table)
    stands_for = setting.bytes_of_a_row
    held = sums(placement.rows, table.sizes.astype(np.float64) * stands_for, placement.count)
    items = np.bincount(placement.rows, minlength=placement.count).astype(np.float64) * stands_for
    routes = route(demands, placement, table, setting.rows_of)
    if setting.growth != 1.0:
        routes = Routes(
            routes.scopes,
            routes.partitions,
            routes.own_ru * setting.growth,
            routes.visit_ru * setting.growth,
            routes.prefixes,
            routes.several,
        )
    simulations = tuple(
        simulate(
            demands,
            routes,
            placement,
            held,
            count,
            setting.throughput_ru,
            setting.limits,
            setting.rows_of,
            REPLAYED_VISITS_MAX if count == setting.physical else _REPLAYED_BESIDE,
        )
        for count in setting.counts
    )
    ru = _ru_by_value(setting, routes, placement)
    measures = _measures(key, placement, routes, setting, held, items, ru, simulations)
    heat = _heat(setting, placement, routes, held)
    return Assessment(key, placement, routes, held, items, ru, measures, simulations, heat)


def _ru_by_value(setting: Setting, routes: Routes, placement: Placement) -> Amounts:
    """Request units a second that each logical partition is asked for alone."""
    demands = setting.demands
    if demands.basis is Basis.UNIFORM:
        # Every item is written and read as often as any other, so all of them say more than those that were tried.
        share = sums(placement.rows, setting.row_ru, placement.count)
        total = float(share.sum())
        return share / total * float(routes.own_ru.sum()) / demands.seconds if total else share
    known = routes.partitions >= 0
    ru = routes.own_ru[known] + routes.visit_ru[known]
    return sums(routes.partitions[known], ru, placement.count) / demands.seconds


def _measures(
    key: Key,
    placement: Placement,
    routes: Routes,
    setting: Setting,
    held: Amounts,
    items: Amounts,
    ru: Amounts,
    simulations: tuple[Simulation, ...],
) -> Measures:
    table, demands = setting.table, setting.demands
    columns = [table.columns[name] for name in key.column_names]
    total_ru = routes.own_ru + routes.visit_ru
    top_p99, window_seconds = _top_share_p99(demands, routes, placement)
    written, effective = _written(demands, routes, placement, window_seconds)
    kinds = _kind_shares(columns)
    of_all = columns[0].distinct_of_all if key.kind is Kind.PATH else None
    distinct = placement.count if of_all is None else of_all
    return Measures(
        distinct=distinct,
        cardinality_ratio=distinct / (table.rows if of_all is None else table.items) if table.rows else 0.0,
        coverage=1 - kinds["missing"] - kinds["null"],
        null_share=kinds["null"],
        items=skew_of(items),
        storage=skew_of(held),
        ru=skew_of(ru),
        ru_top_share_p99=top_p99,
        written_values=written,
        written_effective=effective,
        window_seconds=window_seconds,
        monotonicity=_monotonicity(columns, table),
        routed=Routed(
            requests={word: routes.share(scope) for scope, word in SCOPE_WORDS.items()},
            ru={word: routes.ru_share(scope, total_ru) for scope, word in SCOPE_WORDS.items()},
        ),
        transactions=len(demands.batches),
        transaction_fit=_transaction_fit(demands, placement),
        changed_share=_changed_share(key, demands),
        key_bytes_max=_key_bytes(key, columns),
        type_shares={name: share for name, share in kinds.items() if share > 0},
        unsafe_number_share=max(
            (column.kinds.unsafe / max(1, column.kinds.total) for column in columns), default=0.0
        ),
        id_collisions=_collisions(placement, table),
        largest_bytes=float(held.max(initial=0.0)),
    )


def _kind_shares(columns: list[Column]) -> dict[str, float]:
    """The shares of types; of a hierarchical key those of the level that is missing most."""
    found: dict[str, float] = dict.fromkeys(_SYSTEM_KINDS, 0.0)
    for column in columns:
        counts = {name: getattr(column.kinds, name) for name in _SYSTEM_KINDS}
        total = sum(counts.values()) or 1
        shares = {name: count / total for name, count in counts.items()}
        if column is columns[0] or shares["missing"] + shares["null"] > found["missing"] + found["null"]:
            found = shares
    return found


def _key_bytes(key: Key, columns: list[Column]) -> int:
    lengths = [column.bytes_max for column in columns]
    if key.kind is Kind.CONCAT:
        return sum(lengths) + len(lengths) - 1
    if key.kind in (Kind.RANDOM, Kind.SUFFIX):
        return lengths[0] + 1 + len(str(key.count))
    return max(lengths, default=0)


# -- time ------------------------------------------------------------------------------------------


def _window_length(demands: Demands) -> float:
    rate = demands.count / demands.seconds
    return float(max(1, min(demands.seconds, np.ceil(_WINDOW_REQUESTS / max(rate, 1e-9)))))


def _top_share_p99(demands: Demands, routes: Routes, placement: Placement) -> tuple[float, float]:
    """The largest value's share of the request units in the worst of 100 windows, and how long those are."""
    length = _window_length(demands)
    known = routes.partitions >= 0
    if not known.any():
        return 0.0, length
    window = (demands.second // int(length)).astype(np.int64)
    ru = routes.own_ru + routes.visit_ru
    totals = np.bincount(window, weights=ru)
    pairs = window[known] * placement.count + routes.partitions[known]
    distinct, inverse = np.unique(pairs, return_inverse=True)
    sums = np.bincount(inverse, weights=ru[known])
    highest = np.zeros(len(totals))
    np.maximum.at(highest, distinct // placement.count, sums)
    shares = highest[totals > 0] / totals[totals > 0]
    return float(np.percentile(shares, P99)), length


def _written(demands: Demands, routes: Routes, placement: Placement, length: float) -> tuple[float, float]:
    """Distinct values written in a window, and the equally busy ones that they amount to, on average."""
    chosen = demands.is_write & (routes.partitions >= 0)
    if not chosen.any():
        return 0.0, 0.0
    window = (demands.second[chosen] // int(length)).astype(np.int64)
    pairs = window * placement.count + routes.partitions[chosen]
    distinct, counts = np.unique(pairs, return_counts=True)
    of_window = distinct // placement.count
    windows = np.unique(of_window)
    writes = np.bincount(of_window, weights=counts)[windows]
    squares = np.bincount(of_window, weights=counts.astype(np.float64) ** 2)[windows]
    return float(len(distinct) / len(windows)), float((writes**2 / squares).mean())


def _monotonicity(columns: list[Column], table: Table) -> float | None:
    """How closely the first part of the key follows the order of writes; None where its values are not kept."""
    column = columns[0]
    chosen = table.order[:: max(1, table.rows // _ORDER_ROWS)]
    codes = column.codes[chosen]
    named = {int(code): column.value_of(int(code)) for code in np.unique(codes) if column.has_name(int(code))}
    is_named = np.isin(codes, list(named))
    if is_named.sum() < max(2, len(chosen) // 2):
        return None
    ranked = sorted(named, key=lambda code: _sort_key(named[code]))
    rank = {code: number for number, code in enumerate(ranked)}
    values = np.array([rank[int(code)] for code in codes[is_named]], dtype=np.float64)
    return rank_correlation(values, np.flatnonzero(is_named).astype(np.float64))


def _sort_key(value: object) -> tuple[int, float, str]:
    if isinstance(value, int | float):
        return 0, float(value), ""
    return 1, 0.0, shown_value(value)


def _heat(
    setting: Setting, placement: Placement, routes: Routes, held: Amounts
) -> tuple[tuple[float, ...], ...]:
    """Request units a second by window and physical partition, of those that keys are judged on."""
    demands, count = setting.demands, setting.physical
    if not demands.count:
        return ()
    visits = _visits(setting, placement, routes, held, count)
    by_second = per_window(demands.second, visits, count, int(demands.seconds))
    length = -(-len(by_second) // _HEAT_WINDOWS)
    starts = np.arange(0, len(by_second), length)
    lengths = np.diff(np.append(starts, len(by_second)))
    summed = np.add.reduceat(by_second, starts, axis=0) / lengths[:, None]
    return tuple(tuple(round(float(each), 2) for each in row) for row in summed)


def _visits(setting: Setting, placement: Placement, routes: Routes, held: Amounts, count: int) -> Visits:
    physical = placement.physical(count, held)
    storage = sums(physical, held, count)
    return visits_of(setting.demands, routes, placement, physical, count, storage, setting.rows_of)


# -- rules -----------------------------------------------------------------------------------------


def _transaction_fit(demands: Demands, placement: Placement) -> float | None:
    if not demands.batches:
        return None
    fitting = sum(len(np.unique(placement.rows[rows])) == 1 for rows in demands.batches)
    return fitting / len(demands.batches)


def _changed_share(key: Key, demands: Demands) -> float | None:
    if not demands.replaces:
        return None
    return min(1.0, sum(demands.changes.get(path, 0) for path in key.paths) / demands.replaces)


def _collisions(placement: Placement, table: Table) -> int:
    """Items that have the id of another one in the same logical partition."""
    ids = table.columns[ID_PATH]
    if ids.distinct == table.rows:
        return 0
    counts = np.bincount(ids.codes, minlength=ids.distinct)
    doubtful = np.flatnonzero(counts[ids.codes] > 1)
    pairs = placement.rows[doubtful] * ids.distinct + ids.codes[doubtful]
    return int(len(doubtful) - len(np.unique(pairs)))
