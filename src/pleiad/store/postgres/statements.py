"""The SQL of a segment: reading rows, their changes and counters. `{s}` is the schema of the segment."""

from __future__ import annotations

from pleiad.keys.range import EpkRange
from pleiad.store.postgres.select import ROW

READ = f"SELECT {ROW} FROM {{s}}.item AS item WHERE item.epk = %s AND item.id = %s"
READ_SEVERAL = (
    f"SELECT {ROW}, place FROM unnest(%b::bytea[], %s::text[]) WITH ORDINALITY AS wanted(epk, id, place) "
    "JOIN {s}.item AS item ON item.epk = wanted.epk AND item.id = wanted.id"
)
FIND = f"SELECT {ROW} FROM {{s}}.item AS item WHERE item.number = %s"
FIND_MANY = f"SELECT {ROW} FROM {{s}}.item AS item WHERE item.number = ANY(%b::bigint[])"
# IS TRUE, or the planner would find a wide range by the key index and sort all of it for every page.
SCAN = (
    f"SELECT {ROW} FROM {{s}}.item AS item WHERE item.number > %s AND (item.epk >= %s AND item.epk < %s) IS TRUE "
    "ORDER BY item.number LIMIT %s"
)
SCAN_BACK = (
    f"SELECT {ROW} FROM {{s}}.item AS item WHERE item.number < %s AND (item.epk >= %s AND item.epk < %s) IS TRUE "
    "ORDER BY item.number DESC LIMIT %s"
)
SCAN_KEY = (
    f"SELECT {ROW} FROM {{s}}.item AS item WHERE item.number = ANY(ARRAY("
    "SELECT number FROM {s}.item WHERE number > %s AND epk >= %s AND epk < %s ORDER BY number LIMIT %s)) "
    "ORDER BY item.number"
)
SCAN_BYTES = (
    f"SELECT {ROW} FROM {{s}}.item AS item WHERE item.number = ANY(ARRAY(SELECT number FROM ("
    "SELECT number, sum(size_bytes) OVER (ORDER BY number) - size_bytes AS bytes_before FROM ("
    "SELECT number, size_bytes FROM {s}.item WHERE number > %s AND epk >= %s AND epk < %s ORDER BY number LIMIT %s"
    ") AS page) AS summed WHERE bytes_before < %s)) ORDER BY item.number"
)
STATE = "SELECT id, epoch, lsn, next_sequence, items, size_bytes FROM {s}.partition WHERE id = %s"
# NULL: the partition was not written to here, or none is asked for.
_UPTO_ITS_LAST = (
    "lsn <= (SELECT coalesce(max(lsn), 9223372036854775807) FROM {s}.partition WHERE id = %s::bigint) "
)
CHANGES = (
    f"SELECT {ROW} FROM (SELECT * FROM {{s}}.item WHERE lsn > %s AND epk >= %s AND epk < %s AND ts >= %s "
    f"AND {_UPTO_ITS_LAST}ORDER BY lsn FETCH FIRST %s ROWS WITH TIES) AS item ORDER BY item.lsn, item.number"
)
VERSIONS = (
    "SELECT * FROM (SELECT * FROM {s}.version WHERE lsn > %s AND epk >= %s AND epk < %s "
    f"AND {_UPTO_ITS_LAST}ORDER BY lsn FETCH FIRST %s ROWS WITH TIES) AS version ORDER BY lsn, epk, position"
)
HAS_OLD_VERSIONS = "SELECT FROM {s}.version WHERE ts < %s LIMIT 1"
FORGET_VERSIONS = (
    "WITH gone AS (DELETE FROM {s}.version WHERE (lsn, epk, position) IN "
    "(SELECT lsn, epk, position FROM {s}.version WHERE ts < %s ORDER BY ts LIMIT %s) RETURNING 1) "
    "SELECT count(*) FROM gone"
)
LARGEST = (
    "SELECT logical.epk, items, bytes, body FROM (SELECT epk, count(*) AS items, sum(size_bytes)::bigint AS bytes, "
    "min(number) AS first FROM {s}.item WHERE epk >= %s AND epk < %s GROUP BY epk HAVING sum(size_bytes) >= %s "
    "ORDER BY bytes DESC, items DESC, epk DESC LIMIT %s) AS logical "
    "JOIN {s}.item AS item ON item.number = first ORDER BY bytes DESC, items DESC, logical.epk DESC"
)
LOGICAL = (
    "SELECT logical.epk, items, bytes, body FROM (SELECT epk, count(*) AS items, sum(size_bytes)::bigint AS bytes, "
    "min(number) AS first FROM {s}.item WHERE epk >= %s AND epk < %s GROUP BY epk) AS logical "
    "JOIN {s}.item AS item ON item.number = first ORDER BY logical.epk"
)
_EXPIRED = f"SELECT {ROW} FROM {{s}}.item AS item WHERE epk >= %s AND epk < %s AND "
EXPIRED_OWN = _EXPIRED + "ttl > 0 AND ts + ttl <= %s LIMIT %s"
EXPIRED_DEFAULT = _EXPIRED + "ttl IS NULL AND ts <= %s LIMIT %s"
AGE_INDEX = "CREATE INDEX CONCURRENTLY IF NOT EXISTS item_age ON {s}.item(ts) WHERE ttl IS NULL"
MIDDLE = (
    "WITH keys AS MATERIALIZED (SELECT DISTINCT epk FROM {s}.item WHERE epk >= %s AND epk < %s) "
    "SELECT epk FROM keys WHERE (SELECT count(*) FROM keys) >= 2 ORDER BY epk "
    "OFFSET (SELECT count(*) / 2 FROM keys) LIMIT 1"
)
TOTALS = "SELECT count(*), coalesce(sum(size_bytes), 0)::bigint FROM {s}.item WHERE epk >= %s AND epk < %s"
SAVE_PARTITION = (
    "INSERT INTO {s}.partition(id, epoch, lsn, next_sequence, items, size_bytes) VALUES (%s, %s, %s, %s, %s, %s) "
    "ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, lsn = excluded.lsn, "
    "next_sequence = excluded.next_sequence, items = excluded.items, size_bytes = excluded.size_bytes"
)
REOPEN = (
    "INSERT INTO {s}.partition AS p (id, epoch, lsn, next_sequence, items, size_bytes) VALUES (%s, %s, 0, 1, 0, 0) "
    "ON CONFLICT (id) DO UPDATE SET epoch = greatest(p.epoch, excluded.epoch) "
    "RETURNING id, epoch, lsn, next_sequence, items, size_bytes"
)
# A partition nobody has written to has no row; it is fenced like any other.
FENCE = (
    "INSERT INTO {s}.partition AS p (id, epoch, lsn, next_sequence, items, size_bytes) "
    "VALUES (%(partition)s, %(epoch)s + 1, 0, 1, 0, 0) ON CONFLICT (id) DO UPDATE SET epoch = p.epoch + 1 "
    "WHERE p.epoch = %(epoch)s RETURNING id, epoch, lsn, next_sequence, items, size_bytes"
)
STOP_WRITES = "LOCK TABLE {s}.partition IN EXCLUSIVE MODE"
TRACK = "UPDATE {s}.setting SET tracks_deletes = %s"
FORGET_DELETES = "DELETE FROM {s}.deleted"

