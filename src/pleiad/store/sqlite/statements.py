"""The SQL of a segment: reading rows and counters, and what a commit saves beside them."""

from pleiad.keys.range import EpkRange
from pleiad.store.sqlite.rows import ROW as COLUMNS
from pleiad.store.sqlite.rows import STATE as STATE_COLUMNS

READ = f"SELECT {COLUMNS} FROM item WHERE epk = ?1 AND id = ?2"
FIND = f"SELECT {COLUMNS} FROM item WHERE number = ?1"
# NOT INDEXED, or the planner would find a wide range by the key index and sort all of it for every page.
SCAN = f"SELECT {COLUMNS} FROM item NOT INDEXED WHERE number > ?1 AND epk >= ?2 AND epk < ?3 ORDER BY number LIMIT ?4"
SCAN_KEY = (
    f"SELECT {COLUMNS} FROM item WHERE number IN (SELECT number FROM item INDEXED BY item_key "
    "WHERE epk >= ?2 AND epk < ?3 AND number > ?1 ORDER BY number LIMIT ?4) ORDER BY number"
)
SCAN_BACK = (
    f"SELECT {COLUMNS} FROM item NOT INDEXED WHERE number < ?1 AND epk >= ?2 AND epk < ?3 "
    "ORDER BY number DESC LIMIT ?4"
)
SCAN_KEY_BACK = (
    f"SELECT {COLUMNS} FROM item WHERE number IN (SELECT number FROM item INDEXED BY item_key "
    "WHERE epk >= ?2 AND epk < ?3 AND number < ?1 ORDER BY number DESC LIMIT ?4) ORDER BY number DESC"
)
FIX_MOMENT = "SELECT 1 FROM partition LIMIT 1"
STATE = f"SELECT {STATE_COLUMNS} FROM partition WHERE id = ?1"
STATES = f"SELECT {STATE_COLUMNS} FROM partition"
LOGICAL = (
    "SELECT logical.epk, items, bytes, CAST(json(body) AS BLOB) FROM (SELECT epk, count(*) AS items, "
    "sum(size_bytes) AS bytes, min(number) AS first FROM item WHERE epk >= ?1 AND epk < ?2 GROUP BY epk) AS logical "
    "JOIN item ON number = first ORDER BY logical.epk"
)
EXPIRED_OWN = (
    f"SELECT {COLUMNS} FROM item WHERE ttl > 0 AND ts + ttl <= ?1 AND epk >= ?2 AND epk < ?3 LIMIT ?4"
)
EXPIRED_DEFAULT = (
    f"SELECT {COLUMNS} FROM item WHERE ttl IS NULL AND ts <= ?1 AND epk >= ?2 AND epk < ?3 LIMIT ?4"
)
AGE_INDEX = "CREATE INDEX IF NOT EXISTS item_age ON item(ts) WHERE ttl IS NULL"
SAVE_COUNTERS = (
    "INSERT INTO partition VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT(id) DO UPDATE SET "
    "epoch = ?2, lsn = ?3, next_sequence = ?4, items = ?5, size_bytes = ?6, checksum = ?7"
)


IDENTITY = "SELECT account, segment, generation FROM identity"
SAVE_GENERATION = "UPDATE identity SET generation = ?1"
LSNS = "SELECT coalesce(sum(lsn), 0) FROM partition"


def scan(span: EpkRange) -> str:
    """The statement that reads a range in the order of document numbers.

    The range of one key, or of one prefix of a key, is narrow: the key index finds its rows, and only their numbers
    are sorted. A wide range is read in the order of the table.
    """
    return SCAN_KEY if _is_narrow(span) else SCAN


def scan_back(span: EpkRange) -> str:
    """The statement that reads a range against the order of document numbers."""
    return SCAN_KEY_BACK if _is_narrow(span) else SCAN_BACK


def _is_narrow(span: EpkRange) -> bool:
    return bool(span.min) and span.max.startswith(span.min)
