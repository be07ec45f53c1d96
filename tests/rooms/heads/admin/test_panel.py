"""What who looks on is told: overview, live figures, the last hour, heat, balance, and what could be done."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey

from pleiad.cli.view.partition import Look, view
from pleiad.engine.watch import chronicle
from pleiad.limits import Limits
from pleiad.partition.partition import Partition
from tests.waiting import wait_until

from .conftest import Running
from .test_api import send

Run = Callable[..., Running]
MINUTE_SECONDS = 60
pytestmark = pytest.mark.every_store


@pytest.fixture(autouse=True)
def _recorder_looks_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chronicle, "INTERVAL_SECONDS", 3_600.0)


class Account:
    """A node with one container `d/c` keyed /pk, and what its admin API tells."""

    def __init__(self, running: Running, throughput: int = 400, **options: Any) -> None:
        self.running = running
        self.client = CosmosClient(running.server.endpoint, running.server.key)
        self.database = self.client.create_database("d")
        self.container: ContainerProxy = self.database.create_container(
            "c", PartitionKey("/pk"), offer_throughput=throughput, **options
        )
        # Looks are counted from the beginning of a minute, so that none falls into another one by luck.
        self._minute = (time.time() // MINUTE_SECONDS + 1) * MINUTE_SECONDS

    def get(self, path: str, status: int = 200) -> Any:
        return self.ask("GET", path, status=status)

    def ask(self, method: str, path: str, body: bytes | None = None, status: int = 200) -> Any:
        found, answer = send(self.running.server, method, f"/_pleiad/v1/{path}", body)
        assert found == status, answer
        return answer

    def of_container(self, path: str, status: int = 200) -> Any:
        return self.get(f"dbs/d/colls/c/{path}", status)

    def write(self, count: int, key: str = "k{}") -> None:
        for number in range(count):
            self.container.upsert_item({"id": str(number), "pk": key.format(number), "text": "x" * 50})

    def look(self, seconds_on: float = 0.0) -> None:
        """Has the chronicle look, as if so much time had passed."""
        self.running.ask(self.running.node.engine.chronicle.second(self._minute + seconds_on))


# -- overview and live -----------------------------------------------------------------------------------


def test_the_overview_has_every_container_with_what_it_holds_and_uses(run: Run) -> None:
    account = Account(run(limits=Limits()))
    account.database.create_container("never used", PartitionKey(["/a", "/b"], kind="MultiHash"))
    account.client.create_database("shared", offer_throughput=1_000).create_container("s", PartitionKey("/x"))
    account.write(10)
    told = account.get("overview")
    assert told["server"]["store"] == (
        "postgres" if account.running.node.engine.store.is_shared else "sqlite"
    )
    assert told["server"]["throttle"] == "observe"
    assert told["server"]["uptimeSeconds"] >= 0
    assert {each["id"]: each["throughput"] for each in told["databases"]} == {
        "d": None,
        "shared": {"ru": 1_000, "autoscale": False},
    }
    found = {(each["database"], each["container"]): each for each in told["containers"]}
    assert set(found) == {("d", "c"), ("d", "never used"), ("shared", "s")}
    assert found["d", "c"]["items"] == 10
    assert found["d", "c"]["bytes"] > 500
    assert found["d", "c"]["partitionKey"] == ["/pk"]
    assert found["d", "never used"]["items"] == 0
    assert found["d", "never used"]["partitionKey"] == ["/a", "/b"]
    assert found["shared", "s"]["throughput"] == {"ru": 1_000, "autoscale": False, "shared": True}
    (partition,) = found["d", "c"]["partitions"]
    assert partition["space"] == [0.0, 1.0]
    assert partition["allowed"] == 400
    assert partition["lastMinute"] + partition["lastSecond"] >= 0
    assert found["d", "c"]["balance"]["kind"] == "idle"
    assert found["d", "c"]["problem"] is None
    assert told["leftOff"] == 0


def test_a_deleted_container_is_gone_from_all_that_is_told(run: Run) -> None:
    account = Account(run())
    account.write(5)
    account.look(1)
    account.database.delete_container("c")
    account.look(2)
    assert wait_until(lambda: account.get("overview")["containers"] == [])
    assert wait_until(lambda: account.get("live")["containers"] == [])
    told = account.get("history")
    assert told["containers"] == []
    assert sum(each["requests"].get("upsert", 0) for each in told["minutes"]) == 5, "the account remembers"
    account.of_container("live", status=404)
    account.of_container("history", status=404)


def test_the_live_figures_of_the_account_follow_what_is_done(run: Run) -> None:
    account = Account(run())
    account.write(30)
    account.look(1)
    told = account.get("live")
    assert told["lastMinute"]["requests"] >= 30
    assert told["last"]["requests"] > 0
    assert told["last"]["ru"] > 0
    assert told["lastMinute"]["ru"] > 100
    assert 0 < told["lastMinute"]["p50Ms"] <= told["lastMinute"]["p99Ms"]
    assert told["warnings"] == []
    assert told["faults"] == 0
    (container,) = told["containers"]
    assert (container["database"], container["container"], container["allowed"]) == ("d", "c", 400)
    assert container["partitions"] == 1
    assert container["settled"]


def test_many_who_look_have_the_same_answer_of_a_second(run: Run) -> None:
    account = Account(run())
    answers = [account.of_container("live")["at"] for _ in range(20)]
    assert len(set(answers)) <= 1 + int(answers[-1] - answers[0] + 1.5)


def test_a_live_container_is_all_of_its_partitions_but_the_largest(run: Run) -> None:
    account = Account(run())
    account.write(3)
    told, full = account.of_container("live"), account.of_container("partitions")
    assert set(full) - {"largest"} == set(told) - {"at"}
    assert full["partitions"][0]["items"] == 3


# -- the last hour -----------------------------------------------------------------------------------------


def test_the_last_hour_tells_each_minute_of_what_was_done_in_it(run: Run) -> None:
    account = Account(run(), throughput=400)
    account.look()
    account.write(20)
    for number in range(10):
        account.container.read_item(str(number), f"k{number}")
    list(account.container.query_items("SELECT * FROM c", enable_cross_partition_query=True))
    assert account.of_container("partitions")["partitions"][0]["items"] == 20
    account.look(MINUTE_SECONDS)
    account.container.read_item("1", "k1")
    account.look(MINUTE_SECONDS + 1)
    minutes = account.of_container("history")["minutes"]
    first, running = minutes[-2:]
    assert first["requests"]["upsert"] == 20
    assert first["requests"]["read"] == 10
    assert first["requests"]["query"] >= 1
    assert first["ru"] > 20 * 5
    assert first["busiestSecondRu"] > 0
    assert first["allowedRu"] == 400
    assert first["p50Ms"] <= first["p99Ms"]
    assert first["items"] == 20
    assert first["bytes"] > 0
    assert list(first["busyPercent"]) == ["0"]
    assert running["requests"] == {"read": 1}
    assert running["ru"] == 1
    of_account = account.get("history")["minutes"]
    assert of_account[-2]["requests"]["upsert"] == 20
    # The container was made before the first look, which may have been in another minute.
    assert sum(minute["requests"].get("metadata_write", 0) for minute in of_account) == 2
    assert of_account[-2]["ru"] == pytest.approx(first["ru"], abs=0.1)


def test_no_more_than_an_hour_is_remembered(run: Run) -> None:
    account = Account(run())
    account.write(1)
    for minute in range(1, 71):
        account.look(minute * MINUTE_SECONDS)
    minutes = account.running.node.engine.chronicle.minutes_of(account.running.node.engine.containers[0])
    assert len(minutes) == 60
    assert len({each.at for each in minutes}) == 60


@pytest.mark.parametrize("asked", ["0", "61", "-1", "x", "", "1e3"])
def test_other_than_1_to_60_minutes_are_refused(run: Run, asked: str) -> None:
    account = Account(run())
    account.get(f"history?minutes={asked}", status=400)
    account.of_container(f"history?minutes={asked}", status=400)


def test_only_so_many_containers_are_remembered(run: Run) -> None:
    account = Account(run(limits=Limits(history_containers=2)))
    for name in ("c2", "c3"):
        account.database.create_container(name, PartitionKey("/pk")).create_item({"id": "1", "pk": "a"})
    account.write(1)
    account.look(1)
    assert len(account.get("history")["containers"]) == 2
    told = [account.get(f"dbs/d/colls/{name}/history")["minutes"] for name in ("c", "c2", "c3")]
    assert sorted(map(len, told))[0] == 0


def test_splits_merges_and_throughput_are_events_of_the_hour(run: Run) -> None:
    account = Account(run(limits=Limits()))
    account.write(20)
    account.look()
    account.ask("POST", "dbs/d/colls/c/split", b"{}", 201)
    account.container.replace_throughput(500)
    account.look(1)
    account.ask("POST", "dbs/d/colls/c/merge", b'{"partitions": ["1", "2"]}', 201)
    account.look(2)
    events = account.of_container("history")["events"]
    split, throughput, merge = sorted(events, key=lambda each: "stm".index(each["kind"][0]))
    assert (split["partitions"], split["children"], split["cause"]) == (["0"], ["1", "2"], "request")
    assert (merge["partitions"], merge["children"]) == (["1", "2"], ["3"])
    assert throughput["before"] == {"ru": 400, "autoscale": False}
    assert throughput["after"] == {"ru": 500, "autoscale": False}
    assert account.get("history")["events"] == events
    history = {each["id"]: each for each in account.of_container("partitions")["history"]}
    assert history["0"]["children"] == ["1", "2"]
    assert history["0"]["space"] == [0.0, 1.0]
    assert history["1"]["children"] == history["2"]["children"] == ["3"]
    assert {each["cause"] for each in history.values()} == {"request"}


def test_the_cause_of_a_split_is_its_throughput_or_its_size(run: Run) -> None:
    account = Account(run(limits=Limits(physical_partition_bytes=2_000, physical_partition_ru=1_000)))
    account.container.replace_throughput(2_000)
    assert wait_until(lambda: len(account.of_container("partitions")["partitions"]) == 2)
    account.write(80)
    assert wait_until(lambda: len(account.of_container("partitions")["partitions"]) > 2)
    history = {each["id"]: each["cause"] for each in account.of_container("partitions")["history"]}
    assert history["0"] == "throughput"
    assert "storage" in history.values()


@pytest.mark.parametrize("step", ["state", "largest_logical_partitions"])
def test_what_a_container_holds_is_told_though_its_rows_move_meanwhile(
    run: Run, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    account = Account(run())
    account.write(20)
    engine, counted = account.running.node.engine, getattr(Partition, step)

    async def counted_late(partition: Partition, *arguments: Any) -> Any:
        monkeypatch.setattr(Partition, step, counted)
        await engine.split(await engine.container("d", "c"), "0")
        await engine.keeper.settled()
        return await counted(partition, *arguments)

    monkeypatch.setattr(Partition, step, counted_late)
    if step == "state":
        told = account.container.read(populate_partition_key_range_statistics=True)
        assert sum(each["documentCount"] for each in told["statistics"]) == 20
    assert len(account.of_container("partitions?largest=100")["largest"]) == 20
    assert len(account.of_container("partitions")["partitions"]) == 2


# -- heat ----------------------------------------------------------------------------------------------------


def test_heat_lies_where_the_hash_of_a_key_does(run: Run) -> None:
    account = Account(run())
    for number in range(30):
        account.container.upsert_item({"id": str(number), "pk": "hot"})
    account.container.upsert_item({"id": "x", "pk": "quiet"})
    told = account.of_container("heat")
    row = told["rows"][-1]["ru"]
    assert (told["slices"], len(row)) == (96, 96)
    places = {tuple(each["key"]): each["place"] for each in account.of_container("partitions")["hottest"]}
    hot, cold = int(96 * places["hot",]), int(96 * places["quiet",])
    assert row[hot] == max(row) > 30 * row[cold] / 2 > 0
    assert sum(row) == pytest.approx(row[hot] + row[cold])
    eight = account.of_container("heat?slices=8")["rows"][-1]["ru"]
    assert eight[hot // 12] >= row[hot]
    assert sum(eight) == pytest.approx(sum(row), abs=0.1)


def test_queries_over_all_keys_heat_everything_a_little(run: Run) -> None:
    account = Account(run())
    account.write(5, "one")
    before = account.of_container("heat")["rows"][-1]["ru"]
    list(account.container.query_items("SELECT * FROM c", enable_cross_partition_query=True))
    after = account.of_container("heat?since=1")["rows"][-1]["ru"]  # another answer than that of this second
    assert min(after) > 0 == min(before)


def test_rows_after_a_time_are_given_and_refusals_by_partition(run: Run) -> None:
    account = Account(run(throttle="enforce"), throughput=400)
    account.container.upsert_item({"id": "large", "pk": "a", "text": "x" * 1_900_000})
    account.container.upsert_item({"id": "1", "pk": "a"})  # the client comes again until it is let in
    told = account.of_container("partitions")
    refused = told["partitions"][0]["ru"]["throttled"]
    assert refused > 0
    row = account.of_container("heat")["rows"][-1]
    assert row["throttled"] == {"0": refused}
    (hot,) = told["hottest"]
    assert hot["throttled"] == refused
    assert hot["share"] == pytest.approx(100)
    account.look(MINUTE_SECONDS)
    assert len(account.of_container("heat?since=1")["rows"]) >= 2
    assert [each["at"] > row["at"] for each in account.of_container(f"heat?since={row['at']}")["rows"]] == [
        True
    ]


@pytest.mark.parametrize("query", ["slices=0", "slices=97", "slices=5", "slices=x", "since=x", "since=-1"])
def test_what_is_no_division_of_the_hash_space_is_refused(run: Run, query: str) -> None:
    Account(run()).of_container(f"heat?{query}", status=400)


# -- partitions ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R150")
def test_partitions_tell_what_is_possible_before_anybody_tries(run: Run) -> None:
    account = Account(run(limits=Limits()))
    account.container.upsert_item({"id": "1", "pk": "a"})
    (alone,) = account.of_container("partitions")["partitions"]
    assert not alone["splittable"]
    assert "single logical partition" in alone["splitRefusal"]
    assert alone["mergeableWith"] == []
    assert "no other" in alone["mergeRefusal"]
    account.write(20)
    assert account.of_container("partitions")["partitions"][0]["splittable"]
    account.ask("POST", "dbs/d/colls/c/split", b"{}", 201)
    left, right = account.of_container("partitions")["partitions"]
    assert (left["mergeableWith"], right["mergeableWith"]) == ([right["id"]], [left["id"]])
    assert left["space"][0] == 0.0
    assert left["space"][1] == right["space"][0]
    assert right["space"][1] == 1.0


def test_a_merge_that_the_throughput_forbids_is_told_so(run: Run) -> None:
    account = Account(run(limits=Limits()), throughput=20_000)
    told = account.of_container("partitions")["partitions"]
    assert len(told) == 4
    assert {tuple(each["mergeableWith"]) for each in told} != {()}
    account.container.replace_throughput(40_000)
    assert all("needs 4" in each["mergeRefusal"] for each in account.of_container("partitions")["partitions"])


def test_a_change_under_way_tells_its_phase(run: Run) -> None:
    account = Account(run(limits=Limits()))
    account.write(30)
    admin_faults = account.ask("POST", "faults", b'{"fault": "hold", "phase": "catching-up"}', 201)
    account.ask("POST", "dbs/d/colls/c/split", b"{}", 201)

    def changing() -> list[tuple[str, str, float]]:
        told = account.of_container("partitions")["partitions"]
        return [(each["change"], each["phase"], each["copiedPercent"]) for each in told if each["phase"]]

    assert wait_until(lambda: changing() == [("rehome", "catching-up", 100.0)])
    account.ask("DELETE", f"faults/{admin_faults['id']}", status=204)
    assert wait_until(lambda: account.of_container("partitions")["settled"])
    assert wait_until(lambda: changing() == [])


def test_requests_and_latencies_of_the_last_minute_are_told_by_partition(run: Run) -> None:
    account = Account(run())
    account.write(25)
    (partition,) = account.of_container("partitions")["partitions"]
    assert partition["ru"]["requestsLastMinute"] == 25
    assert partition["p99Ms"] > 0


def test_the_largest_tell_their_place_too(run: Run) -> None:
    account = Account(run())
    account.write(6, "one")
    (found,) = account.of_container("partitions")["largest"]
    (hot,) = account.of_container("partitions")["hottest"]
    assert (found["epk"], found["place"]) == (hot["epk"], hot["place"])


def test_faults_tell_when_they_were_set_and_end(run: Run) -> None:
    account = Account(run())
    made = account.ask("POST", "faults", b'{"fault": "503", "seconds": 60, "database": "other"}', 201)
    (listed,) = account.get("faults")["faults"]
    assert listed["setAt"] == made["setAt"] < made["endsAt"] == listed["endsAt"]


def test_containers_that_share_throughput_are_judged_by_what_came_to_them(run: Run) -> None:
    running = run(limits=Limits())
    client = CosmosClient(running.server.endpoint, running.server.key)
    database = client.create_database("shared", offer_throughput=1_000)
    busy = database.create_container("busy", PartitionKey("/pk"))
    database.create_container("idle", PartitionKey("/pk")).create_item({"id": "1", "pk": "a"})
    for number in range(80):
        busy.upsert_item({"id": str(number), "pk": str(number)})
    admin_of = {
        name: send(running.server, "GET", f"/_pleiad/v1/dbs/shared/colls/{name}/partitions")[1]["balance"]
        for name in ("busy", "idle")
    }
    assert admin_of["busy"]["kind"] == "balanced"
    assert admin_of["idle"]["kind"] == "idle"


def test_the_terminal_says_the_same_sentence_as_the_page(run: Run) -> None:
    account = Account(run())
    account.write(70)
    told = account.of_container("partitions")
    text = " ".join(view(told, [], Look(columns=500)).split())
    assert f"{told['balance']['word']}. {told['balance']['sentence']} {told['balance']['why']}" in text
