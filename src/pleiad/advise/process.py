"""The process that works out an advice beside a server: frames in, frames out (`job/advice/frames.py`).

It bounds its own memory once its libraries are loaded, before it reads anything, gives everybody else's work the
preference, and ends with its server: whoever reads from a pipe that nobody writes to finds its end, and a process that
was cut off keeps nothing.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

import orjson

from pleiad.advise.advice import AdviceOptions, Growth, NothingToAdviseError, advise
from pleiad.advise.html import page_of
from pleiad.advise.key import parse
from pleiad.advise.recorded import Record, RecordReader
from pleiad.advise.report import to_json
from pleiad.advise.sources import demands_of, reading_options
from pleiad.advise.table import read_table
from pleiad.job.advice.frames import FrameKind, item_in, next_frame, packed
from pleiad.job.advice.task import AdviceTask, task_from_json
from pleiad.job.item_file.entry import Entry, batched
from pleiad.workload import record

_FRAME_BYTES_MAX = 256 * 1024 * 1024
_GRACE_SECONDS = 60
_PROBLEM_CHARACTERS = 2_000
_GB = 1024**3


class _CutOffError(Exception):
    """The server has gone away."""


def main() -> None:
    memory_bytes = int(sys.argv[1])
    _hold_back(memory_bytes)
    frames, answers = sys.stdin.buffer, sys.stdout.buffer
    # Whatever a library prints must not be taken for a frame.
    sys.stdout = sys.stderr
    try:
        _answer(_Server(frames, answers))
    except (_CutOffError, BrokenPipeError):
        os._exit(1)
    except MemoryError:
        text = f"It needs more than the {memory_bytes / _GB:,.1f} GB that it may: ask for a smaller sample."
        _give(answers, FrameKind.PROBLEM, text.encode())
    except Exception:
        traceback.print_exc()
        _give(answers, FrameKind.PROBLEM, b"It failed; the log of the server has more.")


def _hold_back(memory_bytes: int) -> None:
    """Takes no more memory than this, where the system can see to it, and leaves the processors to others."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    with contextlib.suppress(AttributeError, OSError):
        os.nice(19)


def _give(answers: BinaryIO, kind: FrameKind, content: bytes) -> None:
    answers.write(packed(kind, content))
    answers.flush()


class _Server:
    """The other side, from here."""

    def __init__(self, frames: BinaryIO, answers: BinaryIO) -> None:
        self._frames = frames
        self._answers = answers
        task = next_frame(frames, _FRAME_BYTES_MAX)
        if task is None or task.kind is not FrameKind.TASK:
            raise _CutOffError
        self.task: AdviceTask = task_from_json(task.content)
        self._behind_record = next_frame(frames, _FRAME_BYTES_MAX)

    def record(self) -> Iterator[bytes]:
        """The lines of the workload record, some at a time."""
        while self._behind_record is not None and self._behind_record.kind is FrameKind.RECORD:
            yield self._behind_record.content
            self._behind_record = next_frame(self._frames, _FRAME_BYTES_MAX)

    def entries(self) -> Iterator[Entry]:
        """The items, once the record is read."""
        number, frame = 0, self._behind_record
        while frame is not None and frame.kind is FrameKind.ITEM:
            number += 1
            written_at, body = item_in(frame.content)
            yield Entry(number, number, b"", {**orjson.loads(body), "_ts": written_at})
            frame = next_frame(self._frames, _FRAME_BYTES_MAX)
        if frame is None:
            raise _CutOffError

    def step(self, what: str, done: int, total: int) -> None:
        self.give(FrameKind.STEP, orjson.dumps([what, done, total]))

    def give(self, kind: FrameKind, content: bytes) -> None:
        _give(self._answers, kind, content)


def _answer(server: _Server) -> None:
    """Reads what the server gives, and answers with a report or the reason why there is none."""
    task = server.task
    if hasattr(signal, "alarm"):
        signal.alarm(int(task.limits.advice_seconds) + _GRACE_SECONDS)
    candidates = tuple(parse(each, task.limits) for each in task.plan.candidates)
    options = AdviceOptions(
        throughput_ru=task.throughput_ru,
        growth=Growth(factor=task.plan.growth),
        candidates=candidates,
        current=task.key_paths,
        limits=task.limits,
        how_to_tell_requests="record those of the container for a while, and ask again",
    )
    record = _record(server)
    reading = reading_options(
        candidates,
        None,
        record,
        task.key_paths,
        rows_max=task.rows_max,
        indexing=task.indexing,
        limits=task.limits,
    )
    table = read_table(batched(server.entries()), reading)
    try:
        demands, notes = demands_of(table, None, record, options)
        report = advise(task.source, table, demands, replace(options, notes=notes), server.step)
    except NothingToAdviseError as error:
        server.give(FrameKind.PROBLEM, f"{str(error)[:_PROBLEM_CHARACTERS]}.".encode())
        return
    server.give(FrameKind.REPORT, to_json(report, indented=False))
    server.give(FrameKind.PAGE, page_of(report).encode("utf-8", "backslashreplace"))


def _record(server: _Server) -> Record:
    reader = RecordReader(server.task.source)
    for piece in server.record():
        reader.take(record.read(io.BytesIO(piece), lambda line: None))
    return reader.finish()


if __name__ == "__main__":
    main()
