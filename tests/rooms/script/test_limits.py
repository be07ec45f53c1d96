"""Scripts that want too much: every limit holds, the answer says which, and nothing is left behind."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from pleiad.engine.script import run
from pleiad.limits import Limits
from tests.rooms.script.conftest import HASTY_SECONDS, Refused, Scripted
from tests.stores import StartServer
from tests.waiting import wait_until

WRITE_FIRST = "__.createDocument(__.getSelfLink(), { id: 'never', pk: 'a' });"


@pytest.mark.parametrize(
    "work",
    [
        "while (true) {}",
        "try { while (true) {} } catch (e) { while (true) {} }",
        "/(a+)+$/.test('a'.repeat(50) + 'b');",
        "(async function () { while (true) await 1; })();",
        "(function next() { Promise.resolve().then(next); })();",
        "new Array(4294967295).sort();",
        "Array.prototype.forEach.call({ length: 2 ** 53 - 1 }, function () {});",
        "[].includes.call({ length: 2 ** 53 - 1 }, 1);",
        "new Array(2 ** 31).join('x');",
        "JSON.stringify({ toJSON() { while (true) {} } });",
        "__.response.setBody({ toJSON() { while (true) {} } });",
        "var x = 3n; while (true) x = x * x % (2n ** 100000n);",
    ],
)
def test_what_does_not_end_is_stopped_and_changes_nothing(
    hasty: Scripted, refused: Refused, work: str
) -> None:
    with refused(408, None, f"more than {HASTY_SECONDS} seconds"):
        hasty.run(f"function () {{ {WRITE_FIRST} {work} }}")
    assert hasty.ids() == []


@pytest.mark.parametrize(
    ("work", "text"),
    [
        ("var all = []; while (true) all.push(new Array(10000).fill('x' + all.length));", ""),
        ("'x'.repeat(2 ** 29);", "memory"),
        ("new ArrayBuffer(2 ** 30);", "memory"),
        ("var s = 'x'; while (true) s += s;", ""),
        ("(function deep() { deep(); })();", "Maximum call stack size exceeded"),
        ("var a = []; for (var i = 0; i < 1e5; i++) a = [a]; JSON.stringify(a);", ""),
        ("eval('('.repeat(1e5) + ')'.repeat(1e5));", ""),
        ("new RegExp('('.repeat(1e5) + ')'.repeat(1e5));", ""),
        ("JSON.parse('['.repeat(1e6));", ""),
    ],
)
def test_memory_and_stack_have_their_limits(strict: Scripted, refused: Refused, work: str, text: str) -> None:
    with refused(400, None, text):
        strict.run(f"function () {{ {WRITE_FIRST} {work} }}")
    assert strict.ids() == []
    assert strict.run("function () { __.response.setBody('alive'); }") == "alive"


def test_an_answer_has_its_limit(strict: Scripted, refused: Refused) -> None:
    with refused(400, None, "larger than a response may be"):
        strict.run("function () { " + WRITE_FIRST + " __.response.setBody('x'.repeat(200000)); }")
    with refused(413, None, "100000 bytes"):
        strict.run("function () { " + WRITE_FIRST + " __.response.setBody(new Array(99999).fill(1)); }")
    assert strict.ids() == []


def test_the_results_of_a_query_in_a_script_have_the_memory_of_a_query(strict: Scripted) -> None:
    """All results of an item are on one page, and a JOIN may give millions of them."""
    said = strict.run(
        "function () { __.createDocument(__.getSelfLink(), { id: '1', pk: 'a', a: new Array(200).fill(0) }, "
        "function () { __.queryDocuments(__.getSelfLink(), 'SELECT VALUE 1 FROM c JOIN x IN c.a JOIN y IN c.a', {}, "
        "function (error) { __.response.setBody(String(error && error.message)); }); }); }"
    )
    assert "of memory" in said


def test_a_log_is_cut_where_a_header_ends(scripted: Scripted) -> None:
    body = "function () { for (var i = 0; i < 99; i++) console.log('é\\ud800\\r\\nx'.repeat(999)); }"
    scripted.scripts.create_stored_procedure({"id": "log", "body": body})
    scripted.scripts.execute_stored_procedure("log", "a", enable_script_logging=True)
    assert 1_000 < len(scripted.headers["x-ms-documentdb-script-log-results"]) < 8_000


def test_an_endless_chain_of_callbacks_ends_when_operations_are_not_accepted(strict: Scripted) -> None:
    strict.run("function () { (function again() { __.readDocuments(__.getSelfLink(), again); })(); }")
    assert strict.ids() == []


def test_operations_are_not_accepted_when_the_request_units_are_used_up(strict: Scripted) -> None:
    body = """function () {
      var count = 0;
      (function next() {
        var accepted = __.createDocument(__.getSelfLink(), { pk: "a" }, function (error) {
          if (error) throw error;
          count++;
          next();
        });
        if (!accepted) __.response.setBody(count);
      })();
    }"""
    count = strict.run(body)
    assert 5 < count < 30
    assert len(strict.ids()) == count, "what was accepted is kept"
    assert count == strict.run(body, pk="a"), "the same every time"


def test_operations_are_not_accepted_when_the_time_is_nearly_over(
    strict: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nearly over is early here, so that a busy machine still comes to the end of the script before the time does.
    monkeypatch.setattr(run, "_ACCEPTED_SHARE", 0.001)
    body = """function () {
      var ends = Date.now() + 100;
      while (Date.now() < ends);
      __.response.setBody(__.createDocument(__.getSelfLink(), { pk: "a" }));
    }"""
    assert strict.run(body) is False
    assert strict.ids() == []


def test_a_running_script_does_not_hold_up_other_requests(start_server: StartServer) -> None:
    with start_server(limits=Limits(operation_seconds=2.0)) as server:
        database = CosmosClient(server.endpoint, server.key).create_database("scripts")
        scripted = Scripted(database.create_container("scripted", PartitionKey("/pk")))
        scripted.container.create_item({"id": "1", "pk": "b"})
        scripted.scripts.create_stored_procedure({"id": "spin", "body": "function () { while (true) {} }"})
        failed: list[Any] = []

        def spin() -> None:
            try:
                scripted.scripts.execute_stored_procedure("spin", "a")
            except Exception as error:
                failed.append(error)

        def reads_beside_a_script() -> int:
            ended = len(failed)
            thread = threading.Thread(target=spin)
            thread.start()
            reads = 0
            while thread.is_alive():
                scripted.container.read_item("1", "b")
                reads += len(failed) == ended  # one that had to wait for the script ends with it
            return reads

        assert wait_until(lambda: reads_beside_a_script() > 3)
        assert failed[0].status_code == 408


def test_a_function_that_does_not_end_is_stopped(hasty: Scripted, refused: Refused) -> None:
    hasty.container.create_item({"id": "1", "pk": "a"})
    hasty.scripts.create_user_defined_function({"id": "spin", "body": "function () { while (true) {} }"})
    with refused(408):
        list(hasty.container.query_items("SELECT VALUE udf.spin() FROM c", partition_key="a"))


ESCAPES = """function () {
  var found = [];
  function probe(name, look) {
    try { if (look() !== undefined) found.push(name); } catch (error) {}
  }
  ["require", "process", "std", "os", "fetch", "XMLHttpRequest", "import", "Deno", "Bun", "print", "load",
   "setTimeout", "setInterval", "Worker", "scriptArgs", "__loadScript", "module", "exports", "open", "navigator"]
    .forEach(function (name) { probe(name, function () { return (0, eval)(name); }); });
  probe("constructor", function () { return getContext.constructor("return process")(); });
  probe("callee", function () { return arguments.callee.caller.caller; });
  return import("os").then(function () { found.push("module os"); }, function () {}).then(function () {
    return import("/etc/passwd").then(function () { found.push("a file"); }, function () {});
  }).then(function () { __.response.setBody(found); });
}"""


def test_a_script_finds_no_way_to_the_host(scripted: Scripted) -> None:
    assert scripted.run(ESCAPES) == []


@pytest.mark.parametrize(
    "spoil",
    [
        "Object.prototype.toJSON = function () { return { do: 'delete', document: 7 }; };",
        "Object.prototype.toJSON = function () { return 'nonsense'; };",
        "Array.prototype.map = function () { return { join: function () { return 'x'; } }; };",
        "Array.prototype.join = function () { return {}; };",
        "String.prototype.toWellFormed = function () { return { toJSON() { return 10n; } }; };",
        'Array.prototype.slice = function () { return [{ text: \'{"do":"drop"}\' }]; };',
        "Array.prototype.forEach = function () { throw 1; };",
        "JSON.stringify = function () { return '}'; };",
        "JSON.parse = function () { while (true); };",
        "Promise.prototype.then = function () { throw 1; };",
        "Object.defineProperty(Object.prototype, 'error', { get() { return [1, 2]; } });",
        "Reflect.apply = null; Date.now = null; Error = null; getContext = null;",
    ],
)
def test_a_script_that_spoils_its_own_world_hurts_nobody_else(scripted: Scripted, spoil: str) -> None:
    create = "c.createDocument(l, { id: 'x', pk: 'a' }, function () {});"
    body = f"function () {{ var c = __, l = __.getSelfLink(); {spoil} {create} }}"
    scripted.scripts.create_stored_procedure({"id": "spoil", "body": body})
    status: int | None = 200
    try:
        scripted.scripts.execute_stored_procedure("spoil", "a")
    except CosmosHttpResponseError as error:
        status = error.status_code
    assert status in (200, 400)
    assert scripted.ids() in ([], ["x"])
    seen = "[typeof Object.prototype.toJSON, [1].map(x => x + 1), JSON.stringify({})]"
    plain = f"function () {{ __.response.setBody({seen}); }}"
    assert scripted.run(plain) == ["undefined", [2], "{}"]


def test_no_script_sees_what_another_left(scripted: Scripted) -> None:
    leave = "function () { globalThis.left = 'behind'; Object.prototype.left = 1; __.left = 1; }"
    look = (
        "function () { __.response.setBody([typeof left, ({}).left === undefined, __.left === undefined]); }"
    )
    for _ in range(6):
        scripted.run(leave)
        assert scripted.run(look) == ["undefined", True, True]


def test_more_scripts_than_processes_wait_for_their_turn(strict: Scripted) -> None:
    strict.scripts.create_stored_procedure(
        {
            "id": "slow",
            "body": "function () { var e = Date.now() + 100; while (Date.now() < e); __.response.setBody(1); }",
        }
    )
    with ThreadPoolExecutor(8) as threads:
        runs = [
            threads.submit(strict.scripts.execute_stored_procedure, "slow", str(number))
            for number in range(8)
        ]
        assert [each.result() for each in runs] == [1] * 8


def test_a_container_has_its_number_of_scripts_and_a_script_its_size(
    strict: Scripted, strict_client: CosmosClient, refused: Refused
) -> None:
    nothing = "function () {}"
    for number in range(2):
        strict.trigger(nothing)
        strict.scripts.create_user_defined_function({"id": f"f{number}", "body": nothing})
    with refused(403, 1005, "limit of 2"):
        strict.trigger(nothing)
    with refused(403, 1005, "limit of 2"):
        strict.scripts.create_user_defined_function({"id": "f2", "body": nothing})
    with refused(413):
        strict.scripts.create_stored_procedure({"id": "long", "body": nothing + " " * 2000})
