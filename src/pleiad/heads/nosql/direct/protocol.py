"""Direct mode on a listener: which connections speak it, and one answer for each request of theirs.

It is spoken inside TLS only. Requests of a connection are answered at the same time and in any order, up to
`Limits.direct_requests` of them; what is asked beyond that waits, and then is not read.

Invariants
- Each request that was read whole has an answer, whatever happens in answering it: a failure is that request's own, is
  logged without what was asked, and never ends the connection. Only a fault on demand does (`ConnectionCut`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from pleiad import errors
from pleiad.heads.nosql.direct.codec import Asked, DirectCodec
from pleiad.heads.nosql.direct.failure import failure_frame
from pleiad.server.connections import ConnectionTable
from pleiad.server.conversation import Conversation, ConversationOver, Talk
from pleiad.server.http.message import ConnectionCut
from pleiad.server.listener import Recognition
from pleiad.wire.rntbd.activity_id import activity_id_text
from pleiad.wire.rntbd.frame import HEAD_BYTES, Frame

_log = logging.getLogger("pleiad.server")

RECOGNISED_BYTES = 8
"""The length of the first frame, and resource and operation, which are 0 in it."""


class ConnectionFacts(NamedTuple):
    """What is known of a connection."""

    peer: str
    client_version: str
    """The API version of its requests."""
    user_agent: str


Answerer = Callable[[Frame, ConnectionFacts], bytes | Coroutine[Any, Any, bytes]]
"""Answers one request with a whole frame: at once, or by a coroutine where something has to be waited for."""
Gate = Callable[[Frame, ConnectionFacts], bytes | None]
"""Asked about a request whose payload is still to come: the answer to a caller who may not send it."""


class DirectProtocol:
    """Direct mode, with what answers its requests. With a gate, callers are known before their payloads are kept."""

    def __init__(self, answer: Answerer, gate: Gate | None = None) -> None:
        self._answer = answer
        self._gate = gate

    def begin(self, table: ConnectionTable) -> None:
        """It has nothing to prepare."""

    def recognises(self, first: bytes, secure: bool) -> Recognition:
        # The length, two bytes, may be any letters; the zeros behind it are in no text.
        if not secure or any(first[2:RECOGNISED_BYTES]):
            return Recognition.NO
        if len(first) > 1 and int.from_bytes(first[:2], "little") < HEAD_BYTES:
            return Recognition.NO
        return Recognition.YES if len(first) >= RECOGNISED_BYTES else Recognition.UNSURE

    def connect(self, table: ConnectionTable, secure: bool) -> Conversation:
        codec = DirectCodec(table.limits)

        def begin(conversation: Conversation) -> Talk:
            return _Talk(self._answer, self._gate, conversation, codec).answer

        # Apart, so that no answer begins in the TLS record in which another ends: the Java client takes a record at a
        # time, and moves what follows an answer there over that answer before it is looked at.
        return Conversation(table, codec, begin, secure, table.limits.direct_requests, is_apart=True)

    def refusal(self) -> bytes:
        """A client whose connection ends opens another, or says so."""
        return b""


class _Talk:
    """Answers the requests of one connection."""

    def __init__(
        self, answer: Answerer, gate: Gate | None, conversation: Conversation, codec: DirectCodec
    ) -> None:
        self._answer = answer
        self._gate = gate
        self._conversation = conversation
        self._codec = codec
        self._facts: ConnectionFacts | None = None
        codec.admit = self.admit

    def admit(self, frame: Frame) -> bytes | None:
        if self._gate is None:
            return None
        try:
            return self._gate(frame, self._facts or self._learn())
        except Exception as error:
            return _failed(frame, error)

    def answer(self, asked: Asked) -> Coroutine[Any, Any, None] | None:
        frame = asked.frame
        try:
            answer = asked.refusal or self._answer(frame, self._facts or self._learn())
        except Exception as error:
            answer = _failed(frame, error)
        if not isinstance(answer, bytes):
            return self._later(frame, answer)
        self._conversation.say_now(answer)
        return None

    async def _later(self, frame: Frame, answering: Coroutine[Any, Any, bytes]) -> None:
        try:
            answer = await answering
        except asyncio.CancelledError as error:
            if self._conversation.is_over:
                raise
            answer = _failed(frame, error)
        except ConnectionCut:
            self._conversation.abort()
            raise ConversationOver from None
        except Exception as error:
            answer = _failed(frame, error)
        await self._conversation.say(answer)

    def _learn(self) -> ConnectionFacts:
        context = self._codec.context
        assert context is not None
        self._facts = ConnectionFacts(
            self._conversation.peer,
            context.client_version.decode("utf-8", "replace"),
            context.user_agent.decode("utf-8", "replace"),
        )
        return self._facts


def _failed(frame: Frame, failure: BaseException) -> bytes:
    """The answer where answering has failed, and a word in the log: never the request, which may hold keys."""
    activity_id = activity_id_text(frame.activity_id)
    _log.error("answering the request %s in direct mode failed", activity_id, exc_info=failure)
    return failure_frame(frame, errors.INTERNAL())
