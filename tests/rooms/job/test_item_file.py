"""Files of items: what each form and compression brings back, and what is wrong at which line."""

from __future__ import annotations

import gzip
import importlib.util
import io
import os
import sys
import threading
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pleiad.job.item_file import json_text
from pleiad.job.item_file.csv_table import cell_value, read_rows
from pleiad.job.item_file.decode import TextDecoder
from pleiad.job.item_file.entry import Entry, ItemFileError, batch_of, with_id
from pleiad.job.item_file.form import (
    Compression,
    Form,
    definition_path,
    form_of_bytes,
    form_of_name,
    plain_name,
)
from pleiad.job.item_file.reader import ReadOptions, open_items
from pleiad.job.item_file.writer import writing_items
from tests.waiting import SECONDS_MAX

HAS_ZSTD = any(importlib.util.find_spec(name) for name in ("compression", "backports")) and (
    sys.version_info >= (3, 14) or importlib.util.find_spec("backports.zstd") is not None
)
needs_zstd = pytest.mark.skipif(not HAS_ZSTD, reason="zstd needs the extra zstd")
needs_parquet = pytest.mark.skipif(
    importlib.util.find_spec("duckdb") is None,
    reason="Parquet needs the extra parquet",
)
FORMS = [
    pytest.param(form, marks=needs_parquet if form is Form.PARQUET else (), id=form.value) for form in Form
]
COMPRESSIONS = [
    pytest.param(each, marks=needs_zstd if each is Compression.ZSTD else (), id=each.value)
    for each in Compression
]
ENDINGS = {Compression.NONE: "", Compression.GZIP: ".gz", Compression.ZSTD: ".zst"}

