"""The file of rejects: what an import could not bring in, one JSON object a line, with its place and the reason."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import IO

import orjson

from pleiad.job.item_file.entry import Entry, ItemFileError

_TEXT_BYTES_MAX = 10_000
"""Of something that is no item; items are kept whole."""
_START = b'{"number":'
"""How each line begins."""


class Rejects:
    """Takes what was rejected, from any thread. The file is made with the first of them."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._file: IO[bytes] | None = None
        self._lock = threading.Lock()

    def keep_up_to(self, number: int) -> None:
        """Leaves of an earlier run what was decided then; what lies behind is tried again."""
        if self.path is None or not self._is_ours(self.path):
            return
        partial = self.path.with_name(f".{self.path.name}.partial")
        try:
            with self.path.open("rb") as file, partial.open("wb") as kept:
                kept.writelines(line for line in file if line.endswith(b"\n") and _number(line) <= number)
            partial.replace(self.path)
        except OSError as error:
            raise ItemFileError(f"{self.path} cannot be written: {error.strerror}") from None

    def begin(self) -> None:
        """Forgets what an earlier import of the same file left."""
        if self.path is not None and self._is_ours(self.path):
            self.path.unlink()

    def _is_ours(self, path: Path) -> bool:
        """Whether there is a file of rejects; ItemFileError for another file, which is not ours to lose.

        What is no file at all, such as /dev/null, is written to and otherwise left alone.
        """
        if not path.is_file():
            return False
        try:
            with path.open("rb") as file:
                first = file.read(len(_START))
        except OSError as error:
            raise ItemFileError(f"{path} cannot be read: {error.strerror}") from None
        if first != _START[: len(first)]:
            raise ItemFileError(f"{path} is there and holds no rejects: name another file with --rejects")
        return True

    def add(self, entry: Entry, reason: str, status: int | None) -> None:
        if self.path is None:
            return
        told: dict[str, object] = {"number": entry.number, "line": entry.line, "reason": reason}
        if status is not None:
            told["status"] = status
        if entry.value is not None:
            told["item"] = orjson.Fragment(entry.text)
        else:
            told["text"] = entry.text[:_TEXT_BYTES_MAX].decode("utf-8", "replace")
        with self._lock:
            try:
                if self._file is None:
                    self._file = self.path.open("ab")
                self._file.write(orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE))
            except OSError as error:
                raise ItemFileError(f"{self.path} cannot be written: {error.strerror}") from None

    def sync(self) -> None:
        """Returns when all of them are on disk."""
        with self._lock:
            if self._file is None or self.path is None:
                return
            try:
                self._file.flush()
                if self.path.is_file():
                    os.fsync(self._file.fileno())
            except OSError as error:
                raise ItemFileError(f"{self.path} cannot be written: {error.strerror}") from None

    def close(self) -> None:
        self.sync()
        if self._file is not None:
            self._file.close()


def _number(line: bytes) -> int:
    try:
        return int(orjson.loads(line)["number"])
    except (ValueError, TypeError, LookupError):
        return 0  # not ours, and so not ours to drop
