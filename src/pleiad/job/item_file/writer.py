"""Writing a file of items, or standard output.

A file appears under its name when it is whole, and not before: until then it has a name of its own beside it, which is
removed when the writing fails.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Protocol
from uuid import uuid4

import orjson

from pleiad.job.item_file import csv_table, parquet
from pleiad.job.item_file.compress import packing
from pleiad.job.item_file.entry import ItemFileError
from pleiad.job.item_file.form import Compression, Form


class ItemWriter(Protocol):
    """Takes results in the order in which they come."""

    def write(self, values: Sequence[Any]) -> None: ...

    def finish(self) -> None:
        """Writes what had to wait for the last item."""


@contextmanager
def writing_items(
    path: Path | None, form: Form, compression: Compression, delimiter: str
) -> Iterator[ItemWriter]:
    """Writes what the with-block gives; without a path to standard output."""
    try:
        with ExitStack() as stack:
            target = sys.stdout.buffer if path is None else stack.enter_context(_appearing(path))
            folder = None if path is None else path.parent
            packed = stack.enter_context(packing(target, compression))
            writer = _writer(packed, form, delimiter, folder, stack)
            yield writer
            writer.finish()
        if path is None:
            sys.stdout.buffer.flush()
    except OSError as error:
        if isinstance(error, BrokenPipeError) or error.strerror is None:
            raise
        name = "standard output" if path is None else str(path)
        raise ItemFileError(f"{name} cannot be written: {error.strerror}") from None


@contextmanager
def _appearing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes its name when the with-block ends well; a pipe or device has it already."""
    if path.exists() and not path.is_file():
        with path.open("wb") as pipe:
            yield pipe
        return
    partial = path.with_name(f".{path.name}.{uuid4().hex[:8]}.partial")
    try:
        with partial.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _writer(file: IO[bytes], form: Form, delimiter: str, folder: Path | None, stack: ExitStack) -> ItemWriter:
    if form is Form.JSONL:
        return _Lines(file)
    if form is Form.JSON:
        return _Array(file)
    spool = _Spool(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=".pleiad-", dir=folder))))
    return _Csv(file, spool, delimiter) if form is Form.CSV else _Parquet(file, spool)


class _Lines:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, values: Sequence[Any]) -> None:
        self._file.write(b"".join([orjson.dumps(each, option=orjson.OPT_APPEND_NEWLINE) for each in values]))

    def finish(self) -> None:
        pass


class _Array:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._before = b"[\n"

    def write(self, values: Sequence[Any]) -> None:
        for value in values:
            self._file.write(self._before + orjson.dumps(value))
            self._before = b",\n"

    def finish(self) -> None:
        self._file.write(b"[]\n" if self._before == b"[\n" else b"\n]\n")


class _Spool:
    """Items on disk until all columns are known."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = (folder / "items.jsonl").open("w+b")

    def add(self, item: Any) -> dict[str, Any]:
        if not isinstance(item, dict):
            raise ItemFileError("only objects can be rows, and the query gives other values: export as jsonl")
        self._file.write(orjson.dumps(item, option=orjson.OPT_APPEND_NEWLINE))
        return item

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._file.seek(0)
        for line in self._file:
            yield orjson.loads(line)


class _Csv:
    def __init__(self, file: IO[bytes], spool: _Spool, delimiter: str) -> None:
        self._file, self._spool, self._delimiter = file, spool, delimiter
        self._columns = csv_table.Columns()

    def write(self, values: Sequence[Any]) -> None:
        for value in values:
            self._columns.note(csv_table.flat(self._spool.add(value)))

    def finish(self) -> None:
        csv_table.write_rows(self._file, self._columns, self._spool, self._delimiter)


class _Parquet:
    def __init__(self, file: IO[bytes], spool: _Spool) -> None:
        self._file, self._spool = file, spool
        self._schema = parquet.Schema()

    def write(self, values: Sequence[Any]) -> None:
        for value in values:
            self._schema.note(self._spool.add(value))

    def finish(self) -> None:
        rows, made = self._spool.folder / "rows.jsonl", self._spool.folder / "items.parquet"
        types = self._schema.types()
        with rows.open("wb") as file:
            file.writelines(parquet.row_of(item, types) for item in self._spool)
        parquet.write_rows(rows, types, made)
        with made.open("rb") as file:
            shutil.copyfileobj(file, self._file)
