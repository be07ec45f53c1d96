"""Direct mode in one class: frame to request, the head's answer, answer to frame."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from functools import partial
from time import perf_counter
from typing import Any, cast

from pleiad.engine.desk import Desk
from pleiad.engine.items import ItemAnswer
from pleiad.errors import PleiadError
from pleiad.heads.nosql import items
from pleiad.heads.nosql.direct import answers, replica_path
from pleiad.heads.nosql.direct.answers import FrameForm
from pleiad.heads.nosql.direct.headers import tokens_of
from pleiad.heads.nosql.direct.protocol import ConnectionFacts
from pleiad.heads.nosql.direct.requests import plain_item_path, to_request
from pleiad.heads.nosql.head import NoSqlHead, guarded, unless_cut
from pleiad.heads.nosql.point_read import OPTIONS, begin
from pleiad.server.http.message import Response
from pleiad.wire.rntbd.activity_id import activity_id_text
from pleiad.wire.rntbd.codes import OperationType, ResourceType
from pleiad.wire.rntbd.frame import Frame
from pleiad.wire.rntbd.request_tokens import RequestToken

_READ, _DOCUMENT = OperationType.READ, ResourceType.DOCUMENT
_OPTIONS = frozenset({RequestToken.MATCH, *tokens_of(OPTIONS)})
"""Tokens that ask for more than the item, or for another form of it."""


class DirectHead:
    """Answers frames as the NoSQL head answers the requests they stand for."""

    def __init__(self, head: NoSqlHead, desk: Desk) -> None:
        self._head = head
        self._desk = desk

    def answer(self, frame: Frame, facts: ConnectionFacts) -> bytes | Coroutine[Any, Any, bytes]:
        """The frame that answers another, at once where nothing has to be waited for.

        It raises nothing but `ConnectionCut`, when a fault asks for it.
        """
        if frame.operation_type == _READ and frame.resource_type == _DOCUMENT:
            said = self._read(frame, facts)
            if said is not None:
                return said
        form, activity_id = _form(frame), activity_id_text(frame.activity_id)
        try:
            request = to_request(frame, facts.peer)
        except PleiadError as error:
            began_at = perf_counter()
            told = form.failure(error, activity_id, began_at)
            return answers.written(frame, self._desk.refused("metadata_read", began_at, told))
        response = self._head.answer(request, form, activity_id, form.check)
        return answers.written(frame, response) if isinstance(response, Response) else _later(frame, response)

    def _read(self, frame: Frame, facts: ConnectionFacts) -> bytes | Coroutine[Any, Any, bytes] | None:
        """The answer to a point read; None where it has to go the long way (`point_read`)."""
        began_at = perf_counter()
        tokens, texts = frame.tokens, frame.texts
        path = plain_item_path(tokens)
        if path is None or not _OPTIONS.isdisjoint(tokens):
            return None
        sought = self._head.point_reads.find(path, texts)
        if sought is None:
            return None
        container, _, key, _, _ = sought
        form = _form(frame)
        if not form.is_in(container, texts):
            return None
        answer = begin(sought)
        if not isinstance(answer, ItemAnswer):
            call = self._head.call_of(
                to_request(frame, facts.peer), began_at, form, activity_id_text(frame.activity_id)
            )
            work = partial(guarded, form.check, items.read)
            response = self._head.point_reads.go_on(call, work, container, key, answer)
            return _later(frame, unless_cut(response))
        partition, cost, row, _, _, _ = answer
        assert row is not None  # where there is none the read has failed
        told = form.of_read(began_at, container, partition, cost.ru, container.etag(row), row.lsn)
        self._desk.count_read(container, key, answer, began_at)
        return answers.written_of(frame, 200, told, container.render(row))

    def admit(self, frame: Frame, facts: ConnectionFacts) -> bytes | None:
        """The gate: whether a frame may send its payload, by who asks and not yet by what for."""
        form, activity_id = _form(frame), activity_id_text(frame.activity_id)
        try:
            refusal = self._head.admit(to_request(frame, facts.peer), form, activity_id)
        except PleiadError as error:
            refusal = form.failure(error, activity_id, perf_counter())
        return None if refusal is None else answers.written(frame, refusal)


async def _later(frame: Frame, response: Awaitable[Response]) -> bytes:
    return answers.written(frame, await response)


def _form(frame: Frame) -> FrameForm:
    return FrameForm(replica_path.read(cast(bytes, frame.tokens.get(RequestToken.REPLICA_PATH, b""))))
