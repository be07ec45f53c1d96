"""Where an account is kept, as an operator writes it: `sqlite:DIR` or `postgresql://...`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import apsw

from pleiad.errors import PleiadError
from pleiad.store.postgres.database import (
    SCHEMES,
    StoreUnreachableError,
    described,
    is_readable,
    open_database,
    or_of_driver,
)
from pleiad.store.postgres.database import SchemaError as DatabaseSchemaError
from pleiad.store.problems import MissingDataError
from pleiad.store.sqlite.directory import StoreLockedError
from pleiad.store.sqlite.schema import SchemaError
from pleiad.store.sqlite.store import SqliteStore
from pleiad.store.store import Store

_SQLITE = "sqlite:"
_ALONE_TRIES = 10
_ALONE_AGAIN_SECONDS = 0.5
_OPEN_SECONDS_MAX = 15.0


class CopyError(Exception):
    """Why an account cannot be copied, with a sentence for the operator."""


@dataclass(frozen=True, slots=True)
class DataPlace:
    """A data directory, or a PostgreSQL database by its connection string."""

    directory: Path | None
    dsn: str

    def __str__(self) -> str:
        """In words for the operator, without a password."""
        return described(self.dsn) if self.directory is None else f"the data directory {self.directory}"

    @property
    def identity(self) -> str:
        return self.dsn if self.directory is None else str(self.directory.resolve())


def parse_place(text: str) -> DataPlace:
    """The place a text names; CopyError when it names none."""
    if text.startswith(_SQLITE) and text != _SQLITE:
        return DataPlace(Path(text.removeprefix(_SQLITE)), "")
    if not text.startswith(SCHEMES):
        raise CopyError(
            "a place is a data directory as sqlite:DIR, or a database as postgresql://user@host/database"
        )
    if not is_readable(text):
        raise CopyError("the connection string of the PostgreSQL database cannot be read")
    return DataPlace(None, text)


@contextlib.asynccontextmanager
async def opened_alone(place: DataPlace, must_exist: bool) -> AsyncIterator[Store]:
    """The store of a place, kept from every server for the length of a block."""
    try:
        store = await _open(place, must_exist)
    except StoreLockedError as error:
        raise CopyError(f"{place} is in use by a server or another copy: stop it first") from error
    except (SchemaError, DatabaseSchemaError, StoreUnreachableError, MissingDataError) as error:
        raise CopyError(f"{place} cannot be used: {error}") from error
    except or_of_driver(OSError, apsw.Error, PleiadError) as error:
        raise CopyError(f"{place} cannot be opened: {error}") from error
    try:
        async with _alone(place, store):
            yield store
    finally:
        await store.close()


async def _open(place: DataPlace, must_exist: bool) -> Store:
    if place.directory is not None:
        if must_exist and not (place.directory / "catalog.sqlite").is_file():
            raise CopyError(f"there is no data of Pleiad in {place.directory}")
        if not must_exist and _has_segments_only(place.directory):
            raise CopyError(f"{place} is not empty: it has items, although no catalog")
        return SqliteStore(place.directory)
    try:
        # A server that has the database to itself, which a copy is too, lets nobody in.
        async with asyncio.timeout(_OPEN_SECONDS_MAX):
            return await open_database(place.dsn, must_exist=must_exist)
    except TimeoutError as error:
        raise CopyError(f"{place} is in use by another copy, or does not answer") from error


def _has_segments_only(directory: Path) -> bool:
    """Whether what names the items of a data directory is lost; to clear it would lose them too."""
    has_catalog = (directory / "catalog.sqlite").exists()
    return not has_catalog and any((directory / "segments").glob("*.sqlite"))


@contextlib.asynccontextmanager
async def _alone(place: DataPlace, store: Store) -> AsyncIterator[None]:
    """Waits a little for a server that is about to end, or whose end the database has not yet noticed."""
    for _ in range(_ALONE_TRIES):
        async with store.alone() as is_alone:
            if is_alone:
                yield
                return
        await asyncio.sleep(_ALONE_AGAIN_SECONDS)
    raise CopyError(f"{place} is in use by a server: stop it first")
