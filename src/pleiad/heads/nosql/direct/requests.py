"""The REST request that a frame stands for: method, path by names or rids, and headers.

Names stand in frames as they are, and clients sign them so; only what would mean something in a path is encoded, and
the path is signed as the client signed it. A frame that stands for no request is refused with a 400.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple, cast
from urllib.parse import quote_from_bytes

from pleiad import errors
from pleiad.heads.nosql.direct.headers import HEADERS
from pleiad.item import rid as rids
from pleiad.server.http.message import Request
from pleiad.wire.rntbd.codes import OperationType, ResourceType
from pleiad.wire.rntbd.frame import Frame
from pleiad.wire.rntbd.request_tokens import RequestToken as Token
from pleiad.wire.rntbd.token import TokenValue

_TRUE = b"True"
_WRITTEN = frozenset(HEADERS)
_QUERY = {
    b"x-ms-documentdb-isquery": _TRUE,
    b"x-ms-documentdb-query-enablecrosspartition": _TRUE,
    b"content-type": b"application/query+json",
}


class _Method(NamedTuple):
    """How an operation is asked for in REST."""

    name: str
    is_of_feed: bool
    headers: dict[bytes, bytes]
    """What says the rest, which frames say by the operation."""
    match: bytes
    """The header that the token Match stands for."""


_IF_MATCH, _IF_NONE_MATCH = b"if-match", b"if-none-match"
_METHODS = {
    OperationType.CREATE: _Method("POST", True, {}, _IF_MATCH),
    OperationType.UPSERT: _Method("POST", True, {b"x-ms-documentdb-is-upsert": _TRUE}, _IF_MATCH),
    OperationType.QUERY: _Method("POST", True, _QUERY, _IF_MATCH),
    OperationType.SQL_QUERY: _Method("POST", True, _QUERY, _IF_MATCH),
    OperationType.BATCH: _Method("POST", True, {b"x-ms-cosmos-is-batch-request": _TRUE}, _IF_MATCH),
    OperationType.READ_FEED: _Method("GET", True, {}, _IF_NONE_MATCH),
    OperationType.READ: _Method("GET", False, {}, _IF_NONE_MATCH),
    OperationType.REPLACE: _Method("PUT", False, {}, _IF_MATCH),
    OperationType.PATCH: _Method("PATCH", False, {}, _IF_MATCH),
    OperationType.DELETE: _Method("DELETE", False, {}, _IF_MATCH),
    OperationType.EXECUTE_JAVA_SCRIPT: _Method("POST", False, {}, _IF_MATCH),
    OperationType.HEAD: _Method("HEAD", False, {}, _IF_MATCH),
    OperationType.HEAD_FEED: _Method("HEAD", True, {}, _IF_MATCH),
}

_DATABASE = (Token.DATABASE_NAME, b"dbs")
_COLLECTION = (Token.COLLECTION_NAME, b"colls")
_USER = (Token.USER_NAME, b"users")
_WAYS = {
    ResourceType.DATABASE: (_DATABASE,),
    ResourceType.COLLECTION: (_DATABASE, _COLLECTION),
    ResourceType.DOCUMENT: (_DATABASE, _COLLECTION, (Token.DOCUMENT_NAME, b"docs")),
    ResourceType.STORED_PROCEDURE: (_DATABASE, _COLLECTION, (Token.STORED_PROCEDURE_NAME, b"sprocs")),
    ResourceType.TRIGGER: (_DATABASE, _COLLECTION, (Token.TRIGGER_NAME, b"triggers")),
    ResourceType.USER_DEFINED_FUNCTION: (
        _DATABASE,
        _COLLECTION,
        (Token.USER_DEFINED_FUNCTION_NAME, b"udfs"),
    ),
    ResourceType.CONFLICT: (_DATABASE, _COLLECTION, (Token.CONFLICT_NAME, b"conflicts")),
    ResourceType.PARTITION_KEY_RANGE: (_DATABASE, _COLLECTION, (Token.PARTITION_KEY_RANGE_NAME, b"pkranges")),
    ResourceType.USER: (_DATABASE, _USER),
    ResourceType.PERMISSION: (_DATABASE, _USER, (Token.PERMISSION_NAME, b"permissions")),
    ResourceType.CLIENT_ENCRYPTION_KEY: (
        _DATABASE,
        (Token.CLIENT_ENCRYPTION_KEY_NAME, b"clientencryptionkeys"),
    ),
}
"""The tokens with the names that lead to a resource, each behind its segment of the path."""


class _Way(NamedTuple):
    """How the path of a request is made."""

    names: tuple[int, ...]
    named: Callable[[Mapping[int, TokenValue]], Any]
    """Their values, where all of them are there."""
    by_names: bytes
    """A format for as many names."""
    rid_bytes: int
    """How long the rid is of the resource, or of the parent of a feed."""


def _way(steps: tuple[tuple[int, bytes], ...], is_of_feed: bool) -> _Way:
    named = steps[:-1] if is_of_feed else steps
    path = b"".join(b"/%b/%%b" % segment for _, segment in named)
    sizes = (0, *rids.PATH_SIZES_BYTES)
    names = tuple(token for token, _ in named)
    return _Way(
        names,
        itemgetter(*names) if len(names) > 1 else lambda tokens: tuple([tokens[name] for name in names]),
        path + (b"/" + steps[-1][1] if is_of_feed else b""),
        sizes[len(named)],
    )


_WAY_OF = {
    (int(resource), int(operation)): (method, _way(steps, method.is_of_feed))
    for resource, steps in _WAYS.items()
    for operation, method in _METHODS.items()
}

_ENCODED = re.compile(rb"[%/?\x00-\x1f\x7f]")
"""What a name in a path cannot have as it is."""


_ITEM_NAMES = itemgetter(Token.DATABASE_NAME, Token.COLLECTION_NAME, Token.DOCUMENT_NAME)


def plain_item_path(tokens: Mapping[int, TokenValue]) -> bytes | None:
    """The path of an item whose names stand in a path as they are; None where they do not, or are not all there."""
    try:
        names: Any = _ITEM_NAMES(tokens)
    except KeyError:
        return None
    return None if _ENCODED.search(b"".join(names)) else b"/dbs/%b/colls/%b/docs/%b" % names


def to_request(frame: Frame, peer: str) -> Request:
    """The request that a frame stands for."""
    resource, operation, _, tokens, payload, texts = frame
    found = _WAY_OF.get((resource, operation))
    if found is None:
        raise errors.BAD_REQUEST(reason=_unserved(resource, operation))
    method, way = found
    path = _path(way, frame)
    headers = {**texts, **method.headers}
    for token in _WRITTEN.intersection(tokens):
        name, text = HEADERS[token](tokens[token])
        headers[name] = text
    if Token.MATCH in tokens:
        headers[method.match] = cast(bytes, tokens[Token.MATCH])
    is_secure = True  # frames are spoken inside TLS only
    return Request(method.name, path, headers, payload, is_secure, peer)


def _path(way: _Way, frame: Frame) -> bytes:
    tokens = frame.tokens
    try:
        names: tuple[bytes, ...] = way.named(tokens)
    except KeyError:
        names = tuple([cast(bytes, tokens.get(token, b"")) for token in way.names])
    if all(names):
        if _ENCODED.search(b"".join(names)) is not None:
            names = tuple([quote_from_bytes(name, safe="").encode() for name in names])
        return way.by_names % names
    rid = cast(bytes, tokens.get(Token.RESOURCE_ID, b""))
    if any(names) or len(rid) != way.rid_bytes:
        raise errors.BAD_REQUEST(
            reason="The frame does not say what it is about: it has neither all names nor a resource id that fits."
        )
    parts = [rids.encode(rid[:size]).encode() for size in rids.PATH_SIZES_BYTES[: len(names)]]
    return way.by_names % tuple(parts)


def _unserved(resource: int, operation: int) -> str:
    return (
        f"The operation {operation:02X} on the resource type {resource} is not served in direct mode, "
        "nor sent so by the clients."
    )
