"""Entities with the strategies of the seeds' table, through both clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pleiad.strategy import (
    AcrossPartitions,
    BadKeyPart,
    Entities,
    Entity,
    EntityChanged,
    EntityExists,
    Global,
    MissingProperty,
    ParentScoped,
    SelfPartitioned,
    move_item,
    reconcile,
)
from pleiad.strategy.move.mark import MARK
from tests.rooms.strategy.conftest import Hand

TABLE = Entities(
    Entity("workspace", SelfPartitioned()),
    Entity("user", Global()),
    Entity("group", Global()),
    Entity("project", ParentScoped("workspaceId")),
    Entity("flow", ParentScoped("workspaceId")),
    Entity("asset", ParentScoped("ownerId")),
)
PROJECT = {"id": "p1", "workspaceId": "w1", "visibility": "public"}


@pytest.mark.requirement("R112", "R113", "R114", "R115")
@pytest.mark.parametrize(
    ("doc_type", "entity", "key", "parent"),
    [
        ("workspace", {"id": "w1"}, "w1", None),
        ("user", {"id": "u1", "email": "u@example.org"}, "global", None),
        ("group", {"id": "g1"}, "global", None),
        ("project", {"id": "p1", "workspaceId": "w1"}, "w1", "w1"),
        ("flow", {"id": "f1", "workspaceId": "w1"}, "w1", "w1"),
        ("asset", {"id": "a1", "ownerId": "u1"}, "u1", "u1"),
    ],
)
def test_each_kind_has_the_key_of_its_strategy(
    hand: Hand, doc_type: str, entity: dict[str, Any], key: str, parent: str | None
) -> None:
    made = hand.do(TABLE.create(doc_type, entity))
    assert (made["partitionKey"], made["docType"]) == (key, doc_type)
    answer = hand.carry_out(TABLE.read(doc_type, entity["id"], parent=parent))
    assert answer.value == made
    assert (answer.requests, answer.charge_ru) == (1, 1.0)
    with pytest.raises(EntityExists):
        hand.do(TABLE.create(doc_type, entity))
    assert hand.do(TABLE.delete(doc_type, entity["id"], parent=parent))
    assert not hand.do(TABLE.delete(doc_type, entity["id"], parent=parent))
    assert hand.do(TABLE.read(doc_type, entity["id"], parent=parent)) is None


@pytest.fixture
def filled(make_hand: Callable[..., Hand]) -> Hand:
    """Twenty-four projects in six workspaces, and twenty users, on five physical partitions."""
    hand = make_hand(partitions=5)
    for n in range(24):
        project = {
            "id": f"p{n}",
            "workspaceId": f"w{n % 6}",
            "visibility": "public" if n % 4 < 2 else "private",
            "createdAt": f"2018-08-{n + 1:02d}",
            "description": f"about topic {n}",
        }
        hand.do(TABLE.create("project", project))
    for n in range(20):
        hand.do(TABLE.create("user", {"id": f"u{n}", "email": f"user{n}@example.org"}))
    return hand


@pytest.mark.requirement("R113", "R116", "R123")
def test_the_children_of_a_parent_are_listed_from_its_partition_alone(filled: Hand) -> None:
    inside = filled.carry_out(TABLE.query("project", parent="w1"))
    assert {item["id"] for item in inside.value} == {"p1", "p7", "p13", "p19"}
    across = filled.carry_out(TABLE.query("project", is_across=True))
    assert len(across.value) == 24
    assert across.charge_ru > 3 * inside.charge_ru
    with pytest.raises(AcrossPartitions, match=r"name its parent \(workspaceId\)"):
        filled.do(TABLE.query("project"))


@pytest.mark.requirement("R114", "R117")
def test_a_user_is_found_by_email_in_the_global_partition(filled: Hand) -> None:
    (user,) = filled.do(TABLE.query("user", "c.email = @email", {"@email": "user11@example.org"}))
    assert user["id"] == "u11"


@pytest.mark.requirement("R121", "R122")
def test_the_efficient_pattern_is_cheaper_than_the_inefficient_one(filled: Hand) -> None:
    efficient = filled.carry_out(
        TABLE.query(
            "project",
            "c.visibility = @visibility",
            {"@visibility": "public"},
            order_by="c.createdAt DESC",
            parent="w1",
        )
    )
    assert [item["id"] for item in efficient.value] == ["p13", "p1"]
    inefficient = filled.carry_out(
        TABLE.query("project", "CONTAINS(c.description, @search)", {"@search": "topic 7"}, is_across=True)
    )
    assert [item["id"] for item in inefficient.value] == ["p7"]
    assert inefficient.charge_ru > 3 * efficient.charge_ru
    assert len(filled.do(TABLE.query("project", is_across=True, items_max=5))) == 5
    assert filled.do(TABLE.query("project", is_across=True, items_max=0)) == []


def test_a_condition_does_not_reach_beyond_its_kind(filled: Hand) -> None:
    for where in ("c.id = 'p1' OR true", "true -- and no more"):
        found = filled.do(TABLE.query("user", where, is_across=True))
        assert {item["docType"] for item in found} == {"user"}


def test_an_item_of_another_kind_is_none(hand: Hand) -> None:
    hand.do(TABLE.create("project", PROJECT))
    assert hand.do(TABLE.read("flow", "p1", parent="w1")) is None
    assert not hand.do(TABLE.delete("flow", "p1", parent="w1"))
    assert hand.do(TABLE.move("flow", "p1", parent="w1", to_parent="w2")) is None
    with pytest.raises(EntityExists, match="no flow"):
        hand.do(TABLE.upsert("flow", {"id": "p1", "workspaceId": "w1"}))
    assert [item["docType"] for item in hand.items()] == ["project"]


@pytest.mark.requirement("R123")
def test_an_entity_is_replaced_only_as_the_version_that_was_read(hand: Hand) -> None:
    made = hand.do(TABLE.create("project", PROJECT))
    changed = hand.do(TABLE.replace("project", {**made, "name": "new"}))
    assert changed["name"] == "new"
    with pytest.raises(EntityChanged):
        hand.do(TABLE.replace("project", {**made, "name": "late"}))
    assert (
        hand.do(TABLE.upsert("project", {**PROJECT, "name": "whatever it was"}))["name"] == "whatever it was"
    )
    assert hand.do(TABLE.upsert("project", {"id": "p2", "workspaceId": "w1"}))["partitionKey"] == "w1"
    with pytest.raises(ValueError, match="no _etag"):
        hand.do(TABLE.replace("project", PROJECT))
    with pytest.raises(ValueError, match="move it"):
        hand.do(TABLE.replace("project", {**changed, "workspaceId": "w2"}))


@pytest.mark.requirement("R118")
def test_an_entity_moves_to_another_parent(hand: Hand) -> None:
    hand.do(TABLE.create("project", PROJECT))
    moved = hand.do(TABLE.move("project", "p1", parent="w1", to_parent="w2", changes={"name": "moved"}))
    assert moved is not None
    assert (moved["workspaceId"], moved["partitionKey"], moved["name"]) == ("w2", "w2", "moved")
    assert moved["updatedAt"] > "2018"
    assert hand.do(TABLE.read("project", "p1", parent="w2")) == moved
    assert hand.do(TABLE.read("project", "p1", parent="w1")) is None
    assert hand.do(TABLE.move("project", "p1", parent="w1", to_parent="w2")) is None
    with pytest.raises(ValueError, match="stays where it is"):
        hand.do(TABLE.move("user", "u1", parent="global", to_parent="local"))


@pytest.mark.requirement("R118", "R120")
@pytest.mark.parametrize("steps", range(2, 6))
def test_an_entity_on_its_way_is_listed_once_and_is_written_as_before(hand: Hand, steps: int) -> None:
    """The mover has stopped after the mark, the copy, the moment of the move, and the removal of the copy's mark."""
    hand.do(TABLE.create("project", PROJECT))
    crash(hand, steps)
    (listed,) = hand.do(TABLE.query("project", is_across=True))
    has_left = steps >= 4
    assert listed["partitionKey"] == ("b" if has_left else "w1")
    assert (hand.do(TABLE.read("project", "p1", parent="w1")) is None) == has_left
    if has_left:
        with pytest.raises(EntityExists, match="moved away"):
            hand.do(TABLE.upsert("project", PROJECT))
    else:
        hand.do(TABLE.upsert("project", {**PROJECT, "name": "meanwhile"}))
    hand.do(reconcile(idle_seconds=0))
    (item,) = hand.items()
    assert MARK not in item
    assert ("name" in item) == (not has_left)
    assert item["partitionKey"] == ("w1" if steps == 2 else "b")


