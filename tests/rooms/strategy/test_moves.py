"""Moves between partitions on a real server: what they do, what they undo, and what they leave to people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest
from azure.cosmos.exceptions import CosmosHttpResponseError

from pleiad.strategy import MoveConflict, Reconciled, TargetTaken, Wish, move_item, reconcile
from pleiad.strategy.move.mark import MARK, Mark, MoveState, arriving, content_of, digest_of, leaving, mark_of
from pleiad.strategy.move.settle import Copy, Deed, Source, deed_for
from pleiad.strategy.plan import Plan
from tests.rooms.strategy.conftest import Hand

ITEM = {"id": "1", "partitionKey": "old", "n": 5, "deep": {"list": [1, 2.5, "é", None, True]}}


def stopped(plan: Plan[Any], steps: int) -> Plan[None]:
    """So many steps of a plan and no more."""
    outcome = None
    for _ in range(steps):
        outcome = yield plan.send(outcome)


def places(hand: Hand) -> list[tuple[str, bool]]:
    """Where the item is, and whether it is marked there."""
    return sorted((item["partitionKey"], MARK in item) for item in hand.items())


@pytest.fixture
def moving(hand: Hand) -> Hand:
    hand.container.create_item(ITEM)
    return hand


@pytest.mark.requirement("R118", "R120")
def test_an_item_is_moved_whole_with_its_changes_in_six_requests(moving: Hand) -> None:
    answer = moving.carry_out(move_item("1", "old", "new", changes={"/deep/owner": "me"}))
    assert answer.requests == 6
    assert answer.charge_ru > 0
    (item,) = moving.items()
    assert item == dict(answer.value)
    expected = {**ITEM, "partitionKey": "new", "deep": {**ITEM["deep"], "owner": "me"}}  # type: ignore[dict-item]
    assert content_of(item) == {**expected, "updatedAt": item["updatedAt"]}


@pytest.mark.requirement("R118")
def test_what_is_not_there_is_not_moved(hand: Hand) -> None:
    assert hand.do(move_item("1", "old", "new")) is None
    with pytest.raises(ValueError, match="already"):
        hand.do(move_item("1", "old", "old"))
    assert hand.items() == []


def test_an_item_is_not_moved_onto_another(moving: Hand) -> None:
    moving.container.create_item({**ITEM, "partitionKey": "new", "n": 7})
    with pytest.raises(TargetTaken, match="there is such an item already"):
        moving.do(move_item("1", "old", "new"))
    assert places(moving) == [("new", False), ("old", False)]
    assert {item["n"] for item in moving.items()} == {5, 7}


def test_an_item_is_not_moved_to_where_its_unique_key_is_taken(make_hand: Callable[..., Hand]) -> None:
    hand = make_hand(unique_key_policy={"uniqueKeys": [{"paths": ["/n"]}]})
    hand.container.create_item(ITEM)
    hand.container.create_item({**ITEM, "id": "2", "partitionKey": "new"})
    with pytest.raises(TargetTaken, match="unique key"):
        hand.do(move_item("1", "old", "new"))
    assert places(hand) == [("new", False), ("old", False)]
    assert hand.do(move_item("1", "old", "free")) is not None


class LostAnswer(Exception):
    """What a client raises that does not know what became of its request."""


def failing(plan: Plan[Any], at: int) -> Plan[Any]:
    """A plan whose client fails at one step, after the request was carried out or before."""
    outcome = None
    for step in range(at):
        outcome = yield plan.send(outcome)
        if step == at - 1:
            return (yield from _after(plan))
    return None


def _after(plan: Plan[Any]) -> Plan[Any]:
    step = plan.throw(LostAnswer("the answer was lost"))
    while True:
        try:
            outcome = yield step
            step = plan.send(outcome)
        except StopIteration as end:
            return end.value


@pytest.mark.requirement("R120")
@pytest.mark.parametrize("at", range(2, 7))
def test_a_move_whose_client_is_not_answered_is_undone_or_finished(moving: Hand, at: int) -> None:
    """The answer to one request is lost, of which nobody knows whether it was carried out; it was."""
    with pytest.raises(LostAnswer) as caught:
        moving.do(failing(move_item("1", "old", "new"), at))
    (note,) = caught.value.__notes__
    has_left = at >= 4
    assert places(moving) == [("new" if has_left else "old", False)]
    assert note.endswith("nothing to be undone" if at == 6 else "finished" if has_left else "undone")


@pytest.mark.requirement("R120")
def test_an_item_too_large_for_its_mark_stays_as_it_is(hand: Hand) -> None:
    size = 2 * 1024 * 1024 - 400
    hand.container.create_item({**ITEM, "text": "x" * size})
    with pytest.raises(CosmosHttpResponseError) as caught:
        hand.do(move_item("1", "old", "new"))
    assert caught.value.status_code == 413
    assert places(hand) == [("old", False)]


@pytest.mark.requirement("R120")
@pytest.mark.parametrize(("wish", "steps"), list(product(Wish, range(1, 7))))
def test_what_a_crash_left_is_finished_or_undone_as_wished(moving: Hand, wish: Wish, steps: int) -> None:
    moving.do(stopped(move_item("1", "old", "new"), steps))
    done = moving.do(reconcile(idle_seconds=0, wish=wish))
    is_finished = steps >= 4 or (steps == 3 and wish is Wish.FINISH)
    assert places(moving) == [("new" if is_finished else "old", False)]
    assert (done.finished, done.undone) == (
        (1, 0) if 3 <= steps <= 5 and is_finished else (0, int(2 <= steps <= 3))
    )
    assert moving.do(reconcile(idle_seconds=0, wish=wish)) == Reconciled(
        finished=0, undone=0, unsettled=(), unreadable=(), is_all=True
    )


@pytest.mark.requirement("R120")
@pytest.mark.parametrize("steps", range(2, 6))
def test_a_move_that_is_asked_for_again_takes_over_what_a_crash_left(moving: Hand, steps: int) -> None:
    moving.do(stopped(move_item("1", "old", "new"), steps))
    moved = moving.do(move_item("1", "old", "new"))
    assert moved is not None
    assert (moved["partitionKey"], moved["n"]) == ("new", 5)
    assert places(moving) == [("new", False)]


def test_a_move_that_somebody_is_at_is_left_alone(moving: Hand) -> None:
    moving.do(stopped(move_item("1", "old", "new"), 3))
    assert moving.do(reconcile()).finished == 0
    assert places(moving) == [("new", True), ("old", True)]


@pytest.mark.requirement("R120")
@pytest.mark.parametrize("kept", ["old", "new"])
def test_of_an_item_that_was_changed_in_both_places_people_choose_one(moving: Hand, kept: str) -> None:
    moving.do(stopped(move_item("1", "old", "new"), 3))
    for item in moving.items():
        moving.container.replace_item("1", {**item, "n": item["partitionKey"]})
    (unsettled,) = moving.do(reconcile(idle_seconds=0)).unsettled
    assert (unsettled.item_id, unsettled.source, unsettled.target) == ("1", "old", "new")
    assert "both changed" in unsettled.reason
    with pytest.raises(MoveConflict, match="delete the one that shall not stay"):
        moving.do(move_item("1", "old", "elsewhere"))
    moving.container.delete_item("1", "new" if kept == "old" else "old")
    assert moving.do(reconcile(idle_seconds=0)).unsettled == ()
    (item,) = moving.items()
    assert (item["partitionKey"], item["n"], MARK in item) == (kept, kept, False)


def forged_marks() -> Iterator[dict[str, Any]]:
    victim = {"id": "1", "from": "old", "to": "mine", "changes": {}, "sourceEtag": "", "digest": ""}
    for state in ("arriving", "leaving", "left"):
        yield {**victim, "state": state}
        yield {**victim, "state": state, "from": "mine", "to": "old"}


@pytest.mark.parametrize("mark", list(forged_marks()))
def test_a_forged_mark_reaches_no_item_but_its_own(moving: Hand, mark: dict[str, Any]) -> None:
    before = moving.items()
    moving.container.create_item({"id": "1", "partitionKey": "mine", MARK: mark})
    moving.do(reconcile(idle_seconds=0))
    assert [item for item in moving.items() if item["partitionKey"] == "old"] == before


@pytest.mark.parametrize("mark", [None, 7, "x", [], {}, {"state": "leaving"}, {"id": 1, "state": "left"}])
def test_what_is_no_mark_is_told_and_left_alone(moving: Hand, mark: Any) -> None:
    moving.container.create_item({"id": "2", "partitionKey": "mine", MARK: mark})
    before = moving.items()
    assert moving.do(reconcile(idle_seconds=0)).unreadable == ("2",)
    assert moving.items() == before


def test_so_many_marks_are_looked_at_in_one_go(hand: Hand) -> None:
    for n in range(5):
        hand.container.create_item({**ITEM, "id": str(n)})
        hand.do(stopped(move_item(str(n), "old", "new"), 2))
    first = hand.do(reconcile(idle_seconds=0, marks_max=3))
    second = hand.do(reconcile(idle_seconds=0, marks_max=3))
    assert [(each.undone, each.is_all) for each in (first, second)] == [(3, False), (2, True)]
    for options in ({"idle_seconds": -1.0}, {"marks_max": 0}):
        with pytest.raises(ValueError, match="at least"):
            hand.do(reconcile(**options))


def test_every_stand_of_a_move_has_its_deed() -> None:
    deeds = {
        (copy, source, wish): deed_for(copy, source, wish)
        for copy in Copy
        for source in Source
        for wish in Wish
    }
    for (copy, source, wish), deed in deeds.items():
        if deed in (Deed.OPEN, Deed.DROP_COPY, Deed.REFRESH):
            assert copy is not Copy.NONE
        if deed in (Deed.COMMIT, Deed.UNMARK, Deed.REFRESH, Deed.DROP_SOURCE):
            assert source not in (Source.ABSENT, Source.FREE), (
                "nothing is done to what has no mark of the move"
            )
        if deed is Deed.DROP_COPY:
            assert copy is Copy.INTACT
            assert source in (Source.ABSENT, Source.FREE)
        if deed is Deed.COMMIT:
            assert source is Source.COPIED
            assert copy is Copy.CHANGED or wish is Wish.FINISH
        assert (deed is Deed.NOTHING) == (copy is Copy.NONE and source in (Source.ABSENT, Source.FREE))


def test_a_mark_says_the_same_after_it_was_stored(hand: Hand) -> None:
    move = Mark(
        move_id="m", state=MoveState.LEAVING, source="old", target=7.5, changes={"/partitionKey": "x"}
    )
    stored = dict(hand.container.create_item(leaving({**ITEM, "big": 1e300, "whole": 3.0}, move)))
    assert mark_of(stored) == move
    copy = arriving(stored, move)
    read = dict(hand.container.create_item(copy))
    assert mark_of(read) == mark_of(copy)
    assert digest_of(read) == digest_of(copy) == read[MARK]["digest"]
