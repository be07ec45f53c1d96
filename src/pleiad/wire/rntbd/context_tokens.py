"""The tokens of the first frame each way, which have numbers of their own."""

from __future__ import annotations

from pleiad.wire.rntbd.token import TokenType, token, tokens

_BYTE = TokenType.BYTE
_SMALL_STRING = TokenType.SMALL_STRING
_STRING = TokenType.STRING
_ULONG = TokenType.ULONG


class ContextRequestToken:
    """The number of each token of a client's first frame."""

    PROTOCOL_VERSION = token(0x0000, _ULONG)
    CLIENT_VERSION = token(0x0001, _SMALL_STRING)
    USER_AGENT = token(0x0002, _SMALL_STRING)
    CALLER_ID = token(0x0003, _BYTE)
    ENABLE_CHANNEL_MULTIPLEXING = token(0x0004, _BYTE)
    THIN_PROXY_SIGNATURE = token(0x0005, _STRING)
    THIN_PROXY_SIGNATURE_DATE = token(0x0006, _SMALL_STRING)
    MUTUAL_TLS_AUTH_MODE = token(0x0007, _BYTE)


class ContextResponseToken:
    """The number of each token of the answer to it."""

    PROTOCOL_VERSION = token(0x0000, _ULONG)
    CLIENT_VERSION = token(0x0001, _SMALL_STRING)
    SERVER_AGENT = token(0x0002, _SMALL_STRING)
    SERVER_VERSION = token(0x0003, _SMALL_STRING)
    IDLE_TIMEOUT_IN_SECONDS = token(0x0004, _ULONG)
    UNAUTHENTICATED_TIMEOUT_IN_SECONDS = token(0x0005, _ULONG)
    MUTUAL_TLS_AUTH_THUMBPRINT = token(0x0006, _SMALL_STRING)


CONTEXT_REQUEST_TOKENS = tokens(ContextRequestToken)
CONTEXT_RESPONSE_TOKENS = tokens(ContextResponseToken)
