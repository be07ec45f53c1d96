"""Connection strings, as the service hands them out: `AccountEndpoint=...;AccountKey=...;`.

No text made here holds a part of the string: it has a key in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_ENDPOINT = "accountendpoint"
_KEY = "accountkey"


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where a server is, and the key to it when that was said along."""

    endpoint: str
    key: str | None = field(default=None, repr=False)


def parse(text: str) -> Whereabouts:
    """What an endpoint or a connection string says; ValueError when a connection string cannot be read."""
    if "=" not in text:
        return Whereabouts(text)
    parts: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        name, equals, value = part.partition("=")
        if not equals or name.lower() in parts:
            raise ValueError(_UNREADABLE)
        parts[name.lower()] = value
    if not parts.get(_ENDPOINT):
        raise ValueError(_UNREADABLE)
    return Whereabouts(parts[_ENDPOINT], parts.get(_KEY) or None)


_UNREADABLE = "the connection string cannot be read: it looks like AccountEndpoint=http://localhost:8081/;AccountKey=...;"
