"""The record of requests like most are: many of them make a line, and every one is read as it was noted."""

from __future__ import annotations

import asyncio
import io
import time
from pathlib import Path

import pytest

from pleiad.engine.recording import LINE_BRIEFS, Brief, Mode, Recording
from pleiad.limits import KB, Limits
from pleiad.values.undefined import UNDEFINED
from pleiad.workload.hashing import Hasher
from pleiad.workload.record import Operation, Request, read
from pleiad.workload.ring import Place

_HASHER = Hasher(b"s" * 32)


def recording_in(folder: Path, mode: Mode, record_bytes: int = 16 * KB) -> Recording:
    limits = Limits(workload_record_bytes=record_bytes)
    return Recording(folder, mode, limits, _HASHER, asyncio.Event())


async def requests_of(recording: Recording) -> list[Request]:
    await recording.flush()
    lines, behind = recording.read("shop/orders", None, hashed=False)
    assert behind is None or not recording.read("shop/orders", behind, hashed=False)[0]
    return list(read(io.BytesIO(lines)))


async def records_by_pages(recording: Recording) -> list[Request]:
    """All of them, and every page begun anew where the one before it says."""
    found, place = b"", None
    while True:
        lines, behind = recording.read("shop/orders", place, hashed=False)
        if behind is None:
            return list(read(io.BytesIO(found)))
        assert lines
        found, place = found + lines, Place.of(str(behind))


def brief(number: int, key: tuple[object, ...] = ("a",), id: str = "") -> Brief:
    return (float(number), "read", key, id or f"i{number}", 1.0 + number % 3, 100 + number)


async def test_briefs_are_read_as_they_were_noted(tmp_path: Path) -> None:
    recording = recording_in(tmp_path, Mode.VALUES)
    count = 2 * LINE_BRIEFS + 3
    for number in range(count):
        recording.add_brief(brief(number, ("a", number)))
    found = await requests_of(recording)
    assert [request.id for request in found] == [f"i{number}" for number in range(count)]
    assert [request.key for request in found] == [("a", number) for number in range(count)]
    assert [request.charge for request in found] == [1.0 + number % 3 for number in range(count)]
    assert [request.bytes for request in found] == [100 + number for number in range(count)]
    assert {request.operation for request in found} == {Operation.READ}
    first = found[0].at
    assert [round(request.at - first) for request in found] == list(range(count))
    assert not any(request.hashed for request in found)
    assert len(next(tmp_path.glob("*.jsonl")).read_bytes().splitlines()) == 3


async def test_what_all_briefs_of_a_line_share_is_read_for_each(tmp_path: Path) -> None:
    recording = recording_in(tmp_path, Mode.VALUES)
    for _ in range(3):
        recording.add_brief((1.0, "read", ("a",), "i", 1.0, 100))
    first, *others = await requests_of(recording)
    assert (first.operation, first.charge, first.bytes) == (Operation.READ, 1.0, 100)
    assert others == [first, first]


@pytest.mark.parametrize(
    "key",
    [("a",), ("a", "b"), (1,), (True,), (1.5,), (None,), (UNDEFINED,), ("a", None, 1)],
    ids=repr,
)
async def test_hashes_of_a_key_are_those_of_its_values(tmp_path: Path, key: tuple[object, ...]) -> None:
    recording = recording_in(tmp_path, Mode.HASHES)
    for _ in range(2):  # the second time it may be remembered
        recording.add_brief(brief(1, key, "anna"))
    one, again = await requests_of(recording)
    expected = tuple({} if each is UNDEFINED else _HASHER.value(each) for each in key)  # type: ignore[arg-type]
    assert one.key == again.key == expected
    assert one.id == again.id == _HASHER.value("anna")
    assert one.hashed
    assert b"anna" not in next(tmp_path.glob("*.jsonl")).read_bytes()


async def test_one_and_true_are_two_keys_in_the_hashes(tmp_path: Path) -> None:
    recording = recording_in(tmp_path, Mode.HASHES)
    for key in ((1,), (True,), ("1",), (1,)):
        recording.add_brief(brief(1, key))
    one, true, text, again = [request.key for request in await requests_of(recording)]
    assert one == again
    assert len({one, true, text}) == 3


async def test_briefs_that_are_too_long_for_one_line_are_several(tmp_path: Path) -> None:
    recording = recording_in(tmp_path, Mode.VALUES, record_bytes=1 * KB)
    ids = [f"{number}{'x' * 200}" for number in range(LINE_BRIEFS)] + ["y" * 2_000]
    for number, id in enumerate(ids):
        recording.add_brief(brief(number, id=id))
    found = await requests_of(recording)
    assert [request.id for request in found[:-1]] == ids[:-1]
    assert found[-1].id == _HASHER.value(ids[-1])
    assert max(map(len, next(tmp_path.glob("*.jsonl")).read_bytes().splitlines())) <= 1 * KB


async def test_lines_of_earlier_versions_are_read(tmp_path: Path) -> None:
    recording = recording_in(tmp_path, Mode.VALUES)
    tmp_path.joinpath("00000001.jsonl").write_bytes(
        b'[100.5,[1.0,"read",["a"],"i1",1.0,100],[2.0,"read",["h1"],"h2",1.0,100,true]]\n'
    )
    first, second = await requests_of(recording)
    assert (first.at, first.key, first.id, first.hashed) == (101.5, ("a",), "i1", False)
    assert (second.at, second.key, second.id, second.hashed) == (102.5, ("h1",), "h2", True)


@pytest.mark.parametrize("share", [2, 30], ids=["even", "one has most"])
async def test_what_several_workers_wrote_is_read_by_time_and_page_by_page(
    tmp_path: Path, share: int
) -> None:
    limits = Limits()
    workers = [Recording(tmp_path, Mode.VALUES, limits, _HASHER, asyncio.Event(), n, 3) for n in range(3)]
    count = 40_000
    for number in range(count):
        worker = workers[0 if number % share else 1 + number // share % 2]
        if number % 7:
            worker.add_brief((number - worker_ahead(), "read", ("a",), f"i{number}", 1.0, 1))
        else:
            worker.add({"at": float(number), "operation": "delete", "id": f"i{number}"})
        if number % 1_000 == 999:
            await asyncio.gather(*(each.flush() for each in workers))
    for reader in workers:
        assert [each.id for each in await records_by_pages(reader)] == [
            f"i{number}" for number in range(count)
        ]
    assert workers[2].count()[0] == count


def worker_ahead() -> float:
    """How far the clock of the machine is ahead of that of the process."""
    return round(time.time() - time.perf_counter(), 6)


async def test_a_page_goes_on_amid_a_line_and_files_that_have_left_are_passed_over(tmp_path: Path) -> None:
    first, second = (
        Recording(tmp_path, Mode.VALUES, Limits(), _HASHER, asyncio.Event(), n, 2) for n in range(2)
    )
    for number in range(0, 40_000, 2):
        first.add({"at": float(number), "operation": "read", "id": f"i{number}"})
        second.add({"at": number + 1.0, "operation": "read", "id": f"i{number + 1}"})
    await asyncio.gather(first.flush(), second.flush())
    lines, place = first.read("shop/orders", None, hashed=False)
    assert place is not None
    assert any(mark.taken for _, mark in place.marks)
    before = len(list(read(io.BytesIO(lines))))
    next(tmp_path.glob("*-1.jsonl")).unlink()
    rest, _ = first.read("shop/orders", place, hashed=False)
    ids = [int(each.id[1:]) for each in read(io.BytesIO(rest))]
    assert ids == [number for number in range(before, before + 2 * len(ids)) if number % 2 == 0]
