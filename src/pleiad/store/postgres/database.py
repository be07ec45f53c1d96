"""A PostgreSQL database as an operator names it, and what may be wrong with it.

The driver is an extra of the installation. This module is for those who may meet a database and need none: it imports
nothing else of its room before it is asked for one.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pleiad.store.postgres.store import PostgresStore

SCHEMES = ("postgresql://", "postgres://")


class StoreUnreachableError(Exception):
    """The database does not answer at the start, with a sentence for the operator."""


class DriverMissingError(StoreUnreachableError):
    """The driver is not installed, with a sentence for the operator."""


class SchemaError(Exception):
    """A database that this version cannot use, with a sentence for the operator."""


def driver() -> ModuleType:
    """The driver; DriverMissingError tells how to install it."""
    try:
        import psycopg
    except ImportError as error:
        raise DriverMissingError(
            f"a PostgreSQL database needs its driver, which cannot be loaded ({error}): "
            "pip install 'psycopg[binary]'"
        ) from error
    return psycopg


def or_of_driver(*errors: type[Exception]) -> tuple[type[Exception], ...]:
    """Exceptions for an `except`, together with those of the driver if it is in use."""
    loaded = sys.modules.get("psycopg")
    return errors if loaded is None else (*errors, loaded.Error)


def is_readable(dsn: str) -> bool:
    """Whether a text is a connection string."""
    psycopg = driver()
    try:
        psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        return False
    return True


def described(dsn: str) -> str:
    """A database in words for the operator, without a password."""
    known = driver().conninfo.conninfo_to_dict(dsn)
    host = known.get("host") or known.get("hostaddr") or "the local socket"
    return f"PostgreSQL database {known.get('dbname') or known.get('user') or ''} at {host}"


async def open_database(dsn: str, *, must_exist: bool = False, allow_missing: bool = False) -> PostgresStore:
    """The store that a database is; StoreUnreachableError or SchemaError say why that is not possible."""
    driver()
    from pleiad.store.postgres.store import PostgresStore

    return await PostgresStore.open(dsn, must_exist=must_exist, allow_missing=allow_missing)
