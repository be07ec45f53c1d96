"""How well a partition key spreads the load of a container, judged by the last minute and said in one sentence.

Numbers in, words out: whoever shows the balance of a container, a terminal or a page, shows these words.

What can be used of the throughput is what all partitions use together when the hottest one is full, with the same mix
of requests: the average use of the partitions over that of the hottest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

REQUESTS_MIN = 60
"""With less than a request a second nothing can be judged."""
USABLE_PERCENT_MIN = 60.0
"""A key that lets less of the throughput be used spreads unevenly."""
REFUSED_PERCENT = 5.0
"""A part of refused requests up to this is the sign of throughput that is well used."""
_KEY_CHARACTERS_MAX = 80


class Level(Enum):
    """How bad it is."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    UNKNOWN = "unknown"


class Kind(Enum):
    """What it is, with the words that people read."""

    BALANCED = ("balanced", "Balanced")
    FULL = ("full", "Evenly full")
    UNEVEN = ("uneven", "Uneven")
    HOT_VALUE = ("hot-value", "One hot value")
    FEW_VALUES = ("few-values", "Too few values")
    IDLE = ("idle", "Too little traffic")

    def __init__(self, id: str, word: str) -> None:
        self.id = id
        self.word = word


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One physical partition over the last minute."""

    id: str
    used_ru: float
    allowed_ru: float
    requests: int
    """Those that were refused among them."""
    refused: int
    size_bytes: int
    width: float
    """The part of the hash space that it has."""

    @property
    def use(self) -> float:
        """Used of allowed, from 0."""
        return self.used_ru / (60 * self.allowed_ru) if self.allowed_ru > 0 else 0.0


@dataclass(frozen=True, slots=True)
class HotValue:
    """The key that used the most, as people read it, and its part of all request units."""

    text: str
    share_percent: float

    @property
    def shown(self) -> str:
        cut = self.text[:_KEY_CHARACTERS_MAX]
        return cut if cut == self.text else f"{cut}…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the judgement was made from; None where it cannot be said."""

    hottest_partition: str
    hottest_partition_percent: float
    other_partitions_percent: float | None
    hottest_key: str | None
    hottest_key_share: float | None
    throttled_percent: float
    hottest_throttled_percent: float
    keys_seen: int
    storage_spread: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """A judgement, in words and numbers."""

    level: Level
    kind: Kind
    sentence: str
    why: str
    usable_percent: float | None
    facts: Facts = field(repr=False)


def balance_of(loads: Sequence[Load], hot: HotValue | None, keys_seen: int) -> Balance:
    """The balance of a container with these physical partitions, one at least."""
    facts = _facts(loads, hot, keys_seen)
    count, requests = len(loads), sum(load.requests for load in loads)
    if requests < REQUESTS_MIN:
        return _idle(facts, requests)
    usable = _usable_percent(loads)
    share = hot.share_percent if hot is not None else 0.0
    is_refusing = facts.hottest_throttled_percent > REFUSED_PERCENT
    if count > 1 and 1 < keys_seen <= count and usable < USABLE_PERCENT_MIN:
        kind, (sentence, why) = Kind.FEW_VALUES, _few_values(facts, count)
    elif hot is not None and ((count > 1 and share * count > 100) or (share > 50 and is_refusing)):
        kind, (sentence, why) = Kind.HOT_VALUE, _hot_value(facts, hot, count, is_refusing)
    elif usable < USABLE_PERCENT_MIN:
        kind, (sentence, why) = Kind.UNEVEN, _uneven(facts, usable)
    elif facts.throttled_percent > REFUSED_PERCENT:
        kind, (sentence, why) = Kind.FULL, _full(facts, count)
    else:
        kind, (sentence, why) = Kind.BALANCED, _balanced(facts, count, usable)
    return Balance(
        level=_level(kind, is_refusing),
        kind=kind,
        sentence=sentence,
        why=why,
        usable_percent=round(usable, 1),
        facts=facts,
    )


def _level(kind: Kind, is_refusing: bool) -> Level:
    if kind is Kind.BALANCED:
        return Level.GOOD
    if kind is Kind.FULL:
        return Level.WARN
    return Level.BAD if is_refusing else Level.WARN


def _usable_percent(loads: Sequence[Load]) -> float:
    allowed_ru = 60 * sum(load.allowed_ru for load in loads)
    highest = max(load.use for load in loads)
    if highest <= 0 or allowed_ru <= 0:
        return 100.0
    return min(100.0, 100 * sum(load.used_ru for load in loads) / allowed_ru / highest)


