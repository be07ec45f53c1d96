"""Looking for damage in an account that PostgreSQL keeps: rows against their checksums, counters against the rows.

It reads in one transaction that can write nothing, so it may run beside servers. Pages and indexes are PostgreSQL's own
to look after; with `data_checksums` it does so on every read.
"""

from __future__ import annotations

from typing import Any

import psycopg

from pleiad.catalog import placement as placements
from pleiad.catalog.placement import Placement
from pleiad.job.check import CheckError, CheckReport, Tell, record_of
from pleiad.store.checksum import DamagedRowError
from pleiad.store.postgres.schema import VERSION, schema_name, sql
from pleiad.store.postgres.select import ROW, row_of

_PAGE_ROWS = 500
_RECORDS = "SELECT kind, rid, parent, name, body FROM pleiad.record WHERE kind = %s"
_FOUND = "SELECT substr(nspname, 8) FROM pg_namespace WHERE nspname LIKE 'pleiad\\_%'"
_HAS_CHECKSUM = "SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = 'checksum'"
Connection = psycopg.Connection[Any]


def check_database(dsn: str, tell: Tell) -> CheckReport:
    """Looks through a database."""
    report = CheckReport()
    with psycopg.connect(dsn) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        version = _version(connection)
        live: dict[str, list[Placement]] = {}
        for row in connection.execute(_RECORDS, (placements.KIND,)).fetchall():
            placed = placements.from_record(record_of(*row))
            if placed.is_live:
                live.setdefault(placed.segment, []).append(placed)
        found = {str(name) for (name,) in connection.execute(sql(_FOUND)).fetchall()}
        made = _made(connection) if version >= VERSION else set()
        for index, name in enumerate(sorted(live)):
            tell(index, len(live), name)
            if name in found:
                _check_segment(connection, name, live[name], report)
            elif name in made:
                report.wrong(name, "it held items, and its schema is gone")
        for name in sorted(found - set(live) - _in_use(connection)):
            report.note(name, "no container names this schema")
    if report.without_checksum:
        report.note("items", f"items of an older version that carry no checksum: {report.without_checksum:,}")
    return report


def _version(connection: Connection) -> int:
    if connection.execute("SELECT to_regclass('pleiad.version')").fetchall() == [(None,)]:
        raise CheckError("the database holds no data of Pleiad")
    version = connection.execute("SELECT max(version) FROM pleiad.version").fetchall()[0][0]
    if version > VERSION:
        raise CheckError(f"the database was written by a newer Pleiad (format {version}); upgrade first")
    return int(version)


def _made(connection: Connection) -> set[str]:
    return {str(name) for (name,) in connection.execute("SELECT name FROM pleiad.segment").fetchall()}


def _in_use(connection: Connection) -> set[str]:
    rows = connection.execute(_RECORDS, (placements.OPERATION,)).fetchall()
    records = [record_of(*row) for row in rows]
    return {name for record in records for name in placements.operation_from_record(record).segments}


def _check_segment(connection: Connection, name: str, live: list[Placement], report: CheckReport) -> None:
    schema = schema_name(name)
    report.segments += 1
    has_checksum = connection.execute(_HAS_CHECKSUM, (f"{schema}.item",)).fetchall()
    columns = ROW if has_checksum else ROW.replace("item.checksum", "NULL")
    with connection.cursor("rows", binary=True) as cursor:
        cursor.itersize = _PAGE_ROWS
        for row in cursor.execute(sql(f"SELECT {columns} FROM {schema}.item AS item")):
            report.items += 1
            report.without_checksum += row[9] is None
            try:
                row_of(row)
            except DamagedRowError as error:
                report.wrong(name, str(error))
    for placed in live:
        _check_counters(connection, schema, placed, report)


def _check_counters(connection: Connection, schema: str, placed: Placement, report: CheckReport) -> None:
    counters = connection.execute(
        sql(f"SELECT items, size_bytes, lsn FROM {schema}.partition WHERE id = %s"), (placed.id,)
    ).fetchall()
    ((count, held_bytes, newest),) = connection.execute(
        sql(
            "SELECT count(*), coalesce(sum(size_bytes), 0)::bigint, coalesce(max(lsn), 0) "
            f"FROM {schema}.item WHERE epk >= %s AND epk < %s"
        ),
        (placed.span.min, placed.span.max),
    ).fetchall()
    items, size_bytes, lsn = counters[0] if counters else (0, 0, 0)
    if (items, size_bytes) != (count, held_bytes):
        report.wrong(
            placed.segment,
            f"physical partition {placed.id} counts {items:,} items of {size_bytes:,} bytes and holds {count:,} of "
            f"{held_bytes:,}",
        )
    if newest > lsn:
        report.wrong(
            placed.segment, f"physical partition {placed.id} holds a row with an LSN it has not given"
        )
