"""The index by which items are found that the container's default TTL ends; only such a container pays for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from pleiad.errors import PleiadError
from pleiad.store.postgres import statements
from pleiad.store.postgres.connections import Connection
from pleiad.store.postgres.schema import sql

_log = logging.getLogger(__name__)
Change = Callable[[Callable[[Connection], Awaitable[object]]], Awaitable[object]]
"""Runs what changes a schema on a connection."""


class AgeIndex:
    """The index of one segment, made beside everything else when it is first wanted."""

    def __init__(self, schema_name: str, change: Change) -> None:
        self._schema = schema_name
        self._change = change
        self._making: asyncio.Task[None] | None = None
        self._is_made = False

    def want(self) -> None:
        """Begins to make it, unless it is there or being made."""
        if self._making is None and not self._is_made:
            self._making = asyncio.get_running_loop().create_task(self._make())

    async def _make(self) -> None:
        text = sql(statements.AGE_INDEX.format(s=self._schema))
        try:
            await self._change(lambda connection: connection.execute(text))
            self._is_made = True
        except PleiadError as error:
            _log.warning("the index of ages of %s was not made: %s", self._schema, error)
        finally:
            self._making = None

    async def settle(self) -> None:
        """Waits until it is not being made."""
        if self._making is not None:
            await asyncio.wait({self._making})
