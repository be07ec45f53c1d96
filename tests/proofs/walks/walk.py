"""The walk of a request through the files of the house, as a reader goes who follows it from call to call.

- A file is *entered* when a function of it is called by another file, by the event loop or by a thread of the store.
- A *return* is an entry to a file that was entered before, by a file that had not called it yet: the reader has to go
  back to a page that was already turned. Calls inside a file, further calls by the same file, what goes up the stack,
  and what goes on where it was left to wait are none.
- Code that is in no file, such as the constructor of a dataclass, is nowhere.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pleiad

_HOUSE = f"{Path(pleiad.__file__).parent}/"
_LOOP = ""
"""The caller of what the event loop or a thread calls."""


class Step(NamedTuple):
    """An entry of a file, below the file that called it."""

    depth: int
    file: str
    is_return: bool

    def __str__(self) -> str:
        return f"{'  ' * self.depth}{self.file}{' (again)' if self.is_return else ''}"


class Walk:
    """Follows what runs between `begin` and `end`, on this thread and on those that were started after it was made."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], bool] = {}
        """Callers and files in the order of their first calls, with whether that is a return."""
        self._entered: set[str] = set()
        self._frames: set[FrameType] = set()
        """Kept, so that a coroutine that goes on is known to have begun before."""
        self._is_on = False
        threading.setprofile(self._note)

    def begin(self) -> None:
        self._entries.clear()
        self._entered = {_LOOP}
        self._is_on = True
        sys.setprofile(self._note)

    def end(self) -> list[Step]:
        """The steps of the walk as a tree."""
        self._is_on = False
        sys.setprofile(None)
        self._frames.clear()
        return list(self._below(_LOOP, 0))

    def close(self) -> None:
        threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        file = _file_of(frame) if self._is_on and event == "call" else _LOOP
        if file == _LOOP or frame in self._frames:
            return
        self._frames.add(frame)
        caller = _caller_of(frame)
        is_known = file in self._entered
        goes_on = caller == file or (is_known and caller not in self._entered - {_LOOP})
        if not goes_on and (caller, file) not in self._entries:
            self._entries[caller if caller in self._entered else _LOOP, file] = is_known
            self._entered.add(file)

    def _below(self, caller: str, depth: int) -> Iterator[Step]:
        for (called_by, file), is_return in self._entries.items():
            if called_by == caller:
                yield Step(depth, file, is_return)
                if not is_return:
                    yield from self._below(file, depth + 1)


def _file_of(frame: FrameType) -> str:
    path = frame.f_code.co_filename
    return path[len(_HOUSE) :] if path.startswith(_HOUSE) else _LOOP


def _caller_of(frame: FrameType) -> str:
    back = frame.f_back
    while back is not None and _file_of(back) == _LOOP:
        back = back.f_back
    return _LOOP if back is None else _file_of(back)