def crash(hand: Hand, steps: int) -> None:
    """Carries out so many steps of a move and no more."""

    def stopped() -> Any:
        plan = move_item("p1", "w1", "b")
        outcome = None
        for _ in range(steps):
            outcome = yield plan.send(outcome)

    hand.do(stopped())


@pytest.mark.parametrize(
    ("doc_type", "entity", "error", "says"),
    [
        ("nothing", {"id": "1"}, ValueError, "declared: asset, flow, group"),
        ("workspace", {}, ValueError, "needs an id"),
        ("workspace", {"id": ""}, ValueError, "needs an id"),
        ("workspace", {"id": 7}, ValueError, "needs an id"),
        ("project", {"id": "p1"}, MissingProperty, "no property workspaceId"),
        ("project", {"id": "p1", "workspaceId": None}, BadKeyPart, "not empty"),
        ("project", {"id": "p1", "workspaceId": "x" * 2_049}, BadKeyPart, "2049 bytes"),
        ("project", {"id": "p1", "workspaceId": "w", "docType": "flow"}, ValueError, "is a flow"),
        ("project", {**PROJECT, MARK: {}}, ValueError, "belongs to moves"),
    ],
)
def test_an_entity_that_does_not_fit_is_refused_with_its_reason(
    hand: Hand, doc_type: str, entity: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        hand.do(TABLE.create(doc_type, entity))
    assert hand.items() == []


def test_a_question_that_does_not_fit_is_refused_with_its_reason(hand: Hand) -> None:
    for plan, says in (
        (TABLE.read("project", "p1"), "name its parent"),
        (TABLE.read("user", "u1", parent="w1"), "has no parent"),
        (TABLE.query("workspace"), "name its id"),
        (TABLE.query("user", "c.a = @a", {"a": 1}), "begins with @"),
        (TABLE.query("user", "c.a = @docType", {"@docType": 1}), "call the parameter otherwise"),
    ):
        with pytest.raises(ValueError, match=says):
            hand.do(plan)
    with pytest.raises(ValueError, match="declared once"):
        Entities(Entity("user", Global()), Entity("user", SelfPartitioned()))
