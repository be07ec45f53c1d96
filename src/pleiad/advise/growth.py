"""What becomes of a key in time: when its largest values are full, and what happens when the world changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pleiad.advise.assess import Assessment
from pleiad.advise.key import Kind
from pleiad.advise.placement import Placement
from pleiad.advise.report import Level, TopValue, WhatIf
from pleiad.advise.setting import Setting
from pleiad.advise.skew import TOP_VALUES
from pleiad.advise.words import percent, rate
from pleiad.limits import size_text

FIVE_YEARS_DAYS = 5 * 365
GIANT_FACTOR = 10
_NEARLY_FULL = 0.7
_USABLE_GOOD = 0.8
_USABLE_WEAK = 0.5
_PHYSICAL_MAX = 256
_TWICE = "there are twice the values"
_MANY_VALUES = 100_000
_OTHER_VALUES = np.uint64(0x1D872B41A96F7C5D)

Amounts = NDArray[np.float64]


def top_values(assessment: Assessment, setting: Setting) -> tuple[TopValue, ...]:
    """The ten hottest values: by request units where requests are known, else by what they hold."""
    by_ru = assessment.ru if assessment.ru.sum() > 0 else assessment.bytes
    largest, hottest = _largest(assessment.bytes, 2), _largest(by_ru, TOP_VALUES)
    chosen = list(dict.fromkeys([*hottest.tolist(), *largest.tolist()]))[:TOP_VALUES]
    total_bytes, total_ru = float(assessment.bytes.sum()), float(assessment.ru.sum())
    found = []
    for value in chosen:
        held, ru = float(assessment.bytes[value]), float(assessment.ru[value])
        growth = _growth_a_day(held, total_bytes, setting)
        found.append(
            TopValue(
                label=assessment.placement.label(int(value)),
                items=float(assessment.items[value]),
                bytes=held,
                bytes_share=held / total_bytes if total_bytes else 0.0,
                ru=ru,
                ru_share=ru / total_ru if total_ru else 0.0,
                growth_bytes_a_day=growth,
                days_to_70_percent=_days(_NEARLY_FULL * setting.limits.logical_partition_bytes, held, growth),
                days_to_full=_days(setting.limits.logical_partition_bytes, held, growth),
                days_to_ru_limit=_days_to_ru(ru, held, growth, setting),
            )
        )
    return tuple(found)


def _largest(amounts: Amounts, count: int) -> NDArray[np.int64]:
    """The places of the largest amounts, largest first."""
    if len(amounts) <= count:
        return np.argsort(amounts)[::-1]
    found = np.argpartition(amounts, -count)[-count:]
    return found[np.argsort(amounts[found])[::-1]]


def _growth_a_day(held: float, total: float, setting: Setting) -> float | None:
    if setting.days:
        return held / setting.days
    if setting.created_bytes_a_day and total:
        return setting.created_bytes_a_day * held / total
    return None


def _days(limit: float, held: float, growth: float | None) -> float | None:
    """Until something has grown to a limit; None when it is not known to grow."""
    if held >= limit:
        return 0.0
    return (limit - held) / growth if growth else None


def _days_to_ru(ru: float, held: float, growth: float | None, setting: Setting) -> float | None:
    """Requests grow as the items do that they are for."""
    limit = setting.limits.physical_partition_ru
    if ru >= limit:
        return 0.0
    return (limit / ru - 1) * held / growth if growth and ru > 0 else None


def what_ifs(assessment: Assessment, setting: Setting) -> tuple[WhatIf, ...]:
    """Twice the values, five years, and a giant that grows."""
    placement, held, ru = assessment.placement, assessment.bytes, assessment.ru
    if not placement.count:
        return ()
    found = [_twice(assessment, setting)]
    growth = _growth_a_day(1.0, 1.0, setting)
    if growth:
        if setting.days is None:
            growth /= max(1.0, float(held.sum()))
        factor = 1 + FIVE_YEARS_DAYS * growth
        found.append(
            _what_if("it goes on for five years", placement, held * factor, ru * factor, assessment, setting)
        )
    giant = int(np.argmax(held))
    grown, grown_ru = held.copy(), ru.copy()
    grown[giant] *= GIANT_FACTOR
    grown_ru[giant] *= GIANT_FACTOR
    name = f"the largest value grows {GIANT_FACTOR}-fold"
    found.append(_what_if(name, placement, grown, grown_ru, assessment, setting))
    return tuple(found)


def _twice(assessment: Assessment, setting: Setting) -> WhatIf:
    placement, held, ru = assessment.placement, assessment.bytes, assessment.ru
    if placement.count > _MANY_VALUES:
        # So many lie evenly wherever others come to lie between them.
        return _what_if(_TWICE, placement, held * 2, ru * 2, assessment, setting, twice=True)
    doubled = _doubled(placement)
    return _what_if(_TWICE, doubled, np.tile(held, 2), np.tile(ru, 2), assessment, setting)


def _doubled(placement: Placement) -> Placement:
    """As many values again, at other places."""
    first, *others = placement.hashes
    moved = (first * _OTHER_VALUES) & np.uint64(2**62 - 1)
    hashes = (np.concatenate([first, moved]), *(np.concatenate([each, each]) for each in others))
    return replace(placement, count=2 * placement.count, hashes=hashes)


def _what_if(
    name: str,
    placement: Placement,
    held: Amounts,
    ru: Amounts,
    assessment: Assessment,
    setting: Setting,
    twice: bool = False,
) -> WhatIf:
    limits = setting.limits
    storage, wanted = float(held.sum()), float(ru.sum())
    by_storage = -(-storage // limits.physical_partition_bytes)
    before = assessment.on(setting.physical)
    scale = wanted / float(assessment.ru.sum()) if assessment.ru.sum() > 0 else 1.0
    by_ru = -(-before.needed_ru * scale // limits.physical_partition_ru)
    count = int(min(_PHYSICAL_MAX, max(setting.physical, by_storage, by_ru)))
    physical = placement.physical(count, held)
    loads = np.bincount(physical, weights=ru, minlength=count)
    # What is hot at a moment only, and what visits cost, is as it was on the partitions of now.
    moment = before.usable * before.ru_imbalance
    highest = float(loads.max(initial=0.0))
    usable = min(1.0, moment) * (wanted / count / highest if highest else 1.0)
    needed = max(before.needed_ru * scale, count * highest)
    needed_ru = setting.to_provision(needed)
    share = 0.5 if twice else 1.0
    largest, largest_ru = share * float(held.max()), share * float(ru.max(initial=0.0))
    level, text = _judged(largest, largest_ru, usable, count, setting, placement.key.kind is Kind.HIERARCHY)
    return WhatIf(
        name=name,
        storage_bytes=storage,
        ru=wanted,
        physical=count,
        usable=usable,
        largest_bytes=largest,
        largest_ru=largest_ru,
        needed_ru=needed_ru,
        cost_month=setting.cost_month(needed_ru, storage),
        text=text,
        level=level,
    )


def _judged(
    largest: float, largest_ru: float, usable: float, count: int, setting: Setting, is_hierarchy: bool
) -> tuple[Level, str]:
    limits = setting.limits
    if largest > limits.logical_partition_bytes:
        what = "full key" if is_hierarchy else "value"
        return Level.BAD, (
            f"The largest {what} has {size_text(largest)}, and a logical partition holds "
            f"{limits.logical_partition_text}: writes to it are refused."
        )
    if largest_ru > limits.physical_partition_ru:
        return Level.BAD, (
            f"The hottest value asks for {rate(largest_ru)}, and one physical partition gives "
            f"{rate(limits.physical_partition_ru)}."
        )
    text = f"{percent(usable)} of the throughput can be used on {count} physical partitions."
    if usable >= _USABLE_GOOD:
        return Level.GOOD, text
    return Level.WARN if usable >= _USABLE_WEAK else Level.BAD, text
