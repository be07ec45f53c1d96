"""Why a test of the official suite fails: reasons.toml, read and matched against test ids.

Each entry names tests by shell-style patterns over `file.py::Class::test[parameters]`, optionally narrowed
by a text the error must contain. The first entry that matches wins. A failure without an entry has no
reason, and the report says so. An entry under `left_out` names its tests one by one, without patterns: they were
seen to fail for want of what the entry names, and are not run.
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.results import Outcome, TestResult

REASONS_FILE = Path(__file__).resolve().parent / "reasons.toml"


class ReasonsInvalidError(Exception):
    """The table of reasons cannot be used; the text names the entry."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of reasons."""

    name: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Reason:
    """One entry: which failures it explains, and how."""

    tests: tuple[str, ...]
    kind: Kind
    text: str
    error: str

    def names(self, test_id: str) -> bool:
        """Say whether a pattern of this entry matches the id, brackets taken literally."""
        return any(_glob(pattern, test_id) for pattern in self.tests)

    def explains(self, result: TestResult) -> bool:
        """Say whether this entry explains the failed test."""
        return self.names(result.id) and self.error in result.message


@dataclass(frozen=True, slots=True)
class Reasons:
    """The whole table."""

    kinds: tuple[Kind, ...]
    entries: tuple[Reason, ...]
    omissions: tuple[Reason, ...] = ()

    def left_out(self, test_id: str) -> Reason | None:
        """Return why a test is not run at all, or None."""
        return next((entry for entry in self.omissions if test_id in entry.tests), None)

    def of(self, result: TestResult) -> Reason | None:
        """Return the reason of a failed test, or None."""
        return next((entry for entry in self.entries if entry.explains(result)), None)

    def outlived(self, results: Iterable[TestResult]) -> list[Reason]:
        """Return the entries whose tests were run and none of them failed: they can be deleted."""
        ran = [result for result in results if result.outcome in (Outcome.PASSED, Outcome.FAILED)]
        found = []
        for entry in self.entries:
            named = [result for result in ran if entry.names(result.id)]
            if named and all(result.outcome is Outcome.PASSED for result in named):
                found.append(entry)
        return found


def load(path: Path = REASONS_FILE) -> Reasons:
    """Read and check the table."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ReasonsInvalidError(f"{path.name}: {error}") from error
    kinds = {name: Kind(name, str(row.get("meaning", ""))) for name, row in table.get("kinds", {}).items()}
    entries = tuple(_entry(row, kinds) for row in table.get("known", []))
    omissions = tuple(_entry(row, kinds) for row in table.get("left_out", []))
    for name in (name for entry in omissions for name in entry.tests if "*" in name):
        raise ReasonsInvalidError(f"a test is left out by its own name, not by the pattern {name!r}")
    return Reasons(tuple(kinds.values()), entries, omissions)


def _entry(row: dict[str, Any], kinds: dict[str, Kind]) -> Reason:
    tests = row.get("tests", [])
    kind = kinds.get(row.get("kind", ""))
    if not isinstance(tests, list) or not tests or not row.get("reason"):
        raise ReasonsInvalidError(f"an entry needs a list of tests and a reason: {row}")
    if kind is None:
        raise ReasonsInvalidError(f"unknown kind {row.get('kind')!r} for {tests}")
    return Reason(tuple(map(str, tests)), kind, str(row["reason"]), str(row.get("error", "")))


def _glob(pattern: str, text: str) -> bool:
    """Match with `*` only: test ids hold brackets, which must not become character classes."""
    pieces = pattern.split("*")
    if len(pieces) == 1:
        return pattern == text
    if not text.startswith(pieces[0]):
        return False
    position = len(pieces[0])
    for piece in pieces[1:-1]:
        found = text.find(piece, position)
        if found < 0:
            return False
        position = found + len(piece)
    return text.endswith(pieces[-1]) and len(text) - len(pieces[-1]) >= position
