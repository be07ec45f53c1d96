"""What the PostgreSQL store keeps in a database, and its version.

    pleiad                  version, record, generation, dropped, segment, server, lease, budget and the functions that
                            read JSON
    "pleiad_<segment>"      item, partition, unique_value, deleted, path_index, entry and the functions that write

A schema per segment makes dropping one cheap, whatever it holds. `dropped` remembers the names of dropped segments,
so that a server that comes late can tell a segment that is no more from one that was never written, and `segment` those
that were made, so that one that is gone is missed. A schema and its note come in one transaction, and the note goes
before the schema does: so whoever sees a note and no schema in one moment (`standing`) sees a loss, and whoever asks
for one after the other sees nothing of the kind. `server` holds what all servers have to agree on. `generation`
counts the changes of the catalog, so that a server knows whether it is behind. `budget` is what servers hold of the
throughput; it is of the moment, so it is not logged, and a crash of the database empties it.

Texts are kept with U+0000 and U+0001 mapped (see `json_sql`), compare by their UTF-8 bytes (collation C), and the
database is UTF-8.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any, LiteralString

import psycopg

from pleiad.store.postgres import budget_sql, segment_sql
from pleiad.store.postgres.database import SchemaError
from pleiad.store.segments import SegmentOutOfServiceError

VERSION = 3
SERVER_VERSION_MIN = 150_000
TAG_CHARACTERS = 500
"""Of a string no more than this is in an index entry: PostgreSQL's index entries hold less than 2,700 bytes."""

_LOCK = 0x706C6569  # "plei"
_SEGMENT_LOCK = 0x706C6573
_DROP_WAIT = "500ms"


def sql(text: str) -> LiteralString:
    """Statement text made of our own pieces only; values are always parameters."""
    return text


def _exactly(power: int) -> str:
    with localcontext() as context:
        context.prec = 2_000
        return f"{Decimal(2) ** power:f}"


def _beyond_doubles() -> str:
    with localcontext() as context:
        context.prec = 2_000
        return f"{Decimal(2) ** 1024 - Decimal(2) ** 970:f}"


_TABLES = """
CREATE SCHEMA pleiad;
CREATE TABLE pleiad.version(version int NOT NULL);
CREATE TABLE pleiad.record(
  kind text COLLATE "C" NOT NULL, rid text COLLATE "C" NOT NULL, parent text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL, body text NOT NULL, PRIMARY KEY (kind, rid));
CREATE UNIQUE INDEX record_name ON pleiad.record(kind, parent, name);
CREATE TABLE pleiad.generation(value bigint NOT NULL);
INSERT INTO pleiad.generation VALUES (0);
CREATE TABLE pleiad.dropped(sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text COLLATE "C" NOT NULL);
CREATE INDEX dropped_name ON pleiad.dropped(name);
CREATE TABLE pleiad.lease(name text PRIMARY KEY, owner text NOT NULL, expires timestamptz NOT NULL);
"""

# Small SQL functions are inlined by the planner; so is `entries`, which the write functions and builds call.
_FUNCTIONS = f"""
CREATE FUNCTION pleiad.double(x jsonb) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN jsonb_typeof(x) = 'number' THEN
    CASE WHEN abs(x::numeric) >= {_beyond_doubles()} THEN sign(x::numeric)::float8 * 'Infinity'::float8
         WHEN abs(x::numeric) <= {_exactly(-1075)} THEN 0::float8
         ELSE x::numeric::float8 END END $$;
CREATE FUNCTION pleiad.string(x jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN jsonb_typeof(x) = 'string' THEN x #>> '{{}}' END $$;
CREATE FUNCTION pleiad.tag(x jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE jsonb_typeof(x) WHEN 'string' THEN '4' || (x #>> '{{}}') WHEN 'number' THEN '3' WHEN 'boolean' THEN '2'
    WHEN 'null' THEN '1' WHEN 'array' THEN '5' WHEN 'object' THEN '6' ELSE '0' END $$;
CREATE FUNCTION pleiad.num(x jsonb) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE jsonb_typeof(x) WHEN 'number' THEN pleiad.double(x)
    WHEN 'boolean' THEN CASE WHEN x = 'true'::jsonb THEN 1::float8 ELSE 0::float8 END ELSE 0::float8 END $$;
CREATE FUNCTION pleiad.document(body bytea, doc jsonb) RETURNS jsonb LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce(doc, convert_from(body, 'UTF8')::jsonb) $$;
CREATE FUNCTION pleiad.entries(kind int, path jsonpath, doc jsonb, id text, ts bigint)
RETURNS TABLE(tag text, num float8) LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT left(pleiad.tag(x), {TAG_CHARACTERS + 1}), pleiad.num(x)
    FROM (SELECT jsonb_path_query_first(doc, path, '{{}}', true) AS x OFFSET 0) AS value WHERE kind = 0
  UNION ALL
  SELECT DISTINCT left(pleiad.tag(e), {TAG_CHARACTERS + 1}), pleiad.num(e)
    FROM (SELECT jsonb_path_query_first(doc, path, '{{}}', true) AS x WHERE kind = 1 OFFSET 0) AS value
    CROSS JOIN LATERAL jsonb_array_elements(CASE WHEN jsonb_typeof(x) = 'array' THEN x ELSE '[]' END) AS e
    WHERE jsonb_typeof(e) NOT IN ('array', 'object')
  UNION ALL SELECT left('4' || id, {TAG_CHARACTERS + 1}), 0::float8 WHERE kind = 2
  UNION ALL SELECT '3', ts::float8 WHERE kind = 3 $$;
"""

