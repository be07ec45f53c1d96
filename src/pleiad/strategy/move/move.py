"""A move of an item to another partition, as a saga that compensates what it cannot finish."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pleiad.strategy.move.mark import MARK, Mark, MoveState, arriving, content_of, leaving, left, mark_of
from pleiad.strategy.move.settle import Ending, MoveConflict, Wish, current, settle
from pleiad.strategy.plan import Create, Delete, Item, KeyValue, Pause, Plan, Read, Refusal, Replace, call
from pleiad.strategy.synthetic_key import KEY_PATH

UPDATED_AT = "/updatedAt"
ATTEMPTS_MAX = 12
_PAUSE_SECONDS = 0.02


class TargetTaken(RuntimeError):
    """There is another item where one shall be moved to, by its id or by a unique key; nothing was changed."""


def move_item(
    id: str,
    source: KeyValue,
    target: KeyValue,
    *,
    key_path: str = KEY_PATH,
    changes: Mapping[str, Any] | None = None,
    updated_at_path: str | None = UPDATED_AT,
) -> Plan[Item | None]:
    """Moves an item to another partition key value; the item there, or None when there is none to be moved.

    `changes` are further properties that are different there, by path; `updated_at_path` gets the time, unless it is
    None. Updates of the item by others meanwhile are in what is moved. When the client fails, the move is undone as
    far as it can be reached, and the failure is raised; what a process leaves that ends in the middle is brought to
    an end by `reconcile`.
    """
    if source == target:
        raise ValueError(f"the item {id!r} is under {source!r} already")
    stamp = {} if updated_at_path is None else {updated_at_path: _now()}
    move = Mark(
        move_id="",
        state=MoveState.LEAVING,
        source=source,
        target=target,
        changes={**stamp, **(changes or {}), key_path: target},
    )
    return (yield from _attempts(id, move))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _attempts(id: str, move: Mark) -> Plan[Item | None]:
    other = ""
    for attempt in range(ATTEMPTS_MAX):
        read = yield from call(Read(id, move.source))
        if read.item is None:
            # Not to be moved, unless somebody else has brought this move, or another one to there, to its end.
            return (yield from _item_at(id, move.target)) if attempt else None
        found = mark_of(read.item)
        if found is None:
            # Each attempt is a move of its own, so that nothing of one before can be taken for a part of it.
            moved = yield from _compensating(read.item, replace(move, move_id=str(uuid.uuid4())))
            if moved is not None:
                return moved
        elif found.move_id != other:
            other = found.move_id  # perhaps still under way: it is left alone for a while
        elif (yield from settle(id, found, Wish.FINISH)) is Ending.CONFLICT:
            raise MoveConflict(_conflict(id, found))
        yield Pause(_PAUSE_SECONDS * (attempt + 1))
    raise MoveConflict(
        f"the item {id!r} is moved by others, or changed all the time: it is under {move.source!r}"
    )


def _compensating(item: Item, move: Mark) -> Plan[Item | None]:
    """One attempt, undone when the client fails in it."""
    try:
        moved = yield from _attempt(item, move)
    except (MoveConflict, TargetTaken):
        raise
    except Exception as error:
        error.add_note((yield from _compensated(item["id"], move)))
        raise
    return moved


def _attempt(item: Item, move: Mark) -> Plan[Item | None]:
    """The five steps of a move while nobody interferes; where somebody does, whatever is due then, and None."""
    id = item["id"]
    marked = yield from call(Replace(leaving(item, move), item["_etag"]))
    if marked.item is None:
        return None
    copy = yield from call(Create(arriving(marked.item, move)))
    if copy.refusal is not None and not (yield from _is_own_copy(id, move)):
        yield from settle(id, move, Wish.UNDO)
        raise TargetTaken(f"the item {id!r} cannot be moved to {move.target!r}: {copy.refusal.value}")
    if copy.item is not None:
        moved = yield from _finished(marked.item, copy.item, move)
        if moved is not None:
            return moved
    if (yield from settle(id, move, Wish.FINISH)) is Ending.CONFLICT:
        raise MoveConflict(_conflict(id, move))
    return None


def _finished(marked: Item, copy: Item, move: Mark) -> Plan[Item | None]:
    """The steps after the copy, and the item after them; None as soon as one goes another way than expected."""
    gone = yield from call(Replace(left(marked, move), marked["_etag"]))
    if gone.item is None:
        return None
    opened = yield from call(Replace(content_of(copy), copy["_etag"]))
    if opened.item is None:
        return None
    dropped = yield from call(Delete(marked["id"], move.source, gone.item["_etag"]))
    return None if dropped.refusal is Refusal.CHANGED else opened.item


def _is_own_copy(id: str, move: Mark) -> Plan[bool]:
    """Whether what is in the way is the copy of this move, of which the client was not told."""
    found = yield from current(id, move.target)
    mark = mark_of(found) if found is not None else None
    return mark is not None and mark.is_of(move)


def _item_at(id: str, key: KeyValue) -> Plan[Item | None]:
    found = yield from current(id, key)
    return None if found is None or MARK in found else found


def _compensated(id: str, move: Mark) -> Plan[str]:
    """Undoes a move whose client failed, if that can be; what became of it, in a sentence."""
    where = f"the move of {id!r} from {move.source!r} to {move.target!r}"
    try:
        ending = yield from settle(id, move, Wish.UNDO)
    except Exception:
        return f"{where} may have left marks: reconcile brings it to an end"
    return f"{where} had nothing to be undone" if ending is Ending.ALREADY else f"{where} is {ending.value}"


def _conflict(id: str, move: Mark) -> str:
    return (
        f"the item {id!r} was changed both under {move.source!r} and under {move.target!r} while it was moved: "
        "delete the one that shall not stay, and reconcile"
    )
