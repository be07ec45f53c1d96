"""Requests from a seed: any route with anything in it, or a good request with something wrong, as bytes or as parts.

One seed is one request, so a finding is repeated by its number alone.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

from attack.fuzzing import vocabulary as words

CONTAINER = words.CONTAINER
ODD_NUMBERS = (10**30, -(2**63), 2**64, 1.5, -0.0, 1e308)
ODD_BODIES = (b"{", b'{"id":"1","id":"2"}', b"[" * 3000, b'{"a":' * 200 + b"1" + b"}" * 200, b"\xff{}")
STARTS: tuple[list[str], ...] = (
    [], ["dbs"], ["offers"], ["dbs", "fuzz"], ["dbs", "fuzz", "users"], ["dbs", "fuzz", "colls"],
    *([CONTAINER] * 8),
    ["dbs", "fuzz", "users", "u"], ["dbs", "fuzz", "users", "u", "permissions"],
    ["dbs", "fuzz", "clientencryptionkeys"], ["_pleiad", "health"], ["_pleiad", "v1", "warnings"],
    ["_pleiad", "v1", *CONTAINER, "partitions"],
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FuzzedRequest:
    """One request before it is signed."""

    seed: int
    method: str
    segments: list[str]
    headers: dict[str, str]
    body: bytes
    slash: bool

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.method} {self.segments} {self.headers} {self.body[:300]!r}"


class RequestMaker:
    """The request of one seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._dice = random.Random(seed)

    def make(self) -> FuzzedRequest:
        """Half of them are good requests with one thing wrong: those get furthest."""
        dice = self._dice
        made = self._spoiled() if dice.random() < 0.5 else self._anything()
        method, path, headers, body = made
        # Removing the ground itself would make the rest of a run pointless.
        if method == "DELETE" and path[:2] == ["dbs", "fuzz"] and len(path) in (2, 4):
            path = ["dbs", "nothing"]
        return FuzzedRequest(self._seed, method, path, sendable(headers), as_bytes(body), dice.random() < 0.1)

    def _anything(self) -> tuple[str, list[str], dict[str, str], Any]:
        return self._dice.choice(words.METHODS), self.path(), self.headers(), self.body()

    def _spoiled(self) -> tuple[str, list[str], dict[str, str], Any]:
        dice = self._dice
        method, path, usual, content = dice.choice(words.GOOD_REQUESTS)
        change = dice.choice(("headers", "headers", "body", "merge", "path"))
        if change == "merge" and isinstance(content, dict):
            more = self.body()
            content = {**content, **more} if isinstance(more, dict) else more
        elif change in ("body", "merge"):
            content = self.body()
        if change == "path" and path:
            path = list(path)
            path[dice.randrange(len(path))] = self.name()
        extra = self.headers() if change != "body" else {}
        return method, path, {"x-ms-documentdb-partitionkey": '["a"]', **usual, **extra}, content

    def name(self) -> str:
        """A name of a resource, or what was never meant to be one."""
        dice = self._dice
        if dice.random() < 0.6:
            return dice.choice(words.NAMES)
        letters = "abcAZ09_-.~/\\?#%&=+ \t\x00é\U0001f600"
        return "".join(dice.choice(letters) for _ in range(dice.randrange(7)))

    def path(self) -> list[str]:
        """A path of the route table with some of its parts exchanged."""
        dice = self._dice
        start = list(dice.choice(STARTS))
        if start == CONTAINER:
            start.append(dice.choice(words.KINDS))
        whole = [*start, *(self.name() for _ in range(dice.choice((0, 0, 1, 1, 1, 2, 3))))]
        if whole and dice.randrange(16) == 0:
            whole[dice.randrange(len(whole))] = self.name()
        return whole

    def headers(self) -> dict[str, str]:
        """A few headers with odd values; those that break the signature come less often."""
        dice = self._dice
        found: dict[str, str] = {}
        for _ in range(dice.randrange(5)):
            names = words.HEADERS if dice.random() < 0.3 else words.HEADERS[:-4]
            if dice.random() < 0.7:
                value = dice.choice(words.ODD_TEXTS)
            else:
                value = "".join(chr(dice.randrange(1, 256)) for _ in range(dice.randrange(9)))
            found[dice.choice(names)] = value
        return found

    def scalar(self) -> Any:
        """Any value without members."""
        dice = self._dice
        return dice.choice(
            (None, True, False, dice.randrange(-5, 6), dice.choice(ODD_NUMBERS), dice.choice(words.STRINGS))
        )

    def value(self, depth: int = 0) -> Any:
        """Any JSON value."""
        dice = self._dice
        kind = dice.random()
        if depth > 3 or kind < 0.5:
            return self.scalar()
        if kind < 0.7:
            return [self.value(depth + 1) for _ in range(dice.randrange(5))]
        return {dice.choice(words.PROPERTIES): self.value(depth + 1) for _ in range(dice.randrange(6))}

    def body(self) -> Any:
        """A body of one of the kinds that routes expect, or of none."""
        dice = self._dice
        forms = (
            lambda: dice.randbytes(dice.randrange(30)),
            self.value,
            lambda: {"id": self.scalar(), "pk": self.scalar(), "ttl": self.scalar(), "more": self.value()},
            lambda: {
                **self._members(),
                "id": dice.choice(("n1", "n2", "é", "a b")),
                "partitionKey": words.KEY,
            },
            lambda: {"query": dice.choice(words.STRINGS), "parameters": self.value()},
            lambda: {
                "operations": [self._operation() for _ in range(dice.randrange(12))],
                "condition": self.scalar(),
            },
            lambda: [self._batched() for _ in range(dice.randrange(5))],
            lambda: dice.choice(ODD_BODIES),
        )
        return dice.choice(forms)()

    def _members(self) -> dict[str, Any]:
        dice = self._dice
        return {dice.choice(words.PROPERTIES): self.value() for _ in range(dice.randrange(3))}

    def _operation(self) -> dict[str, Any]:
        dice = self._dice
        return {
            "op": dice.choice(("add", "set", "replace", "remove", "incr", "move", "copy", 1)),
            "path": dice.choice(("/a", "/a/b", "/list/-", "/list/0", "/pk", "/id", "/", "", "a", "/a~2", 5)),
            "value": self.value(),
        }

    def _batched(self) -> dict[str, Any]:
        dice = self._dice
        return {
            "operationType": dice.choice(
                ("Create", "Upsert", "Read", "Delete", "Replace", "Patch", "x", None, 3)
            ),
            "partitionKey": dice.choice(('["a"]', "[]", "a", None, ["a"])),
            "id": self.scalar(),
            "resourceBody": dice.choice(({"id": "b", "pk": "a"}, self.value())),
        }