_SEGMENTS = """
CREATE TABLE IF NOT EXISTS pleiad.segment(name text COLLATE "C" PRIMARY KEY);
CREATE TABLE IF NOT EXISTS pleiad.server(setting text PRIMARY KEY, value text NOT NULL);
"""
_NOTE_SEGMENTS = """
INSERT INTO pleiad.segment SELECT substr(nspname, 8) FROM pg_namespace WHERE nspname LIKE 'pleiad\\_%'
  ON CONFLICT DO NOTHING;
"""
_UPGRADES = {1: budget_sql.BUDGET, 2: _SEGMENTS + _NOTE_SEGMENTS}
"""What a database of each older version lacks."""


async def prepare(connection: psycopg.AsyncConnection[Any], must_exist: bool = False) -> None:
    """Makes what a new database lacks; SchemaError for a server or data this version cannot use."""
    found = connection.info.server_version
    if found < SERVER_VERSION_MIN:
        raise SchemaError(
            f"the PostgreSQL server has version {found // 10_000}; Pleiad needs {SERVER_VERSION_MIN // 10_000} or newer"
        )
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        encoding = await _value(connection, "SHOW server_encoding")
        if encoding != "UTF8":
            raise SchemaError(f"the database has the encoding {encoding}; Pleiad needs UTF8")
        if await _value(connection, "SELECT to_regclass('pleiad.version')") is None:
            if must_exist:
                raise SchemaError("the database holds no data of Pleiad")
            await connection.execute(sql(_TABLES + _FUNCTIONS + budget_sql.BUDGET + _SEGMENTS))
            await connection.execute("INSERT INTO pleiad.version VALUES (%s)", (VERSION,))
            return
        version = await _value(connection, "SELECT max(version) FROM pleiad.version")
        if version > VERSION:
            raise SchemaError(
                f"the database was written by a newer Pleiad (format {version}, this one reads up to {VERSION}); "
                "upgrade first"
            )
        for old in range(version, VERSION):
            await connection.execute(sql(_UPGRADES[old]))
            await connection.execute("UPDATE pleiad.version SET version = %s", (old + 1,))


async def make_segment(connection: psycopg.AsyncConnection[Any], schema: str, name: str, known: int) -> bool:
    """Makes the tables of a segment unless they are there; False when it was dropped after the drop `known`.

    Those that a drop before that has left are freed first; LockNotAvailable while somebody uses them.
    """
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s::int, hashtext(%s))", (_SEGMENT_LOCK, name))
        found = await standing(connection, name, known)
        if found.is_dropped:
            return False
        if found.is_gone:
            raise SegmentOutOfServiceError
        if not found.is_made:
            if found.has_tables:
                await _free(connection, schema)
            await connection.execute(sql(segment_sql.tables(schema)))
            await connection.execute("INSERT INTO pleiad.segment VALUES (%s)", (name,))
    return True


async def upgrade_segment(connection: psycopg.AsyncConnection[Any], schema: str, name: str) -> None:
    """Makes what a segment lacks that a server of an older version has made."""
    if await _value(connection, "SELECT to_regproc(%s)", (f"{schema}.{segment_sql.NEWEST}",)) is None:
        async with connection.transaction():
            await connection.execute(
                "SELECT pg_advisory_xact_lock(%s::int, hashtext(%s))", (_SEGMENT_LOCK, name)
            )
            await connection.execute(sql(segment_sql.upgrade(schema)))