ITEMS: list[dict[str, Any]] = [
    {
        "id": "1",
        "city": "Zürich 東京 🏔",
        "n": 1,
        "big": 9007199254740991,
        "is": True,
        "list": [1, "a", [None]],
    },
    {"id": "02", "city": 'a "quoted", line\nand\ttab', "n": -1.5e-7, "inner": {"x": {"y": "z"}, "w": 0.1}},
    {"id": "3", "nothing": None, "mixed": "text", "empty list": [], "is": False},
    {"id": "4", "mixed": 7, "inner": {"w": 2.5}},
]
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("aбZ", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


def write(path: Path, form: Form, items: list[Any], compression: Compression = Compression.NONE) -> None:
    with writing_items(path, form, compression, ",") as writer:
        writer.write(items[:2])
        writer.write(items[2:])


def read(path: Path, **options: Any) -> list[Entry]:
    with open_items(path, ReadOptions(**options)) as file:
        return list(file)


def values_of(entries: list[Entry]) -> list[dict[str, Any] | None]:
    return [entry.value for entry in entries]


# -- every form and compression ------------------------------------------------------------------------


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("form", FORMS)
def test_what_is_written_is_read_back(tmp_path: Path, form: Form, compression: Compression) -> None:
    path = tmp_path / f"items.{form.value}{ENDINGS[compression]}"
    write(path, form, ITEMS, compression)
    entries = read(path)
    assert values_of(entries) == ITEMS
    assert [entry.number for entry in entries] == [1, 2, 3, 4]
    assert [orjson.loads(entry.text) for entry in entries] == ITEMS
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("form", [Form.JSONL, Form.JSON, Form.CSV], ids=str)
def test_a_file_without_items_is_read_as_one(tmp_path: Path, form: Form) -> None:
    path = tmp_path / f"none.{form.value}"
    write(path, form, [])
    if form is Form.CSV:
        with pytest.raises(ItemFileError, match="its first row must name the columns"):
            read(path)
    else:
        assert read(path) == []


@needs_parquet
def test_parquet_without_items_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ItemFileError, match="there is no item"):
        write(tmp_path / "none.parquet", Form.PARQUET, [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_was_not_finished_is_not_there(tmp_path: Path, form: Form) -> None:
    path = tmp_path / f"items.{form.value}"
    path.write_bytes(b"what was there before")

    def fail_in_the_middle() -> None:
        with writing_items(path, form, Compression.GZIP, ",") as writer:
            writer.write(ITEMS)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_in_the_middle()
    assert path.read_bytes() == b"what was there before"
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("name", "form", "plain"),
    [
        ("a.jsonl", Form.JSONL, "a"),
        ("a.NDJSON.GZ", Form.JSONL, "a"),
        ("a.b.json.zst", Form.JSON, "a.b"),
        ("a.tsv", Form.CSV, "a"),
        ("a.parquet", Form.PARQUET, "a"),
        ("a.txt", None, "a.txt"),
        ("csv", None, "csv"),
    ],
)
def test_a_name_tells_its_form(name: str, form: Form | None, plain: str) -> None:
    assert (form_of_name(name), plain_name(name)) == (form, plain)
    assert definition_path(Path(name)).name == f"{plain}.container.json"


def test_a_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write(pipe, Form.JSONL, [{"id": "1"}])
    reader.join(SECONDS_MAX)
    assert found == [b'{"id":"1"}\n']
    assert pipe.is_fifo()


def test_first_bytes_tell_the_form_where_the_name_does_not(tmp_path: Path) -> None:
    path = tmp_path / "items"
    path.write_bytes(gzip.compress(b' \n[{"id":"1"}]'))
    assert values_of(read(path)) == [{"id": "1"}]
    assert form_of_bytes(b"\xef\xbb\xbf {", "it") is Form.JSONL
    assert form_of_bytes(b"PAR1....", "it") is Form.PARQUET
    with pytest.raises(ItemFileError, match="give --format with jsonl, json, csv or parquet"):
        form_of_bytes(b"id,city", "it")


# -- what is damaged, or missing -------------------------------------------------------------------------


def test_a_packed_file_that_is_cut_off_says_so_behind_what_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl.gz"
    packed = gzip.compress(b"".join(b'{"id":"%d","text":"%d"}\n' % (each, each**9) for each in range(50_000)))
    path.write_bytes(packed[: len(packed) // 2])
    found = []
    with pytest.raises(ItemFileError, match="is not whole"), open_items(path, ReadOptions()) as file:
        found += [entry.value for entry in file]
    path.write_bytes(packed[:2000] + b"\0" * 500 + packed[2500:])
    with pytest.raises(ItemFileError, match="is damaged"):
        read(path)


@needs_zstd
def test_a_damaged_zstd_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + b"nothing of the kind" * 9)
    with pytest.raises(ItemFileError, match="is damaged"):
        read(path)


@needs_parquet
def test_what_is_no_parquet_says_so(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(ItemFileError, match=r"bad\.parquet"):
        read(path)


@pytest.mark.parametrize(
    ("name", "modules", "sentence"),
    [
        ("a.parquet", ["duckdb"], "pip install duckdb"),
        ("a.jsonl.zst", ["compression.zstd", "backports.zstd"], r"pip install backports\.zstd"),
    ],
)
def test_a_missing_library_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, modules: list[str], sentence: str
) -> None:
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    path = tmp_path / name
    form = Form.PARQUET if "parquet" in name else Form.JSONL
    compression = Compression.ZSTD if name.endswith("zst") else Compression.NONE
    with pytest.raises(ItemFileError, match=sentence):
        write(path, form, ITEMS, compression)
    path.write_bytes(b"\x28\xb5\x2f\xfd...." if compression is Compression.ZSTD else b"PAR1")
    with pytest.raises(ItemFileError, match=sentence):
        read(path)


def test_a_file_that_cannot_be_opened_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ItemFileError, match=r"none\.jsonl cannot be read: No such file"):
        read(tmp_path / "none.jsonl")
    with pytest.raises(ItemFileError, match="cannot be read: Is a directory"):
        read(tmp_path)
    with pytest.raises(ItemFileError, match="cannot be written: No such file"):
        write(tmp_path / "no folder" / "a.jsonl", Form.JSONL, ITEMS)


# -- JSON ------------------------------------------------------------------------------------------------


def test_a_bad_line_costs_itself_only_and_says_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "TEXT_BYTES_MAX", 40)
    text = b'\xef\xbb\xbf{"id":"1"}\n\n{"id":\n[1]\n"text"\n5\nnull\ntrue\n' + b"\xff\n"
    text += b'{"id":"' + b"x" * 100 + b'"}\n  {"id":"2"}  \r\n{"id":"\\ud800"}\n{"id":"3"}'
    found = [
        (entry.line, entry.value or entry.problem)
        for entry in json_text.read_lines(io.BytesIO(text), TextDecoder())
    ]
    assert found == [
        (1, {"id": "1"}),
        (3, "not JSON: unexpected end of data at character 7"),
        (4, "an item is a JSON object, and this is an array"),
        (5, "an item is a JSON object, and this is a string"),
        (6, "an item is a JSON object, and this is a number"),
        (7, "an item is a JSON object, and this is null"),
        (8, "an item is a JSON object, and this is true or false"),
        (9, found[7][1]),
        (10, "the line is longer than 40 bytes"),
        (11, {"id": "2"}),
        (12, found[10][1]),
        (13, {"id": "3"}),
    ]
    assert "not JSON" in str(found[7][1])
    assert "not JSON" in str(found[10][1])


