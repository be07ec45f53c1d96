"""A way to a PostgreSQL server that can be cut: what was asked for is done, and nobody hears of it."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from tests.postgres_server import PostgresServer

_SOCKET = ".s.PGSQL.5432"
_CHUNK_BYTES = 1 << 16


class Proxy:
    """Passes bytes between clients and a server, as long as it is not told otherwise."""

    def __init__(self, directory: Path, target: Path) -> None:
        self._directory = directory
        self._target = target
        self._lost_after: bytes | None = None
        self.losses = 0
        self._passing: set[asyncio.Task[None]] = set()

    def dsn(self, direct: str) -> str:
        """How to reach the database of a direct connection string this way."""
        return direct.replace(str(self._target.parent), str(self._directory))

    def lose_the_answer_to(self, text: str) -> None:
        """The next request that contains the text reaches the server; its answer does not come back."""
        self._lost_after = text.encode()

    def fall_silent(self) -> None:
        """Passes nothing more on the connections that are there, and ends none: as when a host is gone."""
        for answers in self._passing:
            answers.cancel()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            their_reader, their_writer = await asyncio.open_unix_connection(self._target)
            with contextlib.closing(their_writer):
                answers = asyncio.create_task(_pass(their_reader, writer))
                self._passing.add(answers)
                try:
                    while chunk := await reader.read(_CHUNK_BYTES):
                        if self._lost_after is not None and self._lost_after in chunk:
                            self._lost_after = None
                            self.losses += 1
                            await _stopped(answers)
                            their_writer.write(chunk)
                            await their_reader.read(_CHUNK_BYTES)
                            return
                        their_writer.write(chunk)
                except OSError:
                    return
                finally:
                    await _stopped(answers)
                    self._passing.discard(answers)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK_BYTES):
            writer.write(chunk)
    writer.close()


async def _stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


@contextlib.asynccontextmanager
async def proxy_of(server: PostgresServer) -> AsyncIterator[Proxy]:
    """A proxy before a server, for the length of an async with-block."""
    with tempfile.TemporaryDirectory(prefix="pleiad-proxy-") as directory:
        proxy = Proxy(Path(directory), server.directory / _SOCKET)
        listening = await asyncio.start_unix_server(proxy.serve, Path(directory) / _SOCKET)
        try:
            yield proxy
        finally:
            listening.close()
