"""Which of the requirements R1-R170 are shown by a passing test, documentation only, or open.

Runs the test suite, or with ``--from-last`` reuses the record of the last full run, and compares it with
``docs/requirements.toml``. The exit status is 1 when a test claims an id that does not exist, when a
documentation entry points at a missing page or heading, or when the test run itself fails.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "build" / "requirements.json"
_KINDS = ("behaviour", "documentation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One entry of docs/requirements.toml; page and heading are set for documentation entries only."""

    id: str
    text: str
    kind: str
    page: str = ""
    heading: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The tests of the last run that claim one id."""

    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def load_requirements(root: Path = ROOT) -> dict[str, Requirement]:
    """All requirements in the order of their numbers."""
    entries = tomllib.loads((root / "docs" / "requirements.toml").read_text(encoding="utf-8"))
    requirements = {name: Requirement(id=name, **entry) for name, entry in entries.items()}
    for requirement in requirements.values():
        if requirement.kind not in _KINDS:
            raise ValueError(f"{requirement.id}: kind must be one of {', '.join(_KINDS)}")
    return dict(sorted(requirements.items(), key=lambda pair: int(pair[0][1:])))


def headings(markdown: str) -> set[str]:
    """The headings of a Markdown text; lines inside fenced code are not headings."""
    found: set[str] = set()
    fenced = False
    for line in markdown.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and (match := re.match(r"#{1,6}\s+(.*\S)\s*$", line)):
            found.add(match.group(1))
    return found


def missing_documentation(requirements: dict[str, Requirement], root: Path = ROOT) -> list[str]:
    """A sentence for each documentation entry whose page or heading is not there."""
    problems = []
    for requirement in requirements.values():
        if requirement.kind != "documentation":
            continue
        page = root / requirement.page
        if not requirement.page or not page.is_file():
            problems.append(f"{requirement.id}: there is no page '{requirement.page}'")
        elif requirement.heading not in headings(page.read_text(encoding="utf-8")):
            problems.append(f"{requirement.id}: {requirement.page} has no heading '{requirement.heading}'")
    return problems


def load_record(path: Path = RECORD) -> dict[str, Claims]:
    """The record of the last full test run."""
    record = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: Claims(passed=_functions(lists["passed"]), failed=_functions(lists["failed"]))
        for name, lists in record.items()
    }


def _functions(tests: list[str]) -> tuple[str, ...]:
    # The cases of one parametrised test are one line of the list.
    return tuple(sorted({test.split("[", 1)[0] for test in tests}))


def unknown_claims(requirements: dict[str, Requirement], claims: dict[str, Claims]) -> list[str]:
    """A sentence for each id that a test claims and that does not exist."""
    return [
        f"{name}: a test claims it, but there is no such requirement"
        for name in sorted(claims.keys() - requirements)
    ]


def render(requirements: dict[str, Requirement], claims: dict[str, Claims]) -> str:
    """The three lists and their counts."""
    shown, documented, open_ = [], [], []
    for requirement in requirements.values():
        line = f"  {requirement.id:5} {requirement.text}"
        claim = claims.get(requirement.id, Claims())
        if claim.passed and not claim.failed:
            shown.append(line)
            shown.extend(f"          {test}" for test in claim.passed)
        elif requirement.kind == "documentation":
            documented.append(f"{line}\n          {requirement.page}: {requirement.heading}")
        else:
            failing = f"  (failing: {', '.join(claim.failed)})" if claim.failed else ""
            open_.append(line + failing)
    total_count = len(requirements)
    shown_count = total_count - len(documented) - len(open_)
    summary = (
        f"{shown_count} shown, {len(documented)} documentation only, {len(open_)} open, {total_count} in all"
    )
    return "\n".join(
        [
            f"Shown by a passing test: {shown_count}",
            *shown,
            f"\nDocumentation only: {len(documented)}",
            *documented,
            f"\nOpen: {len(open_)}",
            *open_,
            f"\n{summary}",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--from-last", action="store_true", help="reuse the record of the last full test run")
    problems = []
    if not parser.parse_args().from_last:
        RECORD.unlink(missing_ok=True)
        if subprocess.run([sys.executable, "-m", "pytest"], cwd=ROOT, check=False).returncode != 0:
            problems.append("the test run failed; only what passed is counted")
    if not RECORD.is_file():
        print("there is no record of a full test run; run `make test` first", file=sys.stderr)
        return 1
    requirements, claims = load_requirements(), load_record()
    print(render(requirements, claims))
    problems += unknown_claims(requirements, claims) + missing_documentation(requirements)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
