"""The partition key definition: its rules, its paths, and the values it finds in an item."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.keys.definition import KeyDefinition
from pleiad.limits import Limits
from pleiad.server.http.failures import status_of
from pleiad.values.undefined import UNDEFINED

LIMITS = Limits()


def define(**fields: Any) -> KeyDefinition:
    return KeyDefinition.from_json(fields, LIMITS)


@pytest.mark.requirement("R66")
def test_a_key_is_a_path_and_the_value_found_there() -> None:
    definition = define(paths=["/userId"], kind="Hash", version=2)
    assert definition.paths == ("/userId",)
    assert definition.extract({"id": "1", "userId": "Andrew", "worksFor": "Microsoft"}) == ("Andrew",)


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("/userId", ("userId",)),
        ("/user_id2", ("user_id2",)),
        ("/address/city", ("address", "city")),
        ("/a-b/c.d", ("a-b", "c.d")),
        ("/$type", ("$type",)),
        ("/straße/имя", ("straße", "имя")),
        ("/नमस्ते", ("नमस्ते",)),
        ('/"a/b"/c', ("a/b", "c")),
        ('/c/"a b*?[]"', ("c", "a b*?[]")),
        ('/"a\\"b\\\\c"', ('a"b\\c',)),
        ("/0", ("0",)),
    ],
)
@pytest.mark.requirement("R67")
def test_a_path_is_names_behind_slashes(path: str, steps: tuple[str, ...]) -> None:
    definition = define(paths=[path], kind="Hash", version=2)
    assert definition.path_steps == (steps,)
    assert definition.to_json()["paths"] == [path]


@pytest.mark.requirement("R67")
@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "userId",
        "//a",
        "/a//b",
        "/a/",
        "/*",
        "/a/*",
        "/a/?",
        "/a/[]/b",
        "/a[0]",
        "/a b",
        "/a\tb",
        "/a\u00a0b",
        '/"',
        '/""',
        '/"a',
        '/"a"b',
        '/a"b"',
        "/a\\b",
        '/"a\\"',
        '/"a\0"',
    ],
)
def test_a_path_that_names_no_single_property_is_refused(path: str) -> None:
    with pytest.raises(PleiadError, match="Partition key paths must contain only valid") as caught:
        define(paths=[path], kind="Hash", version=2)
    assert status_of(caught.value) == 400


def test_a_definition_that_is_not_there_has_an_error_of_its_own() -> None:
    values: list[object] = [None, {}, {"kind": "Hash"}, {"paths": []}, {"paths": None}]
    for value in values:
        with pytest.raises(PleiadError) as caught:
            KeyDefinition.from_json(value, LIMITS)
        assert caught.value.row is errors.PARTITION_KEY_DEFINITION_MISSING


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("/pk", "must be an object"),
        (["/pk"], "must be an object"),
        ({"paths": "/pk"}, "array of strings"),
        ({"paths": {}}, "array of strings"),
        ({"paths": [1]}, "array of strings"),
        ({"paths": [None]}, "array of strings"),
        ({"paths": ["/a", "/b"]}, "Too many partition key paths"),
        ({"paths": ["/a", "/b"], "kind": "Hash"}, "Too many partition key paths"),
        (
            {"paths": ["/a", "/b", "/c", "/d"], "kind": "MultiHash"},
            r"Too many partition key paths \(4\) specified\. A maximum of 3 is allowed\.",
        ),
        ({"paths": ["/a", "/a"], "kind": "MultiHash"}, "all be different"),
        ({"paths": ["/a", '/"a"'], "kind": "MultiHash"}, "all be different"),
        ({"paths": ["/a"], "kind": "Range"}, "'Hash' or 'MultiHash'"),
        ({"paths": ["/a"], "kind": 1}, "'Hash' or 'MultiHash'"),
        ({"paths": ["/a"], "kind": []}, "'Hash' or 'MultiHash'"),
        ({"paths": ["/a"], "version": 3}, "must be 1 or 2"),
        ({"paths": ["/a"], "version": True}, "must be 1 or 2"),
        ({"paths": ["/a"], "version": "2"}, "must be 1 or 2"),
        ({"paths": ["/a"], "kind": "MultiHash", "version": 1}, "has version 2"),
        ({"paths": ["/a"], "systemKey": 1}, "'systemKey'"),
        ({"paths": ["/a" * 129]}, "at most 128 names"),
    ],
)
def test_a_wrong_definition_is_refused_with_its_reason(value: object, says: str) -> None:
    with pytest.raises(PleiadError, match=says) as caught:
        KeyDefinition.from_json(value, LIMITS)
    assert status_of(caught.value) == 400


def test_what_is_left_out_is_filled_in_as_clients_read_it() -> None:
    assert define(paths=["/a"]).to_json() == {"paths": ["/a"], "kind": "Hash"}
    assert define(paths=["/a"], version="V2") == define(paths=["/a"], version=2)
    assert define(paths=["/a"], kind=None, version=None, systemKey=None).version == 1
    assert define(paths=["/a", "/b"], kind="MultiHash").to_json() == {
        "paths": ["/a", "/b"],
        "kind": "MultiHash",
        "version": 2,
    }
    assert "systemKey" not in define(paths=["/a"], systemKey=False).to_json()
    assert define(paths=["/_partitionKey"], systemKey=True).to_json()["systemKey"] is True


def test_a_definition_survives_json_and_pickle() -> None:
    definition = define(paths=["/a", "/b/c"], kind="MultiHash", version=2)
    assert KeyDefinition.from_json(definition.to_json(), LIMITS) == definition
    copy = pickle.loads(pickle.dumps(definition))
    assert copy == definition
    assert copy.path_steps == (("a",), ("b", "c"))
    assert copy.levels == 2


@pytest.mark.parametrize(
    ("item", "value"),
    [
        ({"pk": "x"}, "x"),
        ({"pk": 1.5}, 1.5),
        ({"pk": False}, False),
        ({"pk": None}, None),
        ({}, UNDEFINED),
        ({"pk": {}}, UNDEFINED),
        ({"pk": {"a": 1}}, UNDEFINED),
        ({"pk": [1]}, UNDEFINED),
    ],
)
def test_a_missing_property_an_object_and_an_array_are_undefined(item: dict[str, Any], value: object) -> None:
    (at_top,) = define(paths=["/pk"]).extract(item)
    (below,) = define(paths=["/below/pk"]).extract({"below": item})
    assert at_top is below is value or (at_top == below == value and type(at_top) is type(value))


@pytest.mark.parametrize(
    "item", [{}, {"a": None}, {"a": "text"}, {"a": [{"b": 1}]}, {"a": 1}, {"a": {"c": 1}}]
)
def test_a_path_through_something_that_is_no_object_is_undefined(item: dict[str, Any]) -> None:
    assert define(paths=["/a/b"]).extract(item) == (UNDEFINED,)


names = st.text(min_size=1, max_size=8)
scalars = st.one_of(st.text(max_size=8), st.integers(), st.booleans(), st.none())


@pytest.mark.requirement("R67")
@given(st.lists(names, min_size=1, max_size=5), scalars)
def test_a_value_set_at_a_path_is_found_there(steps: list[str], value: object) -> None:
    quoted = [step.replace("\\", "\\\\").replace('"', '\\"') for step in steps]
    definition = define(paths=["".join(f'/"{name}"' for name in quoted)], version=2)
    item: Any = value
    for step in reversed(steps):
        item = {step: item, f"{step}-other": 1}
    assert definition.path_steps == (tuple(steps),)
    assert definition.extract(item) == (value,)


def test_version_1_is_told_to_who_named_it() -> None:
    assert define(paths=["/a"], kind="Hash", version=1).to_json()["version"] == 1
    assert define(paths=["/a"], kind="Hash", version="V1").to_json()["version"] == 1
    assert "version" not in define(paths=["/a"], kind="Hash").to_json()
