"""Triggers: before and after an item operation, and one transaction with it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rooms.script.conftest import Refused, Scripted

STAMP = """function () {
  var request = getContext().getRequest(), body = request.getBody();
  body.stamps = (body.stamps || []).concat(request.getOperationType());
  request.setBody(body);
}"""
COUNT = """function () {
  var link = __.getSelfLink();
  __.readDocument(__.getAltLink() + "/docs/count", function (error, count) {
    if (error && error.number !== 404) throw error;
    count = count || { id: "count", pk: "a", n: 0 };
    count.n += 1;
    __.upsertDocument(link, count, function (error) { if (error) throw error; });
  });
}"""


def test_a_pre_trigger_changes_what_is_written(scripted: Scripted) -> None:
    stamp, container = scripted.trigger(STAMP), scripted.container
    assert container.create_item({"id": "1", "pk": "a"}, pre_trigger_include=stamp)["stamps"] == ["Create"]
    assert "stamps" not in container.create_item({"id": "2", "pk": "a"}), "only when it is named"
    item = container.upsert_item({"id": "1", "pk": "a", "stamps": ["x"]}, pre_trigger_include=stamp)
    assert item["stamps"] == ["x", "Upsert"]
    item = container.replace_item("1", {"id": "1", "pk": "a"}, pre_trigger_include=stamp)
    assert item["stamps"] == ["Replace"]
    assert container.read_item("1", "a") == item


def test_several_pre_triggers_run_in_their_order(scripted: Scripted) -> None:
    add = "function () { var r = __.request, b = r.getBody(); b.path = (b.path || '') + '%s'; r.setBody(b); }"
    names = [scripted.trigger(add % letter) for letter in "xyz"]
    item = scripted.container.create_item({"id": "1", "pk": "a"}, pre_trigger_include=", ".join(names))
    assert item["path"] == "xyz"


@pytest.mark.requirement("R79")
def test_an_operation_and_its_triggers_are_one_transaction(scripted: Scripted, refused: Refused) -> None:
    count, container = scripted.trigger(COUNT, "Post", "Create"), scripted.container
    item = container.create_item({"id": "1", "pk": "a"}, post_trigger_include=count)
    container.create_item({"id": "2", "pk": "a"}, post_trigger_include=count)
    assert container.read_item("count", "a")["n"] == 2
    assert container.read_item("1", "a") == item
    failing = scripted.trigger("function () { throw new Error('after all'); }", "Post")
    with refused(400, 0, "after all"):
        container.create_item({"id": "3", "pk": "a"}, post_trigger_include=f"{count},{failing}")
    assert scripted.ids() == ["1", "2", "count"]
    assert container.read_item("count", "a")["n"] == 2


def test_a_conflict_undoes_what_a_pre_trigger_wrote(scripted: Scripted, refused: Refused) -> None:
    scripted.container.create_item({"id": "1", "pk": "a"})
    count = scripted.trigger(COUNT)
    with refused(409):
        scripted.container.create_item({"id": "1", "pk": "a"}, pre_trigger_include=count)
    assert scripted.ids() == ["1"]


def test_a_pre_trigger_that_throws_stops_the_write(scripted: Scripted, refused: Refused) -> None:
    check = scripted.trigger("function () { if (!__.request.getBody().name) throw new Error('no name'); }")
    with refused(400, 0, "no name"):
        scripted.container.create_item({"id": "1", "pk": "a"}, pre_trigger_include=check)
    scripted.container.create_item({"id": "2", "pk": "a", "name": "n"}, pre_trigger_include=check)
    assert scripted.ids() == ["2"]


def test_the_number_of_what_a_script_throws_is_the_sub_status(scripted: Scripted, refused: Refused) -> None:
    for pre in (
        "throw new Error(409, 'it is taken')",
        "throw Object.assign(new Error('it is taken'), {number: 409})",
    ):
        check = scripted.trigger(f"function () {{ {pre}; }}")
        with refused(400, 409, "it is taken"):
            scripted.container.create_item({"id": "1", "pk": "a"}, pre_trigger_include=check)
    for strange in ("-1", "1e9", "0.5", "'409'", "NaN"):
        check = scripted.trigger(
            f"function () {{ throw Object.assign(new Error('x'), {{number: {strange}}}); }}"
        )
        with refused(400, 0):
            scripted.container.create_item({"id": "1", "pk": "a"}, pre_trigger_include=check)
    assert scripted.ids() == []


def test_a_post_trigger_sees_the_item_and_may_change_the_answer(scripted: Scripted) -> None:
    see = """function () {
      var body = __.response.getBody();
      __.readDocument(body._self, function (error, doc) {
        if (error) throw error;
        __.response.setBody({ seen: doc, asked: __.request.getBody().id });
      });
    }"""
    trigger = scripted.trigger(see, "Post")
    answer: Any = scripted.container.create_item({"id": "1", "pk": "a"}, post_trigger_include=trigger)
    assert answer["asked"] == "1"
    assert answer["seen"] == scripted.container.read_item("1", "a")


def test_delete_and_patch_run_their_triggers_too(scripted: Scripted) -> None:
    container = scripted.container
    container.create_item({"id": "1", "pk": "a"})
    count = scripted.trigger(COUNT, "Post", "All")
    container.patch_item("1", "a", [{"op": "set", "path": "/n", "value": 1}], post_trigger_include=count)
    container.delete_item("1", "a", post_trigger_include=count)
    assert scripted.ids() == ["count"]
    assert container.read_item("count", "a")["n"] == 2


@pytest.mark.parametrize(
    ("type", "operation", "include"),
    [
        ("Pre", "Delete", "pre"),
        ("Pre", "Replace", "pre"),
        ("Pre", "Upsert", "pre"),
        ("Post", "All", "pre"),
        ("Pre", "All", "post"),
    ],
)
def test_a_trigger_of_another_type_or_operation_is_refused(
    scripted: Scripted, refused: Refused, type: str, operation: str, include: str
) -> None:
    name = scripted.trigger("function () {}", type, operation)
    with refused(400, 0, "cannot be used here"):
        chosen: dict[str, Any] = {f"{include}_trigger_include": name}
        scripted.container.create_item({"id": "1", "pk": "a"}, **chosen)
    assert scripted.ids() == []


def test_a_trigger_that_does_not_exist_is_a_400(scripted: Scripted, refused: Refused) -> None:
    with refused(400, 0, "no trigger 'absent'"):
        scripted.container.create_item({"id": "1", "pk": "a"}, pre_trigger_include="absent")


def test_a_pre_trigger_cannot_move_an_item_to_another_logical_partition(
    scripted: Scripted, refused: Refused
) -> None:
    move = scripted.trigger("function () { var r = __.request, b = r.getBody(); b.pk = 'b'; r.setBody(b); }")
    with refused(400, 1001):
        scripted.container.create_item({"id": "1", "pk": "a"}, pre_trigger_include=move)
    spoil = scripted.trigger("function () { __.request.setBody('no item'); }")
    with refused(400):
        scripted.container.create_item({"id": "1", "pk": "a"}, pre_trigger_include=spoil)
    early = scripted.trigger("function () { __.response.setBody(1); }")
    with refused(400, 403, "no response in a pre-trigger"):
        scripted.container.create_item({"id": "1", "pk": "a"}, pre_trigger_include=early)
    assert scripted.ids("b") == scripted.ids() == []


def test_conditions_hold_with_triggers(scripted: Scripted, refused: Refused) -> None:
    from azure.core import MatchConditions

    item = scripted.container.create_item({"id": "1", "pk": "a"})
    stamp = scripted.trigger(STAMP)
    changed = scripted.container.replace_item("1", {"id": "1", "pk": "a"}, pre_trigger_include=stamp)
    with refused(412):
        scripted.container.replace_item(
            "1",
            {"id": "1", "pk": "a"},
            pre_trigger_include=stamp,
            etag=item["_etag"],
            match_condition=MatchConditions.IfNotModified,
        )
    assert scripted.container.read_item("1", "a") == changed


def test_the_charge_has_a_base_for_each_trigger(scripted: Scripted) -> None:
    nothing = scripted.trigger("function () {}")
    scripted.container.create_item({"id": "1", "pk": "a"})
    plain_ru = float(scripted.headers["x-ms-request-charge"])
    scripted.container.create_item({"id": "2", "pk": "a"}, pre_trigger_include=f"{nothing},{nothing}")
    assert float(scripted.headers["x-ms-request-charge"]) == pytest.approx(plain_ru + 2, abs=0.011)


def test_a_post_trigger_is_told_how_large_the_container_is_and_may_be(scripted: Scripted) -> None:
    told = """function () {
      var response = getContext().getResponse(), body = response.getBody();
      body.told = [response.getResourceQuotaCurrentUsage(), response.getMaxResourceQuota()];
      response.setBody(body);
    }"""
    name = scripted.trigger(told, "Post")
    usage, quota = scripted.container.create_item({"id": "1", "pk": "a"}, post_trigger_include=name)["told"]
    assert usage.startswith("collectionSize=")
    assert quota.startswith("collectionSize=")
    assert usage != quota
