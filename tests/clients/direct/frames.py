"""A client in direct mode: metadata and addresses over HTTPS, frames over TLS, on one port.

It takes REST requests and gives answers as REST has them, so that the same list of operations can be sent both ways.
What it knows of the protocol it has from the protocol's description and not from the server's tables.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from attack.callers import Caller, Key
from pleiad.item import rid as rids
from pleiad.testing.start import RunningServer
from pleiad.wire.rntbd.frame import ResponseFrame, read_response, write_request

KEY = "x-ms-documentdb-partitionkey"
RANGE = "x-ms-documentdb-partitionkeyrangeid"
SECONDS = 60

_TYPES = {
    "dbs": 1,
    "colls": 2,
    "docs": 3,
    "users": 5,
    "permissions": 6,
    "sprocs": 7,
    "conflicts": 8,
    "triggers": 9,
    "udfs": 10,
    "pkranges": 22,
    "clientencryptionkeys": 35,
}
_NAMES = {
    "dbs": 0x15,
    "colls": 0x16,
    "docs": 0x17,
    "users": 0x19,
    "permissions": 0x1A,
    "sprocs": 0x1B,
    "udfs": 0x1C,
    "triggers": 0x1D,
    "conflicts": 0x20,
    "pkranges": 0x36,
    "clientencryptionkeys": 0x80,
}
_TEXTS = {
    "authorization": 0x01,
    "x-ms-date": 0x03,
    "x-ms-session-token": 0x05,
    "x-ms-continuation": 0x06,
    "if-match": 0x08,
    "if-none-match": 0x08,
    "x-ms-documentdb-pre-trigger-include": 0x09,
    "x-ms-documentdb-post-trigger-include": 0x0A,
    KEY: 0x2B,
    RANGE: 0x2C,
    "a-im": 0x3F,
    "if-modified-since": 0x47,
    "x-ms-start-epk": 0x62,
    "x-ms-end-epk": 0x63,
    "x-ms-cosmos-intended-collection-rid": 0x9D,
    "x-ms-cosmos-changefeed-wire-format-version": 0xB2,
}
_NUMBERS = {
    "x-ms-documentdb-responsecontinuationtokenlimitinkb": 0x43,
    "x-ms-cosmos-sdk-supportedcapabilities": 0xA2,
    "x-ms-cosmos-throughput-bucket": 0xDB,
    "x-ms-documentdb-expiry-seconds": 0x14,
}
_FLAGS = {
    "x-ms-documentdb-script-enable-logging": 0x3E,
    "x-ms-documentdb-populatequotainfo": 0x40,
    "x-ms-documentdb-populatequerymetrics": 0x42,
    "x-ms-exclude-system-properties": 0x57,
    "x-ms-cosmos-batch-atomic": 0x73,
    "x-ms-cosmos-batch-continue-on-error": 0x74,
    "x-ms-cosmos-batch-ordered": 0x75,
    "x-ms-cosmos-populateindexmetrics": 0xA9,
}
_WORDS = {
    "x-ms-indexing-directive": (0x07, ("Default", "Include", "Exclude")),
    "x-ms-consistency-level": (
        0x10,
        ("Strong", "BoundedStaleness", "Session", "Eventual", "ConsistentPrefix"),
    ),
    "prefer": (0x82, ("return=representation", "return=minimal")),
    "x-ms-enumeration-direction": (0x5E, ("", "Forward", "Reverse")),
    "x-ms-cosmos-priority-level": (0xBF, ("", "High", "Low")),
    "x-ms-documentdb-content-serialization-format": (0x65, ("JsonText", "CosmosBinary", "HybridRow")),
}
_SAID_BY_THE_OPERATION = {
    "x-ms-version",
    "content-type",
    "x-ms-documentdb-isquery",
    "x-ms-documentdb-is-upsert",
    "x-ms-cosmos-is-batch-request",
    "x-ms-documentdb-query-enablecrosspartition",
}
ANSWERED = {
    0x03: "x-ms-continuation",
    0x04: "etag",
    0x0C: "x-ms-retry-after-ms",
    0x0E: "x-ms-resource-quota",
    0x0F: "x-ms-resource-usage",
    0x10: "x-ms-schemaversion",
    0x13: "lsn",
    0x14: "x-ms-item-count",
    0x17: "x-ms-alt-content-path",
    0x18: "x-ms-content-path",
    0x1C: "x-ms-substatus",
    0x1D: "x-ms-documentdb-collection-index-transformation-progress",
    0x1E: "x-ms-current-write-quorum",
    0x1F: "x-ms-current-replica-set-size",
    0x21: RANGE,
    0x25: "x-ms-documentdb-script-log-results",
    0x28: "x-ms-documentdb-query-metrics",
    0x32: "x-ms-item-lsn",
    0x36: "x-ms-share-throughput",
    0x44: "x-ms-cosmos-index-utilization",
    0x45: "x-ms-cosmos-query-execution-info",
    0x51: "x-ms-request-duration-ms",
    0x63: "x-ms-cosmos-physical-partition-id",
    0x75: "x-ms-cosmos-query-advice",
}
_LSNS = {"LSN": 0x13, "GlobalCommittedLSN": 0x29, "LocalLSN": 0x3A}
_OF_A_QUORUM = {"QuorumAckedLSN": 0x1A, "QuorumAckedLocalLSN": 0x3B}
_WRITE_QUORUM, _REPLICA_SET_SIZE = 0x1E, 0x1F


@dataclass(frozen=True)
class Answer:
    """One response; header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def substatus(self) -> int:
        return int(self.headers.get("x-ms-substatus", "0"))


