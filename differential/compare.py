"""Two answers to one text: what agrees, and the cause of what does not."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from differential.ours import Answer
from pleiad.values.undefined import UNDEFINED

MEASURES = ("acceptance", "code", "text", "place", "plan", "ranges")


@dataclass(frozen=True, slots=True)
class Difference:
    """One text on which the two differ."""

    measure: str
    cause: str
    text: str
    expected: Any
    found: Any


@dataclass(slots=True)
class Tally:
    """How often a measure was taken and how often both agreed, with the differences."""

    asked: Counter[str] = field(default_factory=Counter)
    agreed: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)

    def note(self, measure: str, text: str, expected: Any, found: Any, cause: str = "") -> None:
        self.asked[measure] += 1
        if expected == found:
            self.agreed[measure] += 1
        else:
            self.differences.append(Difference(measure, cause, text, expected, found))

    def rate(self, measure: str) -> float:
        return self.agreed[measure] / self.asked[measure] if self.asked[measure] else 1.0


def same_value(one: Any, two: Any) -> bool:
    """Whether two values are the same to the last bit; 1 and 1.0 are."""
    if isinstance(one, bool) or isinstance(two, bool) or one is None or two is None:
        return one is two
    if isinstance(one, int | float) and isinstance(two, int | float):
        return one == two or (math.isnan(one) and math.isnan(two))
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(same_value, one, two))
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same_value(part, two[name]) for name, part in one.items())
    return type(one) is type(two) and (one is UNDEFINED or bool(one == two))


def note_answer(tally: Tally, text: str, expected: Answer, found: Answer) -> None:
    """Compare two answers to one query, measure by measure; later ones only where the earlier agree."""
    refused, refused_here = bool(expected.errors), bool(found.errors)
    cause = cause_of(expected, found)
    if refused != refused_here:
        tally.note("acceptance", text, _verdict(expected), _verdict(found), cause)
        for measure in ("code", "text", "place") if refused else ("plan", "ranges"):
            tally.note(measure, text, True, False, cause)
        return
    tally.note("acceptance", text, refused, refused_here, cause)
    if refused:
        for measure, member in (("code", "code"), ("text", "message"), ("place", "location")):
            tally.note(measure, text, _members(expected, member), _members(found, member), cause)
        return
    tally.note("plan", text, expected.plan, found.plan, cause)
    tally.note("ranges", text, expected.ranges, found.ranges, cause)


def _verdict(answer: Answer) -> str:
    return "refused: " + json.dumps(answer.errors, ensure_ascii=False) if answer.errors else "accepted"


def _members(answer: Answer, name: str) -> list[Any]:
    return [
        error.get(name) if isinstance(error, dict) else (error if name == "message" else None)
        for error in answer.errors
    ]


def cause_of(expected: Answer, found: Answer) -> str:
    """A short name for the kind of difference, the same for texts that differ for the same reason."""
    if expected.errors or found.errors:
        return f"{_codes(expected)} here {_codes(found)}"
    if expected.ranges != found.ranges:
        return _range_cause(expected.ranges, found.ranges)
    if expected.plan != found.plan:
        names = sorted(
            name
            for name in {*(expected.plan or ()), *(found.plan or ())}
            if (expected.plan or {}).get(name) != (found.plan or {}).get(name)
        )
        return ", ".join(names)
    return ""


def _range_cause(expected: Any, found: Any) -> str:
    if expected == []:
        return "only the service sees that no item can match"
    if found == []:
        return "only Pleiad sees that no item can match"
    if found == "all" or set(expected) < set(found):
        return "only the service sees that other keys cannot match"
    return "other keys"


def _codes(answer: Answer) -> str:
    if not answer.errors:
        return "accepted"
    codes = [str(each.get("code")) if isinstance(each, dict) else str(each)[:40] for each in answer.errors]
    return "+".join(dict.fromkeys(codes))


def report(tally: Tally, shown: int) -> Iterable[str]:
    """Rates, then the differences by cause, the most frequent first."""
    for measure in tally.asked:
        yield f"{measure:<12}{100 * tally.rate(measure):7.2f} %  ({tally.agreed[measure]} of {tally.asked[measure]})"
    groups: dict[tuple[str, str], list[Difference]] = {}
    for each in tally.differences:
        groups.setdefault((each.measure, each.cause), []).append(each)
    for (measure, cause), members in sorted(groups.items(), key=lambda pair: -len(pair[1])):
        yield f"\n{len(members):5} {measure}: {cause}"
        for each in sorted(members, key=lambda one: len(one.text))[:shown]:
            yield f"      {each.text!r}"
            if shown:
                yield f"        service {_short(each.expected)}"
                yield f"        here    {_short(each.found)}"


def _short(value: Any) -> str:
    text = "undefined" if value is UNDEFINED else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) < 400 else text[:400] + " …"
