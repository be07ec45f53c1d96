"""Killing the server in the middle of its work, again and again, and looking at what is left.

Clients write to a real server in a process of its own, each to items of its own and all of them to ids they
race for, and note what was acknowledged. The server is killed at a random moment and started on the same
data. Then:

- every item is at its last acknowledged version, or at the one that was in flight when the server died;
- no item is there twice, half written, or back from an acknowledged delete;
- no LSN of a partition and no etag of an item was given to two versions;
- of every raced id one creator won, and it is still the same one;
- containers exist exactly as acknowledged;
- the counters of the container equal a recount.

PLEIAD_CRASH_KILLS says how often to kill; PLEIAD_CRASH_SEED repeats the choices of an earlier run.
"""

from __future__ import annotations

import base64
import hmac
import http.client
import itertools
import os
import random
import re
import signal
import threading
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from pleiad.item.body import SYSTEM_PROPERTIES
from pleiad.testing.start import RunningServer
from tests.proofs.crash.seeds import chosen_seed
from tests.stores import SegmentNames, StartServer
from tests.waiting import SECONDS_MAX, any_moment, wait_until

KILLS = int(os.environ.get("PLEIAD_CRASH_KILLS", "4"))
SEED = chosen_seed()
CLIENTS = 6
LOAD_SECONDS_MAX = 0.6
POINT_READS = 30
OWN, RACED = "dbs/db/colls/own", "dbs/db/colls/raced"

LinkVersion = tuple[str, int]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


