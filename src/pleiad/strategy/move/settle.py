"""Brings a move to its end from whatever it left behind, be it that of a mover, of a reconciler or of several at once.

Order of a move: the item is marked as leaving; its copy is created with a mark; the item is marked as left; the mark
of the copy is removed; the item is deleted. Each of these is conditional on the version that was read, so that of
several at work one succeeds, and the others look again.

Invariants
- The moment an item is marked as left is the moment of the move: before it the item is in force, after it the copy.
- An item is marked as left only as the version that its copy, by `source_etag`, is a copy of. So an update of the item
  before that moment is in the copy, and a copy whose item is another version by then can never come into force.
- An item that has left is deleted only when its copy has no mark any more. So a marked copy without its item tells that
  the item was deleted by somebody else before it left.
- A copy is deleted only when it can never come into force and nobody has changed it. Where both were changed, neither
  is touched, and the conflict is told.
- Nothing is done to an item that does not carry the mark of the move itself: a forged mark reaches no other item.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from pleiad.strategy.move.mark import (
    Mark,
    MoveState,
    arriving,
    content_of,
    digest_of,
    left,
    mark_of,
)
from pleiad.strategy.plan import Call, Delete, Item, KeyValue, Outcome, Plan, Read, Refusal, Replace, call

LOOKS_MAX = 60
_NO_VERSION = '"pleiad-no-version"'


class MoveConflict(RuntimeError):
    """A move that cannot come to an end by itself; nothing is lost, and what is there is as the message says."""


class Wish(enum.Enum):
    """What should become of a move whose item has not left yet."""

    FINISH = "finish"
    UNDO = "undo"


class Ending(enum.Enum):
    """What became of a move."""

    FINISHED = "finished"
    UNDONE = "undone"
    ALREADY = "it had come to an end already"
    CONFLICT = "the item and its copy were both changed, and are both left as they are"


class Copy(enum.Enum):
    """What there is under the target key."""

    NONE = "nothing of this move"
    INTACT = "the copy"
    CHANGED = "the copy, changed by somebody else"


class Source(enum.Enum):
    """What there is under the source key."""

    ABSENT = "nothing"
    FREE = "an item without a mark of this move"
    COPIED = "the item, as the version that was copied"
    UPDATED = "the item, as another version"
    LEFT = "the item after it left"
    LEFT_CHANGED = "the item after it left, changed by somebody else since"


class Deed(enum.Enum):
    """What is to be done next."""

    COMMIT = "mark the item as left"
    UNMARK = "remove the mark of the item"
    REFRESH = "copy the item again"
    OPEN = "remove the mark of the copy"
    DROP_COPY = "delete the copy"
    DROP_SOURCE = "delete the item that has left"
    NOTHING = "the move has come to an end"
    GIVE_UP = "the move is in conflict"


def deed_for(copy: Copy, source: Source, wish: Wish) -> Deed:
    """What follows from where a move stands; for every stand something does."""
    match copy, source:
        case Copy.NONE, Source.COPIED | Source.UPDATED:
            return Deed.UNMARK
        case Copy.NONE, Source.LEFT:
            return Deed.DROP_SOURCE
        case (Copy.NONE, Source.LEFT_CHANGED) | (Copy.CHANGED, Source.UPDATED | Source.FREE):
            return Deed.GIVE_UP
        case Copy.NONE, _:
            return Deed.NOTHING
        case (_, Source.LEFT | Source.LEFT_CHANGED) | (Copy.CHANGED, Source.ABSENT):
            return Deed.OPEN
        case Copy.INTACT, Source.ABSENT | Source.FREE:
            return Deed.DROP_COPY
        case Copy.INTACT, _ if wish is Wish.UNDO:
            return Deed.UNMARK
        case _, Source.COPIED:
            # A copy that was changed is not taken back, whatever the wish: the change would be lost.
            return Deed.COMMIT
        case _:
            return Deed.REFRESH


_ENDINGS = {
    Deed.COMMIT: Ending.FINISHED,
    Deed.UNMARK: Ending.UNDONE,
    Deed.REFRESH: Ending.FINISHED,
    Deed.OPEN: Ending.FINISHED,
    Deed.DROP_COPY: Ending.UNDONE,
    Deed.DROP_SOURCE: Ending.FINISHED,
}


_ON_COPY = frozenset({Deed.REFRESH, Deed.OPEN, Deed.DROP_COPY})


class Stand(NamedTuple):
    """Where a move stands."""

    copy: Copy
    source: Source


def stand_of(move: Mark, copy: Item | None, source: Item | None) -> Stand:
    """Where a move stands by what there is under its two keys."""
    copy_mark = mark_of(copy) if copy is not None else None
    if (
        copy is None
        or copy_mark is None
        or not copy_mark.is_of(move)
        or copy_mark.state is not MoveState.ARRIVING
    ):
        found, source_etag = Copy.NONE, ""
    else:
        found = Copy.INTACT if digest_of(copy) == copy_mark.digest else Copy.CHANGED
        source_etag = copy_mark.source_etag
    if source is None:
        return Stand(found, Source.ABSENT)
    mark = mark_of(source)
    if mark is None or not mark.is_of(move) or mark.state is MoveState.ARRIVING:
        return Stand(found, Source.FREE)
    if mark.state is MoveState.LEFT:
        return Stand(found, Source.LEFT if digest_of(source) == mark.digest else Source.LEFT_CHANGED)
    return Stand(found, Source.COPIED if source["_etag"] == source_etag else Source.UPDATED)


def settle(id: str, move: Mark, wish: Wish) -> Plan[Ending]:
    """Brings a move of an item to its end; MoveConflict when others never leave it alone for as long."""
    ending = Ending.ALREADY
    copy = source = None
    is_known = False
    for _ in range(LOOKS_MAX):
        if not is_known:
            # The copy first: what is then seen of the item tells what can still become of that version of the copy.
            copy = yield from current(id, move.target)
            source = yield from current(id, move.source)
        if stand_of(move, copy, source) == (Copy.NONE, Source.LEFT):
            # It may have left since, with a copy that was made since: what is there now is there after it left.
            copy = yield from current(id, move.target)
        deed = deed_for(*stand_of(move, copy, source), wish)
        if deed is Deed.NOTHING:
            return ending
        if deed is Deed.GIVE_UP:
            return Ending.CONFLICT
        outcome = yield from call(_step(deed, move, copy, source))
        # What was written is known without looking again, so that others have the less time to come between.
        is_known = outcome.refusal is None
        if is_known:
            ending = _ENDINGS[deed]
            if deed in _ON_COPY:
                copy = outcome.item
            else:
                source = outcome.item
    raise MoveConflict(
        f"the move of {id!r} from {move.source!r} to {move.target!r} is never left alone by others"
    )


def current(id: str, key: KeyValue) -> Plan[Item | None]:
    """The item as it is now, not as a replica that lags behind has it; None when there is none.

    A delete that is conditional on a version which never was is refused by whoever takes writes, and the session
    token of the refusal makes the read as new.
    """
    asked: Outcome = yield from call(Delete(id, key, _NO_VERSION))
    if asked.refusal is Refusal.ABSENT:
        return None
    read = yield from call(Read(id, key, asked.session_token))
    return read.item


def _step(deed: Deed, move: Mark, copy: Item | None, source: Item | None) -> Call:
    if deed in (Deed.OPEN, Deed.DROP_COPY):
        assert copy is not None
        if deed is Deed.OPEN:
            return Replace(content_of(copy), copy["_etag"])
        return Delete(copy["id"], move.target, copy["_etag"])
    assert source is not None
    if deed is Deed.COMMIT:
        return Replace(left(source, move), source["_etag"])
    if deed is Deed.UNMARK:
        return Replace(content_of(source), source["_etag"])
    if deed is Deed.DROP_SOURCE:
        return Delete(source["id"], move.source, source["_etag"])
    mark = mark_of(source)
    assert copy is not None
    assert mark is not None
    return Replace(arriving(source, mark), copy["_etag"])
