"""At the start: comparing the files of segments with what the catalog knows, before anything is served.

Nothing is removed because something is missing. What was noted as to be dropped goes; what nobody knows is set aside;
and a server that lacks something it had, or whose catalog is older than its items, does not start unless the operator
accepts the loss. All refusals come before the first change.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from pleiad.store.problems import DATA_MISSING, SET_ASIDE, MissingDataError
from pleiad.store.sqlite import directory as files
from pleiad.store.sqlite import schema
from pleiad.store.sqlite.registry import Registry

ALLOW = "--allow-missing-data"
_LOOKED_INTO_MAX = 20
"""The newest change of the catalog is in the segment that was written last; so many files are looked into for it."""


def check_catalog_file(directory: Path, allow_missing: bool) -> None:
    """Refuses a directory whose items have lost the file that tells what they are."""
    if files.read_header(directory / files.CATALOG_FILE) is not None:
        return
    found = files.segment_names(directory / "segments")
    if found and not allow_missing:
        raise MissingDataError(
            f"{directory} holds {_segments(len(found))} and no catalog: put {files.CATALOG_FILE} of the backup that "
            f"belongs to them back, or give {ALLOW} to start with nothing and have them set aside"
        )


def _segments(count: int) -> str:
    return f"{count} segment{'s' if count > 1 else ''} with items"


@dataclass(slots=True)
class Findings:
    """What the files are, seen from the catalog."""

    unknown: set[str]
    """There is a file, and no container has it."""
    missing: set[str]
    """A container has it and it held something, and there is no file or an empty one."""
    foreign: set[str]
    """The file is that of another segment."""
    broken: dict[str, str]
    """What is wrong with the file of a segment, by its name."""
    generation: int
    """The newest change of the catalog that a segment knows of."""


def look(directory: Path, registry: Registry, named: set[str]) -> Findings:
    """Compares without a change."""
    segments = directory / "segments"
    found = files.segment_names(segments)
    missing, foreign, broken = set(), set(), {}
    for name in sorted(named):
        path = segments / f"{name}.sqlite"
        header = files.read_header(path)
        if header is None:
            if registry.is_made(name) or Path(f"{path}-wal").exists():
                missing.add(name)
            continue
        if header.is_database:
            schema.check_version(path, header.version)
        if registry.is_stamped(name) and header.stamp != schema.stamp_of(registry.account, name):
            foreign.add(name)
        elif (fault := fault_of(header)) is not None:
            broken[name] = fault
    unknown = found - named - registry.dropping()
    newest = sorted(found - set(broken), key=lambda name: -_written_at(segments, name))[:_LOOKED_INTO_MAX]
    known_to = [_generation(segments / f"{name}.sqlite", registry.account) for name in newest]
    return Findings(unknown, missing, foreign, broken, max(known_to, default=0))


def fault_of(header: files.Header) -> str | None:
    """What the header of a file tells of damage."""
    if not header.is_database:
        return "the file is not a database"
    if header.bytes_found < header.bytes_expected:
        return f"the file has {header.bytes_found:,} of {header.bytes_expected:,} bytes"
    return None


def _written_at(segments: Path, name: str) -> float:
    times = [0.0]
    for suffix in ("", "-wal"):
        with contextlib.suppress(OSError):
            times.append((segments / f"{name}.sqlite{suffix}").stat().st_mtime)
    return max(times)


def _generation(path: Path, account: str) -> int:
    """The newest change of this account's catalog that a segment knows of; 0 when it knows none."""
    try:
        with contextlib.closing(schema.connect_reader(path)) as reader:
            rows: Any = reader.execute(
                "SELECT generation FROM identity WHERE account = ?1", (account,)
            ).fetchall()
    except apsw.Error:
        return 0
    return int(rows[0][0]) if rows else 0


def check(directory: Path, findings: Findings, registry: Registry, has_records: bool) -> None:
    """Raises MissingDataError when something is lost."""
    segments = directory / "segments"
    if findings.unknown and not has_records:
        raise MissingDataError(
            f"{directory} holds {_segments(len(findings.unknown))} and a catalog without an account: put "
            f"{files.CATALOG_FILE} of the backup that belongs to them back, or give {ALLOW} to start with nothing "
            "and have them set aside"
        )
    if findings.missing:
        raise MissingDataError(
            f"{_listed(segments, findings.missing)} held items and {_are(findings.missing)} gone or empty: put the "
            f"files of a backup back, or give {ALLOW} to start without these items"
        )
    if findings.foreign:
        raise MissingDataError(
            f"{_listed(segments, findings.foreign)} {_are(findings.foreign)} not the file that was there but that of "
            f"another segment: put the right ones back, or give {ALLOW} to set them aside and start without"
        )
    if findings.generation > registry.generation:
        raise MissingDataError(
            f"{directory / files.CATALOG_FILE} is older than the items beside it (it has seen {registry.generation:,} "
            f"changes, they have seen {findings.generation:,}): put the newer one back, or give {ALLOW} to go on "
            "with it and have set aside what it does not know"
        )


def _listed(segments: Path, names: set[str]) -> str:
    first, *others = [str(segments / f"{name}.sqlite") for name in sorted(names)]
    return f"{first} and {len(others)} more" if others else first


def _are(names: set[str]) -> str:
    return "are" if len(names) > 1 else "is"


def settle(
    directory: Path,
    findings: Findings,
    registry: Registry,
    named: Iterable[str],
    drop: Callable[[str], None],
) -> None:
    """Does what follows from the findings once nothing is lost, or the loss is accepted."""
    for name in sorted(registry.dropping()):
        drop(name)
    registry.forget(registry.dropping())
    problems = registry.problems
    aside = findings.unknown | findings.foreign
    if aside:
        reason = "unknown" if findings.unknown else "foreign"
        target = files.set_aside(directory, aside, reason)
        problems.report(
            SET_ASIDE,
            target.name,
            f"{_segments(len(aside))} that no container names: moved to {target}, and nothing was removed "
            f"({', '.join(sorted(aside))})",
        )
    for name in sorted(findings.missing | findings.foreign):
        problems.report(
            DATA_MISSING, name, f"segment {name} was lost; its physical partition starts without items"
        )
    registry.forget(aside | findings.missing)
    if findings.generation > registry.generation:
        problems.report(
            DATA_MISSING,
            files.CATALOG_FILE,
            f"the catalog was older than the items: it had seen {registry.generation:,} changes of "
            f"{findings.generation:,}",
        )
        registry.raise_generation(findings.generation)
    registry.note_found(_with_content(directory / "segments") & set(named))


def _with_content(segments: Path) -> set[str]:
    """The segments that may hold something; a crash leaves an empty file of one that was just being made."""
    found = files.segment_names(segments)
    return {name for name in found if files.read_header(segments / f"{name}.sqlite") is not None}
