"""Scripts beside other writers: one moment, no lost change, and no change of others undone."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from azure.cosmos.exceptions import CosmosHttpResponseError

from tests.rooms.script.conftest import Scripted

INCREMENT = """function (id) {
  __.readDocument(__.getAltLink() + "/docs/" + id, function (error, doc) {
    if (error) throw error;
    doc.n += 1;
    __.replaceDocument(doc._self, doc, function (error) {
      if (error) throw error;
      __.response.setBody(doc.n);
    });
  });
}"""
SLOW_LOOKS = """function () {
  var link = __.getSelfLink(), sums = [];
  (function look() {
    var ends = Date.now() + 40;
    while (Date.now() < ends);
    __.queryDocuments(link, "SELECT VALUE SUM(c.n) FROM c", function (error, found) {
      if (error) throw error;
      sums.push(found[0]);
      if (sums.length < 8) return look();
      __.response.setBody(sums);
    });
  })();
}"""
MOVE = """function (from, to) {
  var docs = __.getAltLink() + "/docs/";
  __.readDocument(docs + from, function (error, a) {
    __.readDocument(docs + to, function (error, b) {
      a.n -= 1;
      b.n += 1;
      __.replaceDocument(a._self, a);
      __.replaceDocument(b._self, b);
    });
  });
}"""


@pytest.mark.requirement("R79")
def test_concurrent_increments_by_scripts_are_all_counted(scripted: Scripted) -> None:
    scripted.container.create_item({"id": "count", "pk": "a", "n": 0})
    scripted.scripts.create_stored_procedure({"id": "increment", "body": INCREMENT})

    def work(_: int) -> int:
        done = 0
        while done < 10:
            try:
                scripted.scripts.execute_stored_procedure("increment", "a", ["count"])
                done += 1
            except CosmosHttpResponseError as error:
                if error.status_code != 449:
                    raise
        return done

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(work, range(6))) == 60
    assert scripted.container.read_item("count", "a")["n"] == 60


def test_increments_by_scripts_and_by_patches_are_all_counted(scripted: Scripted) -> None:
    scripted.container.create_item({"id": "count", "pk": "a", "n": 0})
    scripted.scripts.create_stored_procedure({"id": "increment", "body": INCREMENT})
    done = []

    def patch() -> None:
        for _ in range(40):
            scripted.container.patch_item("count", "a", [{"op": "incr", "path": "/n", "value": 1}])
            done.append(1)

    def script() -> None:
        for _ in range(15):
            try:
                scripted.scripts.execute_stored_procedure("increment", "a", ["count"])
                done.append(1)
            except CosmosHttpResponseError as error:
                if error.status_code != 449:
                    raise

    threads = [threading.Thread(target=work) for work in (patch, script, script)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert scripted.container.read_item("count", "a")["n"] == len(done)
    assert len(done) > 40, "scripts get their turn too"


def test_a_script_reads_one_moment_while_others_move_values_about(scripted: Scripted) -> None:
    for id in ("x", "y"):
        scripted.container.create_item({"id": id, "pk": "a", "n": 100})
    scripted.scripts.create_stored_procedure({"id": "looks", "body": SLOW_LOOKS})
    scripted.scripts.create_stored_procedure({"id": "move", "body": MOVE})
    stop = threading.Event()

    def disturb() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            scripted.container.upsert_item({"id": f"extra{number % 3}", "pk": "a", "n": number})
            scripted.scripts.execute_stored_procedure("move", "a", ["x", "y"])

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for _ in range(3):
            sums: list[Any] = scripted.scripts.execute_stored_procedure("looks", "a")
            assert len(sums) == 8
            assert len(set(sums)) == 1, sums
    finally:
        stop.set()
        thread.join()
    moved = [scripted.container.read_item(id, "a")["n"] for id in ("x", "y")]
    assert sum(moved) == 200


def test_nobody_sees_half_of_a_script(scripted: Scripted) -> None:
    for id in ("x", "y"):
        scripted.container.create_item({"id": id, "pk": "a", "n": 100})
    scripted.scripts.create_stored_procedure({"id": "move", "body": MOVE})
    seen: list[object] = []
    moves = 0
    stop = threading.Event()

    def move() -> None:
        nonlocal moves
        while not stop.is_set():
            scripted.scripts.execute_stored_procedure("move", "a", ["x", "y"])
            moves += 1

    thread = threading.Thread(target=move)
    thread.start()
    try:
        while thread.is_alive() and (len(seen) < 50 or moves < 20):
            seen.extend(scripted.container.query_items("SELECT VALUE SUM(c.n) FROM c", partition_key="a"))
    finally:
        stop.set()
        thread.join()
    assert set(seen) == {200}
    assert scripted.container.read_item("x", "a")["n"] == 100 - moves < 90