class Https:
    """Signed requests over HTTPS."""

    def __init__(self, server: RunningServer, caller: Caller | None = None, host: str = "") -> None:
        self.server = server
        self.caller = caller or Key("master", server.key)
        self._host = host or f"localhost:{server.port}"
        self._connection = http.client.HTTPSConnection(
            "localhost", server.port, timeout=SECONDS, context=trusting()
        )

    def close(self) -> None:
        self._connection.close()

    def send(
        self,
        method: str,
        segments: Sequence[str],
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        key: Sequence[Any] | None = None,
    ) -> Answer:
        """Sends a request; `key` is the partition key."""
        fields = _fields(self.caller, method, segments, headers, key)
        path = "/" + "/".join(quote(segment, safe="") for segment in segments)
        return self.send_raw(method, path, payload_of(body), fields)

    def send_raw(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Sends exactly these headers, and a Host."""
        self._connection.request(method, path, body or None, {"host": self._host, **headers})
        response = self._connection.getresponse()
        content = response.read()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, content)

    def addresses(self, container_rid: str = "", *range_ids: str, slashes: str = "//") -> Answer:
        """The addresses of ranges, or of the master, asked for and signed as the clients do."""
        if not container_rid:
            proof = self._proof("dbs", "")
            query = "$resolveFor=dbs&$filter=protocol%20eq%20rntbd"
        else:
            proof = self._proof("docs", container_rid.lower())
            link = quote(f"dbs/{_database_rid(container_rid)}/colls/{container_rid}/docs", safe="")
            ranges = ",".join(range_ids)
            query = f"$resolveFor={link}&$filter=protocol%20eq%20rntbd&$partitionKeyRangeIds={ranges}"
        return self.send_raw("GET", f"{slashes}addresses/?{query}", b"", proof)

    def _proof(self, kind: str, link: str) -> dict[str, str]:
        if isinstance(self.caller, Key):
            return self.caller.headers_for("GET", kind, link)
        return self.caller.headers("GET", [kind])


def _fields(
    caller: Caller,
    method: str,
    segments: Sequence[str],
    headers: Mapping[str, str] | None,
    key: Sequence[Any] | None,
) -> dict[str, str]:
    """The headers of a request: the proof of its caller, those that are given, and its partition key."""
    fields = {**caller.headers(method, segments), **_lower(headers)}
    return fields if key is None else {**fields, KEY: json.dumps(list(key))}


class Direct:
    """The same requests as frames. Paths of replicas are asked for over HTTPS, and kept until `forget` is called."""

    def __init__(self, server: RunningServer, caller: Caller | None = None) -> None:
        self.server = server
        self.https = Https(server)
        self.caller = caller or self.https.caller
        self.connection = FrameConnection(server.port)
        self._paths: dict[tuple[str, str, str], tuple[str, str]] = {}
        self.sends_collection_rid = True

    def close(self) -> None:
        self.https.close()
        self.connection.close()

    def forget(self) -> None:
        """Looks again at containers, ranges and addresses before the next requests."""
        self._paths.clear()

    def send(
        self,
        method: str,
        segments: Sequence[str],
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        key: Sequence[Any] | None = None,
    ) -> Answer:
        """Sends a request as a frame; `key` is the partition key."""
        fields = _fields(self.caller, method, segments, headers, key)
        frame = self.connection.ask(*self.frame(method, segments, body, fields))
        return as_rest(frame)

    def frame(
        self, method: str, segments: Sequence[str], body: Any, fields: Mapping[str, str]
    ) -> tuple[int, int, dict[int, Any], bytes]:
        """Resource type, operation type, tokens and payload of a request."""
        is_feed = len(segments) % 2 == 1
        kind = segments[-1] if is_feed else segments[-2]
        tokens: dict[int, Any] = {
            _NAMES[kind]: name.encode("utf-8", "surrogatepass")
            for kind, name in zip(segments[::2], segments[1::2], strict=False)
        }
        tokens |= _tokens(fields)
        if len(segments) > 3 and segments[2] == "colls":
            rid, path = self._replica(segments[1], segments[3], fields.get(RANGE, ""))
            tokens[0x13] = path.encode()
            if self.sends_collection_rid and rid:
                tokens[0x35] = rid.encode()
        else:
            tokens[0x13] = b"/apps/pleiad/services/nosql/partitions/master/replicas/1p"
        return _TYPES[kind], _operation(method, is_feed, kind, fields), tokens, payload_of(body)

    def _replica(self, database: str, container: str, range_id: str) -> tuple[str, str]:
        """The rid of a container, and the path of the primary of a range, the first one without an id."""
        kept = self._paths.get((database, container, range_id))
        if kept is None:
            kept = self._paths[database, container, range_id] = self._asked(database, container, range_id)
        return kept

    def _asked(self, database: str, container: str, range_id: str) -> tuple[str, str]:
        read = self.https.send("GET", ["dbs", database, "colls", container])
        if read.status != 200:
            return "", "/nowhere"
        rid = read.json["_rid"]
        ranges = self.https.send("GET", ["dbs", database, "colls", container, "pkranges"]).json
        wanted = range_id or ranges["PartitionKeyRanges"][0]["id"]
        found = self.https.addresses(rid, wanted).json["Addresss"]
        if not found:
            return rid, "/nowhere"
        (uri,) = [each["physcialUri"] for each in found if each["isPrimary"]]
        return rid, "/" + uri.split("/", 3)[3].rstrip("/")


class FrameConnection:
    """One TLS connection of frames, whose context has been negotiated."""

    def __init__(self, port: int, server_name: str = "localhost") -> None:
        plain = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        self._socket = trusting().wrap_socket(plain, server_hostname=server_name)
        self._file = self._socket.makefile("rb")
        self._number = 0
        self.activity_id = bytes(range(16))
        self.context = self._negotiate()

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def _negotiate(self) -> bytes:
        def small(token: int, text: bytes) -> bytes:
            return struct.pack("<HBB", token, 0x07, len(text)) + text

        tokens = struct.pack("<HBI", 0, 0x02, 1) + small(1, b"2020-07-15") + small(2, b"tests")
        head = struct.pack("<IHH", 24 + len(tokens), 0, 0) + self.activity_id
        self._socket.sendall(head + tokens)
        answer = self._read()
        if struct.unpack_from("<I", answer, 4)[0] != 200:
            raise ConnectionError("this is no server of direct mode")
        return answer

    def ask(self, resource: int, operation: int, tokens: Mapping[int, Any], payload: bytes) -> ResponseFrame:
        """Sends a frame and awaits its answer."""
        self.say(resource, operation, tokens, payload)
        answer = self.hear()
        assert answer.tokens[0x35] == self._number
        return answer

    def say(self, resource: int, operation: int, tokens: Mapping[int, Any], payload: bytes) -> int:
        """Sends a frame; the number that its answer will have."""
        self._number += 1
        numbered = {**tokens, 0x4D: self._number}
        self._socket.sendall(write_request(resource, operation, self.activity_id, numbered, payload))
        return self._number

    def say_all(self, frames: Sequence[tuple[int, int, Mapping[int, Any], bytes]]) -> None:
        """Sends frames at once."""
        written = b""
        for resource, operation, tokens, payload in frames:
            self._number += 1
            numbered = {**tokens, 0x4D: self._number}
            written += write_request(resource, operation, self.activity_id, numbered, payload)
        self._socket.sendall(written)

    def record(self) -> bytes:
        """What the next TLS record holds."""
        return self._socket.recv(65_536)

    def hear(self) -> ResponseFrame:
        """The next answer, with what every answer must have."""
        head = self._read()
        frame = read_response(head, b"")
        if frame.has_payload:
            (length,) = struct.unpack("<I", self._exactly(4))
            frame = read_response(head, self._exactly(length))
        check_answer(frame)
        assert frame.activity_id == self.activity_id
        return frame

    def _read(self) -> bytes:
        length = self._exactly(4)
        return length + self._exactly(struct.unpack("<I", length)[0] - 4)

    def _exactly(self, count: int) -> bytes:
        data = self._file.read(count)
        if data is None or len(data) < count:
            raise ConnectionError("the connection was closed")
        return data


def check_answer(frame: ResponseFrame) -> None:
    """What clients want of every answer, errors too, which tell nothing of the replica set."""
    tokens, is_error = frame.tokens, frame.status >= 400
    of_replica_set = {*_OF_A_QUORUM.values(), _WRITE_QUORUM, _REPLICA_SET_SIZE}
    assert of_replica_set & tokens.keys() == (set() if is_error else of_replica_set)
    lsns = {name: tokens[token] for name, token in (_LSNS if is_error else _LSNS | _OF_A_QUORUM).items()}
    assert all(lsn == lsns["LSN"] for lsn in lsns.values()), lsns
    assert float(lsns["LSN"]) >= 1
    assert is_error or (tokens[_WRITE_QUORUM], tokens[_REPLICA_SET_SIZE]) == (1, 2)
    assert tokens[0x30] == 0
    assert tokens[0x21]
    assert (0x1C in tokens) or frame.status < 400
    seen = tokens.get(0x3E, b"")
    assert isinstance(seen, bytes)
    assert b":" not in seen
    assert frame.has_payload == bool(frame.payload)


def as_rest(frame: ResponseFrame) -> Answer:
    """An answer with the headers that its tokens are."""
    headers = {}
    for token, value in frame.tokens.items():
        name = ANSWERED.get(token)
        if name is not None:
            headers[name] = value.decode() if isinstance(value, bytes) else str(value)
    headers["x-ms-request-charge"] = f"{float(frame.tokens.get(0x15, 0.0)):.2f}"
    if 0x3E in frame.tokens:
        seen = frame.tokens[0x3E]
        assert isinstance(seen, bytes)
        headers["x-ms-session-token"] = f"{headers[RANGE]}:{seen.decode()}"
    return Answer(frame.status, headers, frame.payload)


def _tokens(fields: Mapping[str, str]) -> dict[int, Any]:
    tokens: dict[int, Any] = {}
    for name, value in fields.items():
        if name in _TEXTS:
            tokens[_TEXTS[name]] = value.encode()
        elif name in _NUMBERS:
            tokens[_NUMBERS[name]] = int(value)
        elif name in _FLAGS:
            tokens[_FLAGS[name]] = 1 if value.lower() == "true" else 0
        elif name in _WORDS:
            token, words = _WORDS[name]
            tokens[token] = words.index(value) if value in words else 99
        elif name == "x-ms-max-item-count":
            tokens[0x04] = 0xFFFFFFFF if value == "-1" else int(value)
        elif name == "x-ms-cosmos-supported-serialization-formats":
            tokens[0xC4] = sum(
                {"JsonText": 1, "CosmosBinary": 2, "HybridRow": 4}[each] for each in value.split(",")
            )
        else:
            assert name in _SAID_BY_THE_OPERATION, name
    return tokens


def _operation(method: str, is_feed: bool, kind: str, fields: Mapping[str, str]) -> int:
    if method == "POST" and not is_feed:
        assert kind == "sprocs"
        return 0x08
    if method == "POST":
        if fields.get("x-ms-documentdb-isquery"):
            return 0x0F
        if fields.get("x-ms-cosmos-is-batch-request"):
            return 0x25
        return 0x13 if fields.get("x-ms-documentdb-is-upsert") else 0x01
    if method == "HEAD":
        return 0x12 if is_feed else 0x11
    if method == "GET":
        return 0x04 if is_feed else 0x03
    return {"PUT": 0x06, "PATCH": 0x02, "DELETE": 0x05}[method]


def payload_of(body: Any) -> bytes:
    if body is None:
        return b""
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def trusting() -> ssl.SSLContext:
    """TLS without a look at the certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _lower(headers: Mapping[str, str] | None) -> dict[str, str]:
    return {name.lower(): value for name, value in (headers or {}).items()}


def _database_rid(container_rid: str) -> str:
    """The rid of a container begins with that of its database."""
    return rids.encode(rids.decode(container_rid)[:4])
