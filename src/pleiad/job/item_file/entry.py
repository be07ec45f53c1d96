"""One item as a file has it, and why a file cannot be read on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID, uuid5

import orjson

TEXT_BYTES_MAX = 8 * 1024 * 1024
"""The longest text of one item that is looked at: more than any server takes, and little memory."""
_SHOWN_BYTES = 200
_BATCH_ENTRIES = 256
BRACKETS_SHALLOW = 200
"""With no more of them nothing is nested too deeply to be written again."""
_TOO_DEEP = "a value is nested too deeply"


class ItemFileError(Exception):
    """A file that cannot be read or written; the text is a sentence for the person at the terminal."""


class Entry(NamedTuple):
    """What stands at one place of a file: an item, or what is wrong there."""

    number: int
    """Counts the entries of the file, from 1."""
    line: int
    """Where it begins; in Parquet the row."""
    text: bytes
    """The JSON text of the item, or what stands there instead."""
    value: dict[str, Any] | None
    problem: str = ""


class Batch(NamedTuple):
    """Neighbours in a file, for who looks at many items and at little of each."""

    lines: list[int]
    """Where each item begins."""
    texts: list[bytes]
    values: list[dict[str, Any]]
    problems: list[Entry]
    """What stands among them and is no item."""


def batched(entries: Iterable[Entry]) -> Iterator[Batch]:
    """Entries as batches."""
    waiting = iter(entries)
    while some := list(islice(waiting, _BATCH_ENTRIES)):
        yield batch_of(some)


def batch_of(entries: Iterable[Entry]) -> Batch:
    """The batch of some entries."""
    batch = Batch([], [], [], [])
    for entry in entries:
        if entry.value is None:
            batch.problems.append(entry)
        else:
            batch.lines.append(entry.line)
            batch.texts.append(entry.text)
            batch.values.append(entry.value)
    return batch


def entry_of_text(
    number: int, line: int, text: bytes, decode: Callable[[bytes], Any] = orjson.loads
) -> Entry:
    """The entry of a text that should be a JSON object."""
    try:
        value = decode(text)
    except orjson.JSONDecodeError as error:
        return Entry(number, line, text, None, f"not JSON: {error.msg} at character {error.pos + 1}")
    if not isinstance(value, dict):
        return Entry(number, line, text, None, f"an item is a JSON object, and this is {_kind(value)}")
    if text.count(b"[") + text.count(b"{") > BRACKETS_SHALLOW and _is_too_deep(text):
        return Entry(number, line, text, None, _TOO_DEEP)
    return Entry(number, line, text, value)


def entry_of_value(number: int, line: int, value: dict[str, Any]) -> Entry:
    """The entry of an item that was put together from cells."""
    try:
        return Entry(number, line, orjson.dumps(value), value)
    except orjson.JSONEncodeError as error:
        problem = "the text is not UTF-8" if "UTF-8" in str(error) else _TOO_DEEP
        return Entry(number, line, _shown(value), None, problem)


def _is_too_deep(text: bytes) -> bool:
    """Whether a text can be read and not be written again, for which there are fewer levels, as on servers."""
    try:
        orjson.dumps(orjson.loads(text))
    except orjson.JSONEncodeError:
        return True
    except orjson.JSONDecodeError:
        return False  # a number beyond all doubles under a name that was left out
    return False


def with_id(entry: Entry, family: UUID) -> Entry:
    """The entry with an id, if it is an item without one: always the same for its place in that family."""
    if entry.value is None or "id" in entry.value:
        return entry
    id = str(uuid5(family, str(entry.number)))
    rest = entry.text.strip()[1:].lstrip()
    text = b'{"id":"%b"%b%b' % (id.encode(), b"" if rest == b"}" else b",", rest)
    return entry._replace(text=text, value={"id": id, **entry.value})


def _shown(value: dict[str, Any]) -> bytes:
    try:
        text = ascii(value)
    except RecursionError:
        text = ascii(list(value))
    return text[:_SHOWN_BYTES].encode()


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, list):
        return "an array"
    return "a string" if isinstance(value, str) else "a number"
