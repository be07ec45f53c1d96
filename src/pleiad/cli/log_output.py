"""How `pleiad serve` logs: lines or JSON objects with the time and its zone, on standard error.

Where requests are logged, a thread of its own writes: who reads standard error too slowly holds up no request, and
lines that find no room are counted and told of later.
"""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import threading
from collections.abc import Iterator
from datetime import datetime

FORMATS = ("text", "json")
_LINES_WAITING_MAX = 10_000
_END_SECONDS = 2.0


class TextFormatter(logging.Formatter):
    """Time, level, logger and message in a line."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        return _time(record)


class JsonFormatter(logging.Formatter):
    """One JSON object a line; a record that has fields is told by them, and any other by its message."""

    def format(self, record: logging.LogRecord) -> str:
        told = {"time": _time(record), "level": record.levelname.lower(), "logger": record.name}
        fields = getattr(record, "fields", None)
        told |= fields if fields is not None else {"message": record.getMessage()}
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds")


@contextlib.contextmanager
def logging_to_standard_error(level: str, form: str, logged: tuple[str, ...] = ()) -> Iterator[None]:
    """Logs what is at least of a level, and everything of the loggers that are named."""
    handler: logging.Handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    for name in logged:
        logging.getLogger(name).setLevel(logging.INFO)
    if not logged:
        logging.basicConfig(level=level.upper(), handlers=[handler])
        yield
        return
    waiting = WaitingLines(handler)
    logging.basicConfig(level=level.upper(), handlers=[waiting])
    try:
        yield
    finally:
        waiting.end()


class WaitingLines(logging.Handler):
    """Hands records to another handler in a thread, as many as wait at most; what is beyond is lost and counted."""

    def __init__(self, to: logging.Handler) -> None:
        super().__init__()
        self._to = to
        self._lost = 0
        self._waiting: queue.Queue[logging.LogRecord | None] = queue.Queue(_LINES_WAITING_MAX)
        self._thread = threading.Thread(target=self._write, name="pleiad-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if self._lost:
                told = "%d log lines were lost: standard error was read too slowly"
                told_at = logging.LogRecord(__name__, logging.WARNING, "", 0, told, (self._lost,), None)
                self._waiting.put_nowait(told_at)
                self._lost = 0
            self._waiting.put_nowait(record)
        except queue.Full:
            self._lost += 1

    def end(self) -> None:
        """Writes what waits, unless nobody reads it."""
        with contextlib.suppress(queue.Full):
            self._waiting.put(None, timeout=_END_SECONDS)
            self._thread.join(_END_SECONDS)

    def _write(self) -> None:
        while (record := self._waiting.get()) is not None:
            self._to.handle(record)
