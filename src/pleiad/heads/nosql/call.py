"""One request as the operations see it: the path in segments, the options in its headers, and who asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from pleiad.engine.access import Caller, Grant, Target
from pleiad.engine.consistency import Consistency, weakened
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.items import NO_CONDITIONS, Conditions
from pleiad.engine.session import Session
from pleiad.engine.visit import Destination
from pleiad.errors import PleiadError
from pleiad.heads.http.call import HttpCall
from pleiad.heads.nosql import key_header, session_token
from pleiad.keys.range import WHOLE, EpkRange
from pleiad.keys.value import KeyValue
from pleiad.partition.governor import NORMAL, Lane
from pleiad.partition.partition import Partition
from pleiad.server.http.failures import BAD_HEADER
from pleiad.server.http.message import Response

_COUNT_MAX = 2**31 - 1
"""The largest page a client may ask for; .NET asks for it where a program sets no limit."""
_COUNT_DIGITS_MAX = 10
MINIMAL = b"return=minimal"
"""What `prefer` says where the item itself is not wanted back."""
_PRIORITY = b"x-ms-cosmos-priority-level"
_BUCKET = b"x-ms-cosmos-throughput-bucket"
_SESSION_TOKEN = b"x-ms-session-token"
_LEVEL = b"x-ms-consistency-level"
CONDITIONS = frozenset({b"if-match", b"if-none-match"})
LANES = frozenset({_PRIORITY, _BUCKET})
_STRATEGY = b"x-ms-cosmos-read-consistency-strategy"
CONSISTENCIES = frozenset({_LEVEL, _STRATEGY, _SESSION_TOKEN})
"""The headers that `Call.conditions`, `Call.lane`, and `Call.consistency` and `Call.session` look at."""
_RANGE_ID = b"x-ms-documentdb-partitionkeyrangeid"
_WORKLOAD = b"x-pleiad-workload"


class Callers(Protocol):
    """Who finds out from whom a request comes."""

    async def identify(self, call: Call, engine: Engine) -> Caller:
        """Who asks; raises when that is not proved."""

    async def target(self, call: Call, engine: Engine, grant: Grant) -> Target:
        """What the request touches, as far as the grant of its caller has to cover it."""


Pairs = Sequence[tuple[str, str]]
"""Headers by the names that REST has for them, and their values."""


class AnswerForm(Protocol):
    """How answers are written on the transport a request came by: what they tell is the same on each.

    What is written becomes the headers of a `Response`, which only that transport reads.
    """

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
        """What an answer about items tells beside its body; the etag and the LSN are those of one item, if any."""

    def of_pairs(self, pairs: Pairs) -> bytes:
        """What any other answer tells."""

    def failure(self, error: PleiadError, activity_id: str, began_at: float) -> Response:
        """The answer that tells of the failure of a request that began then."""


@dataclass(slots=True, eq=False)
class Call(HttpCall):
    """A routed request. Header options are read when an operation asks for them."""

    _callers: Callers
    form: AnswerForm

    def failed(self, error: PleiadError, activity_id: str) -> Response:
        """The answer that tells of its failure."""
        return self.form.failure(error, activity_id, self.began_at)

    async def identify(self, engine: Engine) -> Caller:
        return await self._callers.identify(self, engine)

    async def target(self, engine: Engine, grant: Grant) -> Target:
        return await self._callers.target(self, engine, grant)

    def destination(self) -> Destination:
        segments = self.resource_segments if self.operation.is_item_operation else self.segments
        if len(segments) < 2 or segments[0] != "dbs":
            return Destination()
        container = segments[3] if len(segments) > 3 and segments[2] == "colls" else ""
        return Destination(segments[1], container, self.text(_RANGE_ID).split(",")[-1])

    @property
    def resource_segments(self) -> list[str]:
        """The path of the database, container or item; the admin API has it behind its version."""
        segments = self.segments
        return segments[2:] if segments[:1] == ["_pleiad"] else segments

    @property
    def key(self) -> tuple[KeyValue, ...] | None:
        """The partition key in the header, or None when there is none."""
        return key_header.of(self.request.headers)

    def item_id(self) -> str:
        segments = self.segments
        return segments[5] if len(segments) == 6 and segments[4] == "docs" else ""

    @property
    def is_continued(self) -> bool:
        return b"x-ms-continuation" in self.request.headers

    @property
    def is_kept_out(self) -> bool:
        return self.request.headers.get(_WORKLOAD) == b"off"

    def question(self) -> str:
        text = (self._object or {}).get("query")
        return text if isinstance(text, str) else ""

    @property
    def conditions(self) -> Conditions:
        headers = self.request.headers
        if CONDITIONS.isdisjoint(headers):
            return NO_CONDITIONS
        return Conditions(self.text(b"if-match") or None, self.text(b"if-none-match") or None)

    @property
    def lane(self) -> Lane:
        """The priority and the throughput bucket a request asks for."""
        headers = self.request.headers
        if LANES.isdisjoint(headers):
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
        return self.request.headers.get(b"prefer") == MINIMAL

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
        """The consistency level of a read: the account's, or the weaker one the request asks for.

        A strategy counts before a level: a client in direct mode names both, the level being the one it reads with.
        """
        headers, account = self.request.headers, self.engine.consistency
        if (strategy := headers.get(_STRATEGY)) is not None:
            return _by_strategy(strategy, account)
        given = headers.get(_LEVEL)
        return account if given is None else _requested(given, account)

    def session(self, level: Consistency) -> Session:
        """What a read at that level must not fall behind; other levels than session have no such thing."""
        if level is not Consistency.SESSION or not self.request.headers.get(_SESSION_TOKEN):
            return ()
        if b"" < self.request.headers.get(b"x-ms-version", b"") < session_token.OBEYED_SINCE:
            return ()
        seen = session_token.read(self.text(_SESSION_TOKEN))
        return () if self.engine.is_rolled_back else seen


_LEVELS = {level.word.lower(): level for level in Consistency}


_STRATEGIES = {
    "eventual": Consistency.EVENTUAL,
    "session": Consistency.SESSION,
    "latestcommitted": Consistency.BOUNDED_STALENESS,
    "globalstrong": Consistency.STRONG,
}


@lru_cache(maxsize=64)
def _by_strategy(given: bytes, account: Consistency) -> Consistency:
    """The level that a strategy reads at: any account has it, but for one of all regions, which is an account's."""
    word = given.strip().decode("latin-1")
    if word.lower() in ("", "default"):
        return account
    level = _STRATEGIES.get(word.lower())
    if level is None:
        raise BAD_HEADER(name="x-ms-cosmos-read-consistency-strategy", value=word[:100], hint="")
    return weakened(account, level) if level is Consistency.STRONG else level


@lru_cache(maxsize=64)
def _requested(given: bytes, account: Consistency) -> Consistency:
    """The level that a header asks for."""
    word = given.strip().decode("latin-1")
    level = _LEVELS.get(word.lower())
    if level is None:
        raise BAD_HEADER(name="x-ms-consistency-level", value=word[:100], hint="")
    return weakened(account, level)
