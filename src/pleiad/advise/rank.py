"""The order of keys, best first.

What decides is what the same requests need: throughput at which 99 of 100 seconds pass without a refusal, since it
counts everything that a key makes dear: hot values, hot moments, and visits to all partitions. Keys that need about the
same are equal, and then the simpler one is better: a property before levels, levels before what clients have to make.
Where no requests are known, equal keys that keep items together come first, and moments last.
Behind all of them are keys whose largest value is full within a year, and at the end those that cannot be taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pleiad.advise.assess import Assessment
from pleiad.advise.demand import Basis
from pleiad.advise.key import Kind
from pleiad.advise.report import TopValue, Verdict
from pleiad.advise.sentences import LIFETIME_DAYS_MIN, VALUES_MIN
from pleiad.advise.setting import Setting

_BAND = 1.15
"""Keys that differ by less are as good as each other."""
_LABOUR = {
    Kind.PATH: 0,
    Kind.HIERARCHY: 1,
    Kind.SUFFIX: 2,
    Kind.CONCAT: 2,
    Kind.ROLL_UP: 3,
    Kind.RANDOM: 4,
}
_TOGETHER = 1.5
"""An item that has fewer around it in its logical partition, itself included, is as good as alone."""
_GOOD_FACTOR, _BAD_FACTOR = 1.3, 2.5
_GOOD_USABLE, _BAD_USABLE = 0.6, 0.4
_GOOD_REFUSED, _BAD_REFUSED = 0.01, 0.1


@dataclass(frozen=True)
class Judged:
    """A key with what speaks against taking it at all."""

    assessment: Assessment
    tops: tuple[TopValue, ...]
    disqualified: tuple[str, ...]

    @property
    def days_left(self) -> float:
        """Until a value reaches a limit."""
        days = [each.days_to_full for each in self.tops] + [each.days_to_ru_limit for each in self.tops]
        return min((each for each in days if each is not None), default=math.inf)


def ranked(judged: list[Judged], setting: Setting) -> list[Judged]:
    """The same, best first."""
    free = [_weight(each, setting) for each in judged if not each.disqualified]
    least = min(free, default=1.0)
    knows_queries = setting.demands.basis is not Basis.UNIFORM

    def order(each: Judged) -> tuple[float, ...]:
        measures = each.assessment.measures
        band = int(math.log(max(1.0, _weight(each, setting) / least)) / math.log(_BAND))
        kind = each.assessment.key.kind
        near = measures.routed.requests["point"] + measures.routed.requests["single"]
        return (
            bool(each.disqualified),
            each.days_left < LIFETIME_DAYS_MIN,
            band,
            0 if knows_queries else _distance(each.assessment, setting),
            _LABOUR[kind],
            len(each.assessment.key.paths),
            -round(near, 3),
            _weight(each, setting),
        )

    return sorted(judged, key=order)


def _distance(assessment: Assessment, setting: Setting) -> int:
    """Where nothing is known of queries: how far a key is from what people ask for.

    A key that keeps items together leaves more queries possible than one under which each is alone. A first level of
    few values hardly narrows one down, and a suffix takes apart what belongs together. By the moment of an item nobody
    looks for it.
    """
    key = assessment.key
    if setting.table.time_path in key.paths[:1]:
        return 3
    if key.kind is Kind.HIERARCHY:
        return 1 if assessment.placement.columns[0].distinct < VALUES_MIN else 0
    if key.kind is Kind.RANDOM or assessment.measures.items.effective * _TOGETHER > setting.table.rows:
        return 2
    return 1 if key.kind is Kind.SUFFIX else 0


def _weight(each: Judged, setting: Setting) -> float:
    judged = each.assessment.on(setting.physical)
    return setting.to_provision(judged.needed_ru) * (1 + judged.refused)


def verdict_of(each: Judged, place: int, best: Judged, setting: Setting) -> Verdict:
    """How well a key fits, beside the best."""
    if each.disqualified:
        return Verdict.DISQUALIFIED
    if place == 0:
        return Verdict.BEST
    judged = each.assessment.on(setting.physical)
    factor = _weight(each, setting) / _weight(best, setting)
    if (
        factor > _BAD_FACTOR
        or judged.usable < _BAD_USABLE
        or judged.refused > _BAD_REFUSED
        or each.days_left < LIFETIME_DAYS_MIN
    ):
        return Verdict.BAD
    is_good = factor <= _GOOD_FACTOR and judged.usable >= _GOOD_USABLE and judged.refused <= _GOOD_REFUSED
    return Verdict.GOOD if is_good else Verdict.WEAK
