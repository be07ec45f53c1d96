"""What a run of the official suite left behind: one result per test, read from the recorder's file."""

import enum
import json
from dataclasses import dataclass
from pathlib import Path


class Outcome(enum.Enum):
    """How a test ended. An expected failure is counted as skipped; one that is left out by its name was not run."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test of the suite."""

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
    """All tests that were selected."""

    tests: tuple[TestResult, ...]


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts over some tests."""

    passed: int
    failed: int
    skipped: int
    left_out: int

    @property
    def share_of_run(self) -> float | None:
        """Passed among those that passed or failed."""
        return _share(self.passed, self.passed + self.failed)

    @property
    def share_of_all(self) -> float | None:
        """The same with those that were left out counted as failed."""
        return _share(self.passed, self.passed + self.failed + self.left_out)


def read(path: Path) -> RunResults:
    """Read the recorder's lines; a last line cut short by a killed run is dropped."""
    tests: dict[str, TestResult] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        tests[record["id"]] = TestResult(
            id=record["id"],
            groups=tuple(record["groups"]),
            outcome=Outcome(record["outcome"]),
            message=record["message"],
            duration_s=float(record["duration_s"]),
        )
    return RunResults(tuple(tests.values()))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