# -- copying between segments: `{t}` is the schema of the target ----------------------------------
CHUNK_END = (
    "SELECT max(number) FROM (SELECT number FROM {s}.item WHERE number > %s AND epk >= %s AND epk < %s "
    "ORDER BY number LIMIT %s) AS chunk"
)
CHUNK = "SELECT number FROM {s}.item WHERE number > %s AND number <= %s AND epk >= %s AND epk < %s"
CHANGED = "SELECT number, size_bytes FROM {s}.item WHERE lsn > %s AND epk >= %s AND epk < %s"
DELETED = "SELECT sequence, number FROM {s}.deleted WHERE sequence > %s AND epk >= %s AND epk < %s"
REMOVE = (
    "SELECT size_bytes, {t}.remove_1(item, false, EXISTS (SELECT FROM {t}.path_index)) FROM {t}.item AS item "
    "WHERE number = ANY(%s::bigint[])"
)
IN_THE_WAY = (
    "SELECT own.number FROM {t}.item AS own JOIN {s}.item AS item ON own.number = item.number "
    "WHERE item.number = ANY(%(numbers)s::bigint[]) UNION "
    "SELECT own.number FROM {s}.item AS item JOIN {t}.item AS own ON own.epk = item.epk AND own.id = item.id "
    "WHERE item.number = ANY(%(numbers)s::bigint[]) UNION "
    "SELECT own.number FROM {s}.unique_value AS value JOIN {t}.unique_value AS own "
    "ON own.epk = value.epk AND own.key = value.key AND own.value = value.value "
    "WHERE value.number = ANY(%(numbers)s::bigint[])"
)
COPY_ITEMS = "INSERT INTO {t}.item SELECT * FROM {s}.item WHERE number = ANY(%s::bigint[])"
COPY_UNIQUE_VALUES = (
    "INSERT INTO {t}.unique_value SELECT * FROM {s}.unique_value WHERE number = ANY(%s::bigint[])"
)
ENTER = (
    "SELECT {t}.index_1(item.number, NULL, item) FROM {t}.item AS item "
    "WHERE number = ANY(%s::bigint[]) AND EXISTS (SELECT FROM {t}.path_index)"
)
TRACKS_DELETES = "SELECT tracks_deletes FROM {s}.setting"
IN_THE_WAY_OF_IMPORT = (
    "SELECT number FROM {t}.item WHERE number = ANY(%s::bigint[]) AND epk >= %s AND epk < %s UNION "
    "SELECT number FROM {t}.item WHERE number = ANY(%s::bigint[]) UNION "
    "SELECT own.number FROM unnest(%b::bytea[], %s::text[]) AS wanted(epk, id) "
    "JOIN {t}.item AS own ON own.epk = wanted.epk AND own.id = wanted.id UNION "
    "SELECT own.number FROM unnest(%b::bytea[], %s::int[], %b::bytea[]) AS wanted(epk, key, value) "
    "JOIN {t}.unique_value AS own ON own.epk = wanted.epk AND own.key = wanted.key AND own.value = wanted.value"
)
IMPORT_ITEMS = (
    "INSERT INTO {t}.item SELECT number, epk, id, lsn, ts, ttl, size_bytes, terms, body, doc::jsonb, checksum "
    "FROM unnest(%s::bigint[], %b::bytea[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], "
    "%s::bigint[], %b::bytea[], %s::text[], %s::bigint[]) "
    "AS item(number, epk, id, lsn, ts, ttl, size_bytes, terms, body, doc, checksum)"
)
IMPORT_UNIQUE_VALUES = (
    "INSERT INTO {t}.unique_value SELECT * FROM unnest(%b::bytea[], %s::int[], %b::bytea[], %s::bigint[])"
)
IMPORT_VERSIONS = (
    "INSERT INTO {t}.version SELECT * FROM unnest(%s::bigint[], %b::bytea[], %s::int[], %s::text[], %s::boolean[], "
    "%s::bigint[], %s::bigint[], %s::text[], %s::bigint[], %b::bytea[], %s::bigint[], %s::bigint[], %b::bytea[]) "
    "ON CONFLICT DO NOTHING"
)
COPY_VERSIONS = (
    "INSERT INTO {t}.version SELECT * FROM {s}.version WHERE number > %s AND number <= %s AND epk >= %s AND epk < %s "
    "ON CONFLICT DO NOTHING"
)
REPEAT_VERSIONS = (
    "INSERT INTO {t}.version SELECT * FROM {s}.version WHERE lsn > %s AND epk >= %s AND epk < %s "
    "ON CONFLICT DO NOTHING"
)


def scan(span: EpkRange) -> str:
    """The statement that reads a range in the order of document numbers.

    The range of one key, or of one prefix of a key, is narrow: the key index finds its rows, and only their numbers
    are sorted. A wide range is read in the order of the table.
    """
    return SCAN_KEY if span.min and span.max.startswith(span.min) else SCAN
