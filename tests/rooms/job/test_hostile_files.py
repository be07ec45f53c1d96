"""Files of items that nobody means well with, and files that an import must not harm."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import stat
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from pleiad.job.import_state import ImportIdentity, ImportState, StateFile
from pleiad.job.item_file import csv_table
from pleiad.job.item_file.csv_table import COLUMNS_MAX, read_rows
from pleiad.job.item_file.entry import Entry, ItemFileError
from pleiad.job.item_file.form import Compression, Form
from pleiad.job.item_file.reader import ReadOptions, open_items
from pleiad.job.item_file.writer import writing_items
from pleiad.job.rejects import Rejects

needs_parquet = pytest.mark.skipif(
    importlib.util.find_spec("duckdb") is None,
    reason="Parquet needs the extra parquet",
)

IDENTITY = ImportIdentity(
    source="f",
    source_bytes=1,
    source_modified_ns=1,
    endpoint="e",
    container="d/c",
    container_rid="r",
    is_upsert=False,
)


class Endless(io.RawIOBase):
    """A file that has no end, as a packed one of a few bytes has none: a start, and then the same again and again."""

    def __init__(self, start: bytes, again: bytes) -> None:
        self._waiting = start
        self._again = again
        self.given_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while len(self._waiting) < len(buffer):
            self._waiting += self._again * (1 + len(buffer) // len(self._again))
        buffer[:] = self._waiting[: len(buffer)]
        self._waiting = self._waiting[len(buffer) :]
        self.given_bytes += len(buffer)
        assert self.given_bytes < 1_000_000, "the whole file is read into memory"
        return len(buffer)


@pytest.mark.parametrize(
    ("start", "again"),
    [
        (b"", b","),
        (b"", b"x"),
        (b"id\n", b","),
        (b"id\n", b'"x\n",'),
        (b'id\n1\n2,"', b"x\n"),
        (b"", b'"a\r",'),
    ],
)
def test_a_row_of_csv_without_an_end_is_refused(
    monkeypatch: pytest.MonkeyPatch, start: bytes, again: bytes
) -> None:
    monkeypatch.setattr(csv_table, "TEXT_BYTES_MAX", 100_000)
    file = io.BufferedReader(Endless(start, again))
    with pytest.raises(ItemFileError, match=r"row is longer than 100,000|columns|limit"):
        for _ in read_rows(file, ",", ()):
            pass


def rows(text: bytes) -> list[Entry]:
    return list(read_rows(io.BytesIO(text), ",", ()))


def test_long_files_of_short_rows_are_read_to_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_table, "TEXT_BYTES_MAX", 100)
    assert len(rows(b"id,a\n" + b'1,"two\nlines"\n' * 100)) == 100


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        (",".join(f"c{number}" for number in range(COLUMNS_MAX + 1)), "more than 10,000 columns"),
        (".".join("a" * 129), "deeper than the 128 levels"),
        (".".join("a" * 100_000), "deeper than the 128 levels"),
    ],
)
def test_too_many_and_too_deep_columns_are_refused(header: str, sentence: str) -> None:
    with pytest.raises(ItemFileError, match=sentence):
        rows(header.encode() + b"\n1\n")


@pytest.mark.parametrize("other", [b"x", b"\xff"])
def test_a_deep_cell_costs_its_row_only(other: bytes) -> None:
    deep = b"[" * 1_000 + b"]" * 1_000
    found = rows(b'id,a,b\n1,%b,"%b"\n2,%b,"%b"\n3,,\n' % (other, deep, deep, other))
    assert [entry.value is None for entry in found] == [True, True, False]
    assert all("deep" in entry.problem or "UTF-8" in entry.problem for entry in found[:2])


@pytest.mark.parametrize("levels", [254, 1_000, 5_000])
@pytest.mark.parametrize("form", [Form.JSONL, Form.JSON])
@pytest.mark.parametrize("is_left_out", [False, True])
def test_a_deep_item_costs_itself_only(tmp_path: Path, levels: int, form: Form, is_left_out: bool) -> None:
    path = tmp_path / "items"
    deep = b'{"id":"2","a":%b%b}' % (b"[" * levels, b"]" * levels)
    path.write_bytes(b'{"id":"1"}\n%b\n{"id":"3"}\n' % deep)
    with open_items(path, ReadOptions(form=form)) as items:
        if is_left_out:
            items.leave_out_but(["id"])
        found = list(items)
    assert [entry.value for entry in found] == [{"id": "1"}, None, {"id": "3"}]
    assert "deep" in found[1].problem or "not JSON" in found[1].problem


def test_a_quote_that_is_never_closed_is_said_with_its_line() -> None:
    read = read_rows(io.BytesIO(b'id,a\n1,"x\ny"\n2,"z\n3,w\n'), ",", ())
    assert next(read).value == {"id": "1", "a": "x\ny"}
    with pytest.raises(ItemFileError, match=r"line 4: .* a quote that is never closed"):
        next(read)
    with pytest.raises(ItemFileError, match=r"line 1: .* a quote that is never closed"):
        rows(b'id,"a\n1,2\n')
    assert [entry.value for entry in rows(b'id,a\n1,5" of it\n2,"x"')] == [
        {"id": "1", "a": '5" of it'},
        {"id": "2", "a": "x"},
    ]


# -- what an import writes --------------------------------------------------------------------------


def test_a_file_that_holds_no_rejects_is_not_lost_to_them(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    for content in ("dear diary", '{"id":"1"}\n', "[]"):
        path.write_text(content)
        with pytest.raises(ItemFileError, match="holds no rejects"):
            Rejects(path).begin()
        with pytest.raises(ItemFileError, match="holds no rejects"):
            Rejects(path).keep_up_to(3)
        assert path.read_text() == content


def test_rejects_of_an_earlier_import_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "f.rejects.jsonl"
    for reason in ("first", "second"):
        rejects = Rejects(path)
        rejects.begin()
        rejects.add(Entry(1, 1, b"{}", {}), reason, 400)
        rejects.close()
        assert [json.loads(line)["reason"] for line in path.read_text().splitlines()] == [reason]


def test_what_is_no_file_is_neither_removed_nor_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    rejects = Rejects(path)
    rejects.begin()
    rejects.keep_up_to(1)
    StateFile(path).remove()
    with pytest.raises(ItemFileError, match="is no file"):
        StateFile(path).load(IDENTITY)
    reader = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        rejects.add(Entry(1, 1, b"{}", {}), "no", 400)
        rejects.close()
        assert json.loads(os.read(reader, 1_000))["reason"] == "no"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize(
    "wrong",
    [
        {"done": "5"},
        {"done": -1},
        {"done": 1.5},
        {"done": True},
        {"rejected": 7},
        {"rejected": None},
        {"run": "x"},
        {"run": 5},
        {"more": 1},
    ],
)
def test_a_state_with_values_that_were_never_written_is_refused(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    path = tmp_path / "f.import-state"
    file = StateFile(path)
    file.save(ImportState(identity=IDENTITY, done=5, rejected=2))
    good = json.loads(path.read_text())
    assert file.load(IDENTITY) == ImportState(
        **{
            **asdict(ImportState(identity=IDENTITY, run=good["run"], done=5, rejected=2)),
            "identity": IDENTITY,
        }
    )
    path.write_text(json.dumps({**good, **wrong}))
    with pytest.raises(ItemFileError, match="is not the state of an import"):
        file.load(IDENTITY)


# -- Parquet ------------------------------------------------------------------------------------------


@needs_parquet
@pytest.mark.parametrize("name", ["part[1].parquet", "part*.parquet", "part?.parquet", "[p]/part1.parquet"])
def test_a_name_of_a_parquet_file_is_no_pattern(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    (tmp_path / "p").mkdir()
    for each, id in (
        (path, "this"),
        (tmp_path / "part1.parquet", "other"),
        (tmp_path / "p/part1.parquet", "another"),
    ):
        with writing_items(each, Form.PARQUET, Compression.NONE, ",") as writer:
            writer.write([{"id": id}])
    with open_items(path, ReadOptions()) as file:
        assert [entry.value for entry in file] == [{"id": "this"}]


@needs_parquet
def test_a_number_in_parquet_that_is_not_finite_costs_its_row_only(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "numbers.parquet"
    rows = " UNION ALL ".join(
        f"SELECT '{number}' AS id, '{text}'::DOUBLE AS x, ['{text}'::DOUBLE] AS xs"
        for number, text in enumerate(("1", "NaN", "Infinity", "-Infinity", "2"))
    )
    duckdb.connect().execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    with open_items(path, ReadOptions()) as file:
        found = [(entry.value and entry.value["x"], entry.problem[:22]) for entry in file]
    assert found == [(1, ""), *[(None, "a number is not finite")] * 3, (2, "")]
