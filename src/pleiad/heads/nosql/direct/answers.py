"""The frame that an answer becomes: what it tells as tokens, and what clients in direct mode want of every answer.

Clients compare replicas by the LSN of their answers, errors too: without one, or with a 0, they repeat a request for
seconds or fail. An answer that has none gets that of the physical partition that was addressed, or 1.

What precedes a value is taken once from the table of tokens, so that there is one description of them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from time import perf_counter
from typing import cast

import orjson

from pleiad import errors
from pleiad.engine.container import Container
from pleiad.errors import PleiadError
from pleiad.heads.nosql.call import Call, Pairs
from pleiad.heads.nosql.direct.place import Place
from pleiad.heads.nosql.direct.replica_path import REPLICAS
from pleiad.heads.nosql.failures import replica_message_of
from pleiad.heads.nosql.render import failure_body, failure_pairs, partition_pairs
from pleiad.partition.partition import Partition
from pleiad.server.http.failures import status_of
from pleiad.server.http.message import Response
from pleiad.wire.rntbd.frame import Frame, response_of
from pleiad.wire.rntbd.request_tokens import RequestToken
from pleiad.wire.rntbd.response_tokens import RESPONSE_TOKENS
from pleiad.wire.rntbd.response_tokens import ResponseToken as Token
from pleiad.wire.rntbd.token import STRING_BYTES_MAX

Writer = Callable[[bytes], bytes]
"""The token, or tokens, of a header's value."""


def _head(token: int) -> bytes:
    """What stands before the value of a token, and before its length where it has one."""
    return struct.pack("<HB", token, RESPONSE_TOKENS.types[token])


def _text(token: int) -> Writer:
    head = _head(token)
    return lambda value: head + len(value).to_bytes(2, "little") + value


def _number(token: int, form: str) -> Writer:
    pack = struct.Struct("<3s" + form).pack
    head = _head(token)
    return lambda value: pack(head, int(value))


def _fraction(token: int) -> Writer:
    pack = struct.Struct("<3sd").pack
    head = _head(token)
    return lambda value: pack(head, float(value))


def _flag(token: int) -> Writer:
    head = _head(token)
    return lambda value: head + (b"\x01" if value.lower() == b"true" else b"\x00")


def _session_token(value: bytes) -> bytes:
    """Frames have the range in a token of its own."""
    return _SESSION_TOKEN(value.partition(b":")[2])


_SESSION_TOKEN = _text(Token.SESSION_TOKEN)
_ETAG = _text(Token.ETAG)
_RANGE_ID = _text(Token.PARTITION_KEY_RANGE_ID)
_RANGE_HEADER = "x-ms-documentdb-partitionkeyrangeid"
_SUBSTATUS_HEADER = "x-ms-substatus"
_SESSION_HEADER = "x-ms-session-token"
_LSN_HEADER = "lsn"
_schema_version = _head(Token.SCHEMA_VERSION)

