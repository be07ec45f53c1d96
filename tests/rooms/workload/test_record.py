"""Workload records: one JSON object a line, in a form that others can make."""

from __future__ import annotations

import contextlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad.workload.record import (
    LINE_BYTES_MAX,
    BadLine,
    Member,
    Operation,
    RecordError,
    Request,
    decode,
    encode,
    read,
    write,
)

_values = st.one_of(
    st.text(max_size=20),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
    st.just({}),
)
_keys = st.none() | st.lists(_values, max_size=3).map(tuple)
_paths = st.text(max_size=10).map(lambda name: f"/{name}")
_members = st.builds(
    Member, operation=st.sampled_from(Operation), id=st.text(max_size=9), key=_keys, bytes=st.integers(0, 9)
)
_requests = st.builds(
    Request,
    at=st.floats(0, 4e9),
    operation=st.sampled_from(Operation),
    container=st.text(max_size=9),
    status=st.integers(100, 599),
    key=_keys,
    id=st.text(max_size=9),
    equals=st.dictionaries(_paths, st.lists(_values, max_size=3).map(tuple), max_size=3),
    ranges=st.lists(_paths, max_size=3).map(tuple),
    partitions=st.integers(0, 99),
    charge=st.floats(0, 1e6),
    bytes=st.integers(0, 2**40),
    members=st.lists(_members, max_size=3).map(tuple),
    changed=st.lists(_paths, max_size=3).map(tuple),
    range=st.text(max_size=3),
    continued=st.booleans(),
    hashed=st.booleans(),
)


@given(_requests)
def test_a_request_comes_back_from_its_line_as_it_was(request: Request) -> None:
    line = encode(request)
    assert b"\n" not in line
    assert decode(line) == request


def test_what_has_its_default_is_left_out() -> None:
    assert encode(Request(at=1.5, operation=Operation.READ)) == b'{"at":1.5,"operation":"read"}'


def test_a_line_of_another_service_needs_a_time_and_an_operation_only() -> None:
    request = decode(b'{"operation": "query", "at": 1700000000, "their_own": [1, 2]}')
    assert request == Request(at=1_700_000_000.0, operation=Operation.QUERY)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "it is not valid JSON"),
        (b"[1]", "a record is a JSON object"),
        (b'{"operation":"read"}', "'at' is missing"),
        (b'{"at":1}', "'operation' is missing"),
        (b'{"at":"now","operation":"read"}', "'at' must be a number that is not negative, and is \"now\""),
        (b'{"at":true,"operation":"read"}', "'at' must be a number"),
        (b'{"at":1,"operation":"steal"}', "'operation' must be one of create, read, "),
        (b'{"at":1,"operation":["read"]}', "'operation' must be one of"),
        (b'{"at":1,"operation":"read","key":"a"}', "'key' must be a list of strings"),
        (b'{"at":1,"operation":"read","key":[["a"]]}', "'key' must be a list of strings"),
        (b'{"at":1,"operation":"read","key":%b1%b}' % (b"[" * 500, b"]" * 500), "and is nested too deeply"),
        (b'{"at":1,"operation":"read","status":"200"}', "'status' must be a whole number"),
        (b'{"at":1,"operation":"read","charge":-1}', "'charge' must be a number that is not negative"),
        (b'{"at":1,"operation":"read","id":7}', "'id' must be a string, and is 7"),
        (b'{"at":1,"operation":"query","equals":["/a"]}', "'equals' must be an object of paths"),
        (b'{"at":1,"operation":"query","equals":{"a":[1]}}', "a path in 'equals' begins with '/'"),
        (b'{"at":1,"operation":"query","equals":{"/a":1}}', "'equals' must be a list of strings"),
        (b'{"at":1,"operation":"query","ranges":[1]}', "a path in 'ranges' begins with '/'"),
        (b'{"at":1,"operation":"batch","members":[1]}', "'members' must be a list of objects"),
        (b'{"at":1,"operation":"batch","members":[{"id":"a"}]}', "'operation' must be one of"),
        (b'{"at":1,"operation":"read","hashed":1}', "'hashed' must be true or false"),
    ],
)
def test_a_bad_line_says_what_is_wrong_with_it(line: bytes, reason: str) -> None:
    with pytest.raises(RecordError) as raised:
        decode(line)
    assert reason in str(raised.value)


@given(st.binary(max_size=60) | st.recursive(_values, st.lists).map(repr).map(str.encode))
def test_no_bytes_are_anything_but_a_record_or_a_bad_line(line: bytes) -> None:
    with contextlib.suppress(RecordError):
        decode(line)


def _file(*lines: bytes) -> io.BytesIO:
    return io.BytesIO(b"\n".join(lines))


def test_reading_names_the_bad_line_and_goes_on_behind_it() -> None:
    bad: list[BadLine] = []
    good = encode(Request(at=1.0, operation=Operation.READ))
    long = b'{"at":1,"operation":"read","id":"' + b"x" * LINE_BYTES_MAX * 2 + b'"}'
    found = list(read(_file(b"\xef\xbb\xbf" + good, b"", b"nonsense", good, long, good), bad.append))
    assert found == [Request(at=1.0, operation=Operation.READ)] * 3
    assert [each.line for each in bad] == [3, 5]
    assert str(bad[0]).startswith("line 3: it is not valid JSON")
    assert str(bad[1]) == f"line 5: it is longer than {LINE_BYTES_MAX:,} bytes"


def test_without_anybody_to_tell_reading_ends_at_the_first_bad_line() -> None:
    with pytest.raises(RecordError, match="line 2: a record is a JSON object"):
        list(read(_file(b'{"at":1,"operation":"read"}', b"7")))


def test_what_was_written_is_read() -> None:
    requests = [Request(at=float(n), operation=Operation.CREATE, key=(n,), id=str(n)) for n in range(9)]
    file = io.BytesIO()
    assert write(file, requests) == 9
    file.seek(0)
    assert list(read(file)) == requests
