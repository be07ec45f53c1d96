"""Stored procedures: what they answer, what they change, and that they change all or nothing."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pytest
from azure.cosmos import DatabaseProxy, PartitionKey

from tests.rooms.script.conftest import Refused, Scripted

COUNT = """function (text) {
  __.queryDocuments(__.getSelfLink(), text, function (error, found) { __.response.setBody(found); });
}"""
IMPORT = """function (docs) {
  var collection = getContext().getCollection(), count = 0;
  next();
  function next() {
    if (count === docs.length) return getContext().getResponse().setBody(count);
    var accepted = collection.createDocument(collection.getSelfLink(), docs[count], function (error) {
      if (error) throw error;
      count++;
      next();
    });
    if (!accepted) getContext().getResponse().setBody(count);
  }
}"""


def docs(count: int, pk: str = "a") -> list[dict[str, Any]]:
    return [{"id": str(number), "pk": pk, "n": number} for number in range(count)]


@pytest.mark.parametrize(
    ("body", "arguments", "answer"),
    [
        ("function () {}", [], ""),
        ("function (a, b) { getContext().getResponse().setBody(a + b); }", [1, 2], 3),
        ("function f(a) { __.response.setBody(a); };", [{"x": [None, True, "é"]}], {"x": [None, True, "é"]}),
        ("(a) => { __.response.setBody([a === undefined]); }", [], [True]),
        ("// a comment\nfunction main() { helper(); } function helper() { __.response.setBody(1); }", [], 1),
        ("async function () { await null; __.response.setBody('later'); }", [], "later"),
        (
            "function () { var r = __.response; for (var i = 0; i < 4; i++) r.appendValue('Body', i); }",
            [],
            "0123",
        ),
        ("function () { var r = __.response; r.setBody('a'); r.appendBody('b'); }", [], "ab"),
    ],
)
def test_a_procedure_answers_what_it_sets_as_body(
    scripted: Scripted, body: str, arguments: list[Any], answer: Any
) -> None:
    assert (scripted.run(body, *arguments) or "") == answer


@pytest.mark.requirement("R79")
def test_a_procedure_changes_several_items_as_one_transaction(scripted: Scripted) -> None:
    assert scripted.run(IMPORT, docs(20)) == 20
    items = list(scripted.container.read_all_items())
    assert len(items) == 20
    assert len({item["_etag"] for item in items}) == 1, "one transaction is one version"


@pytest.mark.requirement("R79")
def test_a_procedure_that_throws_changes_nothing(scripted: Scripted, refused: Refused) -> None:
    scripted.run(IMPORT, docs(3))
    with refused(400, 409, "already exists"):
        scripted.run(IMPORT, [{"id": "new", "pk": "a"}, {"id": "1", "pk": "a"}])
    assert scripted.ids() == ["0", "1", "2"]


@pytest.mark.requirement("R80")
def test_a_procedure_cannot_touch_another_logical_partition(scripted: Scripted, refused: Refused) -> None:
    scripted.container.create_item({"id": "theirs", "pk": "b"})
    with refused(400, 400, "doesn't match"):
        scripted.run(IMPORT, docs(1, pk="b"), pk="a")
    look = """function () {
      __.queryDocuments(__.getSelfLink(), "SELECT * FROM c", function (error, found) {
        __.readDocument(__.getAltLink() + "/docs/theirs", function (error) {
          __.response.setBody([found.length, error.number]);
        });
      });
    }"""
    assert scripted.run(look, pk="a") == [0, 404]
    assert scripted.run(look.replace("error.number", "error === undefined"), pk="b") == [1, True]


@pytest.mark.requirement("R80")
def test_another_logical_partition_is_not_found_by_rid_either(scripted: Scripted) -> None:
    theirs = scripted.container.create_item({"id": "theirs", "pk": "b"})
    read = "function (link) { __.deleteDocument(link, function (error) { __.response.setBody(error.number); }); }"
    assert scripted.run(read, theirs["_self"], pk="a") == 404
    assert scripted.ids("b") == ["theirs"]


@pytest.mark.requirement("R98")
def test_with_the_id_as_key_a_procedure_sees_one_item(pleiad_database: DatabaseProxy) -> None:
    scripted = Scripted(pleiad_database.create_container("by-id", PartitionKey("/id")))
    for id in ("1", "2", "3"):
        scripted.container.create_item({"id": id})
    see = "function () { __.map(function (doc) { return doc.id; }); }"
    assert scripted.run(see, pk="2") == ["2"]


def test_what_a_procedure_wrote_has_the_names_that_it_answered(scripted: Scripted) -> None:
    body = """function () {
      __.createDocument(__.getSelfLink(), { id: "x", pk: "a" }, function (error, made) {
        made.n = 1;
        __.replaceDocument(made._self, made, { etag: made._etag }, function (error, changed) {
          if (error) throw error;
          __.response.setBody([made, changed]);
        });
      });
    }"""
    made, changed = scripted.run(body)
    item = scripted.container.read_item("x", "a")
    assert item == changed
    assert made["_rid"] == item["_rid"]
    assert made["_self"] == item["_self"]


def test_the_log_comes_back_only_when_asked_for(scripted: Scripted) -> None:
    body = """function () {
      console.log("The value of %s is %s.", "x", 1);
      console.log("100%% über", { a: 1 });
    }"""
    scripted.run(body)
    procedure = {"id": "log", "body": body}
    scripted.scripts.create_stored_procedure(procedure)
    scripted.scripts.execute_stored_procedure("log", "a")
    assert "x-ms-documentdb-script-log-results" not in scripted.headers
    scripted.scripts.execute_stored_procedure("log", "a", enable_script_logging=True)
    log = scripted.headers["x-ms-documentdb-script-log-results"]
    assert unquote(log) == "The value of x is 1.\n100% über [object Object]"


def test_charges_are_the_operations_and_a_base_and_do_not_vary(scripted: Scripted) -> None:
    scripted.scripts.create_stored_procedure({"id": "nothing", "body": "function () {}"})
    scripted.scripts.create_stored_procedure({"id": "import", "body": IMPORT})
    scripted.scripts.execute_stored_procedure("nothing", "a")
    assert scripted.headers["x-ms-request-charge"] == "1.00"
    scripted.container.create_item({"id": "0", "pk": "z", "n": 0})
    single_ru = float(scripted.headers["x-ms-request-charge"])
    for pk in ("a", "b"):
        scripted.scripts.execute_stored_procedure("import", pk, [docs(10, pk)])
        assert float(scripted.headers["x-ms-request-charge"]) == pytest.approx(
            1 + 0.95 * 10 * single_ru, abs=0.1
        )


def test_a_query_in_a_procedure_is_charged_for_its_evaluation(scripted: Scripted) -> None:
    scripted.scripts.create_stored_procedure({"id": "count", "body": COUNT})
    scripted.container.create_item({"id": "0", "pk": "a", "t": list(range(300))})
    charges = []
    for joins in ("", "JOIN x IN c.t JOIN y IN c.t", "JOIN x IN c.t JOIN y IN c.t"):
        scripted.scripts.execute_stored_procedure("count", "a", [f"SELECT VALUE COUNT(1) FROM c {joins}"])
        charges.append(float(scripted.headers["x-ms-request-charge"]))
    assert charges[1] > charges[0] + 50
    assert charges[1] == charges[2]


def test_a_session_sees_what_its_procedure_wrote(scripted: Scripted) -> None:
    scripted.scripts.create_stored_procedure({"id": "import", "body": IMPORT})
    scripted.scripts.execute_stored_procedure("import", "a", [docs(2)])
    token = scripted.headers["x-ms-session-token"]
    assert token.startswith("0:")
    assert scripted.container.read_item("1", "a", session_token=token)["n"] == 1


@pytest.mark.parametrize(
    ("body", "substatus", "text"),
    [
        ("function () { throw new Error('on purpose'); }", 0, "Exception = Error: on purpose"),
        ("function () { throw new Error(404, 'numbered'); }", 404, "numbered"),
        ("function () { throw { reason: 'an object' }; }", 0, '{\\"reason\\":\\"an object\\"}'),
        ("function () { throw null; }", 0, "null"),
        (
            "function () { throw { get message() { throw 1; }, toJSON() { throw 2; } }; }",
            0,
            "cannot be shown",
        ),
        ("function () { nowhere(); }", 0, "ReferenceError"),
        ("function () { getContext().abort(new Error('stopped')); }", 0, "stopped"),
        ("async function () { throw new Error('rejected'); }", 0, "rejected"),
        ("function () { __.createDocument(__.getSelfLink(), 5); }", 400, "must be an object"),
        ("function () { __.createDocument('dbs/x/colls/y', {}); }", 400, "is not the collection"),
        ("function () { __.readDocument('nonsense'); }", 400, "Invalid document link"),
        ("function () { __.readDocument(__.getAltLink() + '/docs/no'); }", 404, "does not exist"),
        ("function () { __.createDocument(__.getSelfLink(), { pk: 'a', id: 'a\\\\b' }); }", 400, ""),
        ("function () { __.queryDocuments(__.getSelfLink(), 'SELECT FROM WHERE'); }", 400, "Syntax error"),
        ("function () { __.request.setBody(1); }", 403, "Not a writable property"),
        ("function () { var o = {}; o.o = o; __.response.setBody(o); }", 0, "circular"),
        ("function () { __.response.setBody(10n); }", 0, "BigInt"),
        ("function () { __.response.setBody({ toJSON() { throw new Error('in JSON'); } }); }", 0, "in JSON"),
    ],
)
def test_what_a_procedure_throws_is_a_400_with_its_words(
    scripted: Scripted, refused: Refused, body: str, substatus: int, text: str
) -> None:
    with refused(400, substatus, text.replace("\\", "")):
        scripted.run(
            "function () { __.createDocument(__.getSelfLink(), { id: 'kept', pk: 'a' }); return ("
            + body
            + ").call(this); }"
            if not body.startswith("async")
            else body
        )
    assert scripted.ids() == []


@pytest.mark.parametrize(
    "body", ["function ( {", "42", "'function () {}'", "var x = 1;", "}", "(", "function () { } junk"]
)
def test_what_is_no_function_is_kept_but_refused_when_it_is_to_run(
    scripted: Scripted, refused: Refused, body: str
) -> None:
    made = scripted.scripts.create_stored_procedure({"id": "broken", "body": body})
    assert made["body"] == body
    with refused(400, 65535, "compiling Javascript"):
        scripted.scripts.execute_stored_procedure("broken", "a")
    trigger = scripted.trigger(body)
    with refused(400, 65535, "compiling Javascript"):
        scripted.container.create_item({"id": "1", "pk": "a"}, pre_trigger_include=trigger)
    scripted.scripts.create_user_defined_function({"id": "broken", "body": body})
    with refused(400, 65535, "compiling Javascript"):
        list(scripted.container.query_items("SELECT VALUE udf.broken()", partition_key="a"))


def test_errors_reach_callbacks_with_their_numbers(scripted: Scripted) -> None:
    scripted.container.create_item({"id": "1", "pk": "a"})
    body = """function () {
      var numbers = [], link = __.getSelfLink(), first = __.getAltLink() + "/docs/1";
      function note(error) { numbers.push(error ? error.number : 0); }
      __.createDocument(link, { id: "1", pk: "a" }, note);
      __.createDocument(link, { id: "2", pk: "b" }, note);
      __.createDocument(link, { pk: "a" }, { disableAutomaticIdGeneration: true }, note);
      __.replaceDocument(first, { id: "1", pk: "a" }, { etag: "wrong" }, note);
      __.deleteDocument(__.getAltLink() + "/docs/no", note);
      __.upsertDocument(link, { id: "1", pk: "a", big: "x".repeat(2 * 1024 * 1024) }, note);
      __.readDocuments(link, { continuation: "nonsense" }, note);
      __.queryDocuments(link, "SELECT * FROM c", { pageSize: 0 }, note);
      __.readDocument(first, function (error) {
        note(error);
        __.response.setBody(numbers);
      });
    }"""
    assert scripted.run(body) == [409, 400, 400, 412, 404, 413, 400, 400, 0]


def test_a_procedure_needs_a_partition_key_and_arguments_that_are_json(
    scripted: Scripted, refused: Refused
) -> None:
    scripted.scripts.create_stored_procedure({"id": "p", "body": "function () {}"})
    with refused(400, None, "PartitionKey value must be supplied"):
        scripted.scripts.execute_stored_procedure("p")
    with refused(404):
        scripted.scripts.execute_stored_procedure("absent", "a")
