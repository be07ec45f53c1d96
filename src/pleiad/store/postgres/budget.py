"""Budgets shared with the other servers on a database: one statement a turn, on a connection of its own.

A turn waits behind no request, and not long: who gets no answer loses its shares, so a late one is of no use.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from typing import Any

import psycopg

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.store.budget import BudgetClaim, BudgetPart, BudgetParts
from pleiad.store.postgres.connections import Connection, Connections, ConnectionSettings
from pleiad.store.problems import Problems

_SETTINGS = ConnectionSettings(connections_max=1, wait_seconds=1.0, deadline_seconds=1.0)
_SHARE = (
    "SELECT budget, part, other_wants FROM pleiad.share_budgets("
    "%s, %s, %s, %s::text[], %s::float8[], %s::float8[], %s::float8[])"
)
_LEAVE = "DELETE FROM pleiad.budget WHERE owner = %s"


class Budgets:
    """What one server holds of the budgets."""

    def __init__(self, dsn: str, problems: Problems) -> None:
        self._connections = Connections(dsn, _SETTINGS, problems)
        self._owner = str(uuid.uuid4())
        self._is_member = False

    async def share(self, claims: Sequence[BudgetClaim], holds_all: bool, seconds: float) -> BudgetParts:
        """One turn; see `Store.share_budgets`."""
        columns = [list(column) for column in zip(*claims, strict=True)] or [[], [], [], []]

        async def turn(connection: Connection) -> list[tuple[Any, ...]]:
            cursor = await connection.execute(_SHARE, (self._owner, seconds, holds_all, *columns))
            return await cursor.fetchall()

        self._is_member = True
        try:
            (_, servers, _), *rows = await self._connections.write(turn)
        except psycopg.Error as error:
            raise errors.UNAVAILABLE(reason="The store could not share out the throughput.") from error
        return BudgetParts(int(servers), {name: BudgetPart(part, tuple(wants)) for name, part, wants in rows})

    async def leave(self) -> None:
        """Gives everything back, if the database can be reached; else it is free when its time is over."""
        if self._is_member:
            with contextlib.suppress(psycopg.Error, PleiadError):
                await self._connections.write(self._remove)
        await self._connections.close()

    async def _remove(self, connection: Connection) -> None:
        async with connection.transaction():
            await connection.execute("SET LOCAL synchronous_commit = off")
            await connection.execute(_LEAVE, (self._owner,))
