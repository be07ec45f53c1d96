"""Answers of several workers made into one: what each of them counted is added up, what all of them see is told once.

Members are told apart by their names, which mean one thing in the whole admin API. What is not named here is the same
for all workers, and the first that knows it is believed. A percentile or the busiest second of all cannot be had from
those of each: the slowest worker's percentile is told, and the sum of the busiest seconds, which is an upper bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_ADDED = frozenset(
    {"requests", "ru", "throttled", "lastSecond", "lastMinute", "total", "requestsLastMinute", "throttledLastMinute"}
    | {"overBudget", "busiestSecondRu", "ruPerSecond", "serverShare", "normalizedPercent", "busyPercent", "keysSeen"}
)  # fmt: skip
_COUNTED_BY = frozenset({"requests", "throttled", "busyPercent"})
"""Of these an object may be told, with a number for each operation or physical partition."""
_MOST = {"serverShare": 1.0, "normalizedPercent": 100.0, "busyPercent": 100.0}
"""What no sum of these can be above."""
_GREATEST = frozenset({"p50Ms", "p99Ms", "seconds", "uptimeSeconds", "lsn", "items", "bytes"})
_LISTS: dict[str, tuple[str, ...]] = {
    "partitions": ("id",),
    "containers": ("database", "container"),
    "minutes": ("at",),
    "rows": ("at",),
    "warnings": ("kind", "database", "container", "partition", "key"),
    "hottest": ("epk",),
}
"""Lists of objects, by what tells their members apart."""
_WHOLE = frozenset({"throughput", "history", "largest"})
"""What the catalog or the store says, and one worker as well as another."""
_LEVELS = ("unknown", "good", "warn", "bad")
_IN_ORDER = frozenset({"minutes", "rows"})
_DIGITS = 3


def one_of(answers: Sequence[Any]) -> Any:
    """One answer of those of all workers; the first is that of the worker that was asked."""
    if any("hottest" in each for each in answers):
        _share_anew(answers)
    return _merged("", list(answers))


def _merged(name: str, values: list[Any]) -> Any:
    known = [value for value in values if value is not None]
    if not known:
        return None
    first = known[0]
    if name in _WHOLE:
        return first
    if name == "balance":  # a judgement, of whoever has seen most
        return max(known, key=lambda each: each["facts"]["keysSeen"] or 0)
    if name == "level":
        return max(known, key=_LEVELS.index)
    if name == "events":  # all workers notice all of them, from their start on
        return max(known, key=len)
    if isinstance(first, dict):
        return _merged_members(name, known)
    if isinstance(first, list):
        return _merged_list(name, known)
    if isinstance(first, bool) or not isinstance(first, int | float):
        return first
    if name in _ADDED:
        total = sum(known)
        return min(_rounded(total), _MOST.get(name, total))
    return max(known) if name in _GREATEST else first


def _merged_members(name: str, objects: list[dict[str, Any]]) -> dict[str, Any]:
    """An object whose members go by their own names, and those of a count by something by the name of the whole."""
    members = dict.fromkeys(member for each in objects for member in each)
    return {
        member: _merged(name if name in _COUNTED_BY else member, [each.get(member) for each in objects])
        for member in members
    }


def _merged_list(name: str, lists: list[list[Any]]) -> list[Any]:
    if name in _ADDED:
        return [_merged(name, list(column)) for column in zip(*lists, strict=False)]
    if name not in _LISTS or not any(isinstance(each, dict) for each in lists[0] or lists[-1]):
        return next((each for each in lists if each), lists[0])
    found: dict[tuple[str, ...], list[Any]] = {}
    for each in (one for many in lists for one in many):
        found.setdefault(tuple(repr(each.get(part)) for part in _LISTS[name]), []).append(each)
    merged = [_merged("", same) for same in found.values()]
    if name in _IN_ORDER:
        merged.sort(key=lambda each: each["at"])
    if name == "hottest":
        merged.sort(key=lambda each: -each["ruPerSecond"])
        return merged[: max(map(len, lists))]
    return merged


def _share_anew(answers: Sequence[dict[str, Any]]) -> None:
    """Sets the shares of the hottest keys to those of all that all workers served."""
    used: list[float] = []
    for answer in answers:
        known = [each for each in answer.get("hottest", []) if each["share"]]
        used.append(100 * known[0]["ruPerSecond"] / known[0]["share"] if known else 0.0)
    by_key: dict[str, float] = {}
    for each in (one for answer in answers for one in answer.get("hottest", [])):
        by_key[each["epk"]] = by_key.get(each["epk"], 0.0) + each["ruPerSecond"]
    whole = sum(used)
    for each in (one for answer in answers for one in answer.get("hottest", [])):
        each["share"] = round(100 * by_key[each["epk"]] / whole, 2) if whole else 0.0


def one_history(answers: Sequence[dict[str, Any]]) -> Any:
    """The history of an account: in that of each container, minutes have their places in lists."""
    minutes: dict[tuple[str, str], dict[int, list[tuple[Any, Any]]]] = {}
    for each in (container for answer in answers for container in answer["containers"]):
        of_container = minutes.setdefault((each["database"], each["container"]), {})
        for place, pair in enumerate(zip(each["ru"], each["throttled"], strict=True)):
            of_container.setdefault(each["at"] + 60 * place, []).append(pair)
    merged = _merged("", [{**answer, "containers": []} for answer in answers])
    for (database, container), found in minutes.items():
        first, last = min(found), max(found)
        columns = [found.get(at, []) for at in range(first, last + 1, 60)]
        merged["containers"].append(
            {
                "database": database,
                "container": container,
                "at": first,
                "ru": [_merged("ru", [ru for ru, _ in column]) for column in columns],
                "throttled": [_merged("throttled", [count for _, count in column]) for column in columns],
            }
        )
    return merged


_SUMS_OF_ENTRIES = ("requests", "throttled", "ru", "ms", "partitions")


def one_list_of_busiest(answers: Sequence[dict[str, Any]]) -> Any:
    """What keeps the account busy, kind by kind."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for each in (entry for answer in answers for entry in answer["entries"]):
        kind = (each["container"], each["operation"], each["query"])
        if kind not in found:
            found[kind] = each
            continue
        sums = found[kind]
        for name in _SUMS_OF_ENTRIES:
            sums[name] = _rounded(sums[name] + each[name])
        sums["buckets"] = [one + other for one, other in zip(sums["buckets"], each["buckets"], strict=True)]
    return {**answers[0], "entries": list(found.values())}


def _rounded(value: float) -> float:
    return value if isinstance(value, int) else round(value, _DIGITS)
