"""What is wrong with a store at this moment: told to the log once, and to whoever asks while it lasts."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

_log = logging.getLogger("pleiad.warning")

OUT_OF_SERVICE = "segment-out-of-service"
SET_ASIDE = "segments-set-aside"
DATA_MISSING = "data-missing"
DISK = "disk-refuses-writes"
UNREACHABLE = "store-unreachable"
SETTINGS_DIFFER = "settings-differ"
SUMMARY_SECONDS = 60.0


class MissingDataError(Exception):
    """The data is not whole, with a sentence that tells the operator what is missing and what to do."""


class SettingsDifferError(Exception):
    """Another server on the same data has other settings, with a sentence for the operator."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, with a sentence for the operator."""

    kind: str
    subject: str
    """What it is about, such as a segment; one problem of a kind for each subject."""
    message: str
    since: float


class Problems:
    """The problems of one store that last."""

    def __init__(self) -> None:
        self._standing: dict[tuple[str, str], Problem] = {}
        self._outages: dict[str, Outage] = {}

    def report(self, kind: str, subject: str, message: str) -> None:
        """Notes a problem; the log hears of it when it is new."""
        if (kind, subject) not in self._standing:
            self._standing[kind, subject] = Problem(kind, subject, message, time.time())
            _log.warning("%s: %s", kind, message)

    def withdraw(self, kind: str, subject: str, message: str) -> None:
        """Notes that a problem is over; so does the log."""
        if self._standing.pop((kind, subject), None) is not None:
            _log.warning("%s is over: %s", kind, message)

    def outage(self, kind: str) -> Outage:
        """The outage of a kind: one for all who meet it."""
        return self._outages.setdefault(kind, Outage(self, kind, ""))

    def has(self, kind: str) -> bool:
        """Whether a problem of a kind lasts."""
        return any(each == kind for each, _ in self._standing)

    @property
    def is_troubled(self) -> bool:
        """Whether the store is in a trouble that was told already and that all work on it meets anew."""
        return self.has(UNREACHABLE) or self.has(DISK)

    def standing(self) -> list[Problem]:
        """All problems that last, the oldest first."""
        return sorted(self._standing.values(), key=lambda problem: problem.since)


class JoinedProblems(Problems):
    """The problems of two stores that one engine stands on."""

    def __init__(self, *parts: Problems) -> None:
        super().__init__()
        self._parts = parts

    def has(self, kind: str) -> bool:
        return super().has(kind) or any(part.has(kind) for part in self._parts)

    def standing(self) -> list[Problem]:
        found = [*super().standing(), *(problem for part in self._parts for problem in part.standing())]
        return sorted(found, key=lambda problem: problem.since)


class Outage:
    """A problem that every request would meet anew: one line at its beginning, one a minute, one at its end."""

    def __init__(
        self,
        problems: Problems,
        kind: str,
        subject: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._problems = problems
        self._kind = kind
        self._subject = subject
        self._clock = clock
        self._began = self._told = 0.0
        self._failures = 0
        self.is_on = False

    def failed(self, reason: str) -> None:
        """Counts one failure."""
        now = self._clock()
        self._failures += 1
        if not self.is_on:
            self.is_on = True
            self._began = self._told = now
            self._failures = 1
            self._problems.report(self._kind, self._subject, reason)
        elif now - self._told >= SUMMARY_SECONDS:
            self._told = now
            _log.warning(
                "%s goes on: %d failures in %.0f seconds, the last one: %s",
                self._kind,
                self._failures,
                now - self._began,
                reason,
            )

    def recovered(self) -> None:
        """Notes that it works again; costs nothing to say when it always did."""
        if self.is_on:
            self.is_on = False
            seconds = self._clock() - self._began
            self._problems.withdraw(
                self._kind, self._subject, f"{self._failures} failures in {seconds:.1f} seconds"
            )
