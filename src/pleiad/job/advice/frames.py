"""What passes between a server and the process that works out an advice: frames of a kind, a length and bytes.

The process is given its task, the workload record in pieces of whole lines, the items, and the end of them. It gives
back how far it is, and at the end a report with its page, or the problem.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import IO, Final, NamedTuple

_HEAD: Final = struct.Struct(">cI")
_WRITTEN_AT: Final = struct.Struct(">q")


class FrameKind(Enum):
    """What a frame is."""

    TASK = b"T"
    RECORD = b"R"
    ITEM = b"I"
    """The time of the item's last write in seconds, and its body."""
    END = b"E"
    STEP = b"S"
    REPORT = b"J"
    PAGE = b"H"
    PROBLEM = b"P"


class Frame(NamedTuple):
    """One message."""

    kind: FrameKind
    content: bytes


def packed(kind: FrameKind, content: bytes = b"") -> bytes:
    """A frame as bytes."""
    return _HEAD.pack(kind.value, len(content)) + content


def packed_item(written_at: int, body: bytes) -> bytes:
    """The frame of an item."""
    return packed(FrameKind.ITEM, _WRITTEN_AT.pack(written_at) + body)


def item_in(content: bytes) -> tuple[int, bytes]:
    """When the item of a frame was written, and its body."""
    return _WRITTEN_AT.unpack_from(content)[0], content[_WRITTEN_AT.size :]


def next_frame(file: IO[bytes], content_bytes_max: int) -> Frame | None:
    """The next frame; None where the other side has ended or says what makes no sense."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    kind, length = _HEAD.unpack(head)
    if length > content_bytes_max:
        return None
    content = file.read(length)
    try:
        return Frame(FrameKind(kind), content) if len(content) == length else None
    except ValueError:
        return None
