"""Why a key is good or bad, in sentences a person can act on: numbers in, text out."""

from __future__ import annotations

from pleiad.advise.assess import Assessment
from pleiad.advise.demand import VISIT_RU, Basis
from pleiad.advise.key import Kind
from pleiad.advise.report import Level, Reason, TopValue
from pleiad.advise.setting import Setting
from pleiad.advise.words import about, counted, lifetime, percent, quoted, rate
from pleiad.limits import size_text

VALUES_MIN = 100
VALUES_A_PARTITION = 10
GINI_MAX = 0.6
IMBALANCE_MAX = 1.5
FAN_OUT_MAX = 0.2
TAX_MAX = 0.1
LIFETIME_DAYS_MIN = 365
SHORT_KEY_BYTES = 101
_MIXED_SHARE = 0.01


def reasons_for(assessment: Assessment, setting: Setting, tops: tuple[TopValue, ...]) -> tuple[Reason, ...]:
    """The reasons for and against a key, the heaviest first."""
    found = [
        _values(assessment, setting),
        *_hottest(assessment, setting, tops),
        *_moments(assessment, setting),
        *_refusals(assessment, setting),
        _lifetimes(assessment, setting, tops),
        *_routes(assessment, setting),
        *_storage(assessment, setting),
        *_transactions(assessment),
        *_making(assessment),
    ]
    order = {Level.BAD: 0, Level.WARN: 1, Level.GOOD: 2}
    return tuple(sorted(found, key=lambda reason: order[reason.level]))


def _values(assessment: Assessment, setting: Setting) -> Reason:
    distinct, physical = assessment.measures.distinct, setting.physical
    if distinct < max(2, physical):
        return Reason(
            Level.BAD,
            f"{counted(distinct, 'value')}: the container cannot spread over more places, whatever its throughput.",
        )
    if distinct < max(VALUES_MIN, VALUES_A_PARTITION * physical):
        return Reason(
            Level.WARN,
            f"{counted(distinct, 'value')} only: chance decides how evenly they fall on physical partitions.",
        )
    top = max(assessment.measures.ru.top_share, assessment.measures.storage.top_share)
    none_large = f", the largest with {percent(top)} of the load or the data" if top <= 1 / physical else ""
    return Reason(Level.GOOD, f"{about(distinct)} values{none_large}.")


def _hottest(assessment: Assessment, setting: Setting, tops: tuple[TopValue, ...]) -> list[Reason]:
    ru, limit = assessment.measures.ru, setting.limits.physical_partition_ru
    if not tops or ru.top_share <= 1 / setting.physical or assessment.measures.distinct < 2:
        return []
    hottest = max(tops, key=lambda value: value.ru_share)
    return [
        Reason(
            Level.BAD if ru.top_share > 2 / setting.physical else Level.WARN,
            f"{quoted(hottest.label)} takes {percent(ru.top_share)} of the request units. One value is on one physical "
            f"partition: {rate(limit)} at most.",
        )
    ]


def _moments(assessment: Assessment, setting: Setting) -> list[Reason]:
    measures, physical = assessment.measures, setting.physical
    if (
        not measures.written_effective
        or measures.written_effective >= physical
        or measures.distinct < physical
    ):
        return []
    hot = measures.written_effective < physical / 2
    return [
        Reason(
            Level.BAD if hot else Level.WARN,
            f"At any moment writes go to {measures.written_effective:.1f} values: few partitions work while the others "
            "wait, however even the data is in the end.",
        )
    ]


def _refusals(assessment: Assessment, setting: Setting) -> list[Reason]:
    judged = assessment.on(setting.physical)
    if judged.refused < 0.001:
        return []
    return [
        Reason(
            Level.BAD if judged.refused > 0.05 else Level.WARN,
            f"{percent(judged.refused)} of the requests are refused with 429 at {rate(judged.throughput_ru)} on "
            f"{physical_text(setting.physical)}, and {percent(judged.usable)} of the throughput can be used; "
            f"{rate(setting.to_provision(judged.needed_ru))} would be needed.",
        )
    ]


