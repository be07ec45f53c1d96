"""Kinds of entities and what each of them is partitioned by, declared once.

A strategy says which partition key value an entity has, and so what has to be known to read one: nothing beside its id
(self-partitioned, global), or the id of its parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pleiad.strategy.item_path import names_of, value_at
from pleiad.strategy.key_text import BadKeyPart, checked_key

GLOBAL_KEY = "global"


@dataclass(frozen=True, slots=True)
class SelfPartitioned:
    """Partitioned by its own id: for what is read by itself and has no parent, such as a workspace."""

    def key_of(self, item: Mapping[str, Any]) -> str:
        return _key(value_at(item, "id"), "id")


@dataclass(frozen=True, slots=True)
class ParentScoped:
    """Partitioned by the id of its parent, so that its children are one logical partition: projects of a workspace."""

    parent_path: str

    def __post_init__(self) -> None:
        names_of(self.parent_path)

    def key_of(self, item: Mapping[str, Any]) -> str:
        return _key(value_at(item, self.parent_path), self.parent_path)


@dataclass(frozen=True, slots=True)
class Global:
    """All in one partition with a constant key: for what cuts across, and is little: users, groups, permissions."""

    key: str = GLOBAL_KEY

    def __post_init__(self) -> None:
        _key(self.key, "the constant key")

    def key_of(self, _item: Mapping[str, Any]) -> str:
        return self.key


Strategy: TypeAlias = SelfPartitioned | ParentScoped | Global


@dataclass(frozen=True, slots=True)
class Entity:
    """A kind of entity: the value of its type property, and its strategy."""

    doc_type: str
    strategy: Strategy

    def __post_init__(self) -> None:
        if not self.doc_type:
            raise ValueError("a kind of entity has a name")

    def key_for(self, id: str | None = None, parent: str | None = None) -> str | None:
        """The partition key value of what is known of an entity; None when that does not tell it.

        ValueError when a parent is named for an entity that has none.
        """
        if isinstance(self.strategy, ParentScoped):
            return None if parent is None else _key(parent, "parent")
        if parent is not None:
            raise ValueError(f"a {self.doc_type} has no parent: it is {type(self.strategy).__name__}")
        if isinstance(self.strategy, Global):
            return self.strategy.key
        return None if id is None else _key(id, "id")


def _key(value: Any, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise BadKeyPart(f"{path} is {str(value)[:60]!r}: the key of an entity is a text that is not empty")
    return checked_key(value)
