"""Frames of direct mode from a seed: good ones with tokens that are odd, and such as were bent on the wire.

One seed is one handful of frames that are sent at once, so a finding is repeated by its number alone.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from attack.callers import Key
from attack.fuzzing import vocabulary as words
from attack.fuzzing.requests import RequestMaker, as_bytes
from pleiad.wire.rntbd.codes import OperationType as Op
from pleiad.wire.rntbd.codes import ResourceType as Of
from pleiad.wire.rntbd.frame import HEAD_BYTES, write_request
from pleiad.wire.rntbd.request_tokens import REQUEST_TOKENS, RequestToken
from pleiad.wire.rntbd.token import TokenType, TokenValue
from tests.project import REFERENCE

AT_ONCE_MAX = 6
NAME_TOKENS = {
    "dbs": RequestToken.DATABASE_NAME,
    "colls": RequestToken.COLLECTION_NAME,
    "docs": RequestToken.DOCUMENT_NAME,
    "users": RequestToken.USER_NAME,
    "permissions": RequestToken.PERMISSION_NAME,
    "sprocs": RequestToken.STORED_PROCEDURE_NAME,
    "udfs": RequestToken.USER_DEFINED_FUNCTION_NAME,
    "triggers": RequestToken.TRIGGER_NAME,
    "conflicts": RequestToken.CONFLICT_NAME,
}
METHODS = {
    Op.CREATE: "POST", Op.UPSERT: "POST", Op.QUERY: "POST", Op.SQL_QUERY: "POST", Op.BATCH: "POST",
    Op.EXECUTE_JAVA_SCRIPT: "POST", Op.READ_FEED: "GET", Op.READ: "GET", Op.REPLACE: "PUT", Op.PATCH: "PATCH",
    Op.DELETE: "DELETE", Op.HEAD: "HEAD", Op.HEAD_FEED: "HEAD",
}  # fmt: skip
DOCS = [*words.CONTAINER, "docs"]
ITEM = {"id": "1", "pk": "a"}
GOOD_FRAMES: Sequence[tuple[Of, Op, list[str], Any]] = (
    (Of.DOCUMENT, Op.CREATE, DOCS, {"id": "2", "pk": "a"}),
    (Of.DOCUMENT, Op.UPSERT, DOCS, ITEM),
    (Of.DOCUMENT, Op.QUERY, DOCS, {"query": "SELECT * FROM c WHERE c.pk = 'a'"}),
    (Of.DOCUMENT, Op.READ_FEED, DOCS, b""),
    (Of.DOCUMENT, Op.READ, [*DOCS, "1"], b""),
    (Of.DOCUMENT, Op.REPLACE, [*DOCS, "1"], ITEM),
    (Of.DOCUMENT, Op.PATCH, [*DOCS, "1"], {"operations": [{"op": "add", "path": "/a", "value": 1}]}),
    (Of.DOCUMENT, Op.DELETE, [*DOCS, "1"], b""),
    (
        Of.DOCUMENT,
        Op.BATCH,
        DOCS,
        [{"operationType": "Upsert", "partitionKey": '["a"]', "resourceBody": ITEM}],
    ),
    (Of.STORED_PROCEDURE, Op.EXECUTE_JAVA_SCRIPT, [*words.CONTAINER, "sprocs", "s"], []),
    (Of.CONFLICT, Op.READ_FEED, [*words.CONTAINER, "conflicts"], b""),
    (Of.COLLECTION, Op.HEAD, words.CONTAINER, b""),
    (Of.COLLECTION, Op.READ_FEED, ["dbs", "fuzz", "colls"], b""),
    (Of.DATABASE, Op.READ, ["dbs", "fuzz"], b""),
    (Of.DATABASE, Op.QUERY, ["dbs"], {"query": "SELECT * FROM r"}),
    (Of.DATABASE, Op.HEAD_FEED, ["dbs"], b""),
    (Of.USER, Op.READ, ["dbs", "fuzz", "users", "u"], b""),
    (Of.USER, Op.REPLACE, ["dbs", "fuzz", "users", "u"], {"id": "u"}),
    (Of.PERMISSION, Op.READ_FEED, ["dbs", "fuzz", "users", "u", "permissions"], b""),
)
ODD_NUMBERS = (
    0,
    1,
    2,
    5,
    127,
    128,
    255,
    1000,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**63 - 1,
    -1,
    -(2**63),
)
NUMBER_BITS = {
    TokenType.BYTE: 8, TokenType.USHORT: 16, TokenType.ULONG: 32, TokenType.LONG: 32, TokenType.ULONG_LONG: 64,
    TokenType.LONG_LONG: 64,
}  # fmt: skip
TELLING_TOKENS = (
    RequestToken.RESOURCE_ID, RequestToken.PAGE_SIZE, RequestToken.SESSION_TOKEN, RequestToken.CONTINUATION_TOKEN,
    RequestToken.INDEXING_DIRECTIVE, RequestToken.MATCH, RequestToken.PRE_TRIGGER_INCLUDE,
    RequestToken.POST_TRIGGER_INCLUDE, RequestToken.CONSISTENCY_LEVEL, RequestToken.REPLICA_PATH,
    RequestToken.CLIENT_VERSION, RequestToken.PARTITION_KEY, RequestToken.PARTITION_KEY_RANGE_ID,
    RequestToken.COLLECTION_RID, RequestToken.ENABLE_LOGGING, RequestToken.A_IM, RequestToken.POPULATE_QUERY_METRICS,
    RequestToken.POPULATE_QUOTA_INFO, RequestToken.RESPONSE_CONTINUATION_TOKEN_LIMIT_IN_KB,
    RequestToken.IF_MODIFIED_SINCE, RequestToken.REMAINING_TIME_IN_MS_ON_CLIENT_REQUEST, RequestToken.TARGET_LSN,
    RequestToken.TIME_TO_LIVE_IN_SECONDS, RequestToken.START_EPK, RequestToken.END_EPK,
    RequestToken.READ_FEED_KEY_TYPE, RequestToken.CONTENT_SERIALIZATION_FORMAT, RequestToken.IS_BATCH_ATOMIC,
    RequestToken.SHOULD_BATCH_CONTINUE_ON_ERROR, RequestToken.MAX_POLLING_INTERVAL_MILLISECONDS,
    RequestToken.RETURN_PREFERENCE, RequestToken.CHANGE_FEED_START_FULL_FIDELITY_IF_NONE_MATCH,
    RequestToken.INTENDED_COLLECTION_RID, RequestToken.SDK_SUPPORTED_CAPABILITIES,
    RequestToken.POPULATE_INDEX_METRICS, RequestToken.CORRELATED_ACTIVITY_ID,
    RequestToken.CHANGE_FEED_WIRE_FORMAT_VERSION, RequestToken.PRIORITY_LEVEL,
    RequestToken.SUPPORTED_SERIALIZATION_FORMATS, RequestToken.OPTIMISTIC_DIRECT_EXECUTE,
    RequestToken.THROUGHPUT_BUCKET, RequestToken.WORKLOAD_ID, RequestToken.READ_CONSISTENCY_STRATEGY,
    RequestToken.AUTHORIZATION_TOKEN, RequestToken.DATE,
)  # fmt: skip
"""Those that clients send and a server reads."""
SIGNED = (TokenType.LONG, TokenType.LONG_LONG)
PIECES = (
    b"\x00", b"\xff", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x02\x00\x00\x01", b"\x02\x00\x00\x00",
    b"\x13\x00\x08", b"\x13\x00\x08\xff\xff", b"\x01\x00\x09\xff\xff\xff\x7f", b"\xf0\xf0\x0e", b"\xf0\xf0\x42",
    b"\xf0\xf0\x0c\xff\xff\xff\xff", b"\x4d\x00\x02", b"GET / HTTP/1.1\r\n\r\n", b"x" * 3000, b"\xf0\xf0\xff" * 500,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FuzzedFrames:
    """The frames of one seed, by the number that each has on its connection."""

    seed: int
    frames: dict[int, bytes]
    words: str

    def __str__(self) -> str:
        return f"frame seed {self.seed}: {self.words}"


class FrameMaker:
    """The frames of one seed."""

    def __init__(self, seed: int, caller: Key, replica_path: bytes) -> None:
        self._seed = seed
        self._dice = random.Random(seed)
        self._caller = caller
        self._replica_path = replica_path
        self._bodies = RequestMaker(seed)

    def make(self) -> FuzzedFrames:
        """A few frames that are whole; what they say is anything."""
        dice = self._dice
        frames: dict[int, bytes] = {}
        told: list[str] = []
        for number in range(1, dice.randrange(1, AT_ONCE_MAX) + 1):
            frames[number], text = self._frame(number)
            told.append(text)
        return FuzzedFrames(self._seed, frames, "; ".join(told))

    def bent(self) -> bytes:
        """Frames with bytes cut out, replaced and put in; half of them still say their right length."""
        dice = self._dice
        captured = captured_frames()
        if captured and dice.random() < 0.3:
            data = dice.choice(captured)
        else:
            data = b"".join(self.make().frames.values())
        for _ in range(dice.randrange(1, 4)):
            start = dice.randrange(len(data) + 1)
            end = min(len(data), start + dice.randrange(7))
            piece = dice.choice(PIECES) if dice.random() < 0.6 else dice.randbytes(dice.randrange(5))
            data = data[:start] + piece + data[end:]
        if dice.random() < 0.5 and len(data) > HEAD_BYTES:
            data = struct.pack("<I", len(data)) + data[4:]
        return data

    def _frame(self, number: int) -> tuple[bytes, str]:
        dice = self._dice
        resource, operation, segments, content = dice.choice(GOOD_FRAMES)
        segments = list(segments)
        kind, code = int(resource), int(operation)
        change = dice.choice(("tokens", "tokens", "tokens", "body", "name", "codes", "nothing"))
        if change == "body":
            content = self._bodies.body()
        elif change == "name":
            segments[dice.randrange(len(segments))] = self._bodies.name()
        elif change == "codes":
            kind, code = dice.randrange(60), dice.randrange(72)
        tokens = self._usual(METHODS[operation], segments, number)
        if change == "tokens":
            tokens |= self._odd(tokens)
        elif change == "codes" and dice.random() < 0.5:
            tokens.pop(dice.choice([known for known in tokens if known != RequestToken.TRANSPORT_REQUEST_ID]))
        data = write_request(kind, code, dice.randbytes(16), tokens, as_bytes(content))
        of_the_moment = (RequestToken.AUTHORIZATION_TOKEN, RequestToken.DATE)
        shown = {REQUEST_TOKENS.names[each]: tokens[each] for each in tokens if each not in of_the_moment}
        return data, f"{kind}/{code} {shown} {as_bytes(content)[:200]!r}"

    def _usual(self, method: str, segments: Sequence[str], number: int) -> dict[int, TokenValue]:
        """The tokens that a client sends with every request."""
        proof = self._caller.headers(method, segments)
        tokens: dict[int, TokenValue] = {
            RequestToken.TRANSPORT_REQUEST_ID: number,
            RequestToken.REPLICA_PATH: self._replica_path,
            RequestToken.AUTHORIZATION_TOKEN: proof["authorization"].encode(),
            RequestToken.DATE: proof["x-ms-date"].encode(),
        }
        for kind, name in zip(segments[::2], segments[1::2], strict=False):
            if kind in NAME_TOKENS:
                tokens[NAME_TOKENS[kind]] = _text(name)
        if segments[:4] == words.CONTAINER:
            tokens[RequestToken.PARTITION_KEY] = b'["a"]'
        return tokens

    def _odd(self, usual: dict[int, TokenValue]) -> dict[int, TokenValue]:
        """A few tokens with odd values; those that every request needs come less often."""
        dice = self._dice
        table = TELLING_TOKENS if dice.random() < 0.8 else tuple(REQUEST_TOKENS.types)
        known = [token for token in table if token not in usual or dice.random() < 0.2]
        spared = {RequestToken.TRANSPORT_REQUEST_ID, RequestToken.PAYLOAD_PRESENT}
        chosen = sorted(set(dice.choices(known, k=dice.randrange(1, 6))) - spared)
        return {token: self._value(REQUEST_TOKENS.types[token]) for token in chosen}

    def _value(self, kind: TokenType) -> TokenValue:
        dice = self._dice
        if kind in NUMBER_BITS:
            bits = NUMBER_BITS[kind]
            number: int = dice.choice(ODD_NUMBERS) & (2**bits - 1)
            return number - 2**bits if kind in SIGNED and number >> (bits - 1) else number
        if kind is TokenType.GUID:
            return dice.randbytes(16)
        text = (
            _text(dice.choice(words.ODD_TEXTS)) if dice.random() < 0.7 else dice.randbytes(dice.randrange(9))
        )
        return text[:255] if kind is TokenType.SMALL_STRING else text


@cache
def captured_frames() -> tuple[bytes, ...]:
    """The requests that a client sent, where they lie beside the checkout."""
    path = REFERENCE / "rntbd_vectors.json"
    if not path.is_file():
        return ()
    vectors = json.loads(path.read_text(encoding="utf-8"))["frames"]
    return tuple(bytes.fromhex(vector["request_hex"]) for vector in vectors)


def _text(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")