@given(st.lists(values, max_size=5), st.integers(1, 40), st.booleans(), st.booleans())
def test_json_is_read_in_pieces_of_any_size(
    items: list[Any], piece_bytes: int, is_array: bool, is_indented: bool
) -> None:
    option = orjson.OPT_INDENT_2 if is_indented else 0
    texts = [orjson.dumps(item, option=option) for item in items]
    text = b"[ " + b" ,\n".join(texts) + b" ]\n" if is_array else b"\n".join(texts)
    if not is_array and text[:1] == b"[":
        return  # a list that is no item would be taken for the array
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_text, "_PIECE_BYTES", piece_bytes)
        entries = list(json_text.read_values(io.BytesIO(text), TextDecoder()))
    assert [orjson.loads(entry.text) for entry in entries] == items
    assert [entry.value for entry in entries] == [item if isinstance(item, dict) else None for item in items]
    befores = [b"[ " + b"".join(text + b" ,\n" for text in texts[:index]) for index in range(len(texts))]
    if is_array:
        assert [entry.line for entry in entries] == [1 + before.count(b"\n") for before in befores]


@pytest.mark.parametrize(
    ("text", "items", "sentence"),
    [
        (b'[{"id":"1"}\n {"id":"2"}]', 1, "line 2: a comma or the end of the array is missing"),
        (b'[{"id":"1"},\n{"id":"2"}', 2, "line 2: the file ends before its array does"),
        (b'[{"id":"1"},\n', 1, "line 2: the file ends before its array does"),
        (b'[\n{"id":"1"},\n{"id":"2', 1, "line 3: the file ends inside the item that begins there"),
        (b'[{"id":"1"}]\n]', 1, "line 2: something stands behind the end of the array"),
        (b"[] 5", 0, "line 1: something stands behind the end of the array"),
    ],
)
def test_a_broken_array_ends_where_it_is_broken(text: bytes, items: int, sentence: str) -> None:
    with pytest.raises(ItemFileError, match=sentence):
        list(json_text.read_values(io.BytesIO(text), TextDecoder()))
    entries = json_text.read_values(io.BytesIO(text), TextDecoder())
    assert [next(entries).number for _ in range(items)] == list(range(1, items + 1))


def test_a_bad_element_with_good_brackets_costs_itself_only() -> None:
    text = b'[{"id":"1"}, {id:2}, 5, "]", nonsense,{"id":"3"}]'
    entries = list(json_text.read_values(io.BytesIO(text), TextDecoder()))
    assert [entry.value for entry in entries] == [{"id": "1"}, None, None, None, None, {"id": "3"}]


@given(st.lists(values, max_size=5))
def test_what_is_left_out_changes_nothing_else(items: list[Any]) -> None:
    some = [{"id": "1", "a b": item, "other": item} for item in items]
    broken = [b'{"id":', b"[1]", b'{"id":"2","other":"\\ud800"}', b'{"id":"\xff"}', b'{"other":"\xff"}', b"5"]
    text = b"\n".join([*map(orjson.dumps, some), *broken])
    decoder = TextDecoder()
    assert decoder.leave_out_but(("id", "a b"))
    whole = list(json_text.read_lines(io.BytesIO(text), TextDecoder()))
    partly = list(json_text.read_lines(io.BytesIO(text), decoder))
    assert [(each.number, each.line, each.text, each.problem) for each in whole] == [
        (each.number, each.line, each.text, each.problem) for each in partly
    ]
    for all_of_it, part in zip(whole, partly, strict=True):
        if all_of_it.value is not None:
            assert part.value is not None
            assert [part.value.get(name) for name in ("id", "a b")] == [
                all_of_it.value.get(name) for name in ("id", "a b")
            ]


BROKEN_LINES = [
    b'{"id":',
    b"[1]",
    b'{"id":"2","other":"\\ud800"}',
    b'{"other":"\\x"}',
    b'{"id":"\xff"}',
    b'{"other":"\xff"}',
    b'{"id":1}{"id":2}',
    b'{"id":1},{"id":2}',
    b'{"id":[1',
    b"2]}",
    b'{"id":"3","other":' + b"[" * 300 + b"]" * 300 + b"}",
    b"  ",
    b"",
    b"5",
]


