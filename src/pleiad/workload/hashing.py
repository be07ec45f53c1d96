"""Records without the values in them: keys, ids and values of filters replaced by keyed hashes.

Equal values have equal hashes under one secret, so all that is counted and compared is as it was, and only who has the
secret can try out what a value may have been. Null and missing values stay: they say nothing, and mean something of
their own in a partition key. Paths and the names of containers stay as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

from pleiad.workload.record import Value

SECRET_BYTES: Final = 32
_HASH_BYTES: Final = 8
_REMEMBERED_MAX: Final = 50_000


Brief = tuple[float, str, tuple[Any, ...], str, float, int]
"""A good request on one item: when it began by the clock of the process, operation, key, id, charge and size."""


class Hasher:
    """The hashes of one secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._remembered: dict[str, str] = {}

    def value(self, value: Value) -> Value:
        """The hash of one value; the value itself where it is null or missing."""
        if isinstance(value, str):
            known = self._remembered.get(value)
            return self._remember(value) if known is None else known
        if value is None or not isinstance(value, int | float):
            return value
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # 1 and 1.0 are one value
        return self._digest(f"{type(value).__name__}{value!r}")

    def briefs(self, briefs: Iterable[Brief]) -> list[list[Any]]:
        """Briefs with hashes, each with a mark that it has them. Every request comes here: it is a few look-ups."""
        known, value = self._remembered.get, self.value
        return [
            [
                at,
                operation,
                [known(key[0]) or value(key[0])] if len(key) == 1 else [value(each) for each in key],
                known(id) or value(id),
                charge_ru,
                size_bytes,
                True,
            ]
            for at, operation, key, id, charge_ru, size_bytes in briefs
        ]

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

    def _remember(self, text: str) -> str:
        if len(self._remembered) >= _REMEMBERED_MAX:
            self._remembered.clear()
        found = self._remembered[text] = self._digest(f"str{text}")
        return found

    def _digest(self, text: str) -> str:
        raw = text.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(raw, digest_size=_HASH_BYTES, key=self._secret).hexdigest()
