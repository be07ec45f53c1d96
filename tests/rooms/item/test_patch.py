"""Patches change what they name, all or nothing, and never what identifies an item."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad.errors import PleiadError
from pleiad.item import body
from pleiad.item.patch import Patch, apply, parse_patch, patch_from_value
from pleiad.limits import Limits
from pleiad.server.http.failures import status_of

LIMITS = Limits()
ITEM: dict[str, Any] = {
    "id": "1",
    "pk": "a",
    "n": 3,
    "f": 1.5,
    "s": "x",
    "o": {"p": 1, "a/b": 2, "~": 3},
    "a": [1, 2, 3],
}


def patch_of(*operations: dict[str, Any], protected: tuple[Any, ...] = ("/pk",)) -> Patch:
    return parse_patch(json.dumps({"operations": operations}).encode(), LIMITS, protected)


def patched(*operations: dict[str, Any]) -> dict[str, Any]:
    return apply(ITEM, patch_of(*operations))


@pytest.mark.parametrize(
    ("operation", "change"),
    [
        ({"op": "add", "path": "/new", "value": None}, {"new": None}),
        ({"op": "add", "path": "/n", "value": [1]}, {"n": [1]}),
        ({"op": "add", "path": "/o/q", "value": {}}, {"o": {"p": 1, "a/b": 2, "~": 3, "q": {}}}),
        ({"op": "add", "path": "/a/0", "value": 0}, {"a": [0, 1, 2, 3]}),
        ({"op": "add", "path": "/a/3", "value": 4}, {"a": [1, 2, 3, 4]}),
        ({"op": "add", "path": "/a/-", "value": 4}, {"a": [1, 2, 3, 4]}),
        ({"op": "set", "path": "/a/0", "value": 0}, {"a": [0, 2, 3]}),
        ({"op": "set", "path": "/a/-", "value": 4}, {"a": [1, 2, 3, 4]}),
        ({"op": "set", "path": "/new", "value": 1}, {"new": 1}),
        ({"op": "replace", "path": "/a/2", "value": 0}, {"a": [1, 2, 0]}),
        ({"op": "replace", "path": "/s", "value": "y"}, {"s": "y"}),
        ({"op": "remove", "path": "/a/1"}, {"a": [1, 3]}),
        ({"op": "remove", "path": "/o/a~1b"}, {"o": {"p": 1, "~": 3}}),
        ({"op": "remove", "path": "/o/~0"}, {"o": {"p": 1, "a/b": 2}}),
        ({"op": "incr", "path": "/n", "value": 7}, {"n": 10}),
        ({"op": "incr", "path": "/n", "value": -0.5}, {"n": 2.5}),
        ({"op": "incr", "path": "/f", "value": 1}, {"f": 2.5}),
        ({"op": "incr", "path": "/o/count", "value": 5}, {"o": {"p": 1, "a/b": 2, "~": 3, "count": 5}}),
        ({"op": "incr", "path": "/a/0", "value": 1}, {"a": [2, 2, 3]}),
        ({"op": "move", "from": "/n", "path": "/n"}, {}),
        ({"op": "move", "from": "/a/0", "path": "/a/2"}, {"a": [2, 3, 1]}),
    ],
)
def test_each_operation_does_what_it_says_and_leaves_the_original_alone(
    operation: dict[str, Any], change: dict[str, Any]
) -> None:
    before = copy.deepcopy(ITEM)
    assert patched(operation) == {**ITEM, **change}
    assert before == ITEM


def test_operations_run_in_order_on_each_other_s_results() -> None:
    result = patched(
        {"op": "add", "path": "/color", "value": "yellow"},
        {"op": "move", "from": "/color", "path": "/o/color"},
        {"op": "remove", "path": "/s"},
    )
    assert result["o"]["color"] == "yellow"
    assert "color" not in result
    assert "s" not in result


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ({"op": "replace", "path": "/missing", "value": 1}, r"Node\(missing\) to be replaced is absent"),
        (
            {"op": "remove", "path": "/missing"},
            r"Node\(missing\) to be removed is absent, no path found beyond: 'missing'",
        ),
        (
            {"op": "remove", "path": "/a/3"},
            r"Index\(3\) to operate on is out of array bounds: the array has 3 elements",
        ),
        ({"op": "remove", "path": "/a/-"}, "not an array index"),
        ({"op": "set", "path": "/a/3", "value": 1}, r"Index\(3\) to operate on is out of array bounds"),
        ({"op": "add", "path": "/a/4", "value": 1}, r"Index\(4\) to operate on is out of array bounds"),
        ({"op": "add", "path": "/a/01", "value": 1}, "not an array index"),
        ({"op": "add", "path": "/a/x", "value": 1}, "not an array index"),
        ({"op": "add", "path": "/a/" + "9" * 5000, "value": 1}, "not an array index"),
        (
            {"op": "add", "path": "/x/y", "value": 1},
            r"Add Operation can only create a child object of an existing node\(array or object\) and cannot create "
            "path recursively, no path found beyond: 'x'",
        ),
        ({"op": "set", "path": "/x/y", "value": 1}, "Given Operation can only .*, no path found beyond: 'x'"),
        ({"op": "add", "path": "/s/y", "value": 1}, "neither an object nor an array"),
        ({"op": "add", "path": "/s/y/z", "value": 1}, "no path found beyond: 'y'"),
        ({"op": "incr", "path": "/s", "value": 1}, r"Node\(s\) is not a number"),
        ({"op": "incr", "path": "/o", "value": 1}, "not a number"),
        ({"op": "move", "from": "/missing", "path": "/x"}, "no path found beyond: 'missing'"),
    ],
)
def test_an_operation_that_does_not_fit_the_item_names_its_index_and_path(
    operation: dict[str, Any], reason: str
) -> None:
    with pytest.raises(PleiadError, match=reason) as refused:
        patched({"op": "set", "path": "/ok", "value": 1}, operation)
    assert status_of(refused.value) == 400
    assert refused.value.message.startswith("For Operation(2): ")
    assert refused.value.message.endswith(f"({operation['op']} at '{operation['path'][:200]}')")


@pytest.mark.parametrize(
    "operation",
    [
        {},
        {"op": "copy", "path": "/a", "value": 1},
        {"op": ["add"], "path": "/a", "value": 1},
        {"op": "add", "value": 1},
        {"op": "add", "path": "", "value": 1},
        {"op": "add", "path": "/", "value": 1},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "path": "/a~2", "value": 1},
        {"op": "add", "path": "/a"},
        {"op": "incr", "path": "/n"},
        {"op": "incr", "path": "/n", "value": "1"},
        {"op": "incr", "path": "/n", "value": True},
        {"op": "move", "path": "/n"},
        {"op": "move", "from": "/o", "path": "/o/p"},
    ],
)
def test_an_operation_that_is_malformed_is_refused_before_any_item_is_read(operation: dict[str, Any]) -> None:
    with pytest.raises(PleiadError, match="Invalid patch request: operation 1 is not valid") as refused:
        patch_of(operation)
    assert status_of(refused.value) == 400


@pytest.mark.parametrize(
    "path", ["/id", "/id/x", "/_ts", "/_etag", "/_rid", "/_self", "/pk", "/pk/x", "/t", "/t/u", "/q r"]
)
def test_no_patch_touches_id_system_properties_or_partition_key(path: str) -> None:
    protected = ("/pk", ("t", "u"), '/"q r"')
    for operation in (
        {"op": "set", "path": path, "value": 1},
        {"op": "remove", "path": path},
        {"op": "incr", "path": path, "value": 1},
        {"op": "move", "from": path, "path": "/free"},
        {"op": "move", "from": "/free", "path": path},
    ):
        with pytest.raises(PleiadError, match="cannot be patched"):
            patch_of(operation, protected=protected)
    patch_of({"op": "set", "path": "/t/other", "value": 1}, protected=protected)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"1",
        b"{}",
        b"[]",
        b'{"operations":[]}',
        b'{"operations":{}}',
        b'{"operations":[1]}',
        b'{"a":1,"a":2}',
    ],
)
def test_a_body_that_is_no_patch_is_a_bad_request(raw: bytes) -> None:
    with pytest.raises(PleiadError) as refused:
        parse_patch(raw, LIMITS, ())
    assert status_of(refused.value) == 400


def test_more_operations_than_the_limit_are_refused() -> None:
    operation = {"op": "incr", "path": "/n", "value": 1}
    assert apply(ITEM, patch_of(*[operation] * 10))["n"] == 13
    with pytest.raises(PleiadError, match=r"can.t exceed 10"):
        patch_of(*[operation] * 11)


def test_the_operations_alone_are_a_patch_without_condition() -> None:
    assert parse_patch(b'[{"op":"remove","path":"/s"}]', LIMITS, ()).condition is None


def test_the_condition_is_kept_as_text_and_must_be_one() -> None:
    operations = [{"op": "remove", "path": "/s"}]
    assert patch_from_value(
        {"operations": operations, "condition": "from c where c.n = 1"}, LIMITS, ()
    ).condition == ("from c where c.n = 1")
    with pytest.raises(PleiadError, match="condition"):
        patch_from_value({"operations": operations, "condition": 1}, LIMITS, ())


def test_the_charge_counts_each_named_property_once() -> None:
    assert (
        patch_of({"op": "set", "path": "/n", "value": 1}, {"op": "incr", "path": "/n", "value": 1}).properties
        == 1
    )
    assert patch_of({"op": "set", "path": "/n", "value": 1}, {"op": "remove", "path": "/s"}).properties == 2


def test_integers_stay_integers_until_they_leave_64_bits() -> None:
    item = {"id": "1", "n": 2**63 - 1, "m": -(2**63)}
    up = patch_of({"op": "incr", "path": "/n", "value": 1}, {"op": "incr", "path": "/m", "value": -1})
    assert apply(item, up)["n"] == 2**63
    assert isinstance(apply(item, up)["n"], int)
    assert isinstance(apply(item, up)["m"], float)
    beyond = apply({"n": 2**64 - 1}, patch_of({"op": "incr", "path": "/n", "value": 1}))
    assert json.loads(body.dump_exact(beyond)) == {"n": 2.0**64}


def test_a_sum_beyond_a_double_is_refused() -> None:
    with pytest.raises(PleiadError, match="beyond the range"):
        apply({"n": 1.7e308}, patch_of({"op": "incr", "path": "/n", "value": 1.7e308}))


def test_untouched_numbers_and_given_values_keep_their_texts() -> None:
    stored = b'{"id":"1","big":123456789012345678901234567890,"d":1.10,"z":-0.0,"n":1}'
    patch = parse_patch(
        b'{"operations":[{"op":"set","path":"/v","value":2.50},{"op":"incr","path":"/n","value":1}]}',
        LIMITS,
        (),
    )
    assert body.dump_exact(apply(body.parse_exact(stored), patch)) == (
        b'{"id":"1","big":123456789012345678901234567890,"d":1.10,"z":-0.0,"n":2,"v":2.50}'
    )


def test_a_patch_does_not_build_an_item_deeper_than_the_limit() -> None:
    def nested(levels: int) -> Any:
        value: Any = 1
        for _ in range(levels):
            value = [value]
        return value

    apply({"id": "1"}, patch_of({"op": "add", "path": "/x", "value": nested(127)}))
    with pytest.raises(PleiadError, match="nested"):
        apply({"id": "1", "o": {}}, patch_of({"op": "add", "path": "/o/x", "value": nested(127)}))
    with pytest.raises(PleiadError, match="nested"):
        patch_of({"op": "add", "path": "/x", "value": nested(500)})


def test_two_patched_items_do_not_share_the_patch_s_value() -> None:
    patch = patch_of({"op": "set", "path": "/x", "value": {"y": []}})
    first, second = apply(ITEM, patch), apply(ITEM, patch)
    first["x"]["y"].append(1)
    assert second["x"] == {"y": []}


def naive(item: dict[str, Any], operation: dict[str, Any]) -> dict[str, Any] | None:
    """The obvious model for flat paths and arrays one level down; None when the operation does not fit."""
    result = copy.deepcopy(item)
    *above, last = operation["path"][1:].split("/")
    place: Any = result
    if above:
        place = result.get(above[0])
        if not isinstance(place, list) or int(last) > len(place):
            return None
    op, inside = operation["op"], bool(above)
    exists = int(last) < len(place) if inside else last in place
    where: Any = int(last) if inside else last
    if op in ("replace", "remove") and not exists:
        return None
    if op == "remove":
        del place[where]
    elif op == "add" and inside:
        place.insert(where, operation["value"])
    elif op == "incr":
        if (inside and not exists) or (exists and not isinstance(place[where], int)):
            return None
        place[where] = operation["value"] + (place[where] if exists else 0)
    elif inside and not exists:
        return None
    else:
        place[where] = operation["value"]
    return result


paths = st.sampled_from(["/x", "/y", "/x/0", "/x/1", "/y/0"])
operations = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["add", "set", "replace", "remove", "incr"]),
        "path": paths,
        "value": st.integers(-5, 5),
    }
)
leaves = st.one_of(st.integers(-9, 9), st.just("s"), st.lists(st.integers(0, 3), max_size=3))


@given(
    st.dictionaries(st.sampled_from(["x", "y", "z"]), leaves), st.lists(operations, min_size=1, max_size=6)
)
def test_a_patch_agrees_with_the_obvious_model(item: dict[str, Any], steps: list[dict[str, Any]]) -> None:
    expected: dict[str, Any] | None = item
    for step in steps:
        expected = None if expected is None else naive(expected, step)
    patch = patch_from_value({"operations": steps}, LIMITS, ())
    if expected is None:
        with pytest.raises(PleiadError):
            apply(item, patch)
    else:
        assert apply(item, patch) == expected
