"""The keys of an account, as values, and which of them are in force.

An account has up to four: two that may do everything and two that may read, so that one of each kind can be replaced
while clients sign with the other.

Invariants
- A set of keys never changes; another set takes its place in one step, and everybody who keeps something that follows
  from the keys is told before the step is over.
- A key never appears in a text made here: not in an error, not in a representation.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

EMULATOR_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
"""The key every Cosmos DB emulator shares. It is public, so it protects nothing beyond the loopback address."""

SECRET_BYTES_MIN = 16
_FINGERPRINT_CHARACTERS = 12


class KeyName(Enum):
    """The four keys, by the names the service lists them under."""

    PRIMARY = "primaryMasterKey"
    SECONDARY = "secondaryMasterKey"
    READ_ONLY = "primaryReadonlyMasterKey"
    SECONDARY_READ_ONLY = "secondaryReadonlyMasterKey"

    @property
    def is_master(self) -> bool:
        """Whether it may do everything, and not only read."""
        return self in (KeyName.PRIMARY, KeyName.SECONDARY)


@dataclass(frozen=True, slots=True)
class AccountKey:
    """One key of the account."""

    name: KeyName
    text: str = field(repr=False)
    """Base64, as operators and clients write it."""
    secret: bytes = field(repr=False)
    """What is signed with."""

    def fingerprint(self) -> str:
        """What tells this key from others and is too expensive to guess it from."""
        return digest(self.text)[:_FINGERPRINT_CHARACTERS]


class AccountKeys:
    """The keys of an account at one time."""

    def __init__(
        self,
        primary: str,
        read_only: str | None = None,
        secondary: str | None = None,
        secondary_read_only: str | None = None,
    ) -> None:
        """ValueError, with a sentence for the operator, when one of them is no key."""
        given = {
            KeyName.PRIMARY: primary,
            KeyName.SECONDARY: secondary,
            KeyName.READ_ONLY: read_only,
            KeyName.SECONDARY_READ_ONLY: secondary_read_only,
        }
        self.all = tuple(AccountKey(name, text, decode_key(text)) for name, text in given.items() if text)
        """Master keys first, the primary before the secondary."""
        if not self.all or self.all[0].name is not KeyName.PRIMARY:
            raise ValueError("an account needs a primary master key")

    @property
    def primary(self) -> AccountKey:
        return self.all[0]

    @property
    def masters(self) -> tuple[AccountKey, ...]:
        return tuple(key for key in self.all if key.name.is_master)

    @property
    def has_emulator_key(self) -> bool:
        """Whether one of them is the key everybody knows."""
        return any(key.secret == _EMULATOR_SECRET for key in self.all)

    def has(self, text: str) -> bool:
        """Whether a text is one of the keys, for the few who cannot sign."""
        given = text.encode("utf-8", "replace")
        found = [hmac.compare_digest(given, b64encode(key.secret)) for key in self.all]
        return any(found)


class KeysInForce:
    """Which keys hold now. It belongs to one event loop, and all of its changes happen there."""

    def __init__(self, keys: AccountKeys, source: str = "options") -> None:
        self.keys = keys
        self.source = source
        """Where they come from: `options` or `file`."""
        self.since = time.time()
        self.problem: str | None = None
        """Why the keys that are wanted since are not in force, while that is so."""
        self._watchers: list[Callable[[AccountKeys], None]] = []

    def watch(self, renew: Callable[[AccountKeys], None]) -> None:
        """Have whoever keeps something that follows from the keys told of others, before they are in force."""
        self._watchers.append(renew)

    def replace(self, keys: AccountKeys) -> None:
        """Put other keys in force: from now on nothing is proven by the old ones."""
        for renew in self._watchers:
            renew(keys)
        self.keys = keys
        self.since = time.time()
        self.problem = None


def decode_key(key: str) -> bytes:
    """The bytes of an account key; ValueError when it is not base64."""
    try:
        decoded = b64decode(key, validate=True)
    except (Base64Error, ValueError):
        raise ValueError("an account key is base64 text, such as `openssl rand -base64 64` prints") from None
    if len(decoded) < SECRET_BYTES_MIN:
        raise ValueError(
            "an account key needs at least 16 bytes; `openssl rand -base64 64` prints a good one"
        )
    return decoded


@lru_cache(maxsize=16)
def digest(key: str) -> str:
    """A digest of a key that is expensive to guess from; it takes some milliseconds."""
    return hashlib.scrypt(key.encode(), salt=b"pleiad server settings", n=2**12, r=8, p=1, dklen=16).hex()


_EMULATOR_SECRET = b64decode(EMULATOR_KEY)
