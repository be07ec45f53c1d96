"""Many clients in one logical partition at once, over the wire: one serial order explains what they were told.

Writers use batches, single writes, patches, ETags and stored procedures, and some of what they try is refused; readers
use point reads, batches of reads, queries, stored procedures, the read feed and the change feed. Each keeps a record,
and the checker looks at all of it.
"""

from __future__ import annotations

import functools
import json
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from pleiad.client.connection import Answer, Connection
from pleiad.testing.start import RunningServer
from tests.waiting import wait_until

pytestmark = pytest.mark.every_store

KEY = '["a"]'
LOCKED = 423
"""The throughput is being changed already."""
PAIR = ("x", "y")
SINGLE = "z"
COMING_AND_GOING = ("t0", "t1", "t2")
THREADS_SECONDS_MAX = 600
SCRIPT_TAG = "script"
STOPPED = 408
"""On a busy machine a script may take longer than it is given, and then has written and shown nothing."""

MOVE_ONE = """function (ids, tags) {
  const before = [];
  const after = [];
  const must = function (accepted) { if (!accepted) throw new Error("not accepted"); };
  const read = function (place) {
    must(__.readDocument(__.getAltLink() + "/docs/" + ids[place], function (error, found) {
      if (error) throw error;
      before.push(found);
      if (place === 0) read(1); else write(0);
    }));
  };
  const write = function (place) {
    const found = before[place];
    const item = { id: found.id, pk: found.pk, n: found.n + (place === 0 ? -1 : 1), tag: tags[place] };
    must(__.replaceDocument(found._self, item, function (error, written) {
      if (error) throw error;
      after.push(written);
      if (place === 0) write(1); else __.response.setBody({ before: before, after: after });
    }));
  };
  read(0);
}"""
"""Reads two items, and takes one from the first for the second."""

FAIL_HALFWAY = """function (items) {
  const write = function (place) {
    __.upsertDocument(__.getSelfLink(), items[place], function (error) {
      if (error) throw error;
      if (place + 1 < items.length) write(place + 1); else throw new Error("half way");
    });
  };
  write(0);
}"""
"""Writes items and throws, so that none of them was written."""

READ_TWICE = """function () {
  const read = function (next) {
    __.queryDocuments(__.getSelfLink(), "SELECT * FROM c", function (error, found) {
      if (error) throw error;
      next(found);
    });
  };
  read(function (first) {
    read(function (second) { __.response.setBody([first, second]); });
  });
}"""
"""Reads everything, and everything again."""

PROCEDURES = {"moveOne": MOVE_ONE, "failHalfway": FAIL_HALFWAY, "readTwice": READ_TWICE}


def value_of(item: dict[str, Any]) -> str:
    """What a client wrote of an item, as one text."""
    return json.dumps({name: item[name] for name in sorted(item) if not name.startswith("_")})


def lsn_of(etag: str) -> int:
    return int(etag.strip('"').split("-")[0], 16)


