"""The PostgreSQL store: one database that one or several servers work on.

Nothing is locked for one server: what keeps two of them from doing the same thing is the partition row for items, and
the expected records for the catalog.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import orjson
import psycopg

from pleiad import errors
from pleiad.store.budget import BudgetClaim, BudgetParts
from pleiad.store.catalog import Record
from pleiad.store.commits import CommitCounts
from pleiad.store.figures import StoreFigures
from pleiad.store.index_use import DEFAULT_INDEX_SETTINGS, IndexSettings
from pleiad.store.postgres import agreement, schema
from pleiad.store.postgres import reconcile as reconciling
from pleiad.store.postgres.budget import Budgets
from pleiad.store.postgres.company import CHANNEL, Company
from pleiad.store.postgres.connections import Connection, Connections, ConnectionSettings
from pleiad.store.postgres.freeing import Freeing
from pleiad.store.postgres.segment import PostgresSegment
from pleiad.store.problems import SETTINGS_DIFFER, Problems, SettingsDifferError
from pleiad.store.segments import FIRST_NODE

_log = logging.getLogger(__name__)

_PUT = (
    "INSERT INTO pleiad.record(kind, rid, parent, name, body) VALUES (%s, %s, %s, %s, %s) "
    "ON CONFLICT (kind, rid) DO UPDATE SET parent = excluded.parent, name = excluded.name, body = excluded.body"
)


_SNAPSHOTS_MAX = 10
_AGREE_ATTEMPTS = 7
_AGREE_AGAIN_SECONDS = 0.5


class PostgresStore:
    """Both contracts over one database; `open` makes one that is ready."""

    is_shared = True
    node = FIRST_NODE

    def __init__(
        self,
        connections: Connections,
        snapshots: Connections,
        index_settings: IndexSettings,
        company: Company,
        budgets: Budgets,
    ) -> None:
        self._snapshots = snapshots
        self._freeing = Freeing(connections)
        self._company = company
        self._budgets = budgets
        self._generation = -1
        self.connections = connections
        self.problems = connections.problems
        self._allow_missing = False
        self._index_settings = index_settings
        self.commits = CommitCounts()
        self._segments: dict[str, PostgresSegment] = {}
        self._last_drop = 0
        self._is_closed = False

    @classmethod
    async def open(
        cls,
        dsn: str,
        index_settings: IndexSettings = DEFAULT_INDEX_SETTINGS,
        connection_settings: ConnectionSettings | None = None,
        must_exist: bool = False,
        allow_missing: bool = False,
    ) -> PostgresStore:
        """Connects and makes what a new database lacks, unless there must be something in it.

        With `allow_missing` it goes on without segments that held something and are gone.

        StoreUnreachableError or SchemaError say why that is not possible.
        """
        settings = connection_settings or ConnectionSettings()
        problems = Problems()
        connections = Connections(dsn, settings, problems)
        snapshots = Connections(dsn, replace(settings, connections_max=_SNAPSHOTS_MAX), problems)
        store = cls(connections, snapshots, index_settings, Company(dsn, connections), Budgets(dsn, problems))
        store._allow_missing = allow_missing
        await connections.open()
        try:
            await connections.write(lambda connection: schema.prepare(connection, must_exist))
            store._last_drop = await connections.read(schema.last_drop)
            await store._company.join()
            store._freeing.start()
        except BaseException:
            await store._company.leave()
            await connections.close()
            raise
        return store

    async def load_records(self) -> Sequence[Record]:
        async def load(connection: Connection) -> list[tuple[Any, ...]]:
            async with connection.transaction():
                await connection.execute("LOCK TABLE pleiad.record IN SHARE MODE")
                self._generation = await _generation(connection)
                cursor = await connection.execute("SELECT kind, rid, parent, name, body FROM pleiad.record")
                return await cursor.fetchall()

        return [_record(*row) for row in await self.connections.read(load)]

    async def is_behind(self) -> bool:
        return await self.connections.read(_generation) != self._generation

    def watch(self, changed: Callable[[], None]) -> None:
        self._company.watch(changed)

    def lease(self, name: str) -> AbstractAsyncContextManager[bool]:
        return self._company.lease(name)

    def alone(self) -> AbstractAsyncContextManager[bool]:
        return self._company.alone()

    async def share_budgets(
        self, claims: Sequence[BudgetClaim], holds_all: bool, seconds: float
    ) -> BudgetParts:
        return await self._budgets.share(claims, holds_all, seconds)

    async def save_records(
        self,
        puts: Iterable[Record],
        deletes: Iterable[Record],
        expected: Iterable[Record] = (),
        unless_behind: bool = False,
        drops: Iterable[str] = (),
    ) -> bool:
        dropped = [(name,) for name in drops]
        new = [(r.kind, r.rid, r.parent, r.name, orjson.dumps(r.body).decode()) for r in puts]
        gone = [(record.kind, record.rid) for record in deletes]
        wanted = list(expected)

        async def save(connection: Connection) -> int | None:
            async with connection.transaction():
                await connection.execute("LOCK TABLE pleiad.record IN SHARE ROW EXCLUSIVE MODE")
                generation = await _generation(connection)
                if unless_behind and generation != self._generation:
                    return None
                for record in wanted:
                    if await _stored(connection, record) != record:
                        return None
                await connection.execute("UPDATE pleiad.generation SET value = value + 1")
                async with connection.cursor() as cursor:
                    await cursor.executemany("DELETE FROM pleiad.record WHERE kind = %s AND rid = %s", gone)
                    await cursor.executemany(_PUT, new)
                    await cursor.executemany("INSERT INTO pleiad.dropped(name) VALUES (%s)", dropped)
                    await cursor.executemany("DELETE FROM pleiad.segment WHERE name = %s", dropped)
                await connection.execute(f"NOTIFY {CHANNEL}")
            return generation

        try:
            saved_on = await self.connections.write(save)
        except psycopg.Error as error:
            failure = self.connections.refusal(error)
            if failure.row is errors.UNAVAILABLE:
                _log.error("a change of the catalog was rolled back: %s", error, exc_info=error)
            raise failure from error
        if saved_on == self._generation:
            self._generation += 1
        return saved_on is not None

    def figures(self) -> StoreFigures:
        used, idle, waiters = (
            sum(each) for each in zip(self.connections.figures(), self._snapshots.figures(), strict=True)
        )
        return StoreFigures(
            segments_open=len(self._segments),
            writes_waiting=sum(segment.writes_waiting for segment in self._segments.values()),
            connections_used=used,
            connections_idle=idle,
            connections_max=self.connections.most + self._snapshots.most,
            connection_waiters=waiters,
        )

    def segment(self, name: str) -> PostgresSegment:
        found = self._segments.get(name)
        if found is None:
            found = PostgresSegment(
                name,
                self.connections,
                self._index_settings,
                self._last_drop,
                self.commits,
                self._snapshots,
            )
            self._segments[name] = found
        return found

    async def drop_segments(self, names: Iterable[str]) -> None:
        for name in names:
            segment = self._segments.pop(name, None)
            if segment is not None:
                await segment.snapshots_begun()
                segment.mark_dropped()
            self._last_drop = await self._drop(name)
            if segment is not None:
                await segment.settle()

    async def _drop(self, name: str) -> int:
        async def note(connection: Connection) -> int:
            return await schema.note_drop(connection, name)

        try:
            sequence = await self.connections.write(note)
        except psycopg.Error as error:
            raise errors.UNAVAILABLE(reason="The store could not drop a segment.") from error
        await self._freeing.free(name)
        return sequence

    async def drop_all_segments(self) -> None:
        await self.drop_segments(sorted(await self.connections.read(reconciling.made)))

    async def reconcile(self, names: Iterable[str]) -> None:
        """Changes nothing while other servers are here: a segment without a record may be a copy one of them makes."""
        named = set(names)
        if not await self._company.is_alone():
            await self._check(named)
            return
        try:
            # First the look at the segments: one that was made for a change since the names were told is known from
            # the record of that change, and then this server is behind.
            findings = await self._check(named)
            if self._generation < 0 or not await self.is_behind():
                await self.drop_segments(sorted(findings.dropped))
                await self.connections.write(
                    lambda connection: reconciling.settle(connection, findings, self.problems)
                )
        finally:
            await self._company.make_room()

    async def _check(self, named: set[str]) -> reconciling.Findings:
        findings = await self.connections.read(lambda connection: reconciling.look(connection, named))
        if not self._allow_missing:
            reconciling.check(findings)
        return findings

    async def agree(self, settings: Mapping[str, str], may_differ: bool) -> None:
        for attempt in range(_AGREE_ATTEMPTS):
            if attempt:
                # Perhaps the others are about to end, or the database has not noticed that they have.
                await asyncio.sleep(_AGREE_AGAIN_SECONDS)
            async with self._company.alone() as is_alone:
                differing = await self.connections.write(
                    lambda connection, is_alone=is_alone: agreement.compare(connection, settings, is_alone)  # type: ignore[misc]
                )
            if not differing:
                return
            if may_differ:
                self.problems.report(SETTINGS_DIFFER, "", agreement.sentence(differing, settings))
                return
        raise SettingsDifferError(agreement.sentence(differing, settings))

    async def is_there(self) -> bool:
        return await self.connections.is_there()

    async def scrub_for_ever(self) -> None:
        """The database looks after its own pages; rows are verified when they are read, and by `pleiad check`."""

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        for segment in list(self._segments.values()):
            await segment.settle()
        await self._freeing.stop()
        await self._budgets.leave()
        await self._company.leave()
        await self._snapshots.close()
        await self.connections.close()


def _record(kind: str, rid: str, parent: str, name: str, body: str) -> Record:
    return Record(kind, rid, parent, name, orjson.loads(body))


async def _generation(connection: Connection) -> int:
    rows = await (await connection.execute("SELECT value FROM pleiad.generation")).fetchall()
    return int(rows[0][0])


async def _stored(connection: Connection, record: Record) -> Record | None:
    cursor = await connection.execute(
        "SELECT kind, rid, parent, name, body FROM pleiad.record WHERE kind = %s AND rid = %s",
        (record.kind, record.rid),
    )
    rows = await cursor.fetchall()
    return _record(*rows[0]) if rows else None
