"""The heads there are, each with its port and its option: what the command line, the test kit and a node all go by.

The ports are those of the service's emulator. NoSQL is always on, since health, metrics and the admin API are on its
port. A head that this version does not have yet is refused by name, so that nobody waits at a port where nothing is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ALL = "all"
NOSQL = "nosql"


@dataclass(frozen=True, slots=True)
class Head:
    """A protocol front."""

    name: str
    title: str
    port: int
    option: str
    is_here: bool
    """Whether this version has it."""


HEADS = (
    Head(NOSQL, "NoSQL", 8081, "--port", is_here=True),
    Head("gremlin", "Gremlin", 8901, "--gremlin-port", is_here=False),
    Head("table", "Table", 8902, "--table-port", is_here=False),
    Head("mongo", "MongoDB", 10255, "--mongo-port", is_here=False),
    Head("cassandra", "Cassandra", 10350, "--cassandra-port", is_here=False),
)
BY_NAME = {head.name: head for head in HEADS}


def chosen(names: Iterable[str], ports: Mapping[str, int]) -> dict[str, int]:
    """The ports to listen on, by head: those that are named, and those whose port is.

    ValueError, with a sentence for the operator, when one of them is unknown or not in this version.
    """
    wanted = {NOSQL, *named(names), *ports}
    missing = [head.title for head in HEADS if head.name in wanted and not head.is_here]
    if missing:
        here = ", ".join(head.name for head in HEADS if head.is_here)
        raise ValueError(f"this version has no head for {_joined(missing)}; the heads it has: {here}")
    return {head.name: ports.get(head.name, head.port) for head in HEADS if head.name in wanted}


def named(names: Iterable[str]) -> list[str]:
    """The heads that are named, where `all` is every one; ValueError when there is no such head."""
    found: list[str] = []
    for name in names:
        if name != ALL and name not in BY_NAME:
            raise ValueError(f"there is no head '{name[:100]}': it is one of {', '.join(BY_NAME)}, or {ALL}")
        found += BY_NAME if name == ALL else [name]
    return list(dict.fromkeys(found))


def _joined(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
