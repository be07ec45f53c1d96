"""The whole of an advice: items and requests in, a report out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pleiad.advise.assess import Assessment, assess
from pleiad.advise.candidates import propose
from pleiad.advise.demand import Basis, Demands, read_charges, write_charges
from pleiad.advise.disqualify import reasons_against
from pleiad.advise.found import RowsOf
from pleiad.advise.growth import top_values, what_ifs
from pleiad.advise.key import Key
from pleiad.advise.rank import Judged, ranked, verdict_of
from pleiad.advise.report import Candidate, Confidence, Prices, Report, Workload
from pleiad.advise.sentences import physical_text, reasons_for, summary_of
from pleiad.advise.setting import Setting
from pleiad.advise.simulate import COUNTS, P99
from pleiad.advise.table import Table
from pleiad.advise.words import about, counted, percent, rate
from pleiad.limits import Limits

PHYSICAL_MIN = 4
"""On fewer partitions keys hardly differ, so they are judged on so many at least: where growth leads."""
THROUGHPUT_DEFAULT = 10_000.0
_SECONDS_OF_A_DAY = 86_400
_PATHS_TOLD = 12
_SPREAD_ROWS_MAX = 500_000
_REQUESTS_HIGH, _REQUESTS_MEDIUM = 10_000, 1_000
_ITEMS_HIGH, _ITEMS_MEDIUM = 100_000, 2_000


class NothingToAdviseError(ValueError):
    """There is nothing to measure; the text is a sentence for the person at the terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How much larger things become before keys are judged."""

    factor: float = 1.0
    years: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceOptions:
    """What a person may say beside the source."""

    throughput_ru: float | None = None
    growth: Growth = Growth()
    candidates: tuple[Key, ...] = ()
    """Instead of those that are found."""
    current: tuple[str, ...] = ()
    """The paths of the key that the container has now."""
    prices: Prices = field(default_factory=Prices)
    limits: Limits = field(default_factory=Limits)
    notes: tuple[str, ...] = ()
    how_to_tell_requests: str = "give --queries or --workload"
    """What a person does where none are known, in the words of where they are."""


def advise(
    source: str,
    table: Table,
    demands: Demands,
    options: AdviceOptions,
    tell: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Report:
    """The keys worth a try, measured, simulated and ranked; `tell` hears how far it is."""
    if not table.rows:
        raise NothingToAdviseError(_nothing(source, table))
    keys = _keys(table, demands, options)
    setting = _setting(table, demands, options)
    judged = []
    for number, key in enumerate(keys):
        tell(key.text, number, len(keys))
        assessment = assess(key, setting)
        tops = top_values(assessment, setting)
        judged.append(Judged(assessment, tops, reasons_against(key, assessment.measures, options.limits)))
    in_order = ranked(judged, setting)
    current = options.current or tuple(demands.known_paths)
    candidates = tuple(
        _candidate(each, place, in_order[0], setting, current) for place, each in enumerate(in_order)
    )
    return _report(source, table, setting, options, candidates)


def _nothing(source: str, table: Table) -> str:
    if table.problem_count:
        return f"{source} has no item that could be read: {table.problems[0]}"
    return f"{source} has no items"


def _keys(table: Table, demands: Demands, options: AdviceOptions) -> list[Key]:
    if not options.candidates:
        return propose(table, demands, options.current or tuple(demands.known_paths))
    for key in options.candidates:
        for name in key.column_names:
            column = table.columns.get(name)
            if column is None or column.kinds.missing == column.kinds.total:
                raise NothingToAdviseError(
                    f"no item has a value at {' or '.join(key.paths)}; there are "
                    + ", ".join(table.paths[:_PATHS_TOLD])
                )
    return list(dict.fromkeys(options.candidates))


def _setting(table: Table, demands: Demands, options: AdviceOptions) -> Setting:
    limits = options.limits
    days = _days(table)
    growth = options.growth.factor
    if options.growth.years:
        if not days:
            raise NothingToAdviseError(
                "the items tell no time, so how they grow in years is not known: give --growth a factor instead"
            )
        growth *= 1 + options.growth.years * 365 / days
    throughput_ru = options.throughput_ru or _throughput(demands, growth, limits)
    stored = table.total_bytes * growth
    now = max(
        1,
        math.ceil(stored / limits.physical_partition_bytes),
        math.ceil(throughput_ru / limits.physical_partition_ru),
    )
    physical = next((count for count in COUNTS if count >= max(now, PHYSICAL_MIN)), COUNTS[-1])
    rows_of = None
    if demands.basis is not Basis.UNIFORM and table.rows <= _SPREAD_ROWS_MAX:
        rows_of = RowsOf(
            {path: column.codes for path, column in table.columns.items() if path in demands.equals}
        )
    return Setting(
        table=table,
        demands=demands,
        throughput_ru=throughput_ru,
        physical=physical,
        counts=COUNTS,
        growth=growth,
        days=days,
        created_bytes_a_day=_created_a_day(table, demands),
        limits=limits,
        prices=options.prices,
        rows_of=rows_of,
        row_ru=write_charges(table) + read_charges(table),
    )


def _days(table: Table) -> float | None:
    if table.times is None:
        return None
    known = table.times[np.isfinite(table.times)]
    days = (float(known.max()) - float(known.min())) / _SECONDS_OF_A_DAY
    return days if days >= 1 else None


def _created_a_day(table: Table, demands: Demands) -> float | None:
    """What the requests of a record create in a day."""
    if demands.basis is Basis.UNIFORM or not demands.count:
        return None
    is_create = np.array([name == "create" for name in demands.operations])[demands.operation]
    created = int(is_create.sum()) * float(table.sizes.mean())
    return created / demands.seconds * _SECONDS_OF_A_DAY if created else None


def _throughput(demands: Demands, growth: float, limits: Limits) -> float:
    """What the requests would need if they were spread evenly."""
    if demands.basis is Basis.UNIFORM or not demands.count:
        return float(min(limits.throughput_ru_max, THROUGHPUT_DEFAULT * max(1.0, growth)))
    by_second = np.bincount(demands.second, weights=demands.own_ru + demands.visit_ru)
    needed = float(np.percentile(by_second, P99)) * growth
    step = limits.throughput_ru_step
    return float(min(limits.throughput_ru_max, max(limits.throughput_ru_min, -(-needed // step) * step)))


def _candidate(each: Judged, place: int, best: Judged, setting: Setting, current: Sequence[str]) -> Candidate:
    assessment = each.assessment
    judged, best_judged = assessment.on(setting.physical), best.assessment.on(setting.physical)
    needed = setting.to_provision(judged.needed_ru)
    storage = float(assessment.bytes.sum())
    cost = setting.cost_month(needed, storage)
    best_cost = setting.cost_month(setting.to_provision(best_judged.needed_ru), storage)
    reasons = reasons_for(assessment, setting, each.tops)
    key = assessment.key
    return Candidate(
        key=key.text,
        kind=key.kind.value,
        paths=key.paths,
        partition_key=key.definition().to_json(),
        is_current=not key.is_synthetic and tuple(current) == key.paths,
        rank=place + 1,
        verdict=verdict_of(each, place, best, setting),
        summary=summary_of(reasons, each.disqualified),
        reasons=reasons,
        disqualified=each.disqualified,
        measures=assessment.measures,
        simulations=assessment.simulations,
        physical=setting.physical,
        needed_ru=needed,
        cost_month=round(cost, 2),
        cost_factor=cost / best_cost if best_cost else 1.0,
        top_values=each.tops,
        heat=assessment.heat,
        what_if=what_ifs(assessment, setting),
    )


def _report(
    source: str, table: Table, setting: Setting, options: AdviceOptions, candidates: tuple[Candidate, ...]
) -> Report:
    limits = options.limits
    stored = int(table.total_bytes * setting.growth)
    by_size = math.ceil(stored / limits.physical_partition_bytes)
    now = max(1, by_size, math.ceil(setting.throughput_ru / limits.physical_partition_ru))
    confidence = confidence_of(table, setting.demands)
    workload = _workload(setting.demands)
    report = Report(
        source=source,
        items=table.items,
        rows=table.rows,
        total_bytes=stored,
        growth=setting.growth,
        problems=tuple(str(each) for each in table.problems),
        problem_count=table.problem_count,
        time_path=table.time_path,
        days=setting.days,
        workload=workload,
        throughput_ru=setting.throughput_ru,
        physical_now=now,
        physical=setting.physical,
        logical_partition_bytes=limits.logical_partition_bytes,
        physical_partition_ru=limits.physical_partition_ru,
        prices=options.prices,
        confidence=confidence,
        verdict="",
        detail="",
        candidates=candidates,
        notes=_notes(setting, now, options),
    )
    items = f"{table.rows:,} of {table.items:,} items" if table.is_sample else counted(table.items, "item")
    detail = f"Measured on {items}, {workload.text}. {confidence.text}"
    return replace(report, verdict=_verdict(report), detail=detail)


def _verdict(report: Report) -> str:
    best, other = report.best, report.counterexample
    if best is None:
        return "None of the keys that were tried can be taken: each has a reason against it."
    refused = best.judged.refused
    is_clean = refused < 0.0005
    after = "none is refused" if is_clean else f"{percent(refused)} are refused"
    if report.workload.basis == Basis.UNIFORM:
        start = f"With {best.key} as key, {percent(best.judged.usable)} of the throughput can be used"
        if other is None or other.disqualified:
            return f"{start}."
        return f"{start}; with {other.key} it is {percent(other.judged.usable)}."
    start = f"With {best.key} as key, the same requests need {rate(best.needed_ru)}"
    if other is None or other.disqualified or other.needed_ru <= best.needed_ru:
        return f"{start}, and {after} at {rate(report.throughput_ru)}."
    than = " of now" if other.is_current else f" that {other.key} needs"
    return (
        f"{start} instead of the {other.needed_ru:,.0f}{than}, and {after} at {rate(report.throughput_ru)}."
    )


def _notes(setting: Setting, now: int, options: AdviceOptions) -> tuple[str, ...]:
    found = list(options.notes)
    if now < PHYSICAL_MIN:
        found.append(
            f"Such a container has {physical_text(now)} now, where keys hardly differ. They are judged on "
            f"{setting.physical}, where growth leads."
        )
    if setting.demands.basis is Basis.UNIFORM:
        found.append(
            "No requests are known, so all items count as written once in their order and read as often. What queries "
            f"ask for decides much: {options.how_to_tell_requests}."
        )
    if setting.table.is_sample and setting.table.ids.distinct_of_all is None:
        found.append(
            "Of more items than are kept, the different values are counted among those that are: pip install "
            "datasketches counts them among all."
        )
    if setting.growth != 1.0:
        found.append(f"Everything counts as {setting.growth:,.4g} times as large as it is.")
    return tuple(found)


def _workload(demands: Demands) -> Workload:
    counts = np.bincount(demands.operation, minlength=len(demands.operations))
    if demands.basis is Basis.UNIFORM:
        text = "with no requests known"
    else:
        span = counted(round(demands.seconds), "second")
        noun = "request" if demands.count == demands.requests == 1 else "requests"
        tried = "" if demands.count >= demands.requests else f" of {about(demands.requests)}"
        text = f"and {about(demands.count)}{tried} {noun} in {span}"
    return Workload(
        basis=demands.basis.value,
        requests=demands.requests,
        tried=demands.count,
        seconds=demands.seconds,
        joined_share=demands.joined / demands.joinable if demands.joinable else None,
        known_paths=tuple(sorted(demands.known_paths)),
        refused=demands.refused,
        operations={name: int(count) for name, count in zip(demands.operations, counts, strict=True)},
        text=text,
    )


def confidence_of(table: Table, demands: Demands) -> Confidence:
    """How sure the shares are, from how much was looked at."""
    item_margin = 0.98 / math.sqrt(table.rows) if table.is_sample else 0.0
    is_known = demands.basis is not Basis.UNIFORM
    request_margin = 0.98 / math.sqrt(demands.count) if demands.count and is_known else 1.0
    items = (
        f"a share of the items is right within {percent(item_margin)}"
        if item_margin
        else "no item was left out"
    )
    if not is_known:
        level = "medium" if table.rows >= _ITEMS_MEDIUM else "low"
        return Confidence(
            level=level,
            share_margin=item_margin,
            request_margin=1.0,
            text=f"{level.capitalize()} confidence: {items}, but nothing is known of the requests.",
        )
    sure_items = not table.is_sample or table.rows >= _ITEMS_HIGH
    joined = demands.joined / demands.joinable if demands.joinable else 1.0
    if demands.is_hashed or joined < 0.5:
        level = "low"
    elif demands.count >= _REQUESTS_HIGH and sure_items and joined > 0.9:
        level = "high"
    else:
        level = "medium" if demands.count >= _REQUESTS_MEDIUM else "low"
    found = "" if joined > 0.99 else f"; of the items that requests name, {percent(joined)} were found"
    return Confidence(
        level=level,
        share_margin=item_margin,
        request_margin=request_margin,
        text=f"{level.capitalize()} confidence: {items}, and a share of the requests within {percent(request_margin)}"
        f"{found}.",
    )


def assessments(
    keys: Sequence[Key], table: Table, demands: Demands, options: AdviceOptions
) -> list[Assessment]:
    """The keys alone, measured and simulated, in the order in which they are given."""
    setting = _setting(table, demands, options)
    return [assess(key, setting) for key in keys]