async def note_drop(connection: psycopg.AsyncConnection[Any], name: str) -> int:
    """Remembers that a segment is dropped; the sequence of this drop."""
    insert = "INSERT INTO pleiad.dropped(name) VALUES (%s) RETURNING sequence"
    async with connection.transaction():
        await connection.execute("DELETE FROM pleiad.segment WHERE name = %s", (name,))
        return int(await _value(connection, insert, (name,)))


async def free_segment(connection: psycopg.AsyncConnection[Any], schema: str, name: str) -> None:
    """Removes the tables of a dropped segment; LockNotAvailable while somebody uses them for long.

    Those of one that was made anew under the name stay.
    """
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s::int, hashtext(%s))", (_SEGMENT_LOCK, name))
        found = await standing(connection, name, 0)
        if found.has_tables and not found.is_noted:
            await _free(connection, schema)


# As in `reconcile`, what was set aside has a name that no drop has.
_LEFT: LiteralString = """
SELECT d.name FROM (
  SELECT substr(nspname::text, 8) COLLATE "C" AS name FROM pg_namespace WHERE nspname LIKE 'pleiad\\_%') AS d
WHERE EXISTS (SELECT FROM pleiad.dropped WHERE name = d.name)
  AND NOT EXISTS (SELECT FROM pleiad.segment WHERE name = d.name)
ORDER BY d.name
"""


async def left_by_drops(connection: psycopg.AsyncConnection[Any]) -> list[str]:
    """The segments that were dropped and not made anew, and are still to be freed."""
    return [str(name) for (name,) in await (await connection.execute(_LEFT)).fetchall()]


async def _free(connection: psycopg.AsyncConnection[Any], schema: str) -> None:
    await connection.execute(sql(f"SET LOCAL lock_timeout = '{_DROP_WAIT}'"))
    # In the order in which writes and searches lock them, so that none waits for the drop and it for them.
    tables = ", ".join(f"{schema}.{table}" for table in ("partition", "entry", "item", "path_index"))
    await connection.execute(sql(f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE"))
    await connection.execute(sql(f"DROP SCHEMA {schema} CASCADE"))


@dataclass(frozen=True, slots=True)
class Standing:
    """What the database knows of a segment, all of it as of one moment."""

    has_tables: bool
    is_noted: bool
    """It was made and not dropped since, be it there or not."""
    is_dropped: bool
    """It was dropped, after the drop that was asked about."""
    was_ever_dropped: bool

    @property
    def is_made(self) -> bool:
        """It is there, and is not what a drop has still to free."""
        return self.has_tables and (self.is_noted or not self.was_ever_dropped)

    @property
    def is_gone(self) -> bool:
        """It held something, nobody dropped it, and it is not there."""
        return self.is_noted and not self.has_tables and not self.is_dropped


# `to_regclass` would look at the schema with a cache that is a moment older or younger than what the statement sees of
# the notes; the tables of the system are read as of the same moment.
_STANDING: LiteralString = """
SELECT EXISTS (SELECT FROM pg_namespace AS n JOIN pg_class AS c ON c.relnamespace = n.oid
    WHERE n.nspname = ('pleiad_' || %(name)s)::name AND c.relname = 'item'),
  EXISTS (SELECT FROM pleiad.segment WHERE name = %(name)s),
  EXISTS (SELECT FROM pleiad.dropped WHERE name = %(name)s AND sequence > %(known)s),
  EXISTS (SELECT FROM pleiad.dropped WHERE name = %(name)s)
"""


async def standing(connection: psycopg.AsyncConnection[Any], name: str, known: int) -> Standing:
    """Whether a segment is there, was made, and was dropped after the drop `known`: one statement."""
    cursor = await connection.execute(_STANDING, {"name": name, "known": known})
    return Standing(*(await cursor.fetchall())[0])


async def settled_standing(connection: psycopg.AsyncConnection[Any], name: str, known: int) -> Standing:
    """The same while nobody makes, upgrades or frees the segment."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s::int, hashtext(%s))", (_SEGMENT_LOCK, name))
        return await standing(connection, name, known)


def schema_name(name: str) -> str:
    """The schema of a segment as SQL."""
    quoted = name.replace('"', '""')
    return f'"pleiad_{quoted}"'


async def last_drop(connection: psycopg.AsyncConnection[Any]) -> int:
    """The sequence of the last drop of a segment."""
    return int(await _value(connection, "SELECT coalesce(max(sequence), 0) FROM pleiad.dropped"))


async def _value(
    connection: psycopg.AsyncConnection[Any], text: LiteralString, params: tuple[Any, ...] = ()
) -> Any:
    rows = await (await connection.execute(text, params or None)).fetchall()
    return rows[0][0]
