"""When a mutation may not touch what it finds: the verb against the row, and the precondition against its LSN.

The rule is a table, of which the first row that applies counts. SQLite's store asks `refusal`; PostgreSQL's renders the
table into the function that applies mutations.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from pleiad.store.rows import NO_PRECONDITION, Mutation, Precondition, Result, Row, Verb


class Demand(Enum):
    """A part of a precondition that can be broken."""

    MUST_EXIST = "must exist"
    MUST_BE_ABSENT = "must be absent"
    LSN = "the LSN must be the one given"
    NOT_LSN = "the LSN must not be the one given"


class Refusal(NamedTuple):
    """Mutations with one of these verbs, finding a row or none, end so; given a demand, only if it is broken."""

    verbs: tuple[Verb, ...]
    finds_row: bool
    broken: Demand | None
    result: Result


_EVERY_CHANGE = (Verb.UPSERT, Verb.REPLACE, Verb.DELETE)
REFUSALS = (
    Refusal((Verb.CREATE,), True, None, Result.EXISTS),
    Refusal((Verb.REPLACE, Verb.DELETE), False, None, Result.MISSING),
    # An upsert without a row creates, whichever version it would have replaced.
    Refusal((Verb.UPSERT,), False, Demand.MUST_EXIST, Result.PRECONDITION_FAILED),
    Refusal(_EVERY_CHANGE, True, Demand.MUST_BE_ABSENT, Result.PRECONDITION_FAILED),
    Refusal(_EVERY_CHANGE, True, Demand.LSN, Result.PRECONDITION_FAILED),
    Refusal(_EVERY_CHANGE, True, Demand.NOT_LSN, Result.PRECONDITION_FAILED),
)

_Test = Callable[[Precondition, int], bool]
_IS_BROKEN: dict[Demand | None, _Test] = {
    None: lambda given, lsn: True,
    Demand.MUST_EXIST: lambda given, lsn: given.must_exist,
    Demand.MUST_BE_ABSENT: lambda given, lsn: given.must_be_absent,
    Demand.LSN: lambda given, lsn: given.lsn is not None and given.lsn != lsn,
    Demand.NOT_LSN: lambda given, lsn: given.not_lsn == lsn,
}
_NO_ROW = -2
"""The LSN of no row, and not NEVER either."""


# By the value of the verb: to hash the verb itself is a call in Python, and this runs for every write.
_Tests = dict[str, tuple[tuple[_Test, Result], ...]]


def _tests(finds_row: bool) -> _Tests:
    return {
        verb.value: tuple(
            (_IS_BROKEN[rule.broken], rule.result)
            for rule in REFUSALS
            if verb in rule.verbs and rule.finds_row is finds_row
        )
        for verb in Verb
    }


def _without_precondition(tests: _Tests) -> dict[str, Result | None]:
    return {
        verb: next((result for is_broken, result in each if is_broken(NO_PRECONDITION, _NO_ROW)), None)
        for verb, each in tests.items()
    }


_WITH_ROW, _WITHOUT_ROW = _tests(True), _tests(False)
_WITH_ROW_PLAIN, _WITHOUT_ROW_PLAIN = _without_precondition(_WITH_ROW), _without_precondition(_WITHOUT_ROW)


def refusal(mutation: Mutation, found: Row | None) -> Result | None:
    """Why a mutation may not touch the row it found, or None when it may."""
    verb = mutation.verb._value_
    if mutation.precondition is NO_PRECONDITION:
        return (_WITHOUT_ROW_PLAIN if found is None else _WITH_ROW_PLAIN)[verb]
    tests = (_WITHOUT_ROW if found is None else _WITH_ROW)[verb]
    lsn = _NO_ROW if found is None else found.lsn
    for is_broken, result in tests:
        if is_broken(mutation.precondition, lsn):
            return result
    return None
