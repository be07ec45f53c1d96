"""A ring of files that lines are appended to; the oldest file goes when there is no room left.

Several processes may write to one ring: each has files of its own, named by a rising number and by who writes. Whoever
opens a ring begins a new file: what a crash has left at the end of the last one stays behind it, and is no line when it
is read. A write goes to the system and is not waited for to be on the disk, so lines survive the end of the process,
however that comes, and not that of the machine.

Invariants
- What is in the files of all writers is no more than `bytes_max`, but for one piece of each.
- Readers see whole lines only, and those of one writer in the order in which they were appended.
- What a writer appends after another process has removed its file is in a new file.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, NamedTuple

FILES: Final = 8
"""A ring gives up an eighth of what it has at a time."""
PIECE_BYTES: Final = 1 << 20
_SUFFIX: Final = ".jsonl"
_BETWEEN_MARKS: Final = "_"
_MARKS_MAX: Final = 1_024


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """How far one writer's lines were read: in the file of that number, behind so many bytes of it."""

    file: int = 0
    offset: int = 0
    taken: int = 0
    """So many records that begin there were read too: a line may have several, and a reader may stop amid them."""


@dataclass(frozen=True, slots=True)
class Place:
    """How far a ring was read, writer by writer; those that are not named are still to be read."""

    marks: tuple[tuple[int, Mark], ...] = ()

    def __str__(self) -> str:
        return _BETWEEN_MARKS.join(
            f"{writer}.{mark.file}.{mark.offset}.{mark.taken}" for writer, mark in self.marks
        )

    @classmethod
    def of(cls, text: str) -> Place:
        """The place that a text names; ValueError when it names none."""
        marks: dict[int, Mark] = {}
        for part in text.split(_BETWEEN_MARKS, _MARKS_MAX):
            numbers = part.split(".")
            if len(numbers) != 4 or not all(map(_is_number, numbers)):
                raise ValueError(f"'{text[:40]}' is no place in a record")
            writer, *behind = map(int, numbers)
            marks[writer] = Mark(*behind)
        return cls(tuple(marks.items()))


class Piece(NamedTuple):
    """Whole lines of one writer, from where to where."""

    lines: bytes
    begin: Mark
    behind: Mark


class _File(NamedTuple):
    number: int
    writer: int

    @property
    def name(self) -> str:
        writer = f"-{self.writer}" if self.writer else ""
        return f"{self.number:08d}{writer}{_SUFFIX}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 15


class Ring:
    """The files of one directory. Its methods wait for the disk; one thread at a time may append."""

    def __init__(self, directory: Path, bytes_max: int, writer: int = 0, writers: int = 1) -> None:
        self.directory = directory
        self._bytes_max = bytes_max
        self._writer = writer
        self._file_bytes_max = bytes_max // FILES // writers
        self._file: IO[bytes] | None = None
        self._file_bytes = 0

    def append(self, lines: bytes) -> None:
        """Puts whole lines behind the others; all of them, or none when the disk does not take them."""
        if self._file is None or self._file_bytes >= self._file_bytes_max or self._is_removed(self._file):
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

    def _is_removed(self, file: IO[bytes]) -> bool:
        """Whether another process has made room, or cleared the ring."""
        return os.fstat(file.fileno()).st_nlink == 0

    def _begin_file(self) -> None:
        self.close()
        numbers = [file.number for file in self._files()]
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.directory / _File(max(numbers, default=0) + 1, self._writer).name
        self._file = open(path, "ab", buffering=0, opener=_private)  # noqa: SIM115
        self._file_bytes = 0
        self.make_room(self._bytes_max - self._bytes_max // FILES)

    def make_room(self, bytes_max: int) -> None:
        """Removes the oldest files until there is no more than that in them; the newest stays."""
        stats = self._stats()
        size_bytes = sum(stat.st_size for _, stat in stats)
        stats.sort(key=lambda each: (each[1].st_mtime_ns, each[0]))
        for file, stat in stats[:-1]:
            if size_bytes <= bytes_max:
                return
            size_bytes -= stat.st_size
            (self.directory / file.name).unlink(missing_ok=True)

    @property
    def size_bytes(self) -> int:
        return sum(stat.st_size for _, stat in self._stats())

    @property
    def changed_at(self) -> float:
        """When the oldest file was written last, in seconds since the epoch; 0 where there is none."""
        return min((stat.st_mtime for _, stat in self._stats()), default=0.0)

    def writers(self) -> list[int]:
        """Those who have files."""
        return sorted({file.writer for file in self._files()})

    def pieces(
        self, writer: int, mark: Mark | None = None, piece_bytes: int = PIECE_BYTES
    ) -> Iterator[Piece]:
        """Whole lines of a writer from a mark on, or all of them, about so many bytes or less at a time."""
        begin = mark or Mark()
        for each in self._files():
            if each.writer != writer or each.number < begin.file:
                continue
            offset = begin.offset if each.number == begin.file else 0
            try:
                file = (self.directory / each.name).open("rb")
            except FileNotFoundError:
                continue  # it has left the ring meanwhile
            with file:
                if offset > os.fstat(file.fileno()).st_size:
                    continue  # no place of this file, and perhaps further than files can be
                file.seek(offset)
                while read := file.read(piece_bytes):
                    if b"\n" not in read:
                        read += file.read(PIECE_BYTES - len(read))
                    end = read.rfind(b"\n") + 1
                    if end:
                        yield Piece(read[:end], Mark(each.number, offset), Mark(each.number, offset + end))
                    elif len(read) < PIECE_BYTES:
                        break  # the end of a write that did not come to its end
                    offset += end or len(read)  # no line is as long as that
                    file.seek(offset)

    def has_more(self, writer: int, mark: Mark) -> bool:
        """Whether a writer has written something behind a mark."""
        return any(
            file.number > mark.file or stat.st_size > mark.offset
            for file, stat in self._stats()
            if file.writer == writer and file.number >= mark.file
        )

    def clear(self) -> None:
        """Removes all files."""
        self.close()
        for file in self._files():
            (self.directory / file.name).unlink(missing_ok=True)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _files(self) -> list[_File]:
        """All files by their numbers."""
        try:
            names = os.listdir(self.directory)
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = []
        for name in names:
            number, _, writer = name.removesuffix(_SUFFIX).partition("-")
            if _is_number(number) and _is_number(writer or "0"):
                file = _File(int(number), int(writer or "0"))
                if file.name == name:
                    found.append(file)
        return sorted(found)

    def _stats(self) -> list[tuple[_File, os.stat_result]]:
        """The files that are still there, and what the system says of them."""
        found = []
        for file in self._files():
            with contextlib.suppress(FileNotFoundError):
                found.append((file, (self.directory / file.name).stat()))
        return found


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
