"""The company of other servers on one database: notices of their changes, names they lease, and who is there.

Each server listens on a connection of its own, which also holds two locks for as long as it lives: one that all servers
share, so that who can take it alone is the only one, and one for the server's own name, so that the others need not
wait for the leases of a dead one. A connection that breaks or does not answer is made again; what was missed meanwhile
is found by the look that follows. Leases save work and protect nothing: who acts without one finds an epoch changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import uuid
from collections.abc import AsyncIterator, Callable

import psycopg

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.store.postgres.connections import Connection, Connections, in_time
from pleiad.store.postgres.database import StoreUnreachableError

CHANNEL = "pleiad_catalog"
_ALIVE_LOCK = 0x706C6561
_NAME_LOCK = 0x706C656E
_LEASE_SECONDS = 15.0
_AGAIN_SECONDS = 0.5
_CHECK_SECONDS = 5.0
_ANSWER_SECONDS = 5.0
_JUDGE_SECONDS = 2.0
"""How long a server must have been here to take another one for dead: after a restart of the database all of them
come back, and none is the first."""
_TAKE = (
    "INSERT INTO pleiad.lease(name, owner, expires) VALUES (%s, %s, clock_timestamp() + make_interval(secs => %s)) "
    "ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires = excluded.expires "
    "WHERE lease.owner = excluded.owner OR lease.expires < clock_timestamp() OR %s AND NOT EXISTS ("
    f"SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = {_NAME_LOCK} AND objsubid = 2 AND granted "
    "AND objid = hashtext(lease.owner)::oid "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) RETURNING owner"
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
        self._present: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._connection: Connection | None = None
        self._here_since = math.inf

    async def join(self) -> None:
        """Begins to listen, and returns when the others can tell that this server is here.

        StoreUnreachableError when the first connection for that cannot be made.
        """
        self._listener = asyncio.get_running_loop().create_task(self._listen())
        await self._present

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
            except (psycopg.Error, TimeoutError) as error:
                reason = str(error) or "no answer in time"
                if not self._present.done():
                    self._present.set_exception(StoreUnreachableError(f"no connection for notices: {reason}"))
                    return
                self._connections.outage.failed(f"the PostgreSQL server does not answer: {reason}")
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _listen_once(self) -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_ANSWER_SECONDS):
            connection = await psycopg.AsyncConnection.connect(self._dsn, autocommit=True)
        try:
            await connection.execute("SELECT pg_advisory_lock_shared(%s)", (_ALIVE_LOCK,))
            await connection.execute(
                "SELECT pg_advisory_lock(%s::int, hashtext(%s))", (_NAME_LOCK, self._owner)
            )
            await connection.execute(f"LISTEN {CHANNEL}")
            self._connection = connection
            self._connections.outage.recovered()
            if not self._present.done():
                self._present.set_result(None)
            self._tell()
            self._here_since = checked = loop.time()
            while True:
                # A short wait at a time: other statements of this connection go between two of them.
                async for _ in connection.notifies(timeout=_AGAIN_SECONDS):
                    self._tell()
                await asyncio.sleep(0)
                if loop.time() > checked + _CHECK_SECONDS:
                    with in_time(connection, _ANSWER_SECONDS):
                        await connection.execute("SELECT")
                    checked = loop.time()
        finally:
            self._connection = None
            self._here_since = math.inf
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
            is_judge = asyncio.get_running_loop().time() > self._here_since + _JUDGE_SECONDS
            cursor = await connection.execute(_TAKE, (name, self._owner, _LEASE_SECONDS, is_judge))
            return bool(await cursor.fetchall())

        try:
            return await self._connections.write(take)
        except psycopg.Error as error:
            raise errors.UNAVAILABLE(reason="The store could not write; nothing was changed.") from error

    async def _renew(self, name: str) -> None:
        while True:
            await asyncio.sleep(_LEASE_SECONDS / 3)
            with contextlib.suppress(PleiadError):
                await self._take(name)
