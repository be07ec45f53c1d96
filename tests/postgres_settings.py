"""Settings of a running PostgreSQL, changed as operators do it, and in force when the call returns."""

from __future__ import annotations

import asyncio

import psycopg

from tests.waiting import turns, until

_COMMIT = "SELECT pg_logical_emit_message(true, 'pleiad', '')"
_CANCEL = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = %s AND wait_event = 'SyncRep'"


async def set_for_all(dsn: str, name: str, value: str) -> None:
    """Changes a setting; every connection that is open has it from its next statement on."""
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        await connection.execute("SELECT pg_reload_conf()")

    async def is_set() -> bool:
        # The process that this connection is made by tells all others before it makes a new one.
        async with await psycopg.AsyncConnection.connect(dsn) as fresh:
            return await (await fresh.execute(f"SHOW {name}")).fetchone() == (value,)

    assert await until(is_set)


async def set_standbys(dsn: str, names: str) -> None:
    """Has commits wait for these standbys, or for none; those that are named are away, or stand still meanwhile."""
    await set_for_all(dsn, "synchronous_standby_names", names)
    # Commits go by what yet another process has read, which only a commit tells.
    async with (
        await psycopg.AsyncConnection.connect(dsn, autocommit=True) as one,
        await psycopg.AsyncConnection.connect(dsn, autocommit=True) as other,
    ):

        async def waits() -> bool:
            committing = asyncio.ensure_future(one.execute(_COMMIT))
            has_waited = False
            while not committing.done():
                await turns()
                found = await other.execute(_CANCEL, (one.info.backend_pid,))
                has_waited = has_waited or bool(await found.fetchall())
            await committing
            return has_waited

        async def is_in_force() -> bool:
            return await waits() == bool(names)

        assert await until(is_in_force)
