"""The checking wrappers find a store that breaks its contract: one lie for each way to break each invariant.

Two invariants no single call can show: that a commit survives the end of the process (1), which the crash tests prove,
and that a save is whole (C1), which shows itself in the next load (C4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from pleiad.keys.range import WHOLE, EpkRange
from pleiad.store import catalog, segments
from pleiad.store.budget import BudgetClaim, BudgetPart, BudgetParts
from pleiad.store.catalog import Record
from pleiad.store.checked import pages
from pleiad.store.checked.breach import CALLER, ContractError
from pleiad.store.checked.segment import CheckedSegment
from pleiad.store.checked.store import CheckedCatalogStore, CheckedSegmentStore, checked
from pleiad.store.moves import Division, ExportMark, Totals, TotalsChange
from pleiad.store.rows import (
    ItemKey,
    Mutation,
    Outcome,
    PartitionState,
    PartitionWrite,
    Precondition,
    Result,
    Row,
    Verb,
    WholeRow,
)
from pleiad.store.segments import Segment, SegmentDroppedError, SegmentOutOfServiceError
from pleiad.store.selection import OrderPosition, PathOrder, Selection
from pleiad.store.sqlite.store import SqliteStore

Lie = Callable[..., Any]
TTL = 10


class Liar:
    """A segment or store that tells the truth but in one method, whose answers pass through a lie."""

    def __init__(self, inner: object, method: str, lie: Lie) -> None:
        self._inner = inner
        self._method = method
        self._lie = lie
        self._calls = 0

    def __getattr__(self, name: str) -> Any:
        truth = getattr(self._inner, name)
        if name != self._method:
            return truth
        if name == "snapshot":
            return lambda: Liar(truth(), "find", self._lie)

        async def lying(*given: Any, **named: Any) -> Any:
            self._calls += 1
            try:
                answer = await truth(*given, **named)
            except (SegmentDroppedError, SegmentOutOfServiceError) as error:
                answer = error
            told = self._lie(self._calls, answer, *given)
            if isinstance(told, Exception):
                raise told
            return told

        return lying


def epk(key: int) -> bytes:
    return bytes([key]) * 16


def put(verb: Verb, key: int, id: str, **more: Any) -> Mutation:
    return Mutation(verb, epk(key), id, b'{"n":1}', 10, 1, **more)


def write(*mutations: Mutation, epoch: int = 1, now: int = 1_000, **more: Any) -> PartitionWrite:
    return PartitionWrite(0, epoch, now, mutations, **more)


async def live(segment: Segment) -> None:
    """One of every call, each with something to tell."""
    await segment.commit(write(*[put(Verb.CREATE, key, f"i{key}") for key in range(4)]))
    await segment.commit(write(put(Verb.UPSERT, 1, "i1", unique_values=(b"u",))))
    await segment.commit(write(put(Verb.CREATE, 1, "i1")))
    await segment.commit(write(put(Verb.CREATE, 1, "other", unique_values=(b"u",))))
    await segment.commit(write(put(Verb.REPLACE, 1, "i1", precondition=Precondition(lsn=1))))
    await segment.commit(write(put(Verb.CREATE, 5, "a"), put(Verb.CREATE, 5, "b"), atomic=True))
    await segment.commit(write(put(Verb.CREATE, 6, "a"), put(Verb.CREATE, 5, "b"), atomic=True))
    await segment.commit(write(put(Verb.UPSERT, 2, "i2"), put(Verb.CREATE, 7, "v"), keep_versions=True))
    await segment.commit(write(Mutation(Verb.DELETE, epk(3), "i3"), keep_versions=True))
    row = await segment.read(epk(1), "i1")
    assert row is not None
    await segment.read_many([ItemKey(epk(1), "i1"), ItemKey(epk(9), "no")])
    await segment.find(row.number)
    await segment.find_many([row.number, row.number + 1])
    await segment.scan(WHOLE, 1, 3)
    await segment.scan_back(WHOLE, 9, 3)
    await segment.changes(WHOLE, 2, 2)
    await segment.versions(WHOLE, 0, 2)
    await segment.state(0)
    await segment.logical_partitions(WHOLE)
    await segment.largest_logical_partitions(WHOLE, 2)
    await segment.select(Selection(WHOLE, default_ttl=TTL, now=1_001), 1, 3)
    await segment.glance(Selection(WHOLE), ("a", "b"), 1, 3)
    await segment.count(Selection(WHOLE))
    await segment.totals(WHOLE)
    await segment.middle(WHOLE)
    snapshot = segment.snapshot()
    for _ in range(2):
        await snapshot.find(row.number)
    snapshot.close()
    await segment.track_deletes(True)
    await segment.commit(write(Mutation(Verb.DELETE, epk(5), "a")))
    await segment.export(WHOLE, ExportMark(2, 0, 0), 2)
    await segment.import_rows(WHOLE, [WholeRow(Row(5 << 36, epk(8), "x", 3, 9, 5, 10, 1, b"{}"))])
    await segment.expired(WHOLE, 100, TTL, 5)
    await segment.commit(write(put(Verb.UPSERT, 8, "x"), now=2_000, default_ttl=TTL))
    await segment.fence(0, 1)
    await segment.commit(write(put(Verb.CREATE, 9, "late")))
    await segment.reopen(0, 3)
    await segment.state(0)
    await segment.divide(Division(0, 3, WHOLE, epk(4), 1, 2))
    await segment.commit(write(put(Verb.CREATE, 9, "later"), epoch=3))


def at(call: int, lie: Callable[..., Any]) -> Lie:
    """Lies at one call."""
    return lambda calls, answer, *given: lie(answer, *given) if calls == call else answer


def outcome(call: int, place: int, **changed: Any) -> Lie:
    """Changes one outcome of one commit."""

    def lie(answer: Sequence[Outcome], *given: Any) -> list[Outcome]:
        told = list(answer)
        told[place] = told[place]._replace(**changed)
        return told

    return at(call, lie)


def row_of(call: int, place: int, **changed: Any) -> Lie:
    """Changes the row of one outcome."""

    def lie(answer: Sequence[Outcome], *given: Any) -> list[Outcome]:
        told = list(answer)
        row = told[place].row
        assert row is not None
        told[place] = told[place]._replace(row=row._replace(**changed))
        return told

    return at(call, lie)


def applied(call: int, lsn: int, number: int) -> Lie:
    """Tells that a refused or gone mutation was applied."""

    def lie(answer: Sequence[Outcome], asked: PartitionWrite) -> list[Outcome]:
        row = asked.mutations[0].row_after(number, lsn, asked.now)
        return [Outcome(Result.CREATED, lsn, row)]

    return at(call, lie)


def first(lie: Callable[[Any], Any]) -> Lie:
    return at(1, lambda answer, *given: lie(answer))


def dead_old(answer: Sequence[Outcome], *given: Any) -> list[Outcome]:
    (told,) = answer
    assert told.row is not None
    return [told._replace(result=Result.REPLACED, old=told.row._replace(ts=1, ttl=5, lsn=1))]


LIES: dict[str, tuple[str, str, Lie]] = {
    "an outcome is missing": ("2", "commit", first(lambda told: told[:-1])),
    "a row is not what was written": ("2", "commit", row_of(1, 0, body=b'{"n":2}')),
    "a row got another time": ("2", "commit", row_of(1, 0, ts=7)),
    "half of an atomic write": ("2", "commit", outcome(6, 1, result=Result.ABANDONED, lsn=0, row=None)),
    "abandoned though alone": ("2", "commit", outcome(1, 1, result=Result.ABANDONED, lsn=0, row=None)),
    "something of an abandoned mutation": ("2", "commit", outcome(7, 0, lsn=9)),
    "an LSN is left out": ("3", "commit", row_of(1, 3, lsn=9)),
    "an LSN jumps": ("3", "commit", at(2, lambda told, *_: [_moved(told[0], lsn=7)])),
    "an LSN comes again": ("3", "commit", at(2, lambda told, *_: [_moved(told[0], lsn=4)])),
    "an LSN for nothing": ("3", "commit", outcome(3, 0, lsn=9)),
    "an atomic write has two LSNs": (
        "3",
        "commit",
        at(6, lambda told, *_: [told[0], _moved(told[1], lsn=9)]),
    ),
    "a number of another partition": ("3", "commit", row_of(1, 0, number=1 << 36)),
    "numbers that go back": (
        "3",
        "commit",
        at(6, lambda told, *_: [_moved(each, number=1) for each in told]),
    ),
    "an item gets another number": ("3", "commit", row_of(2, 0, number=77)),
    "the LSN of a partition goes back": ("3", "state", first(lambda told: _state(told, lsn=1))),
    "one id twice": ("4", "commit", applied(3, lsn=6, number=40)),
    "one unique value twice": ("4", "commit", applied(4, lsn=6, number=40)),
    "one id twice in a page": (
        "4",
        "scan",
        first(lambda told: [*told[:2], told[1]._replace(number=1 << 50)]),
    ),
    "a dead row is found": ("5", "commit", at(11, dead_old)),
    "a dead row is selected": ("5", "select", first(lambda told: [told[0]._replace(ts=1)])),
    "an expired row that is not": ("5", "expired", first(lambda told: [told[0]._replace(ts=99)])),
    "applied under an old epoch": ("6", "commit", applied(13, lsn=20, number=90)),
    "a write that is gone leaves something": ("6", "commit", outcome(13, 0, lsn=20)),
    "a fence that does not raise the epoch": ("6", "fence", first(lambda told: _state(told, epoch=1))),
    "an epoch goes back": ("6", "state", at(2, lambda told, *_: _state(told, epoch=2))),
    "opened again under an older epoch": ("6", "reopen", first(lambda told: _state(told, epoch=2))),
    "halves with an epoch of their own": (
        "6",
        "divide",
        first(lambda told: (_state(told[0], epoch=2), told[1])),
    ),
    "halves that count anew": (
        "3",
        "divide",
        first(lambda told: tuple(_state(half, lsn=0) for half in told)),
    ),
    "no version is kept": ("8", "versions", lambda calls, *_: []),
    "a version of nothing": ("8", "versions", at(4, lambda told, *_: [told[0]._replace(previous_body=b"")])),
    "gone although nobody dropped it": ("10", "read", first(lambda told: SegmentDroppedError())),
    "another row than asked for": ("11", "read", first(lambda told: told._replace(id="i2"))),
    "too few answers": ("11", "read_many", first(lambda told: told[:1])),
    "another number than asked for": ("11", "find", first(lambda told: told._replace(number=3))),
    "a number that nobody asked for": ("11", "find_many", first(lambda told: [told[0]._replace(number=99)])),
    "one number twice": ("11", "find_many", first(lambda told: [*told, *told])),
    "rows out of order": ("11", "scan", first(lambda told: told[::-1])),
    "more rows than asked for": ("11", "scan", first(lambda told: [*told, *told])),
    "a row that was there before": ("11", "scan", first(lambda told: [told[0]._replace(number=1)])),
    "a row of another range": ("11", "scan", first(lambda told: [told[0]._replace(epk=b"\xff")])),
    "glances out of order": ("11", "glance", first(lambda told: told[::-1])),
    "a glance without a property": ("11", "glance", first(lambda told: [told[0][:-1]])),
    "a glance at a row that was there before": ("11", "glance", first(lambda told: [(1, *told[0][1:])])),
    "more glances than asked for": ("11", "glance", first(lambda told: [*told, (1 << 50, *told[0][1:])])),
    "changes out of order": ("11", "changes", first(lambda told: told[::-1])),
    "changes beyond the limit": ("11", "changes", first(lambda told: [*told, told[1]._replace(lsn=99)])),
    "versions out of order": ("11", "versions", at(4, lambda told, *_: told[::-1])),
    "logical partitions out of order": ("11", "logical_partitions", first(lambda told: told[::-1])),
    "more than the largest": ("11", "largest_logical_partitions", first(lambda told: [*told, *told])),
    "the smallest first": ("11", "largest_logical_partitions", first(lambda told: told[::-1])),
    "a count below nothing": ("11", "count", first(lambda told: (-1, 0))),
    "totals below nothing": ("11", "totals", first(lambda told: Totals(-1, 0))),
    "a middle outside": ("11", "middle", first(lambda told: b"\xff")),
    "a mark that is not reached": (
        "11",
        "export",
        first(lambda told: _changed(told, mark=ExportMark(99, 9, 0))),
    ),
    "a row that is there and deleted": (
        "11",
        "export",
        first(lambda told: _changed(told, deletes=[told.rows[0].number])),
    ),
    "more imported than there was": ("11", "import_rows", first(lambda told: TotalsChange(2, 20))),
    "a precondition was not looked at": (
        "12",
        "commit",
        outcome(5, 0, result=Result.LOGICAL_PARTITION_FULL),
    ),
    "refused for no reason": (
        "12",
        "commit",
        outcome(2, 0, result=Result.PRECONDITION_FAILED, lsn=0, row=None),
    ),
    "a read behind a write": ("13", "read", first(lambda told: told._replace(lsn=1))),
    "a read that misses a write": ("13", "read", first(lambda told: None)),
    "many reads behind a write": ("13", "read_many", first(lambda told: [told[0]._replace(lsn=1), told[1]])),
    "a snapshot that moves": ("14", "snapshot", at(2, lambda told, *_: told._replace(ts=5))),
}


def _moved(told: Outcome, **changed: Any) -> Outcome:
    assert told.row is not None
    return told._replace(lsn=changed.get("lsn", told.lsn), row=told.row._replace(**changed))


def _state(state: PartitionState, **changed: int) -> PartitionState:
    return cast("PartitionState", _changed(state, **changed))


def _changed(value: Any, **changed: Any) -> Any:
    fields = {name: getattr(value, name) for name in value.__slots__}
    return type(value)(**{**fields, **changed})


async def test_a_store_that_keeps_its_contract_is_not_blamed(tmp_path: Path) -> None:
    store = checked(SqliteStore(tmp_path, durable=False))
    segment = store.segment("s")
    await live(segment)
    await store.drop_segments(["s"])
    with pytest.raises(SegmentDroppedError):
        await segment.read(epk(1), "i1")
    await store.close()


@pytest.mark.parametrize("name", LIES)
async def test_a_store_that_breaks_an_invariant_is_found(tmp_path: Path, name: str) -> None:
    invariant, method, lie = LIES[name]
    store = SqliteStore(tmp_path, durable=False)
    segment = CheckedSegment(cast("Segment", Liar(store.segment("s"), method, lie)), is_shared=False)
    try:
        with pytest.raises(ContractError) as found:
            await live(segment)
        assert found.value.invariant == invariant, found.value
    finally:
        await store.close()


async def test_a_dropped_segment_that_answers_is_found(tmp_path: Path) -> None:
    inner = SqliteStore(tmp_path, durable=False)
    store = CheckedSegmentStore(inner, is_shared=False)
    segment = store.segment("s")
    segment.inner = cast("Segment", Liar(segment.inner, "read", lambda calls, answer, *_: None))
    await segment.read(epk(1), "a")
    await store.drop_segments(["s"])
    with pytest.raises(ContractError, match="invariant 7"):
        await segment.read(epk(1), "a")
    await inner.close()


async def test_a_damaged_segment_that_answers_again_is_found(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, durable=False)
    damaged = Liar(store.segment("s"), "read", first(lambda told: SegmentOutOfServiceError()))
    segment = CheckedSegment(cast("Segment", damaged), is_shared=False)
    with pytest.raises(SegmentOutOfServiceError):
        await segment.read(epk(1), "a")
    with pytest.raises(ContractError, match="invariant 9"):
        await segment.read(epk(1), "a")
    await store.close()


async def test_a_caller_that_asks_for_what_cannot_be_is_found(tmp_path: Path) -> None:
    store = checked(SqliteStore(tmp_path, durable=False))
    segment = store.segment("s")
    stray = WholeRow(Row(1, epk(9), "x", 1, 1, None, 1, 1, b"{}"))
    for call in (
        segment.commit(write(put(Verb.UPSERT, 1, "a", new_id="b"))),
        segment.scan(WHOLE, 0, -1),
        segment.scan_back(WHOLE, 9, -1),
        segment.import_rows(EpkRange(epk(1), epk(2)), [stray]),
        store.save_records([record("a"), record("a")], []),
    ):
        with pytest.raises(ContractError) as found:
            await call
        assert found.value.invariant == CALLER
    await store.close()


def test_an_order_that_is_none_is_found() -> None:
    rows = [Row(number, epk(1), f"i{number}", 1, 1, None, 1, 1, b"{}") for number in (1, 2)]
    found = [(row, OrderPosition(4, value, row.number)) for row, value in zip(rows, "ba", strict=True)]
    pages.check_ordered(found, PathOrder(("p",), descending=True), None, 2)
    for order, after, limit in (
        (PathOrder(("p",)), None, 2),
        (PathOrder(("p",), descending=True), OrderPosition(4, "a", 9), 2),
        (PathOrder(("p",), descending=True), None, 1),
    ):
        with pytest.raises(ContractError, match="invariant 11"):
            pages.check_ordered(found, order, after, limit)


# -- the catalog ------------------------------------------------------------------------------------------


def record(rid: str, name: str | None = None, **body: Any) -> Record:
    return Record("kind", rid, "", name or rid, body)


async def keep_records(store: CheckedCatalogStore) -> None:
    """One of every call on a catalog."""
    await store.load_records()
    await store.save_records([record("a"), record("b")], [])
    await store.load_records()
    await store.save_records([record("c")], [], [record("a", changed=1)])
    await store.save_records([record("c")], [record("b")], [record("a")])
    await store.load_records()
    await store.is_behind()
    await store.share_budgets([BudgetClaim("one", 1, 1, 0)], False, 1)


CATALOG_LIES: dict[str, tuple[str, str, Lie]] = {
    "one identity twice": ("C2", "load_records", at(2, lambda told, *_: [*told, record("a", "other")])),
    "one name twice": ("C2", "load_records", at(2, lambda told, *_: [*told, record("z", "a")])),
    "saved against what was expected": ("C3", "save_records", at(2, lambda told, *_: True)),
    "not saved although all was as expected": ("C3", "save_records", at(3, lambda told, *_: False)),
    "half a save": ("C4", "load_records", at(2, lambda told, *_: told[:1])),
    "a deleted record is there": ("C4", "load_records", at(3, lambda told, *_: [*told, record("b")])),
    "behind nobody": ("C4", "is_behind", first(lambda told: True)),
    "more than all of a budget": (
        "C5",
        "share_budgets",
        first(lambda told: BudgetParts(2, {"one": BudgetPart(1.5, ())})),
    ),
    "a budget nobody named": (
        "C5",
        "share_budgets",
        first(lambda told: BudgetParts(2, {"two": BudgetPart(0.5, ())})),
    ),
    "no server at all": ("C5", "share_budgets", first(lambda told: BudgetParts(0, {}))),
}


async def test_a_catalog_that_keeps_its_contract_is_not_blamed(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, durable=False)
    await keep_records(CheckedCatalogStore(store))
    await store.close()


@pytest.mark.parametrize("name", CATALOG_LIES)
async def test_a_catalog_that_breaks_an_invariant_is_found(tmp_path: Path, name: str) -> None:
    invariant, method, lie = CATALOG_LIES[name]
    store = SqliteStore(tmp_path, durable=False)
    try:
        with pytest.raises(ContractError) as found:
            await keep_records(CheckedCatalogStore(cast("Any", Liar(store, method, lie))))
        assert found.value.invariant == invariant, found.value
    finally:
        await store.close()


def test_every_invariant_that_a_call_can_show_has_a_lie_that_breaks_it() -> None:
    numbered = {line.split(".")[0] for line in _head(segments) if line[:1].isdigit()}
    numbered |= {line.split(".")[0] for line in _head(catalog) if line[:1] == "C" and line[1:2].isdigit()}
    broken = {invariant for invariant, _, _ in (*LIES.values(), *CATALOG_LIES.values())}
    shown_elsewhere = {"1", "7", "9", "C1"}
    assert broken | shown_elsewhere == numbered


def _head(module: Any) -> list[str]:
    return str(module.__doc__).splitlines()
