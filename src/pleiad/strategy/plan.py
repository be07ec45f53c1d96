"""Plans: what is to be asked of a container, one step after the other, without asking it.

A plan is a generator. It yields a step, is told its outcome, and returns its result; a failure of the client is
raised in it where the step was. `run` and `run_async` carry plans out through the official client, so that everything
that is decided here is decided once for both. A plan of one's own goes on with `yield from`.
"""

from __future__ import annotations

import enum
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

T = TypeVar("T")

Item: TypeAlias = dict[str, Any]
KeyValue: TypeAlias = str | int | float | bool
"""The partition key value of a container with one path."""

CONCURRENCY_MAX = 8
"""How many calls run at once unless told otherwise: within the connections that the client keeps open."""


@dataclass(frozen=True, slots=True)
class Read:
    """A point read, not older than what a session token stands for."""

    id: str
    key: KeyValue
    session_token: str | None = None


@dataclass(frozen=True, slots=True)
class Create:
    """A new item, in the partition that its own key names."""

    item: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Replace:
    """An item in place of the version with this ETag; without one, of any version."""

    item: Mapping[str, Any]
    etag: str | None


@dataclass(frozen=True, slots=True)
class Delete:
    """An item gone, if it is still the version with this ETag; without one, whichever it is."""

    id: str
    key: KeyValue
    etag: str | None


@dataclass(frozen=True, slots=True)
class Query:
    """The results of a query in one logical partition, or without a key in all of them; the first so many of them."""

    text: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    key: KeyValue | None = None
    items_max: int | None = None


Call: TypeAlias = Read | Create | Replace | Delete | Query


@dataclass(frozen=True, slots=True)
class Together:
    """Calls that may run side by side, so many at once.

    With `until_found` none begins after one of them has found something; the outcome of a call that did not begin is
    None.
    """

    calls: Sequence[Call]
    concurrency_max: int = CONCURRENCY_MAX
    until_found: bool = False

    def __post_init__(self) -> None:
        if self.concurrency_max < 1:
            raise ValueError(f"concurrency_max is {self.concurrency_max}: at least one call runs at a time")


@dataclass(frozen=True, slots=True)
class Pause:
    """A while in which others may come to an end."""

    seconds: float


Step: TypeAlias = Call | Together | Pause


class Refusal(enum.Enum):
    """What a call may be told that a plan goes on from; everything else is a failure."""

    ABSENT = "there is no such item"
    EXISTS = "there is such an item already, or one with the same unique key"
    CHANGED = "the item is another version by now"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one call."""

    refusal: Refusal | None = None
    items: tuple[Any, ...] = ()
    """What was found or written; nothing after a delete."""
    charge_ru: float = 0.0
    requests: int = 1
    session_token: str | None = None

    @property
    def item(self) -> Item | None:
        """The one item of a read or a write; None after a refusal."""
        return self.items[0] if self.items else None


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """The result of a plan, and what it cost."""

    value: T
    charge_ru: float
    requests: int
    """How many answers of the server it took; those that the client asked for again by itself are not known."""


Plan: TypeAlias = Generator[Step, Any, T]


def call(step: Call) -> Plan[Outcome]:
    """One call as a plan, typed."""
    outcome: Outcome = yield step
    return outcome


def together(step: Together) -> Plan[tuple[Outcome | None, ...]]:
    """Calls side by side as a plan, typed; their outcomes in the order of the calls."""
    outcomes: tuple[Outcome | None, ...] = yield step
    return outcomes
