"""The API that scripts find: collection, queries by text and by functions, pages, links."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rooms.script.conftest import Refused, Scripted

FILL = """function (count) {
  for (var n = 0; n < count; n++) {
    __.upsertDocument(__.getSelfLink(), { id: "i" + String(n).padStart(3, "0"), pk: "a", n: n, tags: [n, [n]] });
  }
}"""


def ask(scripted: Scripted, expression: str, count: int = 6) -> Any:
    """What a callback is given by an operation, written with `done` in the place of the callback."""
    scripted.run(FILL, count)
    body = """function () {
      function done(error, found, info) { if (error) throw error; __.response.setBody([found, info]); }
      var link = __.getSelfLink();
      %s;
    }"""
    return scripted.run(body % expression)


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("__.queryDocuments(link, 'SELECT VALUE c.n FROM c WHERE c.n > 3', done)", [4, 5]),
        ("__.queryDocuments(link, { query: 'SELECT VALUE c.n FROM c WHERE c.n = @n', "
         "parameters: [{ name: '@n', value: 2 }] }, {}, done)", [2]),
        ("__.queryDocuments(link, 'SELECT VALUE c.n FROM c ORDER BY c.n DESC', done)", [5, 4, 3, 2, 1, 0]),
        ("__.queryDocuments(link, 'SELECT VALUE COUNT(1) FROM c', done)", [6]),
        ("__.queryDocuments(link, 'SELECT TOP 2 VALUE c.n FROM c', done)", [0, 1]),
        ("__.filter(function (d) { return d.n < 2; }, function (e, f) { done(e, f.map(d => d.n)); })", [0, 1]),
        ("__.map(function (d) { return d.n * 2; }, done)", [0, 2, 4, 6, 8, 10]),
        ("__.pluck('n', {}, done)", [0, 1, 2, 3, 4, 5]),
        ("__.sortByDescending(function (d) { return d.n; }, function (e, f) { done(e, f[0].n); })", 5),
        ("__.unwind(function (d) { return d.tags; }, function (d, t) { return t.length; }, done)", [None, 1] * 6),
        ("__.chain().filter(d => d.n > 3).map(d => d.tags).flatten().value(done)", [4, 4, 5, 5]),
        ("__.chain().filter(d => d.n > 4).map(d => d.tags).flatten(true).value({}, done)", [5, [5]]),
        ("__.chain().sortBy(d => -d.n).pluck('n').value(done)", [5, 4, 3, 2, 1, 0]),
    ],
)  # fmt: skip
def test_what_queries_give_in_a_script(scripted: Scripted, expression: str, found: Any) -> None:
    assert ask(scripted, expression)[0] == found


def test_a_query_by_functions_without_callback_answers_its_result(scripted: Scripted) -> None:
    scripted.run(FILL, 3)
    assert scripted.run("function () { __.pluck('n'); }") == [0, 1, 2]


@pytest.mark.parametrize(
    "call", ["readDocuments(link,", "queryDocuments(link, 'SELECT * FROM c WHERE c.n >= 0',", "filter(d => true,",
             "queryDocuments(link, 'SELECT * FROM c ORDER BY c.n',"]
)  # fmt: skip
def test_pages_follow_each_other_by_continuation_and_lose_nothing(scripted: Scripted, call: str) -> None:
    scripted.run(FILL, 250)
    body = """function () {
      var link = __.getSelfLink(), sizes = [], seen = {};
      page(undefined);
      function page(continuation) {
        __.%s { pageSize: 60, continuation: continuation }, function (error, found, info) {
          if (error) throw error;
          sizes.push(found.length);
          found.forEach(function (doc) { seen[doc.id] = true; });
          if (info.continuation) page(info.continuation);
          else __.response.setBody([sizes, Object.keys(seen).length]);
        });
      }
    }"""
    assert scripted.run(body % call) == [[60, 60, 60, 60, 10], 250]


def test_a_page_has_a_hundred_documents_unless_the_script_says_otherwise(scripted: Scripted) -> None:
    found, info = ask(scripted, "__.readDocuments(link, done)", count=120)
    assert len(found) == 100
    assert info["continuation"]


def test_a_script_sees_its_own_writes(scripted: Scripted) -> None:
    scripted.run(FILL, 4)
    body = """function () {
      var link = __.getSelfLink(), docs = __.getAltLink() + "/docs/";
      __.createDocument(link, { id: "new", pk: "a", n: 10 });
      __.deleteDocument(docs + "i000");
      __.replaceDocument(docs + "i001", { id: "i001", pk: "a", n: 11 });
      __.deleteDocument(docs + "i002");
      __.createDocument(link, { id: "i002", pk: "a", n: 12 });
      __.queryDocuments(link, "SELECT VALUE c.n FROM c", function (error, found) {
        __.queryDocuments(link, "SELECT VALUE SUM(c.n) FROM c", function (error, sum) {
          __.readDocument(docs + "i002", function (error, doc) {
            __.response.setBody([found.sort(), sum, doc.n]);
          });
        });
      });
    }"""
    assert scripted.run(body) == [[10, 11, 12, 3], [36], 12]
    assert scripted.ids() == ["i001", "i002", "i003", "new"]


def test_documents_without_id_get_one_of_their_own(scripted: Scripted) -> None:
    body = """function () {
      var ids = [];
      for (var n = 0; n < 3; n++) {
        __.createDocument(__.getSelfLink(), { pk: "a" }, function (error, doc) {
          if (error) throw error;
          ids.push(doc.id);
          __.response.setBody(ids);
        });
      }
    }"""
    ids = scripted.run(body)
    assert len(set(ids)) == 3
    assert scripted.ids() == sorted(ids)
    assert not set(scripted.run(body)) & set(ids)


def test_a_document_that_did_not_change_is_not_read_again(scripted: Scripted) -> None:
    etag = scripted.container.create_item({"id": "1", "pk": "a"})["_etag"]
    body = """function (etag) {
      __.readDocument(__.getAltLink() + "/docs/1", { ifNoneMatch: etag }, function (error, doc, info) {
        __.response.setBody([doc === undefined, info.notModified]);
      });
    }"""
    assert scripted.run(body, etag) == [True, True]
    assert scripted.run(body, "other") == [False, None]


def test_links_lead_to_the_collection_and_its_documents(scripted: Scripted) -> None:
    item = scripted.container.create_item({"id": "1", "pk": "a"})
    properties = scripted.container.read()
    links = scripted.run("function () { __.response.setBody([__.getSelfLink(), __.getAltLink()]); }")
    assert links == [properties["_self"], scripted.container.container_link.strip("/")]
    read = "function (l) { __.readDocument(l, function (e, d) { if (e) throw e; __.response.setBody(d); }); }"
    assert scripted.run(read, item["_self"]) == item
    assert scripted.run(read, f"{links[1]}/docs/1") == item


def test_the_names_of_the_service_are_there(scripted: Scripted) -> None:
    body = """function () {
      var context = getContext(), error = new Error(ErrorCodes.NotFound, "gone");
      __.response.setBody([
        context.getCollection().getSelfLink() === __.getSelfLink(),
        context.getRequest() === __.request, context.getResponse() === __.response,
        error.number, error.body, error instanceof Error, error.message, new TypeError("t") instanceof Error,
      ]);
    }"""
    assert scripted.run(body) == [True, True, True, 404, "gone", True, "gone", True]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT VALUE udf.twice(c.n) FROM c WHERE udf.twice(c.n) > 6", [8, 10]),
        ("SELECT VALUE SUM(udf.twice(c.n)) FROM c", [30]),
        ("SELECT VALUE udf.twice(c.n) FROM c ORDER BY c.n DESC OFFSET 1 LIMIT 2", [8, 6]),
    ],
)
def test_user_defined_functions_are_there_for_the_queries_of_scripts(
    scripted: Scripted, refused: Refused, query: str, found: list[int]
) -> None:
    twice = "function twice(n) { return 2 * n; }"
    scripted.scripts.create_user_defined_function({"id": "twice", "body": twice})
    assert ask(scripted, f"__.queryDocuments(link, '{query}', done)")[0] == found
    with refused(400, 400, "no user-defined function 'absent'"):
        ask(scripted, "__.queryDocuments(link, 'SELECT VALUE udf.absent() FROM c', done)")
