"""The scrub: looks through all segments in the background, again and again, for damage that no read has met.

It begins at once after the start and takes a fifth of one thread at most, in slices of a fraction of a millisecond, so
that requests hardly notice it. Between two rounds it rests for an hour.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import apsw

from pleiad.store.sqlite import schema
from pleiad.store.sqlite.inspect import Seen, inspect

_log = logging.getLogger(__name__)
_SLICE_ROWS = 50
_REST = 4.0
"""How many times as long as a slice took the scrub rests behind it."""
ROUND_SECONDS = 3_600.0


class _StoppedError(Exception):
    """The store is being closed."""


class Scrub:
    """Rounds over the segments; `found` is called on the event loop with a segment and what is wrong with it."""

    def __init__(
        self,
        segments: Callable[[], Iterable[tuple[str, Path]]],
        found: Callable[[str, str], None],
        round_seconds: float = ROUND_SECONDS,
    ) -> None:
        self._segments = segments
        self._found = found
        self._round_seconds = round_seconds
        self._is_stopping = threading.Event()
        self._looking: asyncio.Future[str | None] | None = None

    async def for_ever(self) -> None:
        """Round after round, until it is cancelled."""
        try:
            while True:
                await self.round()
                await asyncio.sleep(self._round_seconds)
        finally:
            self._is_stopping.set()
            if self._looking is not None:
                await asyncio.wait({self._looking})

    async def round(self) -> None:
        """Looks through every segment once."""
        for name, path in list(self._segments()):
            self._looking = asyncio.ensure_future(asyncio.to_thread(self._look, path))
            fault = await asyncio.shield(self._looking)
            if fault is not None:
                self._found(name, fault)

    def _look(self, path: Path) -> str | None:
        """The first damage of a segment; None when there is none, or no segment any more."""
        began = time.perf_counter()

        def pause() -> None:
            nonlocal began
            if self._is_stopping.wait((time.perf_counter() - began) * _REST):
                raise _StoppedError
            began = time.perf_counter()

        try:
            with contextlib.closing(schema.connect_reader(path)) as connection:
                faults = inspect(connection, pause, Seen(), _SLICE_ROWS)
                return next(faults, None) if path.exists() else None
        except (_StoppedError, apsw.CantOpenError):
            return None
        except apsw.Error as error:
            _log.info("segment %s was not looked through: %s", path.stem, error)
            return None
