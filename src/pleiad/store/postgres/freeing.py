"""Freeing the space of dropped segments.

A drop is a note in the database; to free the tables comes after it and may be hindered: somebody reads a snapshot of
them, the database is away for a moment, or the server that dropped them is killed in between. So every server looks
again and again for what is noted as dropped and still there. To free has no effect the second time, and what was made
anew under a name stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

import psycopg

from pleiad.errors import PleiadError
from pleiad.store.postgres import schema
from pleiad.store.postgres.connections import Connection, Connections

_log = logging.getLogger(__name__)
_LOOK_SECONDS = 5.0
_AGAIN_SECONDS = 0.5


class Freeing:
    """What one server does to free dropped segments, its own and those of servers that are gone."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._is_hindered = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._look_for_ever())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def free(self, name: str) -> bool:
        """Frees the space of a segment that is noted as dropped; False when it is freed later."""

        async def free(connection: Connection) -> None:
            await schema.free_segment(connection, schema.schema_name(name), name)

        try:
            await self._connections.write(free)
        except psycopg.errors.LockNotAvailable:
            pass  # somebody reads a snapshot of it
        except (psycopg.Error, PleiadError) as error:
            _log.info("the space of segment %s is freed later: %s", name, error)
        else:
            return True
        self._is_hindered.set()
        return False

    async def _look_for_ever(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._is_hindered.wait()
                    await asyncio.sleep(_AGAIN_SECONDS)
            self._is_hindered.clear()
            with contextlib.suppress(psycopg.Error, PleiadError):
                for name in await self._connections.read(schema.left_by_drops):
                    await self.free(name)