@given(
    st.lists(values, max_size=5),
    st.lists(st.sampled_from(BROKEN_LINES), max_size=3),
    st.booleans(),
    st.booleans(),
)
def test_batches_have_the_items_and_the_problems_that_lines_have(
    items: list[Any], broken: list[bytes], is_partly: bool, has_end: bool
) -> None:
    lines = [orjson.dumps({"id": "ä\\n", "a b": item, "other": item}) for item in items]
    for place, line in enumerate(broken):
        lines.insert(2 * place, line)
    text = b"\xef\xbb\xbf" + b"\r\n".join(lines) + b"\n" * has_end
    decoder = TextDecoder()
    if is_partly:
        assert decoder.leave_out_but(("id", "a b"))
    one_by_one = list(json_text.read_lines(io.BytesIO(text), decoder))
    (together,) = list(json_text.read_line_batches(io.BytesIO(text), decoder)) or [batch_of([])]
    assert together.problems == [each for each in one_by_one if each.value is None]
    items_alone = [(each.line, each.text, each.value) for each in one_by_one if each.value is not None]
    assert list(zip(together.lines, together.texts, together.values, strict=True)) == items_alone


@pytest.mark.parametrize("length", [9, 10, 11, 25])
def test_batches_count_lines_that_are_too_long_as_lines_do(
    monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    monkeypatch.setattr(json_text, "_PIECE_BYTES", 7)
    monkeypatch.setattr(json_text, "TEXT_BYTES_MAX", 11)
    long = b'{"a":"%b"}' % (b"x" * (length - 8))
    text = b"\n".join([b'{"a":1}', long, b'{"a":2}', long, long, b"", b'{"a":3}', long])
    one_by_one = list(json_text.read_lines(io.BytesIO(text), TextDecoder()))
    batches = list(json_text.read_line_batches(io.BytesIO(text), TextDecoder()))
    assert [each for batch in batches for each in batch.problems] == [
        each for each in one_by_one if each.value is None
    ]
    assert [each for batch in batches for each in zip(batch.lines, batch.values, strict=True)] == [
        (each.line, each.value) for each in one_by_one if each.value is not None
    ]


def test_an_item_without_an_id_gets_the_same_one_each_time() -> None:
    import uuid

    family = uuid.UUID(int=7)
    for text in (b"{}", b'{ "a":1}', b' {"a" : {"id":"inner"}} '):
        entry = Entry(5, 1, text, orjson.loads(text))
        given_id = with_id(entry, family)
        assert (
            orjson.loads(given_id.text)
            == given_id.value
            == {"id": str(uuid.uuid5(family, "5")), **orjson.loads(text)}
        )
    named = Entry(5, 1, b'{"id":null}', {"id": None})
    assert with_id(named, family) is named


# -- CSV -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-0.5", -0.5),
        ("1e3", 1000.0),
        ("9007199254740991", 2**53 - 1),
        ("9007199254740993", "9007199254740993"),
        ("00123", "00123"),
        ("+1", "+1"),
        ("1.", "1."),
        (".5", ".5"),
        ("1e999", "1e999"),
        ("0.12345678901234567890", "0.12345678901234567890"),
        ("١٢", "١٢"),
        ("NaN", "NaN"),
        ("true", True),
        ("FALSE", False),
        ("True", "True"),
        ("null", None),
        ("[1,2]", [1, 2]),
        ('{"a":1}', {"a": 1}),
        ("[1,2", "[1,2"),
        ("{not json}", "{not json}"),
        ("2020-01-01", "2020-01-01"),
        (" 5", " 5"),
    ],
)
def test_a_cell_that_is_json_is_read_as_that_and_every_other_as_text(text: str, value: Any) -> None:
    found = cell_value(text)
    assert found == value
    assert type(found) is type(value)


def rows(text: bytes, delimiter: str = ",", columns: tuple[str, ...] = ()) -> list[Entry]:
    return list(read_rows(io.BytesIO(text), delimiter, columns))


def test_dotted_columns_are_objects_and_empty_cells_are_nothing() -> None:
    found = rows(b"\xef\xbb\xbfid,address.city,address.zip,tags\n007,Oslo,,\n8,,0150,[]\n")
    assert values_of(found) == [
        {"id": "007", "address": {"city": "Oslo"}},
        {"id": "8", "address": {"zip": "0150"}, "tags": []},
    ]


