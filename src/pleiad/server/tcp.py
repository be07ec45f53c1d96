"""Plain TCP protocols: frames that say their own length, each a message, under the limits that HTTP has too."""

from __future__ import annotations

from collections.abc import Callable

from pleiad.server.connections import ConnectionTable
from pleiad.server.conversation import Conversation, Message, PlainCodec, Refusal, Talk
from pleiad.server.listener import Recognition

FrameLength = Callable[[bytes], int]
"""The whole length of a frame, from its head; raises `Refusal` when that is no head of the protocol."""


class FrameCodec(PlainCodec):
    """Frames whose head has a fixed length and tells that of the whole.

    A frame is refused by its head, before its body is read, when it says to be larger than `frame_bytes_max`.
    """

    def __init__(self, head_bytes: int, length_of: FrameLength, frame_bytes_max: int) -> None:
        self._head_bytes = head_bytes
        self._length_of = length_of
        self._frame_bytes_max = frame_bytes_max
        self._held = bytearray()
        self._wanted_bytes = 0
        """The length of the frame that has begun, once its head is there."""

    @property
    def held_bytes(self) -> int:
        return len(self._held)

    @property
    def is_in_part(self) -> bool:
        return bool(self._held)

    def read(self, data: bytes) -> tuple[list[Message], bytes]:
        held = self._held
        held += data
        frames: list[Message] = []
        at = 0
        while True:
            if not self._wanted_bytes:
                if len(held) - at < self._head_bytes:
                    break
                length = self._length_of(bytes(held[at : at + self._head_bytes]))
                if not self._head_bytes <= length <= self._frame_bytes_max:
                    raise Refusal
                self._wanted_bytes = length
            if len(held) - at < self._wanted_bytes:
                break
            frames.append(bytes(held[at : at + self._wanted_bytes]))
            at += self._wanted_bytes
            self._wanted_bytes = 0
        del held[:at]
        return frames, b""

    def forget(self) -> None:
        self._held = bytearray()


class TcpProtocol:
    """A plain TCP protocol on a listener.

    `begin` is given each connection that begins and returns what answers its frames: up to `concurrent_max` at once, in
    the order of their arrival where that is one. `recognises` is asked only where several protocols share a listener.
    """

    def __init__(
        self,
        *,
        head_bytes: int,
        length_of: FrameLength,
        begin: Callable[[Conversation], Talk],
        recognises: Callable[[bytes, bool], Recognition] | None = None,
        frame_bytes_max: int | None = None,
        concurrent_max: int = 1,
    ) -> None:
        self._head_bytes = head_bytes
        self._length_of = length_of
        self._begin = begin
        self._recognises = recognises
        self._frame_bytes_max = frame_bytes_max
        self._concurrent_max = concurrent_max

    def begin(self, table: ConnectionTable) -> None:
        """It has nothing to prepare."""

    def recognises(self, first: bytes, secure: bool) -> Recognition:
        return Recognition.YES if self._recognises is None else self._recognises(first, secure)

    def connect(self, table: ConnectionTable, secure: bool) -> Conversation:
        frame_bytes_max = self._frame_bytes_max or table.limits.request_bytes
        codec = FrameCodec(self._head_bytes, self._length_of, frame_bytes_max)
        return Conversation(table, codec, self._begin, secure, self._concurrent_max)

    def refusal(self) -> bytes:
        """A client of such a protocol understands its own frames only, and is not told."""
        return b""