_WRITERS: Mapping[str, Writer] = {
    "x-ms-continuation": _text(Token.CONTINUATION_TOKEN),
    "etag": _ETAG,
    "x-ms-resource-quota": _text(Token.STORAGE_MAX_RESOURE_QUOTA),
    "x-ms-resource-usage": _text(Token.STORAGE_RESOURCE_QUOTA_USAGE),
    "x-ms-schemaversion": lambda value: _schema_version + bytes((len(value),)) + value,
    "x-ms-alt-content-path": _text(Token.OWNER_FULL_NAME),
    "x-ms-content-path": _text(Token.OWNER_ID),
    _RANGE_HEADER: _RANGE_ID,
    "x-ms-documentdb-script-log-results": _text(Token.LOG_RESULTS),
    "x-ms-documentdb-query-metrics": _text(Token.QUERY_METRICS),
    "x-ms-cosmos-index-utilization": _text(Token.INDEX_UTILIZATION),
    "x-ms-cosmos-query-execution-info": _text(Token.QUERY_EXECUTION_INFO),
    "x-ms-cosmos-physical-partition-id": _text(Token.PHYSICAL_PARTITION_ID),
    "x-ms-cosmos-query-advice": _text(Token.QUERY_ADVICE),
    _SESSION_HEADER: _session_token,
    "x-ms-request-charge": _fraction(Token.REQUEST_CHARGE),
    "x-ms-request-duration-ms": _fraction(Token.BACKEND_REQUEST_DURATION_MILLISECONDS),
    "x-ms-item-count": _number(Token.ITEM_COUNT, "I"),
    _SUBSTATUS_HEADER: _number(Token.SUB_STATUS, "I"),
    "x-ms-retry-after-ms": _number(Token.RETRY_AFTER_MILLISECONDS, "I"),
    "x-ms-documentdb-collection-index-transformation-progress": _number(
        Token.COLLECTION_UPDATE_PROGRESS, "I"
    ),
    "x-ms-cosmos-query-requiresdistribution": _flag(Token.REQUIRES_DISTRIBUTION),
    "x-ms-share-throughput": _flag(Token.SHARE_THROUGHPUT),
}
_REPLICA_SET = RESPONSE_TOKENS.write(
    {Token.CURRENT_WRITE_QUORUM: 1, Token.CURRENT_REPLICA_SET_SIZE: len(REPLICAS)}
)
"""As many replicas as clients are told addresses of: they hold the two numbers against each other."""
_ONE_REGION = RESPONSE_TOKENS.write({Token.NUMBER_OF_READ_REGIONS: 0})
_NO_SUBSTATUS = RESPONSE_TOKENS.write({Token.SUB_STATUS: 0})
_LSN_1, _LSN_2, _LSN_3 = map(_head, (Token.LSN, Token.LOCAL_LSN, Token.GLOBAL_COMMITTED_LSN))
_QUORUM_LSN_1, _QUORUM_LSN_2 = map(_head, (Token.QUORUM_ACKED_LSN, Token.QUORUM_ACKED_LOCAL_LSN))
_CHARGE = _head(Token.REQUEST_CHARGE)
_DURATION = _head(Token.BACKEND_REQUEST_DURATION_MILLISECONDS)
_STANDING = struct.Struct("<3sq3sq3sq")
_QUORUM = struct.Struct("<3sq3sq")
_COST = struct.Struct("<3sd3sd")
_ITEM_LSNS = struct.Struct("<3sq3sq")
_ITEM_LSN, _ITEM_LOCAL_LSN = _head(Token.ITEM_LSN), _head(Token.ITEM_LOCAL_LSN)
_NUMBER = struct.Struct("<3sI")
_NUMBER_HEAD = _head(Token.TRANSPORT_REQUEST_ID)
_MASTER_RANGE = b"M"


class FrameForm(Place):
    """The form of the answer to one frame: tokens, with the place it was sent to where an answer tells none."""

    __slots__ = ()

    def of_items(
        self,
        call: Call,
        container: Container,
        partition: Partition,
        charge_ru: float,
        etag: str,
        item_lsn: int,
        more: Pairs,
    ) -> bytes:
        told = _items_tokens(container, partition, charge_ru, call.began_at)
        if etag:
            told += _item_tokens(etag, item_lsn)
        return told + _tokens(more) if more else told

    def of_read(
        self,
        began_at: float,
        container: Container,
        partition: Partition,
        charge_ru: float,
        etag: str,
        item_lsn: int,
    ) -> bytes:
        """What the answer to a point read tells that gives its item."""
        return _items_tokens(container, partition, charge_ru, began_at) + _item_tokens(etag, item_lsn)

    def of_pairs(self, pairs: Pairs) -> bytes:
        told, lsn = self._of_one_copy(pairs)
        return told + _REPLICA_SET + _quorum(lsn)

    def failure(self, error: PleiadError, activity_id: str, began_at: float) -> Response:
        """A failure tells how far the replica itself is and, as on the service, nothing of the others."""
        pairs = failure_pairs(error, activity_id, began_at)
        told, _ = self._of_one_copy(pairs)
        if _SUBSTATUS_HEADER not in dict(pairs):
            told += _NO_SUBSTATUS
        return Response(status_of(error), told, _failure_words(error, activity_id))

    def _of_one_copy(self, pairs: Pairs) -> tuple[bytes, int]:
        """What the replica that was asked tells of itself, and its LSN."""
        names = dict(pairs)
        told = _ONE_REGION + _tokens(pairs)
        lsn, partition, container = int(names.get(_LSN_HEADER, 0)), self.partition, self.container
        if _RANGE_HEADER not in names:
            told += _RANGE_ID(self.range_id.encode("latin-1") or _MASTER_RANGE)
        if partition is not None and container is not None and _SESSION_HEADER not in names:
            lsn = partition.lsn
            told += _SESSION_TOKEN(b"%d#%d" % (container.resource.number, lsn))
        return told + _standing(lsn), lsn


