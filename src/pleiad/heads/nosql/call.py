"""One request as the operations see it: the path in segments, the options in its headers, and who asks."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote_to_bytes

from pleiad import errors
from pleiad.engine.access import MASTER, Caller
from pleiad.engine.beside import LARGE_BYTES, beside
from pleiad.engine.consistency import Consistency, requested
from pleiad.engine.engine import Engine
from pleiad.engine.items import NO_CONDITIONS, Conditions
from pleiad.item.body import check_names_unique, count_members, load
from pleiad.keys.range import WHOLE, EpkRange
from pleiad.keys.value import KeyValue, parse_header
from pleiad.limits import Limits
from pleiad.partition.governor import NORMAL, Lane
from pleiad.server.message import Request

_COUNT_MAX = 2**31 - 1
"""The largest page a client may ask for; .NET asks for it where a program sets no limit."""
_COUNT_DIGITS_MAX = 10
_PRIORITY = b"x-ms-cosmos-priority-level"
_BUCKET = b"x-ms-cosmos-throughput-bucket"


class Call:
    """A routed request. Header options are read when an operation asks for them."""

    __slots__ = (
        "_key",
        "_object",
        "activity_id",
        "began_at",
        "caller",
        "charge_ru",
        "engine",
        "grown_bytes",
        "method",
        "raw_path",
        "request",
        "segments",
    )

    def __init__(
        self,
        request: Request,
        engine: Engine,
        raw_path: bytes,
        segments: list[str],
        activity_id: str,
        began_at: float,
    ) -> None:
        self.request = request
        self.raw_path = raw_path
        self.engine = engine
        self.segments = segments
        self.method = request.method
        self.activity_id = activity_id
        self.began_at = began_at
        self.caller: Caller = MASTER
        self.charge_ru = 0.0
        """What the answer says the request cost."""
        self.grown_bytes = 0
        """What is counted for it in the room for text."""
        self._object: dict[str, Any] | None = None
        self._key: tuple[KeyValue, ...] | bool | None = False

    @property
    def limits(self) -> Limits:
        return self.engine.limits

    def flag(self, name: bytes) -> bool:
        """A boolean header: clients write True and true."""
        value = self.request.headers.get(name)
        return value is not None and value.strip().lower() == b"true"

    def text(self, name: bytes) -> str:
        return self.request.header(name)

    @property
    def key(self) -> tuple[KeyValue, ...] | None:
        """The partition key in the header, or None when there is none."""
        if self._key is False:
            value = self.request.headers.get(b"x-ms-documentdb-partitionkey")
            if value is None:
                self._key = None
            else:
                try:
                    self._key = parse_header(value.decode())
                except UnicodeDecodeError:
                    raise errors.BAD_PARTITION_KEY(reason="the header is not UTF-8.") from None
        return self._key  # type: ignore[return-value]

    @property
    def conditions(self) -> Conditions:
        headers = self.request.headers
        if b"if-match" not in headers and b"if-none-match" not in headers:
            return NO_CONDITIONS
        return Conditions(self.text(b"if-match") or None, self.text(b"if-none-match") or None)

    @property
    def lane(self) -> Lane:
        """The priority and the throughput bucket a request asks for."""
        headers = self.request.headers
        if _PRIORITY not in headers and _BUCKET not in headers:
            return NORMAL
        priority, bucket = self.text(_PRIORITY) or "High", self.text(_BUCKET) or "0"
        if priority.lower() not in ("high", "low"):
            raise errors.BAD_HEADER(name=_PRIORITY.decode(), value=priority[:100], hint=" It is High or Low.")
        most = self.limits.throughput_buckets
        is_number = bucket.isascii() and bucket.isdigit() and len(bucket) < 3
        if _BUCKET in headers and not (is_number and 1 <= int(bucket) <= most):
            raise errors.BAD_HEADER(
                name=_BUCKET.decode(), value=bucket[:100], hint=f" It is a number from 1 to {most}."
            )
        if self.engine.provisioning.is_serverless:
            return NORMAL
        return Lane(low_priority=priority.lower() == "low", bucket=int(bucket))

    @property
    def is_query(self) -> bool:
        return self.flag(b"x-ms-documentdb-isquery") or self.text(b"content-type").startswith(
            "application/query+json"
        )

    @property
    def is_upsert(self) -> bool:
        return self.flag(b"x-ms-documentdb-is-upsert")

    @property
    def wants_minimal(self) -> bool:
        return self.request.headers.get(b"prefer") == b"return=minimal"

    def page_items(self) -> int:
        """How many items a page may have; -1 and absence leave it to the server."""
        value = self.text(b"x-ms-max-item-count")
        if value in ("", "-1"):
            return self.limits.page_items if not value else self.limits.page_items_max
        count = int(value) if value.isascii() and value.isdigit() and len(value) <= _COUNT_DIGITS_MAX else 0
        if not 1 <= count <= _COUNT_MAX:
            raise errors.BAD_HEADER(
                name="x-ms-max-item-count", value=value[:100], hint=" It must be -1 or at least 1."
            )
        return min(count, self.limits.page_items_max)

    def span(self) -> EpkRange | None:
        """The range of hashes in the headers, or None when the request names none."""
        low, high = self.text(b"x-ms-start-epk"), self.text(b"x-ms-end-epk")
        if not low and not high:
            return None
        return EpkRange.from_hex(low, high or WHOLE.max.hex())

    def consistency(self) -> Consistency:
        """The consistency level of a read: the account's, or the weaker one the request asks for."""
        given = self.request.headers.get(b"x-ms-consistency-level")
        account = self.engine.consistency
        return account if given is None else requested(given, account)

    def session_token(self, level: Consistency) -> str:
        """The session token a read at that level must honour; other levels than session have none."""
        if level is not Consistency.SESSION or b"x-ms-session-token" not in self.request.headers:
            return ""
        return self.text(b"x-ms-session-token")

    def json_object(self) -> dict[str, Any]:
        """The body as a JSON object, for metadata resources and queries."""
        if self._object is None:
            self._object = _json_object(self.request.body, self.limits)
        return self._object

    async def read_large_object(self) -> None:
        """Reads a large body beside the loop, so that `json_object` has it at hand."""
        if len(self.request.body) > LARGE_BYTES:
            body = self.request.body
            self._object = await beside(len(body), _json_object, body, self.limits)


def _json_object(raw: bytes, limits: Limits) -> dict[str, Any]:
    value = load(raw)
    if not isinstance(value, dict):
        raise errors.BAD_JSON(reason="the body must be a JSON object.")
    check_names_unique(raw, count_members(value, limits.item_depth))
    return value


_ITEM_PATH = re.compile(rb"/+dbs/[^/]+/colls/[^/]+/docs/[^/?]*\?")


def path_of(request: Request) -> bytes:
    """The path of a request, still percent-encoded.

    Items are asked for without a query, and clients write the question mark of an id as it is: what follows belongs
    to the id.
    """
    target = request.target
    if b"?" in target and _ITEM_PATH.match(target) is not None:
        return target
    return request.raw_path


def path_segments(raw_path: bytes) -> list[str]:
    """The decoded segments of a path; slashes before it and at its end mean nothing."""
    segments = raw_path.strip(b"/")
    if not segments:
        return []
    try:
        if b"%" not in segments:
            return segments.decode().split("/")
        return [unquote_to_bytes(segment).decode() for segment in segments.split(b"/")]
    except UnicodeDecodeError:
        raise errors.BAD_REQUEST(reason="The path is not UTF-8.") from None