def as_bytes(value: Any) -> bytes:
    """A body as it is sent."""
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def sendable(headers: dict[str, str]) -> dict[str, str]:
    """Without the control characters that would end a header line."""
    return {
        name: "".join(c for c in value if c == "\t" or (c >= " " and c != "\x7f"))
        for name, value in headers.items()
    }


WIRE_TOKENS = (
    b"\r\n", b"\r\n\r\n", b"\x00", b"\xff", b":", b" ", b"0", b"-1", b"Content-Length: 9\r\n", b"HTTP/1.1",
    b"Transfer-Encoding: chunked\r\n", b"Upgrade: x\r\nConnection: upgrade\r\n", b"Expect: 100-continue\r\n",
    b"Connection: close\r\n", b"CONNECT a HTTP/1.1\r\n\r\n", b"x" * 3000, b"\n", b"\r", b"\t", b"%", b"%00", b"%ff",
    b"Content-Length: 5\r\nContent-Length: 6\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01", b"Host: a\r\n",
)  # fmt: skip


def bent(data: bytes, dice: random.Random) -> bytes:
    """A message with bytes cut out, replaced and put in."""
    for _ in range(dice.randrange(1, 5)):
        start = dice.randrange(len(data) + 1)
        end = min(len(data), start + dice.randrange(7))
        piece = dice.choice(WIRE_TOKENS) if dice.random() < 0.6 else dice.randbytes(dice.randrange(5))
        data = data[:start] + piece + data[end:]
    return data
