"""What a patch costs and leaves is what a look at the whole item says, however little of it the patch looks at."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from pleiad import charge
from pleiad.engine import items, patching
from pleiad.engine.engine import Engine
from pleiad.engine.items import NO_CONDITIONS
from pleiad.item import body, patch
from pleiad.limits import PROFILES

pytestmark = pytest.mark.every_store

Opened = Callable[..., AbstractAsyncContextManager[Engine]]

POLICY = {
    "indexingMode": "consistent",
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": "/secret/*"}, {"path": "/parts/[]/note/?"}],
    "compositeIndexes": [[{"path": "/number"}, {"path": "/place/city"}]],
}
ITEM = (
    b'{"id":"a","pk":"p","number":1,"flag":true,"text":"x","place":{"city":"Oslo","at":[1,2]},"secret":{"a":1},'
    b'"parts":[{"name":"n","note":1},{"name":"m","note":1}],"tags":["a","b","a"],"nothing":null}'
)
PATCHES: list[list[dict[str, Any]]] = [
    [{"op": "set", "path": "/number", "value": 2}],
    [{"op": "set", "path": "/number", "value": 1.0}],
    [{"op": "set", "path": "/flag", "value": 1}],
    [{"op": "set", "path": "/new", "value": {"a": [1, True], "b": {}}}],
    [{"op": "incr", "path": "/number", "value": 0.5}],
    [{"op": "add", "path": "/tags/-", "value": "c"}],
    [{"op": "add", "path": "/tags/0", "value": "b"}],
    [{"op": "remove", "path": "/tags"}],
    [{"op": "set", "path": "/place/city", "value": "Lima"}],
    [{"op": "replace", "path": "/place/at/1", "value": 1}],
    [{"op": "move", "from": "/place/city", "path": "/city"}],
    [{"op": "move", "from": "/text", "path": "/place/text"}, {"op": "set", "path": "/place/at", "value": 5}],
    [{"op": "set", "path": "/secret/a", "value": 2}, {"op": "set", "path": "/parts/0/note", "value": 9}],
    [{"op": "set", "path": "/parts/1/name", "value": "n"}],
    [{"op": "set", "path": "/nothing", "value": []}],
    [{"op": "set", "path": "/text", "value": 'a "quoted" \\ one'}],
    [{"op": "set", "path": "/text", "value": "x"}],
]


@pytest.mark.parametrize("operations", PATCHES, ids=lambda each: json.dumps(each)[:60])
@pytest.mark.parametrize("raw", [ITEM, ITEM.replace(b'"x"', b'"\\u0041"'), ITEM.replace(b"null", b"1e-7")])
async def test_a_patch_costs_what_it_changes_of_the_whole_item(
    engine: Opened, operations: list[dict[str, Any]], raw: bytes
) -> None:
    limits = PROFILES["default"]
    async with engine() as opened:
        database = await opened.create_database({"id": "db"}, None)
        definition = {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}, "indexingPolicy": POLICY}
        await opened.create_container(database, definition, None)
        container = await opened.container("db", "c")
        await items.create(container, raw, ("p",))
        told = json.dumps({"operations": operations}).encode()
        answer = await patching.patch(container, "a", told, ("p",), NO_CONDITIONS)

        old, new = answer.old, answer.row
        assert old is not None
        assert new is not None
        parsed = patch.parse_patch(told, limits, ("/pk",))
        whole = body.dump_exact(patch.apply(body.parse_exact(old.body), parsed))
        item = items.measure(container, whole, limits)
        assert (new.body, new.size_bytes, new.terms) == (item.body, item.size_bytes, item.terms)
        removed, added = container.terms.changed(body.load(old.body), body.load(new.body))
        assert answer.charge == charge.patch(
            old.size_bytes, new.size_bytes, removed, added, parsed.properties
        )
