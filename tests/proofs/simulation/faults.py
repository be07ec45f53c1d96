"""Faults that the simulator must find, by the name of what is broken; the store's own ones for each store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import apsw

from pleiad.engine.reshape.pieces import Source
from pleiad.engine.reshape.reshaper import Reshaper
from pleiad.store.postgres import rehome
from pleiad.store.postgres.connections import Connection
from pleiad.store.postgres.segment import PostgresSegment
from pleiad.store.rows import PartitionState, PartitionWrite
from pleiad.store.sqlite import relocate
from pleiad.store.sqlite.mutate import Applier, Counters
from pleiad.store.sqlite.segment import SqliteSegment

Break = Callable[[], AbstractContextManager[object]]


# -- writers who know an old epoch are let in ----------------------------------------------------------


def _writes_under_any_epoch_sqlite() -> AbstractContextManager[object]:
    apply = Applier.apply

    def careless(self: Applier, counters: Counters, write: PartitionWrite) -> object:
        return apply(self, counters, write._replace(epoch=counters.epoch))

    return mock.patch.object(Applier, "apply", careless)


def _writes_under_any_epoch_postgres() -> AbstractContextManager[object]:
    commit = PostgresSegment.commit

    async def careless(self: PostgresSegment, write: PartitionWrite) -> object:
        state = await self.state(write.partition)
        return await commit(self, write._replace(epoch=state.epoch or write.epoch))

    return mock.patch.object(PostgresSegment, "commit", careless)


# -- a fence says that it closed the partition, and did not --------------------------------------------


def _fences_nothing_sqlite() -> AbstractContextManager[object]:
    def open_fence(writer: apsw.Connection, partition: int, epoch: int) -> PartitionState | None:
        found = writer.execute(
            "SELECT lsn, next_sequence, items, size_bytes FROM partition WHERE id = ?1", (partition,)
        ).fetchone()
        return PartitionState(partition, epoch + 1, *(found or (0, 1, 0, 0)))

    return mock.patch.object(relocate, "_fence", open_fence)


def _fences_nothing_postgres() -> AbstractContextManager[object]:
    async def open_fence(
        connection: Connection, schema: str, partition: int, epoch: int
    ) -> PartitionState | None:
        text = f"SELECT lsn, next_sequence, items, size_bytes FROM {schema}.partition WHERE id = %s"
        found = await (await connection.execute(text, (partition,))).fetchone()
        return PartitionState(partition, epoch + 1, *(found or (0, 1, 0, 0)))

    return mock.patch.object(rehome, "fence", open_fence)


# -- rows deleted while a copy is made stay in the copy ------------------------------------------------


def _forgets_deletes_sqlite() -> AbstractContextManager[object]:
    catch_up = SqliteSegment.catch_up

    async def forgetful(self: SqliteSegment, *given: Any) -> object:
        source = given[0]
        assert isinstance(source, SqliteSegment)
        assert source._file is not None
        source._file.applier.deleted = []
        span, lsn = given[1:3]
        return await catch_up(self, source, span, lsn, 0)

    return mock.patch.object(SqliteSegment, "catch_up", forgetful)


def _forgets_deletes_postgres() -> AbstractContextManager[object]:
    catch_up = PostgresSegment.catch_up

    async def forgetful(self: PostgresSegment, *given: Any) -> object:
        source = given[0]
        assert isinstance(source, PostgresSegment)
        await source._change(lambda connection: connection.execute(f"DELETE FROM {source._schema}.deleted"))
        return await catch_up(self, *given)

    return mock.patch.object(PostgresSegment, "catch_up", forgetful)


# -- the engine's own ----------------------------------------------------------------------------------


def _skips_the_last_catch_up() -> AbstractContextManager[object]:
    """What was written between the last round and the fence is not copied, and nobody compares."""
    catch_up = Reshaper._catch_up

    async def hasty(self: Reshaper, sources: list[Source]) -> int:
        if all(source.fenced is None for source in sources):
            return await catch_up(self, sources)
        for source in sources:
            assert source.fenced is not None
            source.move.items, source.move.size_bytes = source.fenced.items, source.fenced.size_bytes
        return 0

    return mock.patch.object(Reshaper, "_catch_up", hasty)


def _mends_nothing() -> AbstractContextManager[object]:
    """What a crash interrupted stays as it is."""
    return mock.patch.object(Reshaper, "_is_half_done", return_value=False)


FAULTS: dict[str, dict[str, Break]] = {
    "writes under any epoch": {
        "sqlite": _writes_under_any_epoch_sqlite,
        "postgres": _writes_under_any_epoch_postgres,
    },
    "fences nothing": {"sqlite": _fences_nothing_sqlite, "postgres": _fences_nothing_postgres},
    "forgets deletes": {"sqlite": _forgets_deletes_sqlite, "postgres": _forgets_deletes_postgres},
    "skips the last catch-up": {"sqlite": _skips_the_last_catch_up, "postgres": _skips_the_last_catch_up},
    "mends nothing": {"sqlite": _mends_nothing, "postgres": _mends_nothing},
}
