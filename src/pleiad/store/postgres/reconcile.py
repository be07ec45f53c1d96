"""At the start: comparing the schemas of segments with what the catalog knows, before anything is served.

Nothing is removed because something is missing. What was noted as dropped goes; a schema that nobody knows is given
another name, under which it stays; and a server that lacks something it had does not start unless the operator accepts
the loss.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from pleiad.store.postgres.connections import Connection
from pleiad.store.postgres.schema import schema_name, sql
from pleiad.store.problems import DATA_MISSING, SET_ASIDE, MissingDataError, Problems

ASIDE = "pleiad_set_aside_"
_ALLOW = "--allow-missing-data"
_FOUND = (
    "SELECT substr(nspname, 8) FROM pg_namespace "
    f"WHERE nspname LIKE 'pleiad\\_%' AND NOT starts_with(nspname, '{ASIDE}')"
)
_MADE = "SELECT name FROM pleiad.segment"
_DROPPED = "SELECT DISTINCT name FROM pleiad.dropped"
_NAME_CHARACTERS_MAX = 63


@dataclass(frozen=True, slots=True)
class Findings:
    """What the schemas are, seen from the catalog."""

    dropped: set[str]
    """Noted as dropped, and still there."""
    unknown: set[str]
    """There is a schema, and no container has it."""
    missing: set[str]
    """A container has it and it was made, and there is no schema."""
    has_records: bool


async def _names(connection: Connection, text: str) -> set[str]:
    rows = await (await connection.execute(sql(text))).fetchall()
    return {str(name) for (name,) in rows}


async def made(connection: Connection) -> set[str]:
    """The segments that were made and not dropped."""
    return await _names(connection, _MADE)


async def look(connection: Connection, named: set[str]) -> Findings:
    """Compares without a change, and all of it as of one moment: other servers make and drop segments meanwhile."""
    async with connection.transaction():
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        found = await _names(connection, _FOUND)
        known = await made(connection)
        # A name that was dropped may have been made anew, as by a copy that started over.
        dropped = await _names(connection, _DROPPED) - known
        rows = await (await connection.execute("SELECT FROM pleiad.record LIMIT 1")).fetchall()
    return Findings(
        (found & dropped) - named,
        found - dropped - named,
        (known & named) - found,
        bool(rows),
    )


def check(findings: Findings) -> None:
    """Raises MissingDataError when something is lost."""
    if findings.unknown and not findings.has_records:
        raise MissingDataError(
            f"the database holds {len(findings.unknown)} segments with items and no account: restore the schema "
            f"pleiad from the backup that belongs to them, or give {_ALLOW} to start with nothing and have them renamed"
        )
    if findings.missing:
        first, *others = sorted(findings.missing)
        more = f" and {len(others)} more" if others else ""
        raise MissingDataError(
            f"the schema {schema_name(first)}{more} held items and is gone: restore it from a backup, or give "
            f"{_ALLOW} to start without these items"
        )


async def settle(connection: Connection, findings: Findings, problems: Problems) -> None:
    """Does what follows from the findings once nothing is lost, or the loss is accepted."""
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    async with connection.transaction():
        for name in sorted(findings.unknown):
            aside = f"{ASIDE}{moment}_{name}"[:_NAME_CHARACTERS_MAX]
            quoted = '"' + aside.replace('"', '""') + '"'
            await connection.execute(sql(f"ALTER SCHEMA {schema_name(name)} RENAME TO {quoted}"))
        gone = sorted(findings.unknown | findings.missing)
        await connection.execute("DELETE FROM pleiad.segment WHERE name = ANY(%s)", (gone,))
    if findings.unknown:
        problems.report(
            SET_ASIDE,
            moment,
            f"{len(findings.unknown)} schemas that no container names: renamed to {ASIDE}{moment}_..., and nothing "
            f"was removed ({', '.join(sorted(findings.unknown))})",
        )
    for name in sorted(findings.missing):
        problems.report(
            DATA_MISSING, name, f"segment {name} was lost; its physical partition starts without items"
        )
