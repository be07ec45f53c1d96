"""One request as the operations see it: the path in segments, the options in its headers, and who asks."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol
from urllib.parse import unquote_to_bytes

from pleiad import errors
from pleiad.engine.access import Caller, Grant, Target
from pleiad.engine.consistency import Consistency, weakened
from pleiad.engine.desk import Destination
from pleiad.engine.engine import Engine
from pleiad.engine.items import NO_CONDITIONS, Conditions
from pleiad.engine.session import Session
from pleiad.heads.http.call import HttpCall
from pleiad.heads.nosql import key_header, session_token
from pleiad.keys.range import WHOLE, EpkRange
from pleiad.keys.value import KeyValue
from pleiad.limits import Limits
from pleiad.partition.governor import NORMAL, Lane
from pleiad.server.http.failures import BAD_HEADER
from pleiad.server.http.message import Request

_COUNT_MAX = 2**31 - 1
"""The largest page a client may ask for; .NET asks for it where a program sets no limit."""
_COUNT_DIGITS_MAX = 10
_PRIORITY = b"x-ms-cosmos-priority-level"
_BUCKET = b"x-ms-cosmos-throughput-bucket"
_SESSION_TOKEN = b"x-ms-session-token"
_RANGE_ID = b"x-ms-documentdb-partitionkeyrangeid"


class Callers(Protocol):
    """Who finds out from whom a request comes."""

    async def identify(self, call: Call, engine: Engine) -> Caller:
        """Who asks; raises when that is not proved."""

    async def target(self, call: Call, engine: Engine, grant: Grant) -> Target:
        """What the request touches, as far as the grant of its caller has to cover it."""


class Call(HttpCall):
    """A routed request. Header options are read when an operation asks for them."""

    __slots__ = ("_callers", "_key")

    def __init__(
        self,
        request: Request,
        raw_path: bytes,
        segments: list[str],
        activity_id: str,
        began_at: float,
        limits: Limits,
        callers: Callers,
    ) -> None:
        super().__init__(activity_id, began_at)
        self.request = request
        self.raw_path = raw_path
        self.segments = segments
        self.method = request.method
        self.limits = limits
        self._object = None
        self._callers = callers
        self._key: tuple[KeyValue, ...] | bool | None = False

    async def identify(self, engine: Engine) -> Caller:
        return await self._callers.identify(self, engine)

    async def target(self, engine: Engine, grant: Grant) -> Target:
        return await self._callers.target(self, engine, grant)

    def destination(self) -> Destination:
        segments = self.segments
        if len(segments) < 2 or segments[0] != "dbs":
            return Destination()
        container = segments[3] if len(segments) > 3 and segments[2] == "colls" else ""
        return Destination(segments[1], container, self.text(_RANGE_ID).split(",")[-1])

    @property
    def key(self) -> tuple[KeyValue, ...] | None:
        """The partition key in the header, or None when there is none."""
        if self._key is False:
            value = self.request.headers.get(b"x-ms-documentdb-partitionkey")
            if value is None:
                self._key = None
            else:
                try:
                    self._key = key_header.read(value.decode())
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
            raise BAD_HEADER(name=_PRIORITY.decode(), value=priority[:100], hint=" It is High or Low.")
        most = self.limits.throughput_buckets
        is_number = bucket.isascii() and bucket.isdigit() and len(bucket) < 3
        if _BUCKET in headers and not (is_number and 1 <= int(bucket) <= most):
            raise BAD_HEADER(
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
            raise BAD_HEADER(
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
        return account if given is None else _requested(given, account)

    def session(self, level: Consistency) -> Session:
        """What a read at that level must not fall behind; other levels than session have no such thing."""
        if level is not Consistency.SESSION or not self.request.headers.get(_SESSION_TOKEN):
            return ()
        return session_token.read(self.text(_SESSION_TOKEN))


_LEVELS = {level.word.lower(): level for level in Consistency}


@lru_cache(maxsize=64)
def _requested(given: bytes, account: Consistency) -> Consistency:
    """The level that a header asks for."""
    word = given.strip().decode("latin-1")
    level = _LEVELS.get(word.lower())
    if level is None:
        raise BAD_HEADER(name="x-ms-consistency-level", value=word[:100], hint="")
    return weakened(account, level)


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