class Client:
    """One connection that records what it is told."""

    def __init__(self, server: RunningServer, link: str, record: Any, module: Any, number: int) -> None:
        self.link = link.split("/")
        self.record = record
        self.module = module
        self.chooser = random.Random(number)
        self.number = number
        self.count = 0
        self.place = ""
        self.after = 0
        self._connection = Connection(server.endpoint, server.key)
        self.began = 0.0

    def close(self) -> None:
        self._connection.__exit__(None, None, None)

    def ask(self, method: str, *path: str, body: Any = None, **headers: str) -> Answer:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {"x-ms-documentdb-partitionkey": KEY, **fields}
        link = [*self.link, *path] if len(path) > 1 else self.link
        data = None if body is None else json.dumps(body).encode()
        self.began = time.monotonic()
        return self._connection.request(method, [*self.link, *path], "docs", link, sent, data)

    def batch(self, *operations: dict[str, Any]) -> Answer:
        flags = {"x_ms_cosmos_is_batch_request": "True", "x_ms_cosmos_batch_atomic": "True"}
        return self.ask("POST", "docs", body=list(operations), **flags)

    def run(self, procedure: str, *arguments: Any) -> Answer:
        path = [*self.link, "sprocs", procedure]
        body = json.dumps(arguments).encode()
        self.began = time.monotonic()
        return self._connection.request(
            "POST", path, "sprocs", path, {"x-ms-documentdb-partitionkey": KEY}, body
        )

    def item(self, id: str, n: int = 0) -> dict[str, Any]:
        self.count += 1
        return {"id": id, "pk": "a", "n": n, "tag": f"{self.number}-{self.count}"}

    def told(self, items: list[dict[str, Any]], based_on: dict[str, str] | None = None) -> None:
        lsns = {lsn_of(item["_etag"]) for item in items}
        assert len(lsns) == 1, "what one request wrote is one write"
        left = {item["id"]: value_of(item) for item in items}
        self.record.told.append(self.module.Told(self.began, time.monotonic(), lsns.pop(), left, based_on))

    def saw(self, items: list[dict[str, Any]], *ids: str) -> None:
        shown = {item["id"]: (lsn_of(item["_etag"]), value_of(item)) for item in items}
        wanted = frozenset(ids) if ids else None
        self.record.seen.append(self.module.Seen(self.began, time.monotonic(), shown, wanted))

    # -- writers -----------------------------------------------------------------------------------

    def write_pair(self) -> None:
        pair = [self.item(id, self.chooser.randrange(100)) for id in self.chooser.sample(PAIR, 2)]
        answer = self.batch(*({"operationType": "Upsert", "resourceBody": item} for item in pair))
        assert answer.status == 200, answer.body
        self.told([entry["resourceBody"] for entry in answer.json()])

    def increment_pair(self) -> None:
        answer = self.batch(
            *({"operationType": "Patch", "id": id, "resourceBody": increment()} for id in PAIR)
        )
        assert answer.status == 200, answer.body
        items = [entry["resourceBody"] for entry in answer.json()]
        self.told(items, {item["id"]: before_increment(item) for item in items})

    def increment_one(self) -> None:
        id = self.chooser.choice([*PAIR, SINGLE])
        answer = self.ask("PATCH", "docs", id, body=increment())
        assert answer.status == 200, answer.body
        self.told([answer.json()], {id: before_increment(answer.json())})

    def write_single(self) -> None:
        answer = self.ask("POST", "docs", body=self.item(SINGLE), x_ms_documentdb_is_upsert="true")
        assert answer.status == 200, answer.body
        self.told([answer.json()])

    def replace_by_etag(self) -> None:
        """Reads an item, thinks, and replaces it if nobody else has done so meanwhile."""
        id = self.chooser.choice([*PAIR, SINGLE])
        found = self.point_read(id)
        item = self.item(id, found["n"] + 1)
        answer = self.ask("PUT", "docs", id, body=item, If_Match=found["_etag"])
        if answer.status == 200:
            self.told([answer.json()], {id: value_of(found)})
        else:
            assert answer.status == 412, answer.body
            self.record.refused.add(value_of(item))

    def replace_pair_by_etag(self) -> None:
        answer = self.batch(*({"operationType": "Read", "id": id} for id in PAIR))
        found = [entry["resourceBody"] for entry in answer.json()]
        items = [self.item(item["id"], item["n"] + 1) for item in found]
        answer = self.batch(
            *(
                {"operationType": "Replace", "id": new["id"], "resourceBody": new, "ifMatch": old["_etag"]}
                for new, old in zip(items, found, strict=True)
            )
        )
        if answer.status == 200:
            self.told(
                [entry["resourceBody"] for entry in answer.json()],
                {old["id"]: value_of(old) for old in found},
            )
        else:
            assert answer.status == 207, answer.body
            self.record.refused.update(map(value_of, items))

    def come_or_go(self) -> None:
        item = self.item(self.chooser.choice(COMING_AND_GOING))
        if self.chooser.random() < 0.5:
            answer = self.ask("DELETE", "docs", item["id"])
            assert answer.status in (204, 404)
            if answer.status == 204:
                self.record.deletes_told.append(item["id"])
            return
        answer = self.ask("POST", "docs", body=item)
        if answer.status == 201:
            self.told([answer.json()])
        else:
            assert answer.status == 409
            self.record.refused.add(value_of(item))

    def fail_halfway(self) -> None:
        doomed = [self.item(id) for id in PAIR]
        missing = {"operationType": "Replace", "id": "missing", "resourceBody": self.item("missing")}
        answer = self.batch(*({"operationType": "Upsert", "resourceBody": item} for item in doomed), missing)
        assert [entry["statusCode"] for entry in answer.json()] == [424, 424, 404]
        self.record.refused.update(map(value_of, doomed))

    def move_by_script(self) -> None:
        """Reads two items and writes both; when others were always faster, or it was stopped, nothing was written."""
        ids = self.chooser.sample(PAIR, 2)
        tags = [f"{SCRIPT_TAG}-{self.item(id)['tag']}" for id in ids]
        answer = self.run("moveOne", ids, tags)
        if answer.status not in (449, STOPPED):
            assert answer.status == 200, answer.body
            found = answer.json()
            self.told(found["after"], {item["id"]: value_of(item) for item in found["before"]})

    def fail_in_a_script(self) -> None:
        doomed = [self.item(id) for id in (*PAIR, SINGLE)]
        answer = self.run("failHalfway", doomed)
        if answer.status != STOPPED:
            assert answer.status == 400, answer.body
            assert "half way" in answer.json()["message"]
        self.record.refused.update(map(value_of, doomed))

    # -- readers -----------------------------------------------------------------------------------

    def point_read(self, id: str = "") -> dict[str, Any]:
        answer = self.ask("GET", "docs", id or self.chooser.choice([*PAIR, SINGLE]))
        assert answer.status == 200, answer.body
        item: dict[str, Any] = answer.json()
        self.saw([item], item["id"])
        return item

    def read_together(self) -> None:
        ids = self.chooser.sample([*PAIR, SINGLE], self.chooser.randrange(2, 4))
        answer = self.batch(*({"operationType": "Read", "id": id} for id in ids))
        assert answer.status == 200, answer.body
        self.saw([entry["resourceBody"] for entry in answer.json()], *ids)

    def query(self) -> None:
        text, ids = self.chooser.choice(
            [
                ("SELECT * FROM c", ()),
                ("SELECT * FROM c ORDER BY c.tag", ()),
                ("SELECT * FROM c WHERE c.id IN ('x', 'y')", PAIR),
                ("SELECT * FROM c WHERE STARTSWITH(c.id, 't')", COMING_AND_GOING),
            ]
        )
        flags = {"Content_Type": "application/query+json", "x_ms_documentdb_isquery": "True"}
        answer = self.ask("POST", "docs", body={"query": text, "parameters": []}, **flags)
        assert answer.status == 200, answer.body
        self.saw(answer.json()["Documents"], *ids)

    def read_by_script(self) -> None:
        """What a script reads is one state for as long as it runs."""
        answer = self.run("readTwice")
        if answer.status == STOPPED:
            return
        assert answer.status == 200, answer.body
        first, second = answer.json()
        assert first == second
        self.saw(first)

    def read_feed(self) -> None:
        answer = self.ask("GET", "docs")
        assert answer.status == 200, answer.body
        self.saw(answer.json()["Documents"])

    def follow_changes(self) -> None:
        if self.chooser.random() < 0.2:
            self.place, self.after = "", 0
        answer = self.ask("GET", "docs", A_IM="Incremental Feed", If_None_Match=self.place)
        assert answer.status in (200, 304), answer.body
        self.place = answer.headers["etag"]
        upto = int(self.place.strip('"'))
        found = answer.json()["Documents"] if answer.status == 200 else []
        shown = {item["id"]: (item["_lsn"], value_of(item)) for item in found}
        assert all(lsn_of(item["_etag"]) == item["_lsn"] for item in found)
        page = self.module.Page(self.began, time.monotonic(), self.after, upto, shown)
        self.record.pages.append(page)
        self.after = upto

    def all_changes(self, place: str) -> list[Any]:
        """Every change since a place, as the feed of all versions tells it."""
        found: list[Any] = []
        while True:
            answer = self.ask("GET", "docs", A_IM="Full-Fidelity Feed", If_None_Match=place)
            place = answer.headers["etag"]
            if answer.status == 304:
                return found
            for entry in answer.json()["Documents"]:
                id = entry["current"].get("id") or entry["metadata"]["id"]
                value = value_of(entry["current"]) if entry["current"] else None
                found.append(self.module.Change(entry["metadata"]["lsn"], id, value))


