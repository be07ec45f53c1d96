"""Opening a file of items, or standard input, and reading it item by item."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from pleiad.job.item_file import csv_table, json_text, parquet
from pleiad.job.item_file.compress import told_of_damage, unpacked
from pleiad.job.item_file.decode import TextDecoder
from pleiad.job.item_file.entry import Batch, Entry, ItemFileError, batched
from pleiad.job.item_file.form import (
    Compression,
    Form,
    compression_of_bytes,
    delimiter_of_name,
    form_of_bytes,
    form_of_name,
)

_PEEK_BYTES = 4096
_BUFFER_BYTES = 1 << 20
_Read = TypeVar("_Read", Entry, Batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How a file is to be read, where its name and its bytes do not tell."""

    form: Form | None = None
    delimiter: str | None = None
    """Between cells of CSV."""
    text_columns: frozenset[str] = frozenset()
    """Columns of CSV whose cells are kept as text; `*` for all."""


class ItemFile:
    """A file of items that is being read."""

    def __init__(
        self,
        name: str,
        entries: Iterator[Entry],
        batches: Iterator[Batch],
        raw: IO[bytes],
        size_bytes: int | None,
        decoder: TextDecoder,
    ) -> None:
        self.name = name
        self.size_bytes = size_bytes
        """Of the file as it is on disk; unknown for standard input."""
        self._entries = entries
        self._batches = batches
        self._raw = raw
        self._decoder = decoder

    @property
    def read_bytes(self) -> int:
        """How much of that has been read."""
        try:
            return self._raw.tell()
        except (OSError, ValueError):
            return 0

    def leave_out_but(self, names: Iterable[str]) -> None:
        """Items may come without all other names from now on; their texts are whole."""
        self._decoder.leave_out_but(names)

    def __iter__(self) -> Iterator[Entry]:
        """The entries; ItemFileError when the file cannot be read on."""
        return self._told(self._entries)

    def batches(self) -> Iterator[Batch]:
        """The same in batches, for who takes all that comes: a file is read in one way or the other."""
        return self._told(self._batches)

    def _told(self, read: Iterator[_Read]) -> Iterator[_Read]:
        with told_of_damage(self.name):
            try:
                yield from read
            except OSError as error:
                if error.strerror is None:
                    raise
                raise ItemFileError(f"{self.name} cannot be read: {error.strerror}") from None


@contextmanager
def open_items(path: Path | None, options: ReadOptions) -> Iterator[ItemFile]:
    """A file of items for the time of a with-block; without a path it is standard input."""
    name = "standard input" if path is None else str(path)
    with ExitStack() as stack:
        if path is None:
            raw, size_bytes = sys.stdin.buffer, None
        else:
            try:
                raw = stack.enter_context(path.open("rb", buffering=_BUFFER_BYTES))
                size_bytes = path.stat().st_size
            except OSError as error:
                raise ItemFileError(f"{name} cannot be read: {error.strerror}") from None
        decoder = TextDecoder()
        with told_of_damage(name):
            entries, batches = _contents(_peekable(raw), path, name, options, stack, decoder)
        yield ItemFile(name, entries, batches, raw, size_bytes, decoder)


def _peekable(file: Any) -> Any:
    """The file, so that its first bytes can be looked at before they are read."""
    return file if hasattr(file, "peek") else io.BufferedReader(file)


def _contents(
    raw: Any, path: Path | None, name: str, options: ReadOptions, stack: ExitStack, decoder: TextDecoder
) -> tuple[Iterator[Entry], Iterator[Batch]]:
    compression = compression_of_bytes(raw.peek(_PEEK_BYTES))
    file = _peekable(unpacked(raw, compression))
    form = options.form or form_of_name(name) or form_of_bytes(file.peek(_PEEK_BYTES), name)
    if form is Form.JSONL:
        return json_text.read_lines(file, decoder), json_text.read_line_batches(file, decoder)
    if form is Form.JSON:
        entries = json_text.read_values(file, decoder)
    elif form is Form.CSV:
        delimiter = options.delimiter or delimiter_of_name(name)
        is_guess = options.delimiter is None
        entries = csv_table.read_rows(file, delimiter, options.text_columns, is_guess)
    else:
        entries = parquet.read_rows(_whole_file(file, path, compression, stack))
    return entries, batched(entries)


def _whole_file(file: Any, path: Path | None, compression: Compression, stack: ExitStack) -> Path:
    """A plain file with what is read, for the time of the stack."""
    if path is None or compression is not Compression.NONE:
        # The end of a Parquet file says where its columns are, so it must be a whole, plain file.
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pleiad-"))
        path = Path(folder) / "items.parquet"
        with path.open("wb") as whole:
            shutil.copyfileobj(file, whole)
    return path
