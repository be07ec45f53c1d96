"""The frames that open a connection: what a client says it is, and what the server answers."""

from __future__ import annotations

from typing import NamedTuple

from pleiad.wire.rntbd import BadFrame
from pleiad.wire.rntbd.context_tokens import (
    CONTEXT_REQUEST_TOKENS,
    CONTEXT_RESPONSE_TOKENS,
    ContextRequestToken,
    ContextResponseToken,
)
from pleiad.wire.rntbd.frame import (
    HEAD_BYTES,
    REQUEST_HEAD,
    RESPONSE_HEAD,
    ResponseFrame,
    check_length,
    with_length,
)

PROTOCOL_VERSION = 1
"""The only one there is."""


class ContextFrame(NamedTuple):
    """A client's first frame."""

    activity_id: bytes
    client_version: bytes
    """The API version of all requests of the connection."""
    user_agent: bytes


def read_context_request(data: bytes) -> ContextFrame:
    """The first frame of a connection; raises `BadFrame` where it is none, or is of another version."""
    check_length(data)
    _, resource_type, operation_type, activity_id = REQUEST_HEAD.unpack_from(data)
    if resource_type or operation_type:
        raise BadFrame("a connection begins with a context request")
    tokens = CONTEXT_REQUEST_TOKENS.read(data, HEAD_BYTES)
    version = tokens.get(ContextRequestToken.PROTOCOL_VERSION)
    if version != PROTOCOL_VERSION:
        raise BadFrame(f"the protocol version is {PROTOCOL_VERSION}, not {version!r}")
    client_version = tokens.get(ContextRequestToken.CLIENT_VERSION)
    user_agent = tokens.get(ContextRequestToken.USER_AGENT)
    if not isinstance(client_version, bytes) or not isinstance(user_agent, bytes):
        raise BadFrame("a context request has the version and the agent of the client")
    return ContextFrame(activity_id, client_version, user_agent)


def write_context_request(context: ContextFrame, protocol_version: int = PROTOCOL_VERSION) -> bytes:
    """A client's first frame as bytes."""
    written = CONTEXT_REQUEST_TOKENS.write(
        {
            ContextRequestToken.PROTOCOL_VERSION: protocol_version,
            ContextRequestToken.CLIENT_VERSION: context.client_version,
            ContextRequestToken.USER_AGENT: context.user_agent,
        }
    )
    return REQUEST_HEAD.pack(HEAD_BYTES + len(written), 0, 0, context.activity_id) + written


def write_context_response(
    status: int,
    activity_id: bytes,
    client_version: bytes,
    server_agent: bytes,
    server_version: bytes,
    payload: bytes = b"",
) -> bytes:
    """The answer to it. Clients expect a payload exactly where the status is that of an error."""
    written = CONTEXT_RESPONSE_TOKENS.write(
        {
            ContextResponseToken.PROTOCOL_VERSION: PROTOCOL_VERSION,
            ContextResponseToken.CLIENT_VERSION: client_version,
            ContextResponseToken.SERVER_AGENT: server_agent,
            ContextResponseToken.SERVER_VERSION: server_version,
        }
    )
    head = RESPONSE_HEAD.pack(HEAD_BYTES + len(written), status, activity_id)
    return head + written + with_length(payload)


def read_context_response(data: bytes, payload: bytes = b"") -> ResponseFrame:
    """The answer in these bytes, without its payload."""
    check_length(data)
    _, status, activity_id = RESPONSE_HEAD.unpack_from(data)
    return ResponseFrame(status, activity_id, CONTEXT_RESPONSE_TOKENS.read(data, HEAD_BYTES), payload)
