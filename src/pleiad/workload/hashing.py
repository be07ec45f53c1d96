"""Records without the values in them: keys, ids and values of filters replaced by keyed hashes.

Equal values have equal hashes under one secret, so all that is counted and compared is as it was, and only who has the
secret can try out what a value may have been. Null and missing values stay: they say nothing, and mean something of
their own in a partition key. Paths and the names of containers stay as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from pleiad.workload.record import Value

SECRET_BYTES: Final = 32
_HASH_BYTES: Final = 8
_REMEMBERED_MAX: Final = 50_000
_Named = TypeVar("_Named")
_Hash = TypeVar("_Hash")


class _Hashes(dict[_Named, _Hash]):
    """Hashes by what they are of, made when they are asked for; those that are asked for again are a look-up."""

    def __init__(self, made: Callable[[_Named], _Hash]) -> None:
        super().__init__()
        self._made = made

    def __missing__(self, named: _Named) -> _Hash:
        if len(self) >= _REMEMBERED_MAX:
            self.clear()
        found = self[named] = self._made(named)
        return found


class _KeyHashes(_Hashes[tuple[Value, ...], Value | list[Value]]):
    """The hashes of whole keys. Only those of texts are kept: 1 and true are one key to a dictionary."""

    def __missing__(self, named: tuple[Value, ...]) -> Value | list[Value]:
        if all(isinstance(each, str) for each in named):
            return super().__missing__(named)
        return self._made(named)


class Hasher:
    """The hashes of one secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._texts = _Hashes[str, str](lambda text: self._digest(f"str{text}"))
        self._keys = _KeyHashes(self._key)

    def value(self, value: Value) -> Value:
        """The hash of one value; the value itself where it is null or missing."""
        if isinstance(value, str):
            return self._texts[value]
        if value is None or not isinstance(value, int | float):
            return value
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # 1 and 1.0 are one value
        return self._digest(f"{type(value).__name__}{value!r}")

    def ids(self, ids: Iterable[str]) -> list[str]:
        """The hashes of ids. Every request comes here, and to `keys`: together they are two look-ups."""
        return list(map(self._texts.__getitem__, ids))

    def keys(self, keys: Iterable[tuple[Value, ...]]) -> list[Value | list[Value]]:
        """The hashes of partition keys: one for a key of one text, which most are, and a list for any other."""
        return list(map(self._keys.__getitem__, keys))

    def _key(self, key: tuple[Value, ...]) -> Value | list[Value]:
        if len(key) == 1 and isinstance(key[0], str):
            return self._texts[key[0]]
        return self._values(key)

    def fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields of a record with hashes for the values in them; themselves when they have hashes already."""
        if fields.get("hashed"):
            return fields
        done = {**fields, **self._named(fields), "hashed": True}
        if equals := fields.get("equals"):
            done["equals"] = {path: self._values(values) for path, values in equals.items()}
        if members := fields.get("members"):
            done["members"] = [{**member, **self._named(member)} for member in members]
        return done

    def _named(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The hashes of the key and the id, where there are such."""
        named: dict[str, Any] = {}
        if fields.get("key") is not None:
            named["key"] = self._values(fields["key"])
        if fields.get("id"):
            named["id"] = self.value(fields["id"])
        return named

    def _values(self, values: Iterable[Value]) -> list[Value]:
        return [self.value(value) for value in values]

    def _digest(self, text: str) -> str:
        raw = text.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(raw, digest_size=_HASH_BYTES, key=self._secret).hexdigest()
