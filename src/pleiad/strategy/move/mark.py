"""The marks that a move leaves on both versions of its item, from which anybody can bring it to an end."""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pleiad.strategy.item_path import with_value
from pleiad.strategy.plan import Item, KeyValue

MARK = "pleiadMove"
"""The property of an item that a move keeps its mark in."""
_SYSTEM_PROPERTIES = frozenset({"_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"})


class MoveState(enum.Enum):
    """What an item that carries a mark is to its move."""

    LEAVING = "leaving"
    """The item, still in force where it was."""
    LEFT = "left"
    """The item no more: its copy is in force."""
    ARRIVING = "arriving"
    """The copy; in force when the item has left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What a mark says. A move is the same in two marks when its id and both its keys are."""

    move_id: str
    state: MoveState
    source: KeyValue
    target: KeyValue
    changes: Mapping[str, Any] = field(default_factory=dict)
    """What the copy differs in, by path: its key, and what else the mover asked for."""
    source_etag: str = ""
    """Of a copy: the version of the item that it is a copy of."""
    digest: str = ""
    """The content that was marked, so that later changes by others show."""

    def is_of(self, move: Mark) -> bool:
        return (self.move_id, self.source, self.target) == (move.move_id, move.source, move.target)

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.move_id,
            "state": self.state.value,
            "from": self.source,
            "to": self.target,
            "changes": dict(self.changes),
            "sourceEtag": self.source_etag,
            "digest": self.digest,
        }


def mark_of(item: Mapping[str, Any]) -> Mark | None:
    """The mark of an item; None when it has none, or something else in its place."""
    found = item.get(MARK)
    if not isinstance(found, Mapping):
        return None
    texts = {name: found.get(name, "") for name in ("id", "state", "sourceEtag", "digest")}
    keys = (found.get("from"), found.get("to"))
    changes = found.get("changes", {})
    is_ours = (
        all(isinstance(text, str) for text in texts.values())
        and texts["state"] in {state.value for state in MoveState}
        and all(isinstance(key, str | int | float) for key in keys)
        and isinstance(changes, Mapping)
    )
    if not is_ours:
        return None
    return Mark(
        move_id=texts["id"],
        state=MoveState(texts["state"]),
        source=found["from"],
        target=found["to"],
        changes=changes,
        source_etag=texts["sourceEtag"],
        digest=texts["digest"],
    )


def content_of(item: Mapping[str, Any]) -> Item:
    """An item without its mark and without what the server puts into it."""
    return {name: value for name, value in item.items() if name != MARK and name not in _SYSTEM_PROPERTIES}


def digest_of(item: Mapping[str, Any]) -> str:
    """A digest of the content of an item that is the same after it was stored and read."""
    text = json.dumps(_as_stored(content_of(item)), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def leaving(item: Mapping[str, Any], move: Mark) -> Item:
    """The item with the mark that it is about to leave."""
    return _marked(content_of(item), replace(move, state=MoveState.LEAVING))


def left(item: Mapping[str, Any], move: Mark) -> Item:
    """The item with the mark that its copy is in force."""
    content = content_of(item)
    return _marked(content, replace(move, state=MoveState.LEFT, source_etag="", digest=digest_of(content)))


def arriving(item: Mapping[str, Any], move: Mark) -> Item:
    """The copy of an item, with its key and the other changes, and with its mark."""
    content = content_of(item)
    for path, value in move.changes.items():
        content = with_value(content, path, value)
    mark = replace(move, state=MoveState.ARRIVING, source_etag=str(item["_etag"]), digest=digest_of(content))
    return _marked(content, mark)


def _marked(content: Item, mark: Mark) -> Item:
    return {**content, MARK: mark.as_json()}


def _as_stored(value: Any) -> Any:
    """A value with its numbers as doubles, which is what a stored number is, whatever it looked like before."""
    match value:
        case Mapping():
            return {name: _as_stored(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_as_stored(inner) for inner in value]
        case bool():
            return value
        case int() | float():
            try:
                return float(value)
            except OverflowError:
                return str(value)
    return value
