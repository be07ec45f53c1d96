"""Direct mode in one class: frame to request, the head's answer, answer to frame."""

from __future__ import annotations

from collections.abc import Coroutine
from time import perf_counter
from typing import Any, cast

from pleiad.engine.desk import Desk
from pleiad.errors import PleiadError
from pleiad.heads.nosql.direct import answers, replica_path
from pleiad.heads.nosql.direct.answers import FrameForm
from pleiad.heads.nosql.direct.protocol import ConnectionFacts
from pleiad.heads.nosql.direct.requests import to_request
from pleiad.heads.nosql.head import NoSqlHead
from pleiad.server.http.message import Response
from pleiad.wire.rntbd.activity_id import activity_id_text
from pleiad.wire.rntbd.frame import Frame
from pleiad.wire.rntbd.request_tokens import RequestToken


class DirectHead:
    """Answers frames as the NoSQL head answers the requests they stand for."""

    def __init__(self, head: NoSqlHead, desk: Desk) -> None:
        self._head = head
        self._desk = desk

    def answer(self, frame: Frame, facts: ConnectionFacts) -> bytes | Coroutine[Any, Any, bytes]:
        """The frame that answers another, at once where nothing has to be waited for.

        It raises nothing but `ConnectionCut`, when a fault asks for it.
        """
        form, activity_id = _form(frame), activity_id_text(frame.activity_id)
        try:
            request = to_request(frame, facts.peer)
        except PleiadError as error:
            began_at = perf_counter()
            told = form.failure(error, activity_id)
            return answers.written(frame, self._desk.refused("metadata_read", began_at, told))
        response = self._head.answer(request, form, activity_id, form.check)
        return answers.written(frame, response) if isinstance(response, Response) else _later(frame, response)

    def admit(self, frame: Frame, facts: ConnectionFacts) -> bytes | None:
        """The gate: whether a frame may send its payload, by who asks and not yet by what for."""
        form, activity_id = _form(frame), activity_id_text(frame.activity_id)
        try:
            refusal = self._head.admit(to_request(frame, facts.peer), form, activity_id)
        except PleiadError as error:
            refusal = form.failure(error, activity_id)
        return None if refusal is None else answers.written(frame, refusal)


async def _later(frame: Frame, response: Coroutine[Any, Any, Response]) -> bytes:
    return answers.written(frame, await response)


def _form(frame: Frame) -> FrameForm:
    return FrameForm(replica_path.read(cast(bytes, frame.tokens.get(RequestToken.REPLICA_PATH, b""))))
