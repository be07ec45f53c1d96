"""How far an import is: a small file that is replaced in one step, so that a run that was ended goes on behind it.

All entries up to `done` are decided, written or refused, and never looked at again. Those behind may have been written
too; the next run finds out. The run's own id makes generated ids the same in every attempt.
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from pleiad.job.item_file.entry import ItemFileError

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportIdentity:
    """What an import is of and to; a state of another one is of no use."""

    source: str
    source_bytes: int | None
    source_modified_ns: int | None
    endpoint: str
    container: str
    container_rid: str
    is_upsert: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportState:
    """How far the import with that identity is."""

    identity: ImportIdentity
    run: str = dataclasses.field(default_factory=lambda: uuid4().hex)
    done: int = 0
    rejected: int = 0
    """Of those that are done."""


def identity_of_source(path: Path | None) -> tuple[str, int | None, int | None]:
    """Name, size and time of a file; of standard input nothing is known."""
    if path is None:
        return "-", None, None
    try:
        found = path.stat()
    except OSError as error:
        raise ItemFileError(f"{path} cannot be read: {error.strerror}") from None
    return str(path.resolve()), found.st_size, found.st_mtime_ns


class StateFile:
    """The file that holds the state; without a path nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def load(self, identity: ImportIdentity) -> ImportState | None:
        """What an earlier run of the same import left; ItemFileError when it is of another one."""
        if self.path is None or not self.path.exists():
            return None
        if not self.path.is_file():
            raise ItemFileError(f"{self.path} is no file, and keeps no state: name another with --state")
        try:
            found = json.loads(self.path.read_bytes())
            version = found.pop("version")
            state = ImportState(**{**found, "identity": ImportIdentity(**found["identity"])})
            UUID(state.run)
            if type(state.done) is not int or type(state.rejected) is not int:
                raise TypeError
            if not 0 <= state.rejected <= state.done:
                raise ValueError
        except OSError as error:
            raise ItemFileError(f"{self.path} cannot be read: {error.strerror}") from None
        except (ValueError, TypeError, LookupError, AttributeError):
            version, state = None, None
        if version != _VERSION or state is None:
            raise ItemFileError(
                f"{self.path} is not the state of an import; --restart begins anew without it"
            )
        if state.identity != identity:
            raise ItemFileError(
                f"{self.path} is the state of another import: {_difference(state.identity, identity)}. "
                "--restart begins anew without it, --state FILE keeps both"
            )
        return state

    def save(self, state: ImportState) -> None:
        """Puts a state in place of the one before, durably."""
        if self.path is None:
            return
        partial = self.path.with_name(f".{self.path.name}.partial")
        try:
            with partial.open("w", encoding="utf-8") as file:
                json.dump({"version": _VERSION, **dataclasses.asdict(state)}, file)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self.path)
        except OSError as error:
            raise ItemFileError(
                f"the state of the import cannot be kept in {self.path}: {error.strerror}; name another file with "
                "--state"
            ) from None

    def remove(self) -> None:
        """Forgets it all."""
        if self.path is not None and self.path.is_file():
            self.path.unlink()


def _difference(found: ImportIdentity, wanted: ImportIdentity) -> str:
    texts = {
        "source": "it reads another file",
        "source_bytes": "the file has changed since",
        "source_modified_ns": "the file has changed since",
        "endpoint": f"it goes to {found.endpoint}",
        "container": f"it goes to {found.container}",
        "container_rid": "the container was made anew since",
        "is_upsert": f"it was run {'with' if found.is_upsert else 'without'} --upsert",
    }
    return next(text for name, text in texts.items() if getattr(found, name) != getattr(wanted, name))
