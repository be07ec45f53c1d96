"""The entities of a container: each kind is declared once, and every request for one has the right partition key.

Items carry their kind in a type property, so that kinds can share a partition. An item of another kind is none: it is
not read, replaced or deleted in its name. Items that have left their partition by a move are none either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pleiad.strategy.entity import Entity, ParentScoped
from pleiad.strategy.item_path import MissingProperty, value_at, with_value
from pleiad.strategy.move.mark import MARK, MoveState, mark_of
from pleiad.strategy.move.move import UPDATED_AT, move_item
from pleiad.strategy.plan import Create, Delete, Item, Plan, Query, Read, Refusal, Replace, call
from pleiad.strategy.synthetic_key import KEY_PATH

TYPE_NAME = "docType"
_TYPE_PARAMETER = "@docType"
_ATTEMPTS_MAX = 10


class AcrossPartitions(ValueError):
    """A query that would go to all partitions without having been told to."""


class EntityExists(RuntimeError):
    """There is an item with this id in this partition already, or one with the same unique key."""


class EntityChanged(RuntimeError):
    """An entity is another version than the one that was read, or gone: read it, change it and try again."""


class Entities:
    """Kinds of entities that share a container.

    `key_path` is the container's partition key path, and `type_name` the property that says of which kind an item is.
    """

    def __init__(self, *kinds: Entity, key_path: str = KEY_PATH, type_name: str = TYPE_NAME) -> None:
        self._kinds = {kind.doc_type: kind for kind in kinds}
        if len(self._kinds) != len(kinds):
            raise ValueError("a kind of entity is declared once")
        self.key_path = key_path
        self.type_name = type_name

    def __iter__(self) -> Iterator[Entity]:
        return iter(self._kinds.values())

    def kind(self, doc_type: str) -> Entity:
        """A kind by its name; ValueError when there is none."""
        if doc_type not in self._kinds:
            known = ", ".join(sorted(self._kinds)) or "none"
            raise ValueError(f"there is no kind of entity '{doc_type}' (declared: {known})")
        return self._kinds[doc_type]

    def prepared(self, doc_type: str, entity: Mapping[str, Any]) -> Item:
        """The item of an entity, with its kind and its partition key; ValueError says what does not fit."""
        kind = self.kind(doc_type)
        id = entity.get("id")
        if not isinstance(id, str) or not id:
            raise ValueError(f"a {doc_type} needs an id, a text that is not empty")
        if entity.get(self.type_name, doc_type) != doc_type:
            raise ValueError(f"the item {id!r} is a {entity[self.type_name]}, and no {doc_type}")
        return with_value({**entity, self.type_name: doc_type}, self.key_path, kind.strategy.key_of(entity))

    def create(self, doc_type: str, entity: Mapping[str, Any]) -> Plan[Item]:
        """A new entity; EntityExists when its partition has an item with its id."""
        item = self.prepared(doc_type, entity)
        _refuse_mark(item)
        written = yield from call(Create(item))
        if written.item is None:
            raise EntityExists(f"the {doc_type} {item['id']!r} cannot be created: {Refusal.EXISTS.value}")
        return written.item

    def read(self, doc_type: str, id: str, *, parent: str | None = None) -> Plan[Item | None]:
        """An entity by its id, and by its parent where it has one: a point read. None when there is none."""
        read = yield from call(Read(id, self._key_of_one(doc_type, id, parent)))
        return self._own(doc_type, read.item)

    def replace(self, doc_type: str, entity: Mapping[str, Any]) -> Plan[Item]:
        """An entity as it was read and changed since; EntityChanged when it is not the version any more that was read.

        It stays in its partition: ValueError when its parent is another one, which is a `move`, or when it has no
        `_etag` to tell the version.
        """
        item = self.prepared(doc_type, entity)
        etag = entity.get("_etag")
        if not isinstance(etag, str):
            raise ValueError(f"the {doc_type} {item['id']!r} was not read before: it has no _etag")
        if _is_known_elsewhere(entity, item, self.key_path):
            raise ValueError(f"the {doc_type} {item['id']!r} would change its partition: move it")
        has_left = self._own(doc_type, item) is None
        written = None if has_left else (yield from call(Replace(item, etag))).item
        if written is None:
            raise EntityChanged(
                f"the {doc_type} {item['id']!r} was changed, moved or deleted since it was read"
            )
        return written

    def upsert(self, doc_type: str, entity: Mapping[str, Any]) -> Plan[Item]:
        """An entity, new or in place of what there is of it, whichever version that is; never of another kind."""
        item = self.prepared(doc_type, entity)
        _refuse_mark(item)
        key = value_at(item, self.key_path)
        for _ in range(_ATTEMPTS_MAX):
            present = (yield from call(Read(item["id"], key))).item
            if present is None:
                written = yield from call(Create(item))
            elif self._own(doc_type, present) is None:
                raise EntityExists(
                    f"there is an item {item['id']!r} in {key!r} that is no {doc_type}, or is just moved away"
                )
            else:
                # The mark of a move that is under way stays, so that the move takes the update with it.
                kept = {MARK: present[MARK]} if MARK in present else {}
                written = yield from call(Replace({**item, **kept}, present["_etag"]))
            if written.item is not None:
                return written.item
        raise EntityChanged(
            f"the {doc_type} {item['id']!r} is changed by others all the time, or a unique key is taken"
        )

    def delete(self, doc_type: str, id: str, *, parent: str | None = None) -> Plan[bool]:
        """Deletes an entity, whichever version it is; whether there was one."""
        key = self._key_of_one(doc_type, id, parent)
        for _ in range(_ATTEMPTS_MAX):
            present = self._own(doc_type, (yield from call(Read(id, key))).item)
            if present is None:
                return False
            gone = yield from call(Delete(id, key, present["_etag"]))
            if gone.refusal is not Refusal.CHANGED:
                return gone.refusal is None
        raise EntityChanged(f"the {doc_type} {id!r} is changed by others all the time")

    def query(
        self,
        doc_type: str,
        where: str = "",
        parameters: Mapping[str, Any] | None = None,
        *,
        order_by: str = "",
        parent: str | None = None,
        id: str | None = None,
        is_across: bool = False,
        items_max: int | None = None,
    ) -> Plan[list[Item]]:
        """The entities of a kind: in the partition of a parent, of an id or of all, where the strategy says so.

        `where` is a condition on `c`, with values as parameters such as `@email`; `order_by` for example `c.createdAt
        DESC`. AcrossPartitions when nothing tells the partition, unless `is_across` says that all shall be asked.
        """
        kind = self.kind(doc_type)
        key = kind.key_for(id, parent)
        if key is None and not is_across:
            raise AcrossPartitions(f"to find a {doc_type} all partitions would be asked: {_needed(kind)}")
        text, bound = self._query_text(doc_type, where, parameters or {}, order_by)
        found = yield from call(Query(text, bound, key, items_max))
        return _once(found.items)

    def move(
        self,
        doc_type: str,
        id: str,
        *,
        parent: str,
        to_parent: str,
        changes: Mapping[str, Any] | None = None,
        updated_at_path: str | None = UPDATED_AT,
    ) -> Plan[Item | None]:
        """Moves an entity to another parent, and so to another partition; None when there is none to be moved."""
        kind = self.kind(doc_type)
        if not isinstance(kind.strategy, ParentScoped):
            raise ValueError(f"a {doc_type} stays where it is: it is {type(kind.strategy).__name__}")
        source, target = kind.key_for(parent=parent), kind.key_for(parent=to_parent)
        assert source is not None
        assert target is not None
        present = (yield from call(Read(id, source))).item
        if present is None or present.get(self.type_name) != doc_type:
            return None
        moved = yield from move_item(
            id,
            source,
            target,
            key_path=self.key_path,
            changes={**(changes or {}), kind.strategy.parent_path: to_parent},
            updated_at_path=updated_at_path,
        )
        return moved

    def _key_of_one(self, doc_type: str, id: str, parent: str | None) -> str:
        kind = self.kind(doc_type)
        key = kind.key_for(id, parent)
        if key is None:
            raise ValueError(f"a {doc_type} is read by its id and its parent: {_needed(kind)}")
        return key

    def _own(self, doc_type: str, item: Item | None) -> Item | None:
        """The item, if it is one of this kind and has not left."""
        if item is None or item.get(self.type_name) != doc_type:
            return None
        mark = mark_of(item)
        return None if mark is not None and mark.state is MoveState.LEFT else item

    def _query_text(
        self, doc_type: str, where: str, parameters: Mapping[str, Any], order_by: str
    ) -> tuple[str, dict[str, Any]]:
        unnamed = [name for name in parameters if not name.startswith("@")]
        if unnamed:
            raise ValueError(f"the name of a parameter begins with @: {', '.join(unnamed)}")
        if _TYPE_PARAMETER in parameters:
            raise ValueError(f"{_TYPE_PARAMETER} is the kind itself: call the parameter otherwise")
        text = f"SELECT * FROM c WHERE c[{_quoted(self.type_name)}] = {_TYPE_PARAMETER}"
        text += f" AND (NOT IS_DEFINED(c.{MARK}.state) OR c.{MARK}.state != 'left')"
        # The line ends before the bracket does, so that a comment in the condition cannot swallow it.
        text += f" AND ({where}\n)" if where else ""
        text += f" ORDER BY {order_by}" if order_by else ""
        return text, {_TYPE_PARAMETER: doc_type, **parameters}


def _refuse_mark(item: Mapping[str, Any]) -> None:
    if MARK in item:
        raise ValueError(f"the property {MARK} belongs to moves: an entity that is written anew has none")


def _is_known_elsewhere(entity: Mapping[str, Any], item: Mapping[str, Any], key_path: str) -> bool:
    """Whether an entity was read from another partition than the one that its properties now name."""
    try:
        return bool(value_at(entity, key_path) != value_at(item, key_path))
    except MissingProperty:
        return False


def _once(found: tuple[Item, ...]) -> list[Item]:
    """An item that is on its way once, though it is found in both its partitions."""
    leaving = {
        (item["id"], mark.move_id)
        for item in found
        if (mark := mark_of(item)) is not None and mark.state is MoveState.LEAVING
    }
    return [
        item
        for item in found
        if (mark := mark_of(item)) is None
        or mark.state is not MoveState.ARRIVING
        or (item["id"], mark.move_id) not in leaving
    ]


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _needed(kind: Entity) -> str:
    if isinstance(kind.strategy, ParentScoped):
        return f"name its parent ({kind.strategy.parent_path}), or ask for all with is_across"
    return "name its id, or ask for all with is_across"
