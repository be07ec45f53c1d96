"""What a failure of SQLite means: damage, a disk that takes no writes, or a passing trouble."""

from __future__ import annotations

import apsw

from pleiad.store.checksum import DamagedRowError
from pleiad.store.sqlite.schema import SchemaError

_READ_FAILURES = frozenset(
    {
        apsw.SQLITE_IOERR_READ,
        apsw.SQLITE_IOERR_SHORT_READ,
        apsw.SQLITE_IOERR_CORRUPTFS,
        apsw.SQLITE_IOERR_DATA,
    }
)
_MALFORMED = "malformed JSON"


class ForeignFileError(Exception):
    """The file of a segment is not the one that was there."""


READ_FAILURES = (apsw.Error, DamagedRowError, ForeignFileError, SchemaError, UnicodeDecodeError)
"""What reading a segment may end with beside an answer."""


def damage_of(error: BaseException, is_read: bool) -> str | None:
    """What a failure tells of damage, as a part of a sentence; None when it tells of none.

    A body that is no JSON is damage where it was stored, and the caller's mistake where it is to be.
    """
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return f"SQLite finds the file malformed ({error})"
    if isinstance(error, (DamagedRowError, ForeignFileError, SchemaError)):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        return "a text is not what was written"
    if isinstance(error, apsw.IOError) and getattr(error, "extendedresult", 0) in _READ_FAILURES:
        return f"the file cannot be read ({error})"
    if is_read and isinstance(error, apsw.SQLError) and _MALFORMED in str(error):
        return "the body of a row is not what was written"
    return None


def is_disk(error: BaseException) -> bool:
    """Whether the disk takes no writes: it is full, or a limit or the file system forbids them."""
    return isinstance(error, (apsw.FullError, apsw.IOError, apsw.ReadOnlyError))