def _lifetimes(assessment: Assessment, setting: Setting, tops: tuple[TopValue, ...]) -> Reason:
    limit = setting.limits.logical_partition_text
    full = sorted(
        (each for each in tops if each.days_to_full is not None), key=lambda each: each.days_to_full or 0
    )
    hot = sorted(
        (each for each in tops if each.days_to_ru_limit is not None),
        key=lambda each: each.days_to_ru_limit or 0,
    )
    if full and (full[0].days_to_full or 0) < LIFETIME_DAYS_MIN:
        first = full[0]
        when = "Full now" if not first.days_to_full else f"Full in {lifetime(first.days_to_full)}"
        growth = (
            f" and grows by {size_text(first.growth_bytes_a_day)} a day" if first.growth_bytes_a_day else ""
        )
        return Reason(
            Level.BAD, f"{when}: {quoted(first.label)} has {size_text(first.bytes)} of {limit}{growth}."
        )
    if hot and (hot[0].days_to_ru_limit or 0) < LIFETIME_DAYS_MIN:
        first = hot[0]
        when = "now" if not first.days_to_ru_limit else f"in {lifetime(first.days_to_ru_limit)}"
        return Reason(
            Level.BAD,
            f"{quoted(first.label)} asks for more than {rate(setting.limits.physical_partition_ru)} {when}, which one "
            "physical partition does not give.",
        )
    largest = size_text(assessment.measures.largest_bytes)
    if full:
        return Reason(
            Level.GOOD,
            f"No limit near: the largest logical partition has {largest} of {limit}, enough for "
            f"{lifetime(full[0].days_to_full or 0)}.",
        )
    return Reason(Level.GOOD, f"No limit near: the largest logical partition has {largest} of {limit}.")


def _routes(assessment: Assessment, setting: Setting) -> list[Reason]:
    if setting.demands.basis is Basis.UNIFORM or not setting.demands.count:
        return []
    routed, judged = assessment.measures.routed.requests, assessment.on(setting.physical)
    everywhere = routed["everywhere"]
    near = routed["point"] + routed["single"]
    found = []
    if everywhere > 0:
        tax = judged.fan_out_tax_ru / judged.total_ru if judged.total_ru else 0.0
        is_heavy = everywhere > FAN_OUT_MAX or tax > TAX_MAX
        extra = VISIT_RU * (setting.physical - 1)
        found.append(
            Reason(
                (Level.BAD if tax > 3 * TAX_MAX else Level.WARN) if is_heavy else Level.GOOD,
                f"{percent(everywhere)} of the requests ask all physical partitions, {extra:.2f} RU more each on "
                f"{setting.physical}: {percent(tax)} of all request units.",
            )
        )
    if near >= 0.5:
        found.append(
            Reason(
                Level.GOOD,
                f"{percent(near)} of the requests are point operations or stay in one logical partition.",
            )
        )
    return found


def _storage(assessment: Assessment, setting: Setting) -> list[Reason]:
    judged, storage = assessment.on(setting.physical), assessment.measures.storage
    if judged.storage_imbalance <= IMBALANCE_MAX or storage.top_share > 1 / setting.physical > 0.5:
        return []
    return [
        Reason(
            Level.WARN,
            f"The fullest physical partition has {judged.storage_imbalance:.1f} times the mean of the data"
            + (
                f"; the values differ much in size (Gini {storage.gini:.2f})."
                if storage.gini > GINI_MAX
                else "."
            ),
        )
    ]


def _transactions(assessment: Assessment) -> list[Reason]:
    measures = assessment.measures
    if measures.transaction_fit == 1:
        return [
            Reason(
                Level.GOOD,
                f"All {measures.transactions:,} observed transactions stay in one logical partition.",
            )
        ]
    if measures.cardinality_ratio > 0.999 and measures.transaction_fit is None:
        return [
            Reason(
                Level.WARN,
                "Every item is alone in its logical partition: no batch over two items is possible.",
            )
        ]
    return []


def _making(assessment: Assessment) -> list[Reason]:
    """What a key asks of clients."""
    key, measures = assessment.key, assessment.measures
    found = []
    if key.kind is Kind.RANDOM:
        found.append(
            Reason(
                Level.WARN,
                f"A random suffix is not known again: who reads one item has to ask for all {key.count} suffixes.",
            )
        )
    elif key.is_synthetic:
        found.append(
            Reason(
                Level.WARN,
                "Clients have to compute it and write it into a property of its own in every item.",
            )
        )
    mixed = sum(share > _MIXED_SHARE for name, share in measures.type_shares.items() if name != "missing")
    if mixed > 1:
        kinds = ", ".join(f"{percent(share)} {name}" for name, share in measures.type_shares.items())
        found.append(
            Reason(Level.WARN, f"Its values have several types ({kinds}): 1 and “1” are different keys.")
        )
    if measures.key_bytes_max > SHORT_KEY_BYTES:
        found.append(
            Reason(
                Level.WARN,
                f"Its longest value has {measures.key_bytes_max:,} bytes: the container needs large partition keys "
                "(version 2), since older ones look at the first 101.",
            )
        )
    return found


def physical_text(count: int) -> str:
    return counted(count, "physical partition")


def summary_of(reasons: tuple[Reason, ...], disqualified: tuple[str, ...], limit: int = 2) -> str:
    """Why, in one or two sentences."""
    if disqualified:
        return "Disqualified: " + disqualified[0][:1].lower() + disqualified[0][1:]
    return " ".join(reason.text for reason in reasons[:limit])
