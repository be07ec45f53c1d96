"""The keys of an account in a file, so that they can be replaced while the server runs.

The file is one JSON object with the names under which the service lists keys:

    {"primaryMasterKey": "...", "secondaryMasterKey": "...",
     "primaryReadonlyMasterKey": "...", "secondaryReadonlyMasterKey": "..."}

All but the first may be missing or null. A file that is half written is no JSON, so it is never half of the keys.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
from pathlib import Path

import orjson

from pleiad.account.keys import AccountKeys, KeyName, decode_key

FILE_BYTES_MAX = 65_536
_log = logging.getLogger(__name__)


class KeyFileError(ValueError):
    """The file cannot be used, with a sentence for the operator that names no key."""


class KeyFile:
    """A file of keys, read when it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, ...] | None = None

    def has_changed(self) -> bool:
        """Whether the file is another one, or is written to, since it was last read or looked at here."""
        before = self._seen
        self._seen = self._look()
        return self._seen != before

    def read(self) -> AccountKeys:
        """The keys in the file; raises `KeyFileError`."""
        self._seen = self._look()
        try:
            return _parse(self._content())
        except (OSError, ValueError) as error:
            reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
            raise KeyFileError(f"the key file {self.path} cannot be used: {reason}") from None

    def _look(self) -> tuple[int, ...] | None:
        """What tells one state of the file from another; None when there is none."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def _content(self) -> bytes:
        # Not to wait for a writer: the path may be that of a pipe.
        descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise ValueError("it is no file")
            if sys.platform != "win32" and found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                _log.warning("the key file %s is open to others; close it with chmod 600", self.path)
            content = file.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            raise ValueError(f"it is larger than {FILE_BYTES_MAX:,} bytes")
        return content


def _parse(content: bytes) -> AccountKeys:
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"it is not JSON (line {error.lineno}, column {error.colno})") from None
    names = {name.value: name for name in KeyName}
    if not isinstance(found, dict):
        raise ValueError(f"it must be a JSON object with the names {', '.join(names)}")
    unknown = sorted(found.keys() - names.keys())
    if unknown:
        raise ValueError(f"{unknown[0][:100]!r} is none of the names {', '.join(names)}")
    keys: dict[KeyName, str] = {}
    for name, text in found.items():
        if text is None:
            continue
        if not isinstance(text, str):
            raise ValueError(f"{name} must be a text")
        try:
            decode_key(text)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        keys[names[name]] = text
    if KeyName.PRIMARY not in keys:
        raise ValueError(f"{KeyName.PRIMARY.value} is missing")
    _check_apart(keys)
    return AccountKeys(
        keys[KeyName.PRIMARY],
        keys.get(KeyName.READ_ONLY),
        keys.get(KeyName.SECONDARY),
        keys.get(KeyName.SECONDARY_READ_ONLY),
    )


def _check_apart(keys: dict[KeyName, str]) -> None:
    """Refuses a key that is to read only and may do everything under another name."""
    masters = {decode_key(text) for name, text in keys.items() if name.is_master}
    for name, text in keys.items():
        if not name.is_master and decode_key(text) in masters:
            raise ValueError(f"{name.value} is also a master key, so it could change everything")