class Wire:
    """Signed requests over one connection; OSError or HTTPException when the server is gone."""

    def __init__(self, server: RunningServer) -> None:
        self._key = base64.b64decode(server.key)
        self._connection = http.client.HTTPConnection("localhost", server.port, timeout=SECONDS_MAX)

    def call(self, verb: str, kind: str, link: str, body: object = None, **headers: str) -> Answer:
        """`link` names the resource of that kind, or the one whose children of that kind are meant."""
        date = formatdate(usegmt=True)
        names_it = link.split("/")[-2:-1] == [kind]
        path = f"/{link}" if names_it else f"/{link}/{kind}".replace("//", "/")
        text = f"{verb.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
        signature = base64.b64encode(hmac.digest(self._key, text.encode(), "sha256")).decode()
        sent = {
            "x-ms-date": date,
            "x-ms-version": "2020-07-15",
            "authorization": quote(f"type=master&ver=1.0&sig={signature}", safe=""),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        self._connection.request(verb, path, orjson.dumps(body) if body is not None else None, sent)
        response = self._connection.getresponse()
        return Answer(response.status, response.headers, response.read())

    def close(self) -> None:
        self._connection.close()


@dataclass
class Item:
    """What a client knows of an item: its acknowledged version, None for absent, and the one in flight."""

    id: str
    pk: str
    version: int | None = None
    etag: str | None = None
    in_flight: list[int | None] = field(default_factory=list)


class Record:
    """Everything that was acknowledged, over all lives of the server."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.winners: dict[str, int] = {}
        self.containers: dict[str, list[bool]] = {}
        self.used: set[LinkVersion] = set()
        self.etags: set[tuple[str, str]] = set()
        self.range_of: dict[str, str] = {}
        self.acknowledged = 0
        self.surprises: list[str] = []
        self._lock = threading.Lock()

    def note(self, item: Item, version: int | None, answer: Answer) -> None:
        """A write of an item was acknowledged."""
        range_id, _, vector = answer.headers["x-ms-session-token"].partition(":")
        lsn = int(vector.rpartition("#")[2])
        with self._lock:
            self.acknowledged += 1
            self.range_of[item.pk] = range_id
            item.version = version
            item.in_flight.clear()
            item.etag = None
            if version is not None:
                item.etag = answer.headers["etag"]
                self.use(item, item.etag)
            elif lsn < 1:
                self.surprises.append(f"a delete of {item.id} was acknowledged with LSN {lsn}")

    def use(self, item: Item, etag: str) -> None:
        """A version of an item exists: its LSN and its etag must be nobody else's."""
        place = (self.range_of[item.pk], int(etag.strip('"')[:8], 16))
        if place in self.used:
            self.surprises.append(f"LSN {place[1]} of range {place[0]} was given again, to {item.id}")
        if (item.id, etag) in self.etags:
            self.surprises.append(f"the etag {etag} of {item.id} was given to two versions")
        self.used.add(place)
        self.etags.add((item.id, etag))

    def won(self, id: str, client: int) -> None:
        with self._lock:
            self.acknowledged += 1
            if id in self.winners:
                self.surprises.append(f"{id} was created by client {self.winners[id]} and by client {client}")
            self.winners[id] = client


def document(item: Item, version: int, pad: int) -> dict[str, Any]:
    return {
        "id": item.id,
        "pk": item.pk,
        "version": version,
        "check": f"{item.id}/{version}",
        "padLength": pad,
        "pad": "x" * pad,
    }


def key_header(pk: str) -> dict[str, str]:
    return {"x_ms_documentdb_partitionkey": f'["{pk}"]'}


class Client(threading.Thread):
    """Writes until the server dies or the time is over."""

    def __init__(
        self, server: RunningServer, record: Record, number: int, life: int, stop: threading.Event
    ) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._record = record
        self._number = number
        self._stop_asked = stop
        self._random = random.Random(f"{SEED}/{life}/{number}")
        self._prefix = f"c{number}-l{life}-"
        self._counter = itertools.count()
        self._races = itertools.count()
        self._life = life

    def run(self) -> None:
        wire = Wire(self._server)
        mine = [item for item in self._record.items.values() if item.id.startswith(f"c{self._number}-")]
        try:
            while not self._stop_asked.is_set():
                if self._random.random() < 0.15:
                    self._race(wire)
                else:
                    self._write(wire, mine)
        except (OSError, http.client.HTTPException):
            return
        finally:
            wire.close()

    def _write(self, wire: Wire, mine: list[Item]) -> None:
        alive = [item for item in mine if item.version is not None]
        choice = self._random.random()
        if choice < 0.4 or not alive:
            item = Item(
                f"{self._prefix}{next(self._counter)}", f"pk{self._number}-{self._random.randrange(4)}"
            )
            self._record.items[item.id] = item
            mine.append(item)
            self._send(wire, item, "POST", OWN, 1)
        elif choice < 0.8:
            item = self._random.choice(alive)
            assert item.version is not None
            self._send(wire, item, "PUT", f"{OWN}/docs/{item.id}", item.version + 1)
        else:
            item = self._random.choice(alive)
            self._send(wire, item, "DELETE", f"{OWN}/docs/{item.id}", None)

    def _send(self, wire: Wire, item: Item, verb: str, link: str, version: int | None) -> None:
        headers = key_header(item.pk)
        if item.etag is not None and self._random.random() < 0.5:
            headers["if_match"] = item.etag
        pad = self._random.choice([0, 10, 500, 5_000])
        body = document(item, version, pad) if version is not None else None
        item.in_flight.append(version)
        answer = wire.call(verb, "docs", link, body, **headers)
        if answer.status == 429:
            item.in_flight.clear()
            self._stop_asked.wait(int(answer.headers.get("x-ms-retry-after-ms", "10")) / 1000)
        elif answer.status in (200, 201, 204):
            self._record.note(item, version, answer)
        else:
            self._record.surprises.append(f"{verb} {link}: {answer.status} {answer.body[:300]!r}")

    def _race(self, wire: Wire) -> None:
        id = f"race-{self._life}-{next(self._races)}"
        body = {"id": id, "pk": id, "winner": self._number}
        answer = wire.call("POST", "docs", RACED, body, **key_header(id))
        if answer.status == 201:
            self._record.won(id, self._number)
        elif answer.status not in (409, 429):
            self._record.surprises.append(f"racing for {id}: {answer.status} {answer.body[:300]!r}")


class Builder(threading.Thread):
    """Creates and deletes containers until the server dies or the time is over."""

    def __init__(self, server: RunningServer, record: Record, life: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._record = record
        self._life = life
        self._stop_asked = stop

    def run(self) -> None:
        wire = Wire(self._server)
        try:
            for number in itertools.count():
                if self._stop_asked.is_set():
                    return
                name = f"built-{self._life}-{number}"
                possible = self._record.containers[name] = [False, True]
                body = {"id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
                self._expect(wire.call("POST", "colls", "dbs/db", body), 201)
                possible[:] = [True]
                if number % 3:
                    item = {"id": "i", "pk": "p"}
                    link = f"dbs/db/colls/{name}"
                    self._expect(wire.call("POST", "docs", link, item, **key_header("p")), 201)
                    possible[:] = [True, False]
                    self._expect(wire.call("DELETE", "colls", link), 204)
                    possible[:] = [False]
        except (OSError, http.client.HTTPException):
            return
        finally:
            wire.close()

    def _expect(self, answer: Answer, status: int) -> None:
        if answer.status != status:
            self._record.surprises.append(f"a container: {answer.status} {answer.body[:300]!r}")


def read_all(wire: Wire, link: str, kind: str, feed: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        headers = {"x_ms_max_item_count": "1000"} | ({"x_ms_continuation": token} if token else {})
        answer = wire.call("GET", kind, link, **headers)
        assert answer.status == 200, answer.body
        found += answer.json[feed]
        token = answer.headers.get("x-ms-continuation", "")
        if not token:
            return found


def check_items(wire: Wire, record: Record, chooser: random.Random) -> None:
    documents = read_all(wire, OWN, "docs", "Documents")
    by_id = {each["id"]: each for each in documents}
    assert len(by_id) == len(documents), "an item is there twice"
    assert by_id.keys() <= record.items.keys()
    for item in record.items.values():
        found = by_id.get(item.id)
        version = found["version"] if found is not None else None
        assert version in (item.version, *item.in_flight), (
            f"{item.id} is at version {version}; acknowledged {item.version}, in flight {item.in_flight}"
        )
        if found is not None:
            user_part = {name: value for name, value in found.items() if name not in SYSTEM_PROPERTIES}
            assert user_part == document(item, found["version"], found["padLength"]), "a half write"
            if version == item.version:
                assert found["_etag"] == item.etag
            elif item.pk in record.range_of:
                record.use(item, found["_etag"])
        item.version, item.etag = version, found["_etag"] if found is not None else None
        item.in_flight.clear()
    for id in chooser.sample(sorted(by_id), min(POINT_READS, len(by_id))):
        item = record.items[id]
        answer = wire.call("GET", "docs", f"{OWN}/docs/{id}", **key_header(item.pk))
        assert (answer.status, answer.json) == (200, by_id[id])
    check_counters(wire, documents)


def check_counters(wire: Wire, documents: list[dict[str, Any]]) -> None:
    answer = wire.call("GET", "colls", OWN, x_ms_documentdb_populatequotainfo="true")
    usage = dict(re.findall(r"(\w+)=(\d+)", answer.headers["x-ms-resource-usage"]))
    texts = [
        orjson.dumps({name: value for name, value in each.items() if name not in SYSTEM_PROPERTIES})
        for each in documents
    ]
    assert int(usage["documentsCount"]) == len(documents)
    assert int(usage["documentsSize"]) == sum(map(len, texts)) // 1024


def check_races(wire: Wire, record: Record) -> None:
    documents = read_all(wire, RACED, "docs", "Documents")
    winners = {each["id"]: each["winner"] for each in documents}
    assert len(winners) == len(documents), "a raced id is there twice"
    for id, winner in record.winners.items():
        assert winners.get(id) == winner, f"{id} was won by client {winner}, now it is {winners.get(id)}"
    record.winners.update(winners)


def check_containers(wire: Wire, record: Record) -> None:
    names = {each["id"] for each in read_all(wire, "dbs/db", "colls", "DocumentCollections")}
    for name, possible in record.containers.items():
        assert (name in names) in possible, f"the container {name}: exists {name in names}, may be {possible}"
        possible[:] = [name in names]
    assert names == {"own", "raced"} | {name for name, possible in record.containers.items() if possible[0]}


def check_segments(segments: set[str], wire: Wire) -> None:
    """What a killed delete left of a container's segments is gone after the next start."""
    containers = len(read_all(wire, "dbs/db", "colls", "DocumentCollections"))
    assert len(segments) <= containers + 1, "own has two physical partitions, every other container one"


def prepare(wire: Wire) -> None:
    assert wire.call("POST", "dbs", "", {"id": "db"}).status == 201
    for name in ("own", "raced"):
        body = {"id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
        ru = "12000" if name == "own" else "400"
        assert wire.call("POST", "colls", "dbs/db", body, x_ms_offer_throughput=ru).status == 201


def live_and_die(
    data: Path,
    record: Record,
    life: int,
    chooser: random.Random,
    start_server: StartServer,
    segment_names: SegmentNames,
) -> None:
    """One life of the server: check what the last one left, work, and be killed."""
    with start_server(data=data, child_process=True) as server:
        wire = Wire(server)
        if life == 0:
            prepare(wire)
        check_segments(segment_names(data), wire)
        check_items(wire, record, chooser)
        check_races(wire, record)
        check_containers(wire, record)
        wire.close()
        assert not record.surprises, record.surprises[:5]
        if life == KILLS:
            return
        stop = threading.Event()
        workers: list[threading.Thread] = [
            Client(server, record, number, life, stop) for number in range(CLIENTS)
        ]
        workers.append(Builder(server, record, life, stop))
        before = record.acknowledged
        for worker in workers:
            worker.start()
        assert wait_until(lambda: record.acknowledged > before + 10), "the clients hardly write anything"
        any_moment(chooser, LOAD_SECONDS_MAX)
        os.kill(server.process_id, signal.SIGKILL)
        stop.set()
        for worker in workers:
            worker.join(SECONDS_MAX)
            assert not worker.is_alive()


@pytest.mark.timeout(900 + 60 * KILLS)
def test_nothing_acknowledged_is_lost_however_often_the_server_is_killed(
    tmp_path: Path, start_server: StartServer, segment_names: SegmentNames
) -> None:
    record = Record()
    chooser = random.Random(SEED)
    life = 0
    try:
        for life in range(KILLS + 1):
            live_and_die(tmp_path / "data", record, life, chooser, start_server, segment_names)
    except BaseException as error:
        error.add_note(f"PLEIAD_CRASH_SEED={SEED}, in life {life} of the server")
        raise
