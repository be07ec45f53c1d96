"""Faults on demand: requests that fail, are late or lose their connection because a test asked for it, and changes
of physical partitions that wait.

A rule says what shall happen, to which requests, and how often: the next so many, a share of them, or both. Draws of
a share come from the rule's own seed, so a test that sends the same requests meets the same faults. Rules end by
themselves when their count is used up or their time is over. Without rules a head only looks at an empty list.

A hold is a rule about splits, merges and rehomes instead of requests: they wait at a phase for as long as it lasts.

Invariant: a request meets at most one rule, the oldest that fits; a rule that fits but is not drawn lets it through.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from random import Random

from pleiad import errors
from pleiad.engine.phase import Phase
from pleiad.engine.shared_counts import SharedCounts
from pleiad.errors import ErrorRow, PleiadError

RULES_MAX = 100
SECONDS_DEFAULT = 600
SECONDS_MAX = 86_400.0
DELAY_MS_MAX = 60_000
_NUMBERS = "rules"


class Effect(Enum):
    """What happens: an answer from the error table before anything is done, or something else."""

    TOO_MANY_REQUESTS = ("429", errors.FAULT_TOO_MANY_REQUESTS)
    RETRY_WITH = ("449", errors.FAULT_RETRY_WITH)
    TIMEOUT = ("408", errors.FAULT_TIMEOUT)
    RANGE_GONE = ("410/1002", errors.FAULT_RANGE_GONE)
    SPLITTING = ("410/1007", errors.FAULT_SPLITTING)
    INTERNAL = ("500", errors.FAULT_INTERNAL)
    UNAVAILABLE = ("503", errors.FAULT_UNAVAILABLE)
    LATE = ("late", None)
    """The request is done, after the delay."""
    CUT_BEFORE = ("cut-before", None)
    """The connection is closed; nothing was done."""
    CUT_AFTER = ("cut-after", None)
    """The request is done and its connection closed without an answer."""
    HOLD = ("hold", None)
    """No request is met; splits, merges and rehomes wait at a phase."""

    def __init__(self, word: str, row: ErrorRow | None) -> None:
        self.word = word
        self.row = row


BY_WORD = {effect.word: effect for effect in Effect}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A request as rules see it. Which partitions it goes to is found out only when a rule asks."""

    operation: str
    is_item_operation: bool
    database: str
    container: str
    is_on: Callable[[str], bool]


ANY_OPERATION = "any"
OPERATIONS = (
    "read", "create", "upsert", "replace", "patch", "delete", "delete_partition_key", "feed", "changes", "query",
    "query_plan", "explain", "paths", "keys", "batch", "script", "barrier", "metadata_read", "metadata_write",
    ANY_OPERATION,
)  # fmt: skip
"""What a rule may be about."""


@dataclass(slots=True, kw_only=True, eq=False)
class Rule:
    """One fault: its effect, the requests it is for, and how often it happens."""

    id: str
    effect: Effect
    count: int | None = None
    share: float = 1.0
    seed: int = 0
    database: str | None = None
    container: str | None = None
    partition: str | None = None
    operation: str | None = None
    """None is every operation on items; `any` is metadata too."""
    delay_ms: int = 0
    retry_after_ms: int | None = None
    phase: Phase | None = None
    """Where a hold makes changes wait."""
    expires_at: float
    set_at: float = field(default_factory=time.time)
    hits: int = 0
    _random: Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)

    def is_over(self, now: float) -> bool:
        return now >= self.expires_at or (self.count is not None and self.hits >= self.count)

    def fits(self, target: Target) -> bool:
        """Whether the rule is about such a request; scopes that it does not name fit all."""
        if self.effect is Effect.HOLD:
            return False
        if self.operation is None:
            if not target.is_item_operation:
                return False
        elif self.operation not in (ANY_OPERATION, target.operation):
            return False
        if self.database is not None and self.database != target.database:
            return False
        if self.container is not None and self.container != target.container:
            return False
        return self.partition is None or target.is_on(self.partition)

    def holds(self, phase: Phase, database: str, container: str) -> bool:
        """Whether the rule makes a change of that container wait at the phase."""
        return (
            self.phase is phase and self.database in (None, database) and self.container in (None, container)
        )

    def is_drawn(self) -> bool:
        """Whether this request is one of the share; every request that fits is one draw."""
        return self.share >= 1.0 or self._random.random() < self.share

    def error(self) -> PleiadError | None:
        """The answer of an effect that is an answer; it tells who is to blame."""
        row = self.effect.row
        return None if row is None else row(retry_after_ms=self.retry_after_ms, id=self.id)


class Faults:
    """The rules in force."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        """Empty nearly always, which is all that a request looks at."""
        self._finished: deque[Rule] = deque(maxlen=RULES_MAX)
        self._numbers = itertools.count(1)
        self._counts: SharedCounts | None = None

    def share(self, counts: SharedCounts) -> None:
        """Has numbers and hits counted for all worker processes of a server, which all have the same rules."""
        self._counts = counts

    def next_id(self) -> str:
        return str(next(self._numbers) if self._counts is None else self._counts.up(_NUMBERS))

    def add(self, rule: Rule) -> None:
        self.live()
        if len(self.rules) >= RULES_MAX:
            raise errors.BAD_REQUEST(reason=f"There are {RULES_MAX} faults already; delete some first.")
        self.rules.append(rule)

    def live(self) -> list[Rule]:
        """The rules that are not over."""
        now = time.time()
        if self._counts is not None:
            for rule in self.rules:
                rule.hits = self._counts.value(rule.id)
        self._finish([rule for rule in self.rules if rule.is_over(now)])
        return self.rules

    def find(self, id: str) -> Rule | None:
        """The rule of that id, in force or over not long ago, so that a test can ask how often it was met."""
        return next((rule for rule in [*self.live(), *self._finished] if rule.id == id), None)

    def hits_of(self, id: str) -> int:
        """How often the rule of that id was met, by all worker processes together."""
        if self._counts is not None:
            return self._counts.value(id)
        rule = self.find(id)
        return 0 if rule is None else rule.hits

    def remove(self, id: str) -> bool:
        """Ends the rule of that id; whether it was in force."""
        found = [rule for rule in self.live() if rule.id == id]
        self._finish(found)
        return bool(found)

    def clear(self) -> int:
        """Ends all rules; how many there were."""
        ended = list(self.live())
        self._finish(ended)
        return len(ended)

    def _finish(self, ended: list[Rule]) -> None:
        if ended:
            self.rules = [rule for rule in self.rules if rule not in ended]
            self._finished.extend(ended)

    def holds(self, phase: Phase, database: str, container: str) -> list[Rule]:
        """The rules that make a change of a container wait at a phase."""
        return [rule for rule in self.live() if rule.holds(phase, database, container)]

    def take(self, target: Target) -> Rule | None:
        """The rule this request meets, counted as a hit, or None when it goes through."""
        for rule in self.live():
            if rule.fits(target):
                if not rule.is_drawn():
                    return None
                if self._is_counted(rule):
                    return rule
        return None

    def _is_counted(self, rule: Rule) -> bool:
        """Counts a hit; False where another worker process has just had the last one."""
        if self._counts is None:
            rule.hits += 1
            return True
        hits = self._counts.up(rule.id, rule.count)
        rule.hits = rule.hits if hits is None else hits
        return hits is not None
