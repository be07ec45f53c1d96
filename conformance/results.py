"""What a run of the official suite left behind: one result per test, read from the recorder's file."""

import enum
import json
from dataclasses import dataclass, field
from pathlib import Path


class Outcome(enum.Enum):
    """How a test ended. An expected failure is counted as skipped."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test that was run."""

    __test__ = False  # the name begins with Test, but pytest shall not collect it

    id: str
    groups: tuple[str, ...]
    outcome: Outcome
    message: str
    duration_s: float

    @property
    def file(self) -> str:
        """The file of the suite the test is in."""
        return self.id.split("::", 1)[0]


@dataclass(frozen=True, slots=True)
class RunResults:
    """All tests that were run, and how many were left out for each out-of-scope marker."""

    tests: tuple[TestResult, ...]
    out_of_scope: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts over some tests."""

    passed: int
    failed: int
    skipped: int
    failed_not_yet: int = 0

    @property
    def share_of_all(self) -> float | None:
        """Passed among those that passed or failed."""
        return _share(self.passed, self.passed + self.failed)

    @property
    def share_of_supported(self) -> float | None:
        """The same without the failures that only wait for what the server is still to learn."""
        return _share(self.passed, self.passed + self.failed - self.failed_not_yet)


def read(path: Path) -> RunResults:
    """Read the recorder's lines; a last line cut short by a killed run is dropped."""
    tests: dict[str, TestResult] = {}
    out_of_scope: dict[str, int] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record["event"] == "collected":
            out_of_scope = dict(record["out_of_scope"])
            continue
        tests[record["id"]] = TestResult(
            id=record["id"],
            groups=tuple(record["groups"]),
            outcome=Outcome(record["outcome"]),
            message=record["message"],
            duration_s=float(record["duration_s"]),
        )
    return RunResults(tuple(tests.values()), out_of_scope)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