def increment() -> dict[str, Any]:
    return {"operations": [{"op": "incr", "path": "/n", "value": 1}]}


def before_increment(item: dict[str, Any]) -> str:
    return value_of({**item, "n": item["n"] - 1})


WRITES = (
    Client.write_pair,
    Client.increment_pair,
    Client.increment_one,
    Client.write_single,
    Client.replace_by_etag,
    Client.replace_pair_by_etag,
    Client.come_or_go,
    Client.fail_halfway,
    Client.move_by_script,
    Client.fail_in_a_script,
)
READS = (
    Client.point_read,
    Client.read_together,
    Client.query,
    Client.read_by_script,
    Client.read_feed,
    Client.follow_changes,
)
Act = Callable[[Client], object]


def live_together(clients: list[Client], seconds: float, is_enough: Callable[[], bool]) -> None:
    """Half of the clients write and half of them read, until the time is over and they have seen enough."""
    end = time.monotonic() + seconds
    failures: list[BaseException] = []

    def live(client: Client, acts: tuple[Act, ...]) -> None:
        try:
            while (time.monotonic() < end or not is_enough()) and not failures:
                client.chooser.choice(acts)(client)
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=live, args=(client, WRITES if client.number % 2 else READS))
        for client in clients
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(THREADS_SECONDS_MAX)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def scripted(record: Any) -> int:
    """How many acknowledged writes were made by scripts."""
    return sum(any(f'"{SCRIPT_TAG}-' in value for value in told.left.values()) for told in list(record.told))


