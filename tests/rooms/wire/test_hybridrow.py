"""HybridRow rows and RecordIO streams: the bytes of the real client, round trips, and input that means harm."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad.wire import MalformedError
from pleiad.wire.hybridrow.recordio import TooManyRecordsError, is_stream, read_rows, write_rows
from pleiad.wire.hybridrow.row import Row, RowCodec, Value
from pleiad.wire.hybridrow.schema import (
    BATCH_OPERATION,
    BATCH_RESULT,
    Column,
    ColumnType,
    Schema,
    Storage,
)

if TYPE_CHECKING:
    from tests.rooms.wire.conftest import Vectors

OPERATION = RowCodec(BATCH_OPERATION)
RESULT = RowCodec(BATCH_RESULT)
CODECS = {"request": OPERATION, "response": RESULT}
SEGMENT = bytes.fromhex("81f0d8ff7f010a000000")
TYPES = {"Create": 0, "Patch": 1, "Read": 2, "Delete": 4, "Replace": 5, "Upsert": 20}

VALUES: dict[ColumnType, st.SearchStrategy[Value]] = {
    ColumnType.BOOL: st.booleans(),
    ColumnType.INT32: st.integers(-(2**31), 2**31 - 1),
    ColumnType.UINT32: st.integers(0, 2**32 - 1),
    ColumnType.FLOAT64: st.floats(allow_nan=False),
    ColumnType.UTF8: st.text(max_size=200),
    ColumnType.BINARY: st.binary(max_size=300),
}


def rows_of(schema: Schema) -> st.SearchStrategy[Row]:
    """Any row of a description, each column present or not."""
    return st.fixed_dictionaries({}, optional={each.name: VALUES[each.type] for each in schema.columns})


def fields(record: dict[str, Value]) -> Row:
    """The fields of a listed record, in which a binary value is written in hexadecimal."""
    return {
        name: bytes.fromhex(value[4:]) if isinstance(value, str) and value.startswith("hex:") else value
        for name, value in record.items()
    }


def record(row: bytes) -> bytes:
    return bytes.fromhex("81f1d8ff7f") + struct.pack("<iI", len(row), crc32(row)) + row


# -- the vectors -----------------------------------------------------------------------------------


def test_listed_streams_are_read_to_their_fields_and_written_to_their_bytes(
    hybridrow_vectors: Vectors,
) -> None:
    for vector in hybridrow_vectors["batch_derived"]:
        codec, data = CODECS[vector["kind"]], bytes.fromhex(vector["hex"])
        wanted = [fields(each) for each in vector["records"]]
        assert [codec.read(row) for row in read_rows(data, 100)] == wanted, vector["name"]
        assert write_rows(map(codec.write, wanted)) == data, vector["name"]


def test_requests_of_the_real_client_are_read_and_written_byte_for_byte(captured: Vectors) -> None:
    for case in captured["cases"]:
        data = bytes.fromhex(case["body_hex"])
        assert is_stream(data)
        rows = [OPERATION.read(row) for row in read_rows(data, 100)]
        assert write_rows(map(OPERATION.write, rows)) == data, case["name"]
        for row, meant in zip(rows, case["means"], strict=True):
            assert row["operationType"] == TYPES[meant["operationType"]], case["name"]
            assert row["resourceType"] == 2
            assert ("resourceBody" in row) == ("resourceBody" in meant), case["name"]
            for name in ("id", "partitionKey", "ifMatch", "ifNoneMatch", "indexingDirective"):
                assert row.get(name) == meant.get(name), (case["name"], name)
            assert row.get("minimalReturnPreference") == meant.get("minimalReturnPreference"), case["name"]


@pytest.mark.parametrize("verdict", ["accepted", "refused"])
def test_answers_are_judged_as_the_real_client_judged_them(captured: Vectors, verdict: str) -> None:
    judged_elsewhere = {"batch fewer", "batch more", "batch nostatus", "batch status0", "batch emptybody"}
    for answer in captured["responses"]:
        if answer["verdict"] != verdict or answer["name"] in judged_elsewhere:
            continue
        data = bytes.fromhex(answer["body_hex"])
        if verdict == "accepted":
            assert all("statusCode" in RESULT.read(row) for row in read_rows(data, 100)), answer["name"]
        else:
            with pytest.raises(MalformedError):
                list(map(RESULT.read, read_rows(data, 100)))


def test_the_framing_is_that_of_the_published_streams(hybridrow_vectors: Vectors) -> None:
    commented, *records = hybridrow_vectors["recordio_golden"]
    stream = bytes.fromhex(commented["hex"])
    for each in records:
        row = bytes.fromhex(each["hex"])[13:]
        assert record(row).hex() == each["hex"]
        assert f"{crc32(row):08x}" == each["crc32"]
        stream += bytes.fromhex(each["hex"])
    assert [len(row) for row in read_rows(stream, 100)] == [each["body_length"] for each in records]


# -- what is written is read -----------------------------------------------------------------------


@given(rows=st.lists(rows_of(BATCH_OPERATION), max_size=4))
def test_any_operations_come_back_from_their_stream(rows: list[Row]) -> None:
    assert [OPERATION.read(row) for row in read_rows(write_rows(map(OPERATION.write, rows)), 4)] == rows


@given(row=rows_of(BATCH_RESULT))
def test_any_result_comes_back_from_its_row(row: Row) -> None:
    assert RESULT.read(RESULT.write(row)) == row


def test_a_row_of_another_description_needs_no_other_code() -> None:
    schema = Schema(
        "example",
        7,
        (
            Column("a", Storage.FIXED, ColumnType.FLOAT64, nullable=False),
            *(Column(f"v{n}", Storage.VARIABLE, ColumnType.UTF8) for n in range(9)),
            Column("s", Storage.SPARSE, ColumnType.BINARY),
        ),
    )
    codec = RowCodec(schema)
    row: Row = {"a": 1.5, "v0": "", "v8": "nine columns have two bytes of presence bits", "s": b"\x00"}
    assert codec.write(row)[:7].hex() == "81070000000101"
    assert codec.read(codec.write(row)) == row


@pytest.mark.parametrize(
    "columns",
    [
        (Column("b", Storage.SPARSE, ColumnType.BOOL), Column("a", Storage.FIXED, ColumnType.INT32)),
        (Column("a", Storage.FIXED, ColumnType.UTF8),),
        (Column("a", Storage.VARIABLE, ColumnType.INT32),),
    ],
)
def test_a_description_that_no_row_can_have_is_refused(columns: tuple[Column, ...]) -> None:
    with pytest.raises(ValueError, match="example"):
        Schema("example", 7, columns)


# -- fields that the description does not name -----------------------------------------------------


@pytest.mark.parametrize("code", [*range(1, 4), *range(5, 25)])
def test_an_unknown_field_of_any_scalar_type_is_stepped_over(code: int) -> None:
    sizes = {1: 0, 2: 0, 3: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 1, 10: 2, 11: 4, 12: 8, 15: 4, 16: 8, 17: 16}
    sizes |= {18: 8, 19: 16, 22: 16, 23: 8, 24: 12}
    value = bytes(sizes[code]) if code in sizes else b"\x03abc" if code in (20, 21) else b"\xff\x01"
    unknown = bytes((code, 13 + 3)) + b"foo" + value
    row: Row = {"operationType": 2, "resourceType": 2, "id": "x"}
    assert OPERATION.read(OPERATION.write(row) + unknown + b"\x03\x0c") == row | {
        "minimalReturnPreference": True
    }


def test_a_known_field_may_be_named_in_letters() -> None:
    row = OPERATION.write({"operationType": 4}) + bytes((20, 13 + 7)) + b"ifMatch" + b"\x01e"
    assert OPERATION.read(row) == {"operationType": 4, "ifMatch": "e"}


def test_a_field_of_null_is_absent() -> None:
    assert OPERATION.read(OPERATION.write({"operationType": 4}) + b"\x01\x09") == {"operationType": 4}


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (b"\x14\x09\x01e\x14\x09\x01f", "twice"),
        (b"\x15\x09\x01e", "type code 21"),
        (b"\x07\x01\x00\x00\x00\x00", "among the sparse fields"),
        (b"\x22\x10foo", "type code 34"),
        (b"\x46\x00", "type code 70"),
        (b"\x14\x09\x7fe", "beyond the end"),
        (b"\x14\x09" + b"\xff" * 9 + b"\x01", "beyond the end"),
        (b"\x14\x09" + b"\xff" * 11, "64 bits"),
        (b"\x14\xff\xff\xff\xff\x0fe", "beyond the end"),
        (b"\x14\x09\x01\xff", "UTF-8"),
        (b"\x14", "cut off"),
    ],
)
def test_a_field_that_is_wrong_is_refused_with_its_reason(tail: bytes, reason: str) -> None:
    with pytest.raises(MalformedError, match=reason):
        OPERATION.read(OPERATION.write({"operationType": 2}) + tail)


# -- streams that mean harm ------------------------------------------------------------------------


def test_a_stream_cut_at_any_byte_is_refused_or_has_fewer_rows(captured: Vectors) -> None:
    for case in captured["cases"]:
        data = bytes.fromhex(case["body_hex"])
        whole = read_rows(data, 100)
        for size in range(len(data)):
            try:
                rows = read_rows(data[:size], 100)
            except MalformedError:
                continue
            assert rows == whole[: len(rows)]
            assert len(rows) < len(whole)


def test_a_row_cut_at_any_byte_is_refused_or_has_fewer_fields() -> None:
    row: Row = {
        "operationType": 5,
        "resourceType": 2,
        "partitionKey": '["p"]',
        "id": "x",
        "resourceBody": b"{}",
        "ifMatch": "e",
        "minimalReturnPreference": True,
    }
    data = OPERATION.write(row)
    for size in range(len(data)):
        try:
            found = OPERATION.read(data[:size])
        except MalformedError:
            continue
        assert found.items() < row.items()


@given(data=st.binary(max_size=60), at=st.integers(0, 80))
def test_any_bytes_are_rows_or_malformed_and_nothing_else(data: bytes, at: int) -> None:
    good = write_rows([OPERATION.write({"operationType": 0, "resourceBody": b"{}", "ifMatch": "e"})])
    for stream in (data, SEGMENT + data, good[:at] + data + good[at + len(data) :], SEGMENT + record(data)):
        try:
            rows = [OPERATION.read(row) for row in read_rows(stream, 10)]
        except MalformedError:
            continue
        assert [OPERATION.read(OPERATION.write(row)) for row in rows] == rows


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (record(b"x"), "segment header"),
        (SEGMENT + b"\x82" + record(b"x")[1:], "no segment or record"),
        (SEGMENT + OPERATION.write({"operationType": 0}), "no segment or record"),
        (bytes.fromhex("81f0d8ff7f00000000000000"), "length None"),
        (bytes.fromhex("81f0d8ff7f01") + struct.pack("<i", 9), "length 9"),
        (bytes.fromhex("81f0d8ff7f01") + struct.pack("<i", 0), "length 0"),
        (bytes.fromhex("81f0d8ff7f01") + struct.pack("<i", -1), "length -1"),
        (bytes.fromhex("81f0d8ff7f01") + struct.pack("<i", 2**31 - 1), "length 2147483647"),
        (SEGMENT + bytes.fromhex("81f1d8ff7f") + struct.pack("<iI", 0, 0), "length 0"),
        (SEGMENT + bytes.fromhex("81f1d8ff7f") + struct.pack("<iI", -5, 0), "length -5"),
        (SEGMENT + bytes.fromhex("81f1d8ff7f") + struct.pack("<iI", 2**31 - 1, 0), "length 2147483647"),
        (SEGMENT + bytes.fromhex("81f1d8ff7f") + struct.pack("<iI", 1, crc32(b"y")) + b"x", "checksum"),
    ],
)
def test_a_stream_that_lies_is_refused_with_its_reason(stream: bytes, reason: str) -> None:
    with pytest.raises(MalformedError, match=reason):
        read_rows(stream, 100)


def test_one_record_too_many_is_refused_before_it_is_read() -> None:
    broken = bytes.fromhex("81f1d8ff7f") + struct.pack("<iI", 2**31 - 1, 0)
    with pytest.raises(TooManyRecordsError, match="more than 2 records"):
        read_rows(SEGMENT + record(b"a") + record(b"b") + broken, 2)
