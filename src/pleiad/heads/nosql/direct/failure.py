"""The answer to a request that failed before anything is known of it but its frame."""

from __future__ import annotations

import orjson

from pleiad.errors import PleiadError
from pleiad.heads.nosql.direct.headers import RANGE_HEADER
from pleiad.heads.nosql.failures import code_of, message_of, substatus_of
from pleiad.server.http.failures import status_of
from pleiad.wire.rntbd.activity_id import activity_id_text
from pleiad.wire.rntbd.frame import Frame, write_response
from pleiad.wire.rntbd.request_tokens import RequestToken
from pleiad.wire.rntbd.response_tokens import ResponseToken

_NO_RANGE = b"0"


def failure_frame(frame: Frame, error: PleiadError) -> bytes:
    """A failure from the table."""
    tokens = {
        # Clients find the request by the first, and go wrong where one of the others is missing.
        ResponseToken.TRANSPORT_REQUEST_ID: frame.tokens.get(RequestToken.TRANSPORT_REQUEST_ID, 0),
        ResponseToken.LSN: 1,
        ResponseToken.REQUEST_CHARGE: 0.0,
        ResponseToken.SUB_STATUS: substatus_of(error),
        ResponseToken.PARTITION_KEY_RANGE_ID: frame.texts.get(RANGE_HEADER, _NO_RANGE),
        ResponseToken.LOCAL_LSN: 1,
    }
    message = f"{message_of(error)}\r\nActivityId: {activity_id_text(frame.activity_id)}"
    body = orjson.dumps({"code": code_of(error), "message": message})
    return write_response(status_of(error), frame.activity_id, tokens, body)
