"""What a backup says of itself: the point in time it holds, and every file with its checksum."""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from pleiad.store.sqlite.directory import BACKUP_FILE, CATALOG_FILE

FORMAT = 1
_PATH = re.compile(rf"{re.escape(CATALOG_FILE)}|segments/[^/\\:\0]+\.sqlite")
"""What a file of a backup may be called: nothing that leads elsewhere on any system."""
_CHUNK_BYTES = 1 << 20


class BackupError(Exception):
    """Why a backup cannot be taken, used or restored, with a sentence for the operator."""


@dataclass(frozen=True, slots=True)
class BackupFile:
    """One file of a backup."""

    path: str
    """Beneath the folder of the backup."""
    size_bytes: int
    sha256: str
    signature: tuple[int, ...] = ()
    """What the copied file was known by; empty when that told nothing."""
    is_new: bool = True
    """Copied for this backup, and not shared with the one before."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One whole backup."""

    name: str
    account: str
    taken_at: float
    generation: int
    version: str
    """Of the Pleiad that took it."""
    files: tuple[BackupFile, ...]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def new_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files if file.is_new)

    @property
    def segments(self) -> int:
        return len(self.files) - 1

    def summary(self) -> dict[str, Any]:
        """What an operator is told of it, in the words of the admin API."""
        return {
            "name": self.name,
            "state": "whole",
            "takenAt": moment(self.taken_at),
            "bytes": self.size_bytes,
            "newBytes": self.new_bytes,
            "segments": self.segments,
        }


def moment(seconds: float) -> str:
    """A time as operators read it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def name_of(seconds: float) -> str:
    """The name of a backup: names in their order are times in their order."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H%M%SZ")


def own_version() -> str:
    return version("pleiad")


def write_manifest(folder: Path, manifest: Manifest) -> Path:
    """Writes the manifest of a backup into its folder."""
    path = folder / BACKUP_FILE
    content = {"format": FORMAT, **asdict(manifest)}
    path.touch(mode=0o600)
    path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
    return path


def read_manifest(folder: Path) -> Manifest:
    """The manifest in the folder of a backup; BackupError when there is none that can be read."""
    try:
        found: Any = orjson.loads((folder / BACKUP_FILE).read_bytes())
        if found.pop("format") != FORMAT:
            raise BackupError(f"{folder} was made by a newer Pleiad: restore it with that version")
        files = tuple(
            BackupFile(**{**each, "signature": tuple(each["signature"])}) for each in found.pop("files")
        )
        manifest = Manifest(**found, files=files)
        _check_values(manifest)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise BackupError(f"{folder} is no backup, or its {BACKUP_FILE} cannot be read: {error}") from error
    if any(_PATH.fullmatch(file.path) is None for file in manifest.files):
        raise BackupError(f"the {BACKUP_FILE} of {folder} names a file that is not in it")
    return manifest


def _check_values(manifest: Manifest) -> None:
    """Raises TypeError, ValueError or OverflowError for what was never written; anybody may have put a file there."""
    texts = [manifest.name, manifest.account, manifest.version]
    numbers = [manifest.generation]
    for file in manifest.files:
        texts += [file.path, file.sha256]
        numbers += [file.size_bytes, *file.signature]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a text is none")
    if not all(type(number) is int for number in numbers):
        raise TypeError("a number is none")
    moment(manifest.taken_at)


def is_in_place(folder: Path, file: BackupFile) -> bool:
    """Whether a file of a backup is there with its length: a file itself, and nothing that leads elsewhere."""
    try:
        found = (folder / file.path).lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size == file.size_bytes


def checksum_of(path: Path, between: Callable[[], None] = lambda: None) -> str:
    """The SHA-256 of a file; `between` is called now and then, and may raise to give up."""
    summed = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            summed.update(chunk)
            between()
    return summed.hexdigest()


def faults_of(folder: Path, manifest: Manifest) -> list[tuple[str, str]]:
    """The files of a backup that are not what was written, each with what is wrong."""
    faults = []
    for file in manifest.files:
        path = folder / file.path
        if not path.exists():
            faults.append((file.path, "it is missing"))
        elif not is_in_place(folder, file) or checksum_of(path) != file.sha256:
            faults.append((file.path, "it is not the file that was written"))
    return faults
