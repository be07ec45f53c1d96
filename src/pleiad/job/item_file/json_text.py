"""JSON lines, JSON arrays and JSON objects one after the other, read as a stream.

Invariants: no more of a file is in memory than one item and a piece; a bad line or element costs itself only, and what
breaks the array around it ends the reading with the line where it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

from pleiad.job.item_file.decode import TextDecoder
from pleiad.job.item_file.entry import TEXT_BYTES_MAX, Batch, Entry, ItemFileError, batch_of, entry_of_text

_PIECE_BYTES = 1 << 18
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# Strings and what stands between them are skipped within one match.
_UP_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+[\[\]{}]", re.DOTALL)
_WHOLE_STRING = re.compile(_STRING, re.DOTALL)
_SCALAR = re.compile(rb'[^\s,\[\]{}"]++(?=[\s,\[\]{}"])')
_SPACE = re.compile(rb"[ \t\r\n]*+")


def read_lines(file: IO[bytes], decoder: TextDecoder) -> Iterator[Entry]:
    """The items of JSON lines; empty lines are passed over."""
    number = line = 0
    while text := file.readline(TEXT_BYTES_MAX):
        line += 1
        if line == 1:
            text = text.removeprefix(_BYTE_ORDER_MARK)
        if len(text) == TEXT_BYTES_MAX and not text.endswith(b"\n"):
            _pass_over_line(file)
            number += 1
            yield _too_long(number, line, text)
            continue
        text = text.strip()
        if text:
            number += 1
            yield entry_of_text(number, line, text, decoder.decode)


def read_line_batches(file: IO[bytes], decoder: TextDecoder) -> Iterator[Batch]:
    """The same items, a piece of the file at a time."""
    number = line = 0
    while piece := file.read(_PIECE_BYTES):
        begun = len(piece) - piece.rfind(b"\n") - 1
        piece += file.readline(TEXT_BYTES_MAX - begun)
        lines = (piece.removeprefix(_BYTE_ORDER_MARK) if line == 0 else piece).split(b"\n")
        rest = lines.pop() if len(lines[-1]) == TEXT_BYTES_MAX else None
        stripped = list(map(bytes.strip, lines))
        texts = list(filter(None, stripped))
        places = [at for at, text in enumerate(stripped, line + 1) if text]
        values = decoder.decode_many(texts, piece)
        if values is None:
            found = enumerate(zip(places, texts, strict=True), number + 1)
            yield batch_of(entry_of_text(each, at, text, decoder.decode) for each, (at, text) in found)
        else:
            yield Batch(places, texts, values, [])
        number += len(texts)
        line += len(lines) if rest is not None else len(lines) - 1
        if rest is not None:
            _pass_over_line(file)
            number, line = number + 1, line + 1
            yield Batch([], [], [], [_too_long(number, line, rest)])


def _pass_over_line(file: IO[bytes]) -> None:
    while (rest := file.readline(TEXT_BYTES_MAX)) and not rest.endswith(b"\n"):
        pass


def _too_long(number: int, line: int, text: bytes) -> Entry:
    return Entry(number, line, text[:1000], None, f"the line is longer than {TEXT_BYTES_MAX:,} bytes")


def read_values(file: IO[bytes], decoder: TextDecoder) -> Iterator[Entry]:
    """The items of a JSON array, or JSON objects one after the other."""
    window = _Window(file)
    number = 0
    is_array = window.next_byte() == b"["
    if is_array:
        window.advance(1)
        if window.next_byte() == b"]":
            window.advance(1)
            window.refuse_more()
            return
    while window.next_byte():
        line = window.line
        number += 1
        yield entry_of_text(number, line, window.take_value(), decoder.decode)
        if not is_array:
            continue
        after = window.next_byte()
        if not after:
            break
        if after not in (b",", b"]"):
            raise ItemFileError(f"line {window.line}: a comma or the end of the array is missing")
        window.advance(1)
        if after == b"]":
            window.refuse_more()
            return
    if is_array:
        raise ItemFileError(f"line {window.line}: the file ends before its array does")


class _Window:
    """The piece of a file that is looked at."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._bytes = file.read(_PIECE_BYTES).removeprefix(_BYTE_ORDER_MARK)
        self._at = 0
        self.line = 1

    def next_byte(self) -> bytes:
        """The next byte that is no white space; none at the end."""
        while True:
            space = _SPACE.match(self._bytes, self._at)
            assert space is not None
            self.advance(space.end() - self._at)
            if self._at < len(self._bytes) or not self._more():
                return self._bytes[self._at : self._at + 1]

    def advance(self, count: int) -> None:
        self.line += self._bytes.count(b"\n", self._at, self._at + count)
        self._at += count

    def refuse_more(self) -> None:
        if self.next_byte():
            raise ItemFileError(f"line {self.line}: something stands behind the end of the array")

    def take_value(self) -> bytes:
        """The text of the value that begins here."""
        first = self._bytes[self._at : self._at + 1]
        if first in (b"{", b"["):
            length = self._bracketed_length()
        else:
            length = self._plain_length(_WHOLE_STRING if first == b'"' else _SCALAR)
        text = self._bytes[self._at : self._at + length]
        self.advance(length)
        return text

    def _bracketed_length(self) -> int:
        nesting = length = 0
        while True:
            token = _UP_TO_BRACKET.match(self._bytes, self._at + length)
            if token is None:
                self._need_more()
                continue
            length = token.end() - self._at
            nesting += 1 if self._bytes[token.end() - 1] in b"[{" else -1
            if nesting == 0:
                return length

    def _plain_length(self, pattern: re.Pattern[bytes]) -> int:
        while (found := pattern.match(self._bytes, self._at)) is None:
            if self._bytes[self._at] in b",]}:":
                return 1
            if not self._more():
                return len(self._bytes) - self._at
        return found.end() - self._at

    def _need_more(self) -> None:
        if not self._more():
            raise ItemFileError(f"line {self.line}: the file ends inside the item that begins there")

    def _more(self) -> bool:
        """Reads another piece behind what is not yet taken; whether there was one."""
        if len(self._bytes) - self._at > TEXT_BYTES_MAX:
            raise ItemFileError(f"line {self.line}: an item is longer than {TEXT_BYTES_MAX:,} bytes")
        # In pieces that grow with what waits, so that a long item is not looked at again and again.
        piece = self._file.read(max(_PIECE_BYTES, len(self._bytes) - self._at))
        self._bytes = self._bytes[self._at :] + piece
        self._at = 0
        return bool(piece)
