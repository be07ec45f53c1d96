"""A ring of files that lines are appended to; the oldest file goes when there is no room left.

Files are named by rising numbers, and whoever opens a ring begins a new one: what a crash has left at the end of the
last file stays behind it, and is no line when it is read. A write goes to the system and is not waited for to be on the
disk, so lines survive the end of the process, however that comes, and not that of the machine.

Invariants
- What is in the files is no more than `bytes_max`, but for one piece.
- Readers see whole lines only, in the order in which they were appended.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

FILES: Final = 8
"""A ring gives up an eighth of what it has at a time."""
_SUFFIX: Final = ".jsonl"
_PIECE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place between two lines: in the file of that number, behind so many bytes of it."""

    file: int = 0
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.file}.{self.offset}"

    @classmethod
    def of(cls, text: str) -> Place:
        """The place that a text names; ValueError when it names none."""
        file, dot, offset = text.partition(".")
        if not (dot and _is_number(file) and _is_number(offset)):
            raise ValueError(f"'{text[:40]}' is no place in a record")
        return cls(int(file), int(offset))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 15


class Ring:
    """The files of one directory. Its methods wait for the disk; one thread at a time may append."""

    def __init__(self, directory: Path, bytes_max: int) -> None:
        self.directory = directory
        self._bytes_max = bytes_max
        self._file: IO[bytes] | None = None
        self._file_bytes = 0

    def append(self, lines: bytes) -> None:
        """Puts whole lines behind the others; all of them, or none when the disk does not take them."""
        if self._file is None or self._file_bytes >= self._bytes_max // FILES:
            self._begin_file()
        assert self._file is not None
        rest = memoryview(lines)
        try:
            while rest:  # a disk that is nearly full takes a part, and only the next write fails
                rest = rest[self._file.write(rest) :]
        except OSError:
            self._file.truncate(self._file_bytes)
            raise
        self._file_bytes += len(lines)

    def _begin_file(self) -> None:
        self.close()
        numbers = self._numbers()
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._path(numbers[-1] + 1 if numbers else 1)
        self._file = open(path, "ab", buffering=0, opener=_private)  # noqa: SIM115
        self._file_bytes = 0
        self.make_room(self._bytes_max - self._bytes_max // FILES)

    def make_room(self, bytes_max: int) -> None:
        """Removes the oldest files until there is no more than that in them; the newest stays."""
        size_bytes = self.size_bytes
        for number in self._numbers()[:-1]:
            if size_bytes <= bytes_max:
                return
            path = self._path(number)
            with contextlib.suppress(FileNotFoundError):
                size_bytes -= path.stat().st_size
                path.unlink()

    @property
    def size_bytes(self) -> int:
        size_bytes = 0
        for number in self._numbers():
            with contextlib.suppress(FileNotFoundError):
                size_bytes += self._path(number).stat().st_size
        return size_bytes

    @property
    def changed_at(self) -> float:
        """When the oldest file was written last, in seconds since the epoch; 0 where there is none."""
        with contextlib.suppress(FileNotFoundError):
            for number in self._numbers():
                return self._path(number).stat().st_mtime
        return 0.0

    def pieces(self, place: Place | None = None) -> Iterator[tuple[bytes, Place]]:
        """Whole lines from a place on, or all of them, a megabyte or less at a time, each with the place behind it."""
        begin = place or Place()
        for number in self._numbers():
            if number < begin.file:
                continue
            offset = begin.offset if number == begin.file else 0
            try:
                file = self._path(number).open("rb")
            except FileNotFoundError:
                continue  # it has left the ring meanwhile
            with file:
                if offset > os.fstat(file.fileno()).st_size:
                    continue  # no place of this file, and perhaps further than files can be
                file.seek(offset)
                while piece := file.read(_PIECE_BYTES):
                    end = piece.rfind(b"\n") + 1
                    if end:
                        offset += end
                        yield piece[:end], Place(number, offset)
                    elif len(piece) < _PIECE_BYTES:
                        break  # the end of a write that did not come to its end
                    else:
                        offset += len(piece)  # no line is that long
                    file.seek(offset)

    def clear(self) -> None:
        """Removes all files."""
        self.close()
        for number in self._numbers():
            self._path(number).unlink(missing_ok=True)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _numbers(self) -> list[int]:
        try:
            names = os.listdir(self.directory)
        except (FileNotFoundError, NotADirectoryError):
            return []
        stems = [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]
        return sorted(int(stem) for stem in stems if _is_number(stem))

    def _path(self, number: int) -> Path:
        return self.directory / f"{number:08d}{_SUFFIX}"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
