from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import orjson
import pytest

from pleiad.advise import column
from pleiad.advise.column import ColumnBuilder
from pleiad.advise.key import path_key
from pleiad.advise.sketch import ERROR
from pleiad.advise.table import ReadingOptions, read_table
from pleiad.index.policy import IndexingPolicy
from pleiad.index.terms import TermCounter
from pleiad.job.item_file.entry import Entry, batched
from pleiad.job.item_file.reader import ReadOptions, open_items
from pleiad.keys.hash import epk, epk_heads
from pleiad.keys.value import KeyValue
from pleiad.limits import Limits
from pleiad.values.undefined import UNDEFINED
from tests.rooms.advise.made_items import entries, skewed_items, table_of


def test_the_hash_of_a_value_is_the_head_of_its_epk() -> None:
    values: list[KeyValue] = ["a", "ü" * 50, 1, 1.5, True, None, UNDEFINED, "\ud800"]
    definition = path_key("/id").definition()
    heads = [int.from_bytes(epk((value,), definition)[:8], "big") for value in values]
    assert epk_heads(values) == heads
    assert epk_heads(["a", "b"]) == [epk_heads(["a"])[0], epk_heads(["b"])[0]]


def test_values_are_equal_as_partition_keys_are() -> None:
    builder = ColumnBuilder("/a")
    builder.add([1, 1.0, True, "1", None, UNDEFINED, {"deep": 1}, [1]])
    found = builder.finish()
    codes = found.codes.tolist()
    assert codes[0] == codes[1]
    assert len({codes[0], *codes[2:6]}) == 5
    assert codes[5] == codes[6] == codes[7]
    assert (found.kinds.number, found.kinds.boolean, found.kinds.missing, found.kinds.null) == (2, 1, 3, 1)


def test_more_values_than_names_are_counted_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column, "NAMES_MAX", 50)
    monkeypatch.setattr(column, "_FEW_VALUES", 20)
    chosen = random.Random(1)
    values = [f"v{chosen.randrange(400)}" for _ in range(3000)] + ["giant"] * 500
    builder = ColumnBuilder("/a")
    for start in range(0, len(values), 100):
        builder.add(values[start : start + 100])
    found = builder.finish()
    assert found.distinct == len(set(values))
    counts = np.bincount(found.codes)
    assert sorted(counts.tolist()) == sorted(values.count(value) for value in set(values))
    assert found.value_of(int(np.argmax(counts))) == "giant", "a large value that comes late has its name"


def test_a_file_is_read_alike_whether_unneeded_names_are_left_out_or_not(tmp_path: Path) -> None:
    file = tmp_path / "items.jsonl"
    items = [
        {"id": str(n), "n": n % 7, "deep": {"a": f"v{n % 50}"}, "note": "x" * (n % 90)} for n in range(7000)
    ]
    lines = [orjson.dumps(item) for item in items]
    lines[6000] = b'{"id":'
    lines[6001] = b'{"id":"big","n":1' + b"0" * 400 + b',"deep":{"a":"v1"}}'
    file.write_bytes(b"\n".join(lines))
    options = ReadingOptions(paths=("/n", "/deep/a"), finds_paths=False)
    with open_items(file, ReadOptions()) as whole:
        expected = read_table(whole.batches(), options)
    with open_items(file, ReadOptions()) as partly:
        found = read_table(partly.batches(), options, leave_out_but=partly.leave_out_but)
    assert found.problems[0] == expected.problems[0]
    assert found.items - expected.items == found.columns["/n"].kinds.unsafe <= 1
    assert found.terms[:6000].tolist() == expected.terms[:6000].tolist()
    for path in ("/id", "/n", "/deep/a"):
        column, other = found.columns[path], expected.columns[path]
        assert column.hashes[column.codes[:6000]].tolist() == other.hashes[other.codes[:6000]].tolist()


def test_sizes_and_terms_are_those_that_are_charged_for() -> None:
    items = [{"id": str(n), "list": [1, 2, n], "text": "x" * n} for n in range(300)]
    table = table_of(items)
    counter = TermCounter(IndexingPolicy.from_json(None, Limits()))
    assert table.terms.tolist() == [counter.count(item) for item in items]
    assert table.sizes.tolist() == [len(each.text) for each in entries(items)]


def test_system_properties_and_white_space_take_no_room() -> None:
    item = {"id": "1", "a": 1}
    text = b'{ "id": "1", "a": 1, "_ts": 1700000000, "_rid": "x" }'
    entry = Entry(1, 1, text, {**item, "_ts": 1700000000, "_rid": "x"})
    table = read_table(batched([entry]), ReadingOptions())
    assert table.sizes.tolist() == [len(b'{"id":"1","a":1}')]


def test_of_more_items_than_are_kept_a_uniform_sample_stays() -> None:
    items = skewed_items({"large": 6000, "small": 4000})
    table = table_of(items, rows_max=1000)
    assert table.items == 10_000
    assert 400 < table.rows <= 2000
    assert table.total_bytes == sum(len(each.text) for each in entries(items))
    tenants = table.columns["/tenantId"]
    shares = np.bincount(tenants.codes) / table.rows
    assert max(shares) == pytest.approx(0.6, abs=0.06)


def test_different_values_of_all_items_are_counted_within_the_error_of_the_sketch() -> None:
    items = [{"id": str(n), "userId": f"user-{n * 7919 % 6000}", "few": n % 7} for n in range(20_000)]
    table = table_of(items, rows_max=1000)
    for path, exact in (("/id", 20_000), ("/userId", 6000), ("/few", 7)):
        assert table.columns[path].distinct_of_all == pytest.approx(exact, rel=2 * ERROR)
    assert table.columns["/userId"].distinct < 2000, "the sample has fewer"
    assert table_of(items[:500]).columns["/id"].distinct_of_all is None, "what is whole is counted exactly"


def test_times_are_found_and_rolled_up() -> None:
    items = [
        {"id": str(n), "born": "1970-05-05", "at": f"2025-03-{1 + n // 24:02d}T{n % 24:02d}:30:00Z"}
        for n in range(240)
    ]
    table = table_of(items)
    assert table.time_path == "/at"
    assert table.columns["day(/at)"].distinct == 10
    assert table.columns["month(/at)"].distinct == 1
    assert table.times is not None
    assert (np.diff(table.times) >= 0).all()


def test_items_without_an_id_have_one_each() -> None:
    table = table_of([{"a": 1}, {"a": 2}, {"id": 7, "a": 3}])
    assert table.ids.distinct == 3