def _failure_words(error: PleiadError, activity_id: str) -> bytes:
    """The words of a failure as a replica of the service has them, before a gateway gives them a code.

    Those of a query text are JSON already; what is added for a client's own work is as over HTTP.
    """
    if error.query_plan is not None:
        return failure_body(error, activity_id)
    words = replica_message_of(error)
    return words.encode() if words.startswith('{"') else orjson.dumps({"Errors": [words]})


def written(frame: Frame, response: Response) -> bytes:
    """The frame that answers another, of a response in the form of frames."""
    return written_of(frame, response.status, response.headers, response.body)


def written_of(frame: Frame, status: int, told: bytes, body: bytes) -> bytes:
    """The same of its parts."""
    number = cast(int, frame.tokens.get(RequestToken.TRANSPORT_REQUEST_ID, 0))
    return response_of(status, frame.activity_id, _NUMBER.pack(_NUMBER_HEAD, number) + told, body)


def _items_tokens(container: Container, partition: Partition, charge_ru: float, began_at: float) -> bytes:
    """What every answer about items tells."""
    lsn = partition.lsn
    told = _standing_tokens(
        partition.range_id,
        partition.size_bytes_seen,
        partition.items_seen,
        container.path,
        container.resource.rid,
        container.limits.physical_partition_bytes,
        container.resource.number,
        lsn,
    )
    duration_ms = (perf_counter() - began_at) * 1000
    return told + _COST.pack(_CHARGE, round(charge_ru, 2), _DURATION, duration_ms)


def _item_tokens(etag: str, item_lsn: int) -> bytes:
    """What an answer tells of its one item."""
    return _ETAG(etag.encode()) + _ITEM_LSNS.pack(_ITEM_LSN, item_lsn, _ITEM_LOCAL_LSN, item_lsn)


def _tokens(pairs: Pairs) -> bytes:
    """The tokens of those headers that have one; a client is told when a value has no room in its token."""
    writers = _WRITERS
    try:
        return b"".join(
            [writers[name](value.encode("latin-1", "replace")) for name, value in pairs if name in writers]
        )
    except OverflowError:
        raise errors.BAD_REQUEST(
            reason=f"The answer has a header of more than {STRING_BYTES_MAX:,} bytes, which has no room in a frame of "
            "direct mode; ask for it in gateway mode."
        ) from None


@lru_cache(maxsize=1024)
def _standing_tokens(
    range_id: str, size_bytes: int, items: int, path: str, rid: str, room_bytes: int, number: int, lsn: int
) -> bytes:
    """The tokens that are the same in all answers of a physical partition until something is written to it."""
    told = (
        _REPLICA_SET
        + _ONE_REGION
        + _tokens(partition_pairs(range_id, size_bytes, items, path, rid, room_bytes))
    )
    return told + _SESSION_TOKEN(b"%d#%d" % (number, lsn)) + _standing(lsn) + _quorum(lsn)


def _standing(lsn: int) -> bytes:
    """How far a physical partition is; never 0, for which clients would ask again."""
    lsn = lsn or 1
    return _STANDING.pack(_LSN_1, lsn, _LSN_2, lsn, _LSN_3, lsn)


def _quorum(lsn: int) -> bytes:
    """How far a quorum of its replicas is: as far as the one copy that they all are."""
    lsn = lsn or 1
    return _QUORUM.pack(_QUORUM_LSN_1, lsn, _QUORUM_LSN_2, lsn)
