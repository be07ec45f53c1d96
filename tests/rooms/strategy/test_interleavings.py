"""Movers, reconcilers and writers in any order, with crashes anywhere and replicas that lag behind: nothing is lost.

Plans are steps, so a test can let several take theirs in every order, which no server under load can promise.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pleiad.strategy import MoveConflict, TargetTaken, Wish, move_item, reconcile
from pleiad.strategy.move.mark import MARK
from pleiad.strategy.plan import Delete, Item, Plan, Read, Replace, call
from tests.rooms.strategy.shelf import Actor, Lag, Shelf

ID = "p1"
KEYS = ("a", "b", "c")
TAKEN = (MoveConflict, TargetTaken)


def state_of(item: Item | None) -> str:
    return "" if item is None else item.get(MARK, {}).get("state", "item")


class Diary:
    """What writers were told that they have written."""

    def __init__(self) -> None:
        self.written: set[int] = set()
        self.is_deleted = False
        self._numbers = count(1)

    def writer(self, keys: str, *, skips_left: bool = True, keeps_mark: bool = True) -> Plan[None]:
        """Reads the item under the first key that has it, and writes an entry of its own into what it has read."""
        entry = next(self._numbers)
        for key in keys:
            item = (yield from call(Read(ID, key))).item
            if item is None or (skips_left and state_of(item) == "left"):
                continue
            kept = item if keeps_mark else {name: value for name, value in item.items() if name != MARK}
            changed = {**kept, "entries": [*item["entries"], entry]}
            if (yield from call(Replace(changed, item["_etag"]))).refusal is None:
                self.written.add(entry)
            return

    def deleter(self, key: str) -> Plan[None]:
        item = (yield from call(Read(ID, key))).item
        if item is not None and state_of(item) == "item":
            gone = yield from call(Delete(ID, key, item["_etag"]))
            self.is_deleted = gone.refusal is None


def play(
    data: st.DataObject,
    shelf: Shelf,
    plans: list[Plan[Any]],
    look: Callable[[], None] = lambda: None,
    lag: Lag = lambda _most: 0,
) -> list[Actor]:
    """Lets plans take their steps in an order that is drawn; those that are not at their end by then have crashed."""
    actors = [Actor(shelf, plan, lag) for plan in plans]
    turns = st.tuples(st.integers(0, len(actors) - 1), st.integers(1, 12))
    for actor, steps in data.draw(st.lists(turns, min_size=4, max_size=30), label="turns"):
        for _ in range(steps):
            if not actors[actor].is_done:
                actors[actor].go_on()
                look()
    assert all(actor.error is None or isinstance(actor.error, TAKEN) for actor in actors), [
        actor.error for actor in actors
    ]
    return actors


def reconciled(shelf: Shelf, wish: Wish = Wish.FINISH) -> Any:
    actor = Actor(shelf, reconcile(idle_seconds=0, wish=wish)).finish()
    assert actor.error is None, actor.error
    return actor.value


def new_shelf() -> Shelf:
    shelf = Shelf()
    shelf.put({"id": ID, "partitionKey": "a", "entries": [0]})
    return shelf


def lag_drawn(data: st.DataObject) -> Lag:
    return lambda most: data.draw(st.integers(0, min(most, 3)), label="lag") if most > 0 else 0


def fresh(_most: int) -> int:
    return 0


def stalest(most: int) -> int:
    return most


def step(actor: Actor, steps: int) -> None:
    for _ in range(steps):
        if not actor.is_done:
            actor.go_on()


def plan_of(other: str, wish: Wish, diary: Diary) -> Plan[Any]:
    """What comes between the steps of a move."""
    match other:
        case "reconciler":
            return reconcile(idle_seconds=0, wish=wish)
        case "mover there":
            return move_item(ID, "a", "b")
        case "mover elsewhere":
            return move_item(ID, "a", "c")
        case "deleter":
            return diary.deleter("a")
        case "writer of the copy":
            return diary.writer("b")
        case "late writer":
            return diary.writer("a", skips_left=False)
    return diary.writer("a")


def interrupted_moves(other: str, wish: Wish, lag: Lag) -> Iterator[tuple[Shelf, Diary]]:
    """Every way in which two interrupt each other twice; then the mover crashes, or goes on to its end."""
    for first, second, third, is_crash in itertools.product(range(8), range(1, 18), range(5), (True, False)):
        shelf, diary = new_shelf(), Diary()
        mover = Actor(shelf, move_item(ID, "a", "b"), lag)
        step(mover, first)
        actor = Actor(shelf, plan_of(other, wish, diary), lag)
        step(actor, second)
        step(mover, third)
        actor.finish()
        if not is_crash:
            mover.finish()
        assert all(each.error is None or isinstance(each.error, TAKEN) for each in (mover, actor))
        yield shelf, diary


@pytest.mark.requirement("R120")
@pytest.mark.parametrize("lag", [fresh, stalest])
@pytest.mark.parametrize("wish", list(Wish))
@pytest.mark.parametrize("other", ["reconciler", "mover there", "mover elsewhere", "writer", "deleter"])
def test_whoever_comes_between_the_steps_of_a_move_one_item_is_left(other: str, wish: Wish, lag: Lag) -> None:
    for shelf, diary in interrupted_moves(other, wish, lag):
        assert reconciled(shelf, wish).unsettled == ()
        found = [(MARK in item, item["entries"]) for item in shelf.items()]
        assert found == ([] if diary.is_deleted else [(False, [0, *diary.written])])


@pytest.mark.requirement("R120")
@pytest.mark.parametrize("lag", [fresh, stalest])
@pytest.mark.parametrize("wish", list(Wish))
@pytest.mark.parametrize("other", ["writer of the copy", "late writer"])
def test_what_is_written_where_nobody_should_is_kept_and_told(other: str, wish: Wish, lag: Lag) -> None:
    for shelf, diary in interrupted_moves(other, wish, lag):
        told = reconciled(shelf, wish).unsettled
        items = shelf.items()
        assert {entry for item in items for entry in item["entries"]} == {0, *diary.written}
        assert any(MARK in item for item in items) == bool(told)
        assert len(items) == 2 if told else 1


moves = st.lists(
    st.sampled_from([("a", "b"), ("a", "b"), ("a", "c"), ("b", "c"), ("b", "a")]), min_size=1, max_size=3
)
wishes = st.sampled_from(list(Wish))


@pytest.mark.requirement("R120")
@settings(max_examples=400, deadline=None)
@given(data=st.data(), moves=moves, reconcilers=st.integers(0, 2), writers=st.integers(0, 3), wish=wishes)
def test_updates_of_the_item_are_kept_and_one_item_is_left(
    data: st.DataObject, moves: list[tuple[str, str]], reconcilers: int, writers: int, wish: Wish
) -> None:
    shelf, diary = new_shelf(), Diary()

    def look() -> None:
        found = [state_of(item) for item in shelf.items()]
        assert any(state != "left" for state in found), "it is somewhere at every moment"

    play(
        data,
        shelf,
        [
            *(move_item(ID, *keys) for keys in moves),
            *(reconcile(idle_seconds=0, wish=wish) for _ in range(reconcilers)),
            *(diary.writer("a") for _ in range(writers)),
        ],
        look,
        lag_drawn(data),
    )
    done = reconciled(shelf, wish)
    assert done.unsettled == ()
    (item,) = shelf.items()
    assert MARK not in item
    assert set(item["entries"]) == {0, *diary.written}


@pytest.mark.requirement("R120")
@settings(max_examples=400, deadline=None)
@given(data=st.data(), moves=moves, keeps_mark=st.booleans(), skips_left=st.booleans(), wish=wishes)
def test_no_update_is_lost_wherever_others_write(
    data: st.DataObject, moves: list[tuple[str, str]], keeps_mark: bool, skips_left: bool, wish: Wish
) -> None:
    """Those who write into copies, and into what has left, may leave two items behind, but lose nothing."""
    shelf, diary = new_shelf(), Diary()
    writers = [
        diary.writer(keys, skips_left=skips_left, keeps_mark=keeps_mark) for keys in ("abc", "bca", "cab")
    ]
    plans = [*(move_item(ID, *keys) for keys in moves), reconcile(idle_seconds=0, wish=wish), *writers]
    play(data, shelf, plans, lag=lag_drawn(data))
    reconciled(shelf, wish)
    again = reconciled(shelf, wish)
    kept = {entry for item in shelf.items() for entry in item["entries"]}
    assert kept == {0, *diary.written}
    marked = {str(item["partitionKey"]) for item in shelf.items() if MARK in item}
    told = {str(key) for move in again.unsettled for key in (move.source, move.target)}
    assert marked <= told, "what is left in the middle is told"


@pytest.mark.requirement("R120")
@settings(max_examples=300, deadline=None)
@given(data=st.data(), moves=moves, reconcilers=st.integers(0, 2))
def test_an_item_that_was_deleted_does_not_come_back(
    data: st.DataObject, moves: list[tuple[str, str]], reconcilers: int
) -> None:
    shelf, diary = new_shelf(), Diary()
    plans = [
        diary.deleter("a"),
        *(move_item(ID, *keys) for keys in moves),
        *(reconcile(idle_seconds=0) for _ in range(reconcilers)),
    ]
    play(data, shelf, plans, lag=lag_drawn(data))
    assert reconciled(shelf).unsettled == ()
    assert len(shelf.items()) == (0 if diary.is_deleted else 1)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), moves=moves, wish=wishes)
def test_reconcilers_at_the_same_time_leave_one_item_too(
    data: st.DataObject, moves: list[tuple[str, str]], wish: Wish
) -> None:
    shelf = new_shelf()
    play(data, shelf, [move_item(ID, *keys) for keys in moves])
    play(data, shelf, [reconcile(idle_seconds=0, wish=each) for each in (wish, *Wish)], lag=lag_drawn(data))
    assert reconciled(shelf, wish).unsettled == ()
    (item,) = shelf.items()
    assert (item["entries"], MARK in item) == ([0], False)
