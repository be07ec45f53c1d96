"""Who looks over the desk's shoulder: told of every request once it is answered.

An observer is there only while somebody wants to see something; without one a request pays one look at an empty tuple.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Protocol

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An answered request: nothing of who asked, and no key of the account."""

    operation: str
    activity_id: str = ""
    database: str = ""
    container: str = ""
    key: str = ""
    """The partition key as JSON, where the request has one."""
    partitions: tuple[str, ...] = ()
    """The physical partitions that it went to, by range id."""
    status: int
    charge_ru: float = 0.0
    seconds: float
    query: str = ""
    """The text of a query, without its parameters."""

    @property
    def path(self) -> str:
        """The database and the container, as far as the request is about them."""
        return f"{self.database}/{self.container}" if self.container else self.database


class Observer(Protocol):
    """Somebody who is told of requests."""

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to be told."""

    def saw(self, seen: Seen) -> None:
        """Takes note; it must be quick, since the answer waits for it."""


class Observers:
    """Those who are told now."""

    def __init__(self) -> None:
        self.all: tuple[Observer, ...] = ()

    def add(self, observer: Observer) -> None:
        """Has an observer told until it is over."""
        if observer not in self.all:
            self.all += (observer,)

    def tell(self, seen: Seen) -> None:
        """Has all of them take note; one that fails is no failure of the request."""
        if any(observer.is_over for observer in self.all):
            self.all = tuple(observer for observer in self.all if not observer.is_over)
        for observer in self.all:
            try:
                observer.saw(seen)
            except Exception:
                _log.exception("an observer failed at activity %s", seen.activity_id)
