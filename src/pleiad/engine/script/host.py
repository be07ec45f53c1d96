"""What a script does to the database: its operations, one by one, in one transaction of one logical partition.

An operation arrives as JSON that a script had a hand in, so everything in it is checked. Its answer is JSON for the
script: the resource, or the number and text of an error. What an item will be called after the commit is not known
before it, so the script sees a provisional `_rid` and `_etag` of what it wrote; they lead back to the item as long as
the script runs, and are put right in what the script answers.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import re
import time
from collections.abc import Sequence
from typing import Any

import orjson

from pleiad import charge, errors
from pleiad.charge import Charge
from pleiad.engine.container import Container
from pleiad.engine.items import Conditions, Key
from pleiad.engine.script.clock import Clock
from pleiad.engine.script.query import ScriptQueries
from pleiad.engine.transaction import (
    AllowedOperation,
    Identity,
    ItemOperation,
    ItemVerb,
    Transaction,
    plan_operation,
    step_charge,
)
from pleiad.errors import PleiadError
from pleiad.item import rid as rids
from pleiad.partition.partition import Partition
from pleiad.query.pace import SLICE_SECONDS, Pace
from pleiad.script.failure import NUMBERS
from pleiad.script.process import ScriptProcess
from pleiad.store.rows import ItemKey, Outcome, Row
from pleiad.store.segments import SegmentDroppedError, Snapshot

_STEPS_KEPT = 100
_PROVISIONAL_PARTITION = 2**rids.PARTITION_BITS - 1
_PROVISIONAL_LSN_HIGH = 0xFFFF
_PROVISIONAL_ETAG = re.compile(rb"[0-9a-f]{8}-ffff-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_RID = re.compile(rb"[A-Za-z0-9+-]{22}==")
_WRITES = {
    "create": ItemVerb.CREATE,
    "upsert": ItemVerb.UPSERT,
    "replace": ItemVerb.REPLACE,
    "delete": ItemVerb.DELETE,
}


class ScriptHost:
    """The database as one attempt of one request's scripts sees and changes it."""

    def __init__(
        self,
        container: Container,
        partition: Partition,
        key: Key,
        now: int,
        process: ScriptProcess,
        clock: Clock,
    ) -> None:
        self._container = container
        self._partition = partition
        self._key = key
        self._clock = clock
        self._moment: Snapshot | None = None
        self._numbers = itertools.count(random.getrandbits(rids.SEQUENCE_BITS - 1))
        self._lsns = itertools.count(random.getrandbits(31))
        self._provisional: list[Row] = []
        self.cost = Charge()
        """What the operations since `begin` cost."""
        self._spent_ru = 0.0
        self.steps: list[AllowedOperation] = []
        """The first operations on single items, in their order."""
        self.transaction = Transaction(
            container,
            partition,
            container.epk_of(key),
            now,
            self._read_many,
            binds_every_write=True,
            new_identity=self._new_identity,
        )
        self._queries = ScriptQueries(self.transaction, key, lambda: self._snapshot, process, clock)

    @property
    def _snapshot(self) -> Snapshot:
        """The moment of the transaction, which is that of its first read."""
        if self._moment is None:
            self._moment = self._partition.snapshot()
        return self._moment

    async def _read_many(self, keys: Sequence[ItemKey]) -> Sequence[Row | None]:
        return await self._snapshot.read_many(keys)

    def close(self) -> None:
        """Ends the moment."""
        if self._moment is not None:
            self._moment.close()

    @property
    def is_spent(self) -> bool:
        """Whether the scripts used up the request units of one execution."""
        return self._spent_ru > self._container.limits.script_ru

    def begin(self) -> None:
        """Begins to count the operations of the next script."""
        self.cost = Charge()

    # -- operations --------------------------------------------------------------------------------

    async def answer_all(self, operations: object) -> bytes:
        """Does operations in order, up to one response's bytes of results, in the form that the script resumes with."""
        if not isinstance(operations, list):
            raise errors.SCRIPT_FAILED(reason="the operations of the script are not a list.")
        results: list[bytes] = []
        room_bytes = self._container.limits.response_bytes
        slice_ends_at = time.perf_counter() + SLICE_SECONDS
        for operation in operations:
            if room_bytes <= 0:
                break  # the script gets what there is, and asks for the rest
            self._clock.check()
            if time.perf_counter() > slice_ends_at:
                await asyncio.sleep(0)
                slice_ends_at = time.perf_counter() + SLICE_SECONDS
            results.append(await self._answer(operation))
            room_bytes -= len(results[-1])
        spent = b"true" if self.is_spent else b"false"
        return b'{"isSpent":%b,"results":[%b]}' % (spent, b",".join(results))

    async def _answer(self, operation: object) -> bytes:
        """The result of one operation as JSON; a failure is a result too, and changes nothing."""
        try:
            if not isinstance(operation, dict):
                raise errors.BAD_REQUEST(reason="The operation is not an object.")
            return await self._do(operation)
        except SegmentDroppedError:
            raise  # the rows have moved: the script has to start over
        except PleiadError as error:
            self._count(charge.failed())
            return orjson.dumps({"error": [NUMBERS[error.reason], error.message]})

    async def _do(self, operation: dict[str, Any]) -> bytes:
        name = operation.get("do")
        if name in ("feed", "query"):
            page = await self._queries.page(operation)
            self._count(page.charge)
            options = orjson.dumps({} if page.continuation is None else {"continuation": page.continuation})
            return b'{"resources":[%b],"options":%b}' % (b",".join(page.results), options)
        if name == "read":
            return await self._read(operation)
        kind = _WRITES.get(name) if isinstance(name, str) else None
        if kind is None:
            raise errors.BAD_REQUEST(reason="There is no such operation.")
        return await self._write(kind, operation)

    async def _read(self, operation: dict[str, Any]) -> bytes:
        id = await self._document_id(operation)
        conditions = Conditions(None, _text(operation, "ifNoneMatch"))
        step = await self._step(ItemOperation(ItemVerb.READ, id, b"", conditions))
        assert step.row is not None
        if step.not_modified:
            return b'{"options":{"notModified":true}}'
        return b'{"resource":%b}' % self._container.render(step.row)

    async def _write(self, kind: ItemVerb, operation: dict[str, Any]) -> bytes:
        named = kind is ItemVerb.REPLACE or kind is ItemVerb.DELETE
        id = await self._document_id(operation) if named else ""
        text = operation.get("text", "")
        body = text.encode("utf-8", "replace") if isinstance(text, str) else b""
        await self.write(ItemOperation(kind, id, body, Conditions(_text(operation, "etag"), None)))
        if kind is ItemVerb.DELETE:
            return b"{}"
        return b'{"system":%b}' % orjson.dumps(self._container.system_properties(self._provisional[-1]))

    async def write(self, operation: ItemOperation) -> AllowedOperation:
        """Does one change, of a script or of the request that triggers belong to."""
        step = await self._step(operation)
        if step.item is not None:
            row = self.transaction.changed[step.item.id]
            assert row is not None
            self._provisional.append(row)
        return step

    async def _step(self, operation: ItemOperation) -> AllowedOperation:
        with Pace(self._container.limits, max(self._clock.seconds_left, 0.0)) as pace:
            planned = await plan_operation(self._container, self._key, operation, pace)
            step = await self.transaction.step(planned)
        if len(self.steps) < _STEPS_KEPT:
            self.steps.append(step)
        self._count(step_charge(self._container, step))
        return step

    def _count(self, cost: Charge) -> None:
        self.cost += cost
        self._spent_ru += cost.ru

    async def _document_id(self, operation: dict[str, Any]) -> str:
        """The id of the document an operation names, by id or by rid."""
        document = operation.get("document")
        if not isinstance(document, dict) or not isinstance(document.get("name"), str):
            raise errors.BAD_REQUEST(reason="The operation names no document.")
        name: str = document["name"]
        if not document.get("isRid") or len(name) != 24:
            return name
        number = rids.document_parts(name)[2]
        for row in self.transaction.changed.values():
            if row is not None and row.number == number:
                return row.id
        found = await self._snapshot.find(number)
        if found is None or found.epk != self.transaction.epk:
            raise errors.ITEM_NOT_FOUND(id=name)
        return found.id

    # -- provisional names -------------------------------------------------------------------------

    def _new_identity(self) -> Identity:
        lsn = _PROVISIONAL_LSN_HIGH << 32 | next(self._lsns) & 0xFFFFFFFF
        return Identity(rids.document_number(_PROVISIONAL_PARTITION, next(self._numbers)), lsn)

    def last_written(self) -> bytes:
        """The item that was written last, as the transaction sees it."""
        return self._container.render(self._provisional[-1])

    def settled(self, text: bytes, outcomes: Sequence[Outcome]) -> bytes:
        """A text of a script with the names that the commit gave in the place of the provisional ones."""
        if not self._provisional or (b"-ffff-" not in text and b"==" not in text):
            return text
        final = {outcome.row.id: outcome.row for outcome in outcomes if outcome.row is not None}
        names: dict[bytes, bytes] = {}
        for row in self._provisional:
            kept = final.get(row.id)
            if kept is not None:
                before, after = map(self._container.system_properties, (row, kept))
                names[before["_rid"].encode()] = after["_rid"].encode()
                names[before["_etag"].strip('"').encode()] = after["_etag"].strip('"').encode()

        def name(found: re.Match[bytes]) -> bytes:
            return names.get(found[0], found[0])

        return _RID.sub(name, _PROVISIONAL_ETAG.sub(name, text))


def _text(operation: dict[str, Any], name: str) -> str | None:
    value = operation.get(name)
    if value is not None and not isinstance(value, str):
        raise errors.BAD_REQUEST(reason=f"'{name}' must be a text.")
    return value or None
