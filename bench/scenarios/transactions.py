"""Transactions in one logical partition: batches and stored procedures, beside single creates. One connection.

Each request of a transaction creates 100 items of about 1 KB. One stored procedure asks for all of them and then looks
at what came of it; another asks for each in the callback of the one before, and waits for the server a hundred times.

Bars:
- ``batch_100_vs_100_creates``: items/s of batches over items/s of single creates.
- ``sproc_100_vs_batch_100``: items/s of the first procedure over items/s of batches.
- ``empty_sproc_headroom``: 2 ms over the median time of a stored procedure that does nothing.
"""

from __future__ import annotations

import statistics

import orjson

from bench import request
from bench.items import Item, items
from bench.load import Job, LoadError, LoadProcess, Measure
from bench.report import Bar, FamilyReport, line
from bench.server import PleiadServer, pleiad_server
from bench.settings import Settings

ITEMS_OF_A_TRANSACTION = 100
EMPTY_MS = 2.0
WARMUP_SECONDS = 0.3
CREATES_PER_SECOND = 4_000
TRANSACTIONS_PER_SECOND = 120
CALLS_PER_SECOND = 4_000

IMPORT = """function (docs) {
  var collection = getContext().getCollection(), link = collection.getSelfLink(), count = 0;
  docs.forEach(function (doc) {
    if (!collection.createDocument(link, doc, created)) throw new Error("not accepted");
  });
  function created(error) {
    if (error) throw error;
    count += 1;
    if (count === docs.length) getContext().getResponse().setBody(count);
  }
}"""
CHAIN = """function (docs) {
  var collection = getContext().getCollection(), link = collection.getSelfLink(), count = 0;
  create();
  function create() {
    if (count === docs.length) return getContext().getResponse().setBody(count);
    if (!collection.createDocument(link, docs[count], created)) throw new Error("not accepted");
  }
  function created(error) {
    if (error) throw error;
    count += 1;
    create();
  }
}"""


def run(settings: Settings, load: LoadProcess) -> FamilyReport:
    """Every scenario of the family on one server, and its three bars."""
    with pleiad_server() as server:
        scenario = _Transactions(settings, load, server)
        singles: list[Measure] = []
        batches: list[Measure] = []
        procedures: list[Measure] = []
        chains: list[Measure] = []
        empty: list[Measure] = []
        for number in range(settings.rounds):
            singles.append(scenario.singles(number))
            batches.append(scenario.batches(number))
            procedures.append(scenario.procedures("import", number))
            chains.append(scenario.procedures("chain", number))
            empty.append(scenario.empty())
    return FamilyReport(
        lines=(
            line("create_1_connection", singles),
            line("batch_100_creates", batches),
            line("sproc_100_creates", procedures),
            line("sproc_100_chained", chains),
            line("sproc_empty", empty),
        ),
        bars=(
            Bar(
                name="batch_100_vs_100_creates",
                ratio=statistics.median(
                    ITEMS_OF_A_TRANSACTION * batch.rate / single.rate
                    for batch, single in zip(batches, singles, strict=True)
                ),
                bar=5,
                meaning="items/s in batches of 100 over items/s one by one",
            ),
            Bar(
                name="sproc_100_vs_batch_100",
                ratio=statistics.median(
                    procedure.rate / batch.rate for procedure, batch in zip(procedures, batches, strict=True)
                ),
                bar=0.5,
                meaning="items/s of a procedure of 100 creates over batches of 100",
            ),
            Bar(
                name="empty_sproc_headroom",
                ratio=EMPTY_MS / statistics.median(measure.p50_ms for measure in empty),
                bar=1,
                meaning=f"{EMPTY_MS:g} ms over the median time of an empty procedure",
            ),
        ),
    )


class _Transactions:
    """The rounds on one server."""

    def __init__(self, settings: Settings, load: LoadProcess, server: PleiadServer) -> None:
        self._settings = settings
        self._load = load
        self._server = server
        self._link = server.create_container("bench", "transactions")
        for id, body in (("import", IMPORT), ("chain", CHAIN), ("empty", "function () {}")):
            link = f"{self._link}/sprocs"
            status, answer = server.call("POST", f"/{link}", "sprocs", self._link, {"id": id, "body": body})
            if status != 201:
                raise LoadError(f"the procedure could not be created: {status} {answer[:400]!r}")

    def singles(self, number: int) -> Measure:
        server, count = self._server, self._prepared(CREATES_PER_SECOND)
        creates = request.ItemCreates(server.host, server.key, self._link, request.date_text())
        requests = [creates.create(item.pk, item.body) for item in items(f"single-{number}", count)]
        return self._run("create_1_connection", requests, 201)

    def batches(self, number: int) -> Measure:
        fields = request.headers(self._server.key, "POST", "docs", self._link, request.date_text())
        fields |= {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
        requests = []
        for pk, bodies in self._groups(f"batch-{number}"):
            operations = b",".join(b'{"operationType":"Create","resourceBody":%b}' % body for body in bodies)
            requests.append(self._encode(f"{self._link}/docs", fields, pk, b"[" + operations + b"]"))
        return self._run("batch_100_creates", requests, 200)

    def procedures(self, id: str, number: int) -> Measure:
        link = f"{self._link}/sprocs/{id}"
        fields = request.headers(self._server.key, "POST", "sprocs", link, request.date_text())
        requests = [
            self._encode(link, fields, pk, b"[[" + b",".join(bodies) + b"]]")
            for pk, bodies in self._groups(f"{id}-{number}")
        ]
        return self._run(f"sproc_{id}", requests, 200)

    def empty(self) -> Measure:
        link = f"{self._link}/sprocs/empty"
        fields = request.headers(self._server.key, "POST", "sprocs", link, request.date_text())
        call = self._encode(link, fields, "tenant-0", b"[]")
        return self._run("sproc_empty", [call] * self._prepared(CALLS_PER_SECOND), 200)

    def _groups(self, prefix: str) -> list[tuple[str, list[bytes]]]:
        """Transactions: each a logical partition and the items for it."""
        groups = []
        for group in range(self._prepared(TRANSACTIONS_PER_SECOND)):
            pk = f"tenant-{group}"
            found = items(f"{prefix}-{group}", ITEMS_OF_A_TRANSACTION)
            groups.append((pk, [_in_partition(item, pk) for item in found]))
        return groups

    def _prepared(self, per_second: int) -> int:
        return int(per_second * (self._settings.seconds + WARMUP_SECONDS))

    def _encode(self, link: str, fields: dict[str, str], pk: str, body: bytes) -> bytes:
        keyed = {**fields, "x-ms-documentdb-partitionkey": f'["{pk}"]'}
        return request.encode("POST", f"/{link}", self._server.host, keyed, body)

    def _run(self, name: str, requests: list[bytes], status: int) -> Measure:
        return self._load.run(
            Job(
                name=name,
                port=self._server.port,
                server_pid=self._server.pid,
                requests=requests,
                statuses=(status,),
                connections=1,
                seconds=self._settings.seconds,
                warmup_seconds=WARMUP_SECONDS,
                repeat=False,
            )
        )


def _in_partition(item: Item, pk: str) -> bytes:
    fields = orjson.loads(item.body)
    fields["pk"] = pk
    return orjson.dumps(fields)
