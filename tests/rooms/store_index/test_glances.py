"""Glances at rows: whichever way they come, they say the same."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import apsw
import orjson
import pytest

from pleiad.keys.range import WHOLE
from pleiad.store.glances import Glances
from pleiad.store.rows import Mutation, PartitionWrite, Verb
from pleiad.store.selection import Selection
from pleiad.store.sqlite import glancing
from pleiad.store.sqlite.segment import SqliteSegment
from pleiad.store.sqlite.store import SqliteStore

TEXTS = ['"a"', None, '"b"', "null", None]
BODIES: list[dict[str, Any]] = [
    {"t": "a" * 40, "n": 1},
    {"n": 2},
    {"t": None},
    {"t": "é" * 30, "n": [1, {"x": "y"}]},
    {"t": "line\nbreak"},
]


async def filled(directory: Path) -> tuple[SqliteStore, SqliteSegment]:
    store = SqliteStore(directory)
    segment = store.segment("s")
    for number, body in enumerate(BODIES):
        mutation = Mutation(Verb.UPSERT, bytes([number]) * 16, f"i{number}", orjson.dumps(body), 10 + number)
        await segment.commit(PartitionWrite(0, 1, 1_000, (mutation,)))
    assert isinstance(segment, SqliteSegment)
    return store, segment


def text(value: object) -> str:
    return orjson.dumps(value).decode()


EXPECTED = [
    (number, 10 + at, *(text(body[name]) if name in body else None for name in ("t", "n")))
    for at, (number, body) in enumerate(zip(range(1, 6), BODIES, strict=True))
]


async def test_the_rows_come_as_columns(tmp_path: Path) -> None:
    store, segment = await filled(tmp_path)
    found = await segment.glance(Selection(WHOLE), ("t", "n"), 0, 100)
    assert list(found) == EXPECTED
    assert list(await segment.glance(Selection(WHOLE), ("t", "n"), 2, 2)) == EXPECTED[2:4]
    assert list(await segment.glance(Selection(WHOLE), (), 3, 100)) == [row[:2] for row in EXPECTED[3:]]
    assert found.lines(0).split("\n")[1] == ""
    assert (found.numbers, found.size_bytes(), found.size_bytes(1, 2)) == ([1, 2, 3, 4, 5], 60, 23)
    await store.close()


async def test_texts_that_are_too_long_for_one_come_row_by_row(tmp_path: Path) -> None:
    store, segment = await filled(tmp_path)
    await segment.glance(Selection(WHOLE), (), 0, 1)
    file = segment._file
    assert file is not None
    file.reader.limit(apsw.SQLITE_LIMIT_LENGTH, 100)
    assert list(await segment.glance(Selection(WHOLE), ("t", "n"), 0, 100)) == EXPECTED
    await store.close()


@pytest.mark.parametrize("count", [1, 3, 40])
async def test_no_more_texts_are_held_than_have_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    store = SqliteStore(tmp_path)
    segment = store.segment("s")
    chars = [10] * 30 + [700] * count + [10] * 30
    for number, long in enumerate(chars):
        body = text({"t": "x" * long}).encode()
        mutation = Mutation(Verb.UPSERT, bytes([number]) * 16, f"i{number}", body, len(body))
        await segment.commit(PartitionWrite(0, 1, 1_000, (mutation,)))
    monkeypatch.setattr(glancing, "_CHARS_MAX", 2_000)
    found: list[Any] = []
    parts: list[Glances] = []
    while not parts or parts[-1].is_cut:
        after = found[-1][0] if found else 0
        parts.append(await segment.glance(Selection(WHOLE), ("t",), after, 2_000))
        assert parts[-1].chars <= 2_000 + 702
        found += parts[-1]
    assert [len(glance[2]) - 2 for glance in found] == chars
    assert [glance[0] for glance in found] == list(range(1, len(chars) + 1))
    assert (len(parts) > 1) is (sum(chars) > 2_000)
    await store.close()


async def test_a_line_break_in_a_damaged_row_is_no_end_of_a_text(tmp_path: Path) -> None:
    store, segment = await filled(tmp_path)
    await segment.glance(Selection(WHOLE), (), 0, 1)
    file = segment._file
    assert file is not None
    # {"t": "x<line break>y"}, as no JSON says it.
    file.writer.execute("UPDATE item SET body = x'6c177437780a79' WHERE number = 2")
    await asyncio.sleep(0)  # reads of one turn of the loop share a snapshot
    found = await segment.glance(Selection(WHOLE), ("t",), 0, 100)
    assert [row[2] for row in found] == [EXPECTED[0][2], '"x\ny"', "null", EXPECTED[3][2], EXPECTED[4][2]]
    await store.close()


@pytest.mark.parametrize("count", range(1, len(TEXTS) + 1))
def test_lines_and_texts_say_the_same(count: int) -> None:
    numbers, sizes = list(range(count)), list(range(10, 10 + count))
    by_lines = Glances(numbers, sizes, lines=["\n".join(text or "" for text in TEXTS[:count])])
    by_texts = Glances(numbers, sizes, [TEXTS[:count]])
    by_rows = Glances.of(list(by_lines), 1)
    for found in (by_lines, by_texts, by_rows, Glances.joined([by_lines.behind(0)], 1)):
        assert list(found) == list(zip(numbers, sizes, TEXTS[:count], strict=True))
        assert found.lines(0) == by_lines.lines(0)
        assert list(found.behind(1)) == list(by_lines)[1:]
        assert list(found.at([count - 1, 0])) == [by_lines[count - 1], by_lines[0]]
    assert list(Glances.joined([by_lines, by_texts.behind(1)], 1)) == [*by_lines, *list(by_texts)[1:]]


def test_no_rows_have_columns_too() -> None:
    for found in (Glances.of((), 2), Glances.joined((), 2)):
        assert (len(found), list(found), found.size_bytes(), len(found.texts)) == (0, [], 0, 2)
        assert not found