def is_enough(record: Any, count: float) -> bool:
    """Whether the clients were told so much of each kind that a wrong order would show."""
    return (
        len(record.told) > 20 * count
        and len(record.seen) > 20 * count
        and bool(record.refused)
        and scripted(record) > count
        and len(record.deletes_told) > count
        and sum(bool(page.items) for page in list(record.pages)) > count
    )


@pytest.fixture
def container(pleiad_database: DatabaseProxy) -> ContainerProxy:
    """A container that keeps all versions, with the logical partition of the tests and a few others."""
    made = pleiad_database.create_container(
        "things", PartitionKey("/pk"), change_feed_policy={"retentionDuration": 60}
    )
    for number in range(40):
        made.create_item({"id": "other", "pk": f"other{number}"})
    for id, body in PROCEDURES.items():
        made.scripts.create_stored_procedure({"id": id, "body": body})
    return made


@pytest.fixture
def lived(
    pleiad_server: RunningServer, container: ContainerProxy, history: Any
) -> Callable[[float, Callable[[Any], object]], Any]:
    """Lets clients live together for a while, with something else happening meanwhile; gives their history."""

    def live(seconds: float, meanwhile: Callable[[Any], object]) -> Any:
        record = history.History()
        link = container.container_link
        clients = [Client(pleiad_server, link, record, history, number) for number in range(10)]
        first = clients[0]
        start = first.ask("GET", "docs", A_IM="Full-Fidelity Feed", If_None_Match="*").headers["etag"]
        every = [first.item(id) for id in (*PAIR, SINGLE)]
        answer = first.batch(*({"operationType": "Create", "resourceBody": item} for item in every))
        first.told([entry["resourceBody"] for entry in answer.json()])
        beside = threading.Thread(target=meanwhile, args=[record], daemon=True)
        beside.start()
        live_together(clients, seconds, lambda: is_enough(record, seconds) and not beside.is_alive())
        beside.join(THREADS_SECONDS_MAX)
        record.truth = first.all_changes(start)
        for client in clients:
            client.close()
        return record

    return live


@pytest.mark.requirement("R20")
@pytest.mark.parametrize(
    "seconds", [2, pytest.param(60, marks=[pytest.mark.long, pytest.mark.timeout(1800)])]
)
def test_one_serial_order_explains_what_clients_of_a_logical_partition_are_told(
    lived: Callable[..., Any], seconds: float
) -> None:
    record = lived(seconds, lambda _: None)
    assert record.problems() == []
    assert is_enough(record, seconds)


@pytest.mark.requirement("R20")
def test_the_order_holds_while_the_physical_partition_is_split_and_moved(
    lived: Callable[..., Any], container: ContainerProxy
) -> None:
    def is_raised(throughput: int) -> bool:
        try:
            container.replace_throughput(throughput)
        except CosmosHttpResponseError as error:
            if error.status_code != 423:  # the change before is under way
                raise
            return False
        return True

    def has_told(record: Any, count: int) -> bool:
        return len(record.told) >= count

    def grow(record: Any) -> None:
        for throughput in (12_000, 24_000, 48_000):
            assert wait_until(functools.partial(has_told, record, len(record.told) + 20))
            assert wait_until(functools.partial(is_raised, throughput))

    record = lived(3, grow)
    assert len(list(container.read_feed_ranges())) > 2, "there were splits"
    assert record.problems() == []