def _facts(loads: Sequence[Load], hot: HotValue | None, keys_seen: int) -> Facts:
    hottest = max(loads, key=lambda load: (load.use, load.refused))
    others = [load for load in loads if load is not hottest]
    others_allowed_ru = 60 * sum(load.allowed_ru for load in others)
    densities = [load.size_bytes / load.width for load in loads if load.width > 0]
    least = min(densities, default=0.0)
    return Facts(
        hottest_partition=hottest.id,
        hottest_partition_percent=round(min(100.0, 100 * hottest.use), 1),
        other_partitions_percent=(
            round(100 * sum(load.used_ru for load in others) / others_allowed_ru, 1)
            if others_allowed_ru
            else None
        ),
        hottest_key=None if hot is None else hot.shown,
        hottest_key_share=None if hot is None else round(hot.share_percent, 2),
        throttled_percent=_refused_percent(loads),
        hottest_throttled_percent=_refused_percent([hottest]),
        keys_seen=keys_seen,
        storage_spread=round(max(densities) / least, 2) if least else None,
    )


def _refused_percent(loads: Sequence[Load]) -> float:
    requests = sum(load.requests for load in loads)
    return round(100 * sum(load.refused for load in loads) / requests, 1) if requests else 0.0


# -- words ---------------------------------------------------------------------------------------------------


def percent_text(percent: float) -> str:
    """A share as people read it: whole, with two digits below one percent."""
    return f"{percent:.2f} %" if 0 < percent < 1 else f"{percent:.0f} %"


def _idle(facts: Facts, requests: int) -> Balance:
    counted = "No request" if requests == 0 else "1 request" if requests == 1 else f"{requests} requests"
    spread = facts.storage_spread
    why = "The balance shows when the container is at work."
    if spread is not None and spread >= 2:
        why = f"For its share of the hash space the fullest partition holds {spread:.1f} times what the emptiest does."
    return Balance(
        level=Level.UNKNOWN,
        kind=Kind.IDLE,
        sentence=f"{counted} in the last minute: too few to judge by.",
        why=why,
        usable_percent=None,
        facts=facts,
    )


def _few_values(facts: Facts, count: int) -> tuple[str, str]:
    return (
        f"Only {facts.keys_seen} values of the partition key are at work on {count} physical partitions.",
        f"A value is always on one physical partition, so {facts.keys_seen} of {count} do all the work at best. "
        "Neither a split nor more throughput helps; a key with many more values does.",
    )


def _hot_value(facts: Facts, hot: HotValue, count: int, is_refusing: bool) -> tuple[str, str]:
    sentence = f"One value, {hot.shown}, takes {percent_text(hot.share_percent)} of the request units."
    where = f"It is on partition {facts.hottest_partition}, which"
    does = (
        f"refuses {percent_text(facts.hottest_throttled_percent)} of its requests"
        if is_refusing
        else f"uses {percent_text(facts.hottest_partition_percent)} of what it is allowed"
    )
    while_others = ""
    if count > 1 and facts.other_partitions_percent is not None:
        while_others = f", while the others use {percent_text(facts.other_partitions_percent)} of theirs"
    return sentence, (
        f"{where} {does}{while_others}. A split does not help, and more throughput helps little: one value is always "
        "on one physical partition. A key with more values helps."
    )


def _uneven(facts: Facts, usable: float) -> tuple[str, str]:
    used = percent_text(facts.hottest_partition_percent)
    others = percent_text(facts.other_partitions_percent or 0.0)
    return (
        f"Partition {facts.hottest_partition} works hardest: it uses {used} of what it is allowed, "
        f"the others {others}.",
        f"Only {percent_text(usable)} of the throughput can be used before it refuses requests. No single value is to "
        "blame, so a split of it, or more throughput for it, helps.",
    )


def _full(facts: Facts, count: int) -> tuple[str, str]:
    refused = percent_text(facts.throttled_percent)
    if count == 1:
        return (
            f"The one physical partition refuses {refused} of its requests.",
            "All of the throughput is used. More throughput helps.",
        )
    return (
        f"The load is spread evenly, and {refused} of the requests are refused.",
        "All physical partitions are about as busy, so more throughput helps.",
    )


def _balanced(facts: Facts, count: int, usable: float) -> tuple[str, str]:
    hottest = ""
    if facts.hottest_key is not None and facts.hottest_key_share is not None:
        share = percent_text(facts.hottest_key_share)
        hottest = f"the hottest, {facts.hottest_key}, takes {share} of the request units"
    if count == 1:
        return (
            "There is one physical partition, so all of the throughput can be used.",
            f"Of the values of the partition key {hottest}." if hottest else "Nothing is refused.",
        )
    seen = f"{facts.keys_seen:,} values or more had requests" if facts.keys_seen > 1 else ""
    why = "; ".join(part for part in (seen, hottest) if part)
    return (
        f"The load is spread evenly: {percent_text(usable)} of the throughput can be used.",
        f"{why[:1].upper()}{why[1:]}." if why else "No value stands out.",
    )