def test_columns_are_kept_as_text() -> None:
    text = b"id;zip;inner.n\n1;12345;6\n"
    assert values_of(rows(text, ";", ("zip",))) == [{"id": "1", "zip": "12345", "inner": {"n": 6}}]
    assert values_of(rows(text, ";", ("*",))) == [{"id": "1", "zip": "12345", "inner": {"n": "6"}}]


def test_bad_rows_say_on_which_line_they_begin() -> None:
    text = b'id,a,a.b\n1,"two\nlines",\n2,x\n\n3,1,2,3\n4,5,6\n5,\xff,\n6,,7\n'
    found = [(entry.line, entry.problem) for entry in rows(text)]
    assert found == [
        (2, ""),
        (4, "the row has 2 cells, and the header 3"),
        (6, "the row has 4 cells, and the header 3"),
        (7, "'a.b' has two values"),
        (8, "the text is not UTF-8"),
        (9, ""),
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "its first row must name the columns"),
        (b"id,,b\n", "'' is no name of a column"),
        (b"id,a..b\n", "'a..b' is no name of a column"),
        (b"id,b,b\n", "the column 'b' is there twice"),
    ],
)
def test_a_header_that_names_no_columns_is_refused(text: bytes, sentence: str) -> None:
    with pytest.raises(ItemFileError, match=sentence):
        rows(text)


def test_properties_that_csv_cannot_tell_apart_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ItemFileError, match=r"cannot tell two properties 'a\.b'"):
        write(tmp_path / "a.csv", Form.CSV, [{"id": "1", "a.b": 1, "a": {"b": 2}}])


@pytest.mark.parametrize("form", [Form.CSV, pytest.param(Form.PARQUET, marks=needs_parquet)], ids=str)
def test_only_objects_are_rows(tmp_path: Path, form: Form) -> None:
    with pytest.raises(ItemFileError, match="only objects can be rows"):
        write(tmp_path / f"a.{form.value}", form, [1, 2])


# -- Parquet ---------------------------------------------------------------------------------------------


@needs_parquet
@settings(max_examples=40)
@given(
    st.lists(
        st.dictionaries(st.text("aбz\"' .", min_size=1, max_size=3), values, max_size=4),
        min_size=1,
        max_size=4,
    )
)
def test_parquet_brings_back_every_item(
    tmp_path_factory: pytest.TempPathFactory, items: list[dict[str, Any]]
) -> None:
    if not any(items):
        return
    path = tmp_path_factory.mktemp("parquet") / "items.parquet"
    write(path, Form.PARQUET, items)
    found = values_of(read(path))
    assert found == items
    assert [orjson.dumps(each) for each in found] == [
        orjson.dumps(each) for each in _with_doubles(items, found)
    ], "numbers stay numbers, truth stays truth"


def _with_doubles(items: list[Any], found: list[Any]) -> list[Any]:
    """The items with their integers as doubles where a column has both: the one difference there may be."""

    def as_found(value: Any, twin: Any) -> Any:
        if isinstance(value, dict):
            return {name: as_found(value[name], twin[name]) for name in twin}
        if isinstance(value, list):
            return [as_found(each, other) for each, other in zip(value, twin, strict=True)]
        return float(value) if type(value) is int and type(twin) is float else value

    return [as_found(item, twin) for item, twin in zip(items, found, strict=True)]


@needs_parquet
def test_parquet_of_others_is_read_with_numbers_as_ids(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "others.parquet"
    duckdb.connect().execute(
        "COPY (SELECT 7 AS id, 'x' AS item_row, 1.5::DECIMAL(9, 2) AS price, DATE '2020-02-03' AS day, "
        f"NULL::INTEGER AS gone, MAP {{'a': 1}} AS pairs) TO '{path}' (FORMAT parquet)"
    )
    (entry,) = read(path)
    assert entry.value == {"id": "7", "item_row": "x", "price": 1.5, "day": "2020-02-03", "pairs": {"a": 1}}


@needs_parquet
def test_names_that_differ_only_in_case_are_refused_as_columns(tmp_path: Path) -> None:
    with pytest.raises(ItemFileError, match="both 'Name' and 'name'"):
        write(tmp_path / "a.parquet", Form.PARQUET, [{"Name": 1}, {"name": 2}])
