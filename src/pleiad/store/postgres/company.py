"""The company of other servers on one database: notices of their changes, names they lease, and who is there.

Each server listens on a connection of its own, which also holds a shared lock for as long as it lives. A server that
can take that lock alone is the only one. A connection that breaks is made again; what was missed meanwhile is found
by the look that follows.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator, Callable

import psycopg

from pleiad.errors import PleiadError
from pleiad.store.postgres.connections import Connection, Connections

_log = logging.getLogger(__name__)

CHANNEL = "pleiad_catalog"
_ALIVE_LOCK = 0x706C6561
_LEASE_SECONDS = 15.0
_AGAIN_SECONDS = 0.5
_TAKE = (
    "INSERT INTO pleiad.lease(name, owner, expires) VALUES (%s, %s, clock_timestamp() + make_interval(secs => %s)) "
    "ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires = excluded.expires "
    "WHERE lease.owner = excluded.owner OR lease.expires < clock_timestamp() RETURNING owner"
)
_RELEASE = "DELETE FROM pleiad.lease WHERE name = %s AND owner = %s"


class Company:
    """What one server knows of the others."""

    def __init__(self, dsn: str, connections: Connections) -> None:
        self._dsn = dsn
        self._connections = connections
        self._owner = str(uuid.uuid4())
        self._changed: Callable[[], None] | None = None
        self._listener: asyncio.Task[None] | None = None
        self._present = asyncio.Event()
        self._connection: Connection | None = None

    async def join(self) -> None:
        """Begins to listen, and returns when the others can tell that this server is here."""
        self._listener = asyncio.get_running_loop().create_task(self._listen())
        await self._present.wait()

    def watch(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    async def is_alone(self) -> bool:
        """Whether no other server is here; a server that comes meanwhile waits until `make_room`."""
        connection = self._connection
        if connection is None:
            return False
        try:
            cursor = await connection.execute("SELECT pg_try_advisory_lock(%s)", (_ALIVE_LOCK,))
            return bool((await cursor.fetchall())[0][0])
        except psycopg.Error:
            return False

    async def make_room(self) -> None:
        """Lets others in again after `is_alone`."""
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                await self._connection.execute("SELECT pg_advisory_unlock(%s)", (_ALIVE_LOCK,))

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[bool]:
        """Keeps other servers out for a block; False inside when one is here."""
        is_alone = await self.is_alone()
        try:
            yield is_alone
        finally:
            if is_alone:
                await self.make_room()

    async def leave(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._listener

    async def _listen(self) -> None:
        while True:
            try:
                await self._listen_once()
            except psycopg.Error as error:
                _log.warning("notices of other servers are interrupted: %s", error)
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _listen_once(self) -> None:
        connection = await psycopg.AsyncConnection.connect(self._dsn, autocommit=True)
        try:
            await connection.execute("SELECT pg_advisory_lock_shared(%s)", (_ALIVE_LOCK,))
            await connection.execute(f"LISTEN {CHANNEL}")
            self._connection = connection
            self._present.set()
            self._tell()
            while True:
                # A short wait at a time: other statements of this connection go between two of them.
                async for _ in connection.notifies(timeout=_AGAIN_SECONDS):
                    self._tell()
                await asyncio.sleep(0)
        finally:
            self._connection = None
            await connection.close()

    def _tell(self) -> None:
        if self._changed is not None:
            self._changed()

    # -- leases ----------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def lease(self, name: str) -> AsyncIterator[bool]:
        """Holds a name for a block, and renews it while the block runs; False inside when another server has it."""
        if not await self._take(name):
            yield False
            return
        renewing = asyncio.get_running_loop().create_task(self._renew(name))
        try:
            yield True
        finally:
            renewing.cancel()
            await asyncio.wait({renewing})
            with contextlib.suppress(psycopg.Error, PleiadError):
                await self._connections.write(
                    lambda connection: connection.execute(_RELEASE, (name, self._owner))
                )

    async def _take(self, name: str) -> bool:
        async def take(connection: Connection) -> bool:
            cursor = await connection.execute(_TAKE, (name, self._owner, _LEASE_SECONDS))
            return bool(await cursor.fetchall())

        return await self._connections.write(take)

    async def _renew(self, name: str) -> None:
        while True:
            await asyncio.sleep(_LEASE_SECONDS / 3)
            with contextlib.suppress(psycopg.Error, PleiadError):
                await self._take(name)
