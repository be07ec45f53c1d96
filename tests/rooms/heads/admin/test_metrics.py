"""The metrics page: what it counts, and who may read it."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosResourceNotFoundError

from pleiad.account.keys import EMULATOR_KEY
from pleiad.engine.traffic import KEYS_KEPT, KEYS_MAX, Heat
from pleiad.heads.admin.metrics_page import Page
from pleiad.partition.partition import Partition
from pleiad.store.rows import PartitionState
from pleiad.testing.start import RunningServer
from tests.waiting import SECONDS_MAX

_SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)')


def scrape(server: RunningServer, **headers: str) -> dict[str, float]:
    """Every sample of the page, by its name and labels; every line must be well formed."""
    request = urllib.request.Request(f"{server.endpoint}/metrics", headers=headers)
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = response.read().decode()
    samples: dict[str, float] = {}
    typed: set[str] = set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name = line.split()[2]
            assert name not in typed, f"{name} is there twice"
            typed.add(name)
        elif not line.startswith("#"):
            match = _SAMPLE.fullmatch(line)
            assert match, line
            assert re.sub("_(bucket|sum|count)$", "", match[1]) in typed or match[1] in typed
            samples[line.rpartition(" ")[0]] = float(match[3])
    return samples


def changed(before: dict[str, float], after: dict[str, float], sample: str) -> float:
    return after.get(sample, 0.0) - before.get(sample, 0.0)


def test_requests_are_counted_by_operation_and_status_and_charges_add_up(
    server: RunningServer, container: ContainerProxy
) -> None:
    before = scrape(server)
    charges = []

    def hook(headers: Any, _: Any) -> None:
        charges.append(float(headers["x-ms-request-charge"]))

    container.create_item({"id": "2", "pk": "a"}, response_hook=hook)
    container.read_item("2", "a", response_hook=hook)
    with pytest.raises(CosmosResourceNotFoundError):
        container.read_item("none", "a")
    container.delete_item("2", "a")
    list(container.query_items("SELECT * FROM c", partition_key="a"))
    after = scrape(server)
    for operation, status in (("create", 201), ("read", 200), ("read", 404), ("delete", 204), ("query", 200)):
        name = f'pleiad_requests_total{{operation="{operation}",status="{status}"}}'
        assert changed(before, after, name) == 1, name
    created, read = charges
    assert changed(before, after, 'pleiad_request_units_total{operation="create"}') == pytest.approx(created)
    # A read of what is not there costs a read of 1 KB too.
    total = changed(before, after, 'pleiad_request_units_total{operation="read"}')
    assert total == pytest.approx(read + 1.0)
    assert changed(before, after, 'pleiad_request_duration_seconds_count{operation="read"}') == 2
    assert changed(before, after, 'pleiad_request_duration_seconds_bucket{operation="read",le="+Inf"}') == 2
    assert changed(before, after, 'pleiad_request_duration_seconds_sum{operation="read"}') > 0


def test_throttles_are_counted(server: RunningServer, container: ContainerProxy) -> None:
    before = scrape(server)
    with server.faults.add(429, count=3, retry_after_ms=1):
        container.read_item("1", "a")
    after = scrape(server)
    assert changed(before, after, 'pleiad_requests_total{operation="read",status="429"}') == 3


@pytest.mark.requirement("R150")
def test_storage_and_items_of_each_physical_partition_are_told(
    server: RunningServer, client: CosmosClient, container: ContainerProxy
) -> None:
    database = container.container_link.split("/")[1]
    spread: Any = client.get_database_client(database).create_container(
        "spread", PartitionKey("/pk"), offer_throughput=30_000
    )
    for number in range(50):
        spread.create_item({"id": "1", "pk": f"k{number}"})
    samples = scrape(server)
    place = f'{{database="{database}",container="spread",partition="%d"}}'
    items = [samples[f"pleiad_partition_items{place % index}"] for index in range(5)]
    sizes = [samples[f"pleiad_partition_bytes{place % index}"] for index in range(5)]
    assert sum(items) == 50
    assert all((size > 0) == (count > 0) for size, count in zip(sizes, items, strict=True))


def test_the_load_of_each_physical_partition_is_told(run: Callable[..., Any]) -> None:
    running = run(throttle="enforce")
    client = CosmosClient(running.server.endpoint, running.server.key)
    container: Any = client.create_database("d").create_container("c", PartitionKey("/pk"))
    place = '{database="d",container="c",partition="0"}'
    container.create_item({"id": "1", "pk": "a"})
    samples = scrape(running.server)
    assert samples[f"pleiad_partition_allowed_ru{place}"] == 400
    assert samples[f"pleiad_partition_request_units_total{place}"] == 5.52
    assert samples[f"pleiad_partition_normalized_ru_percent{place}"] == pytest.approx(100 * 5.52 / 400)
    assert samples[f"pleiad_partition_throttled_total{place}"] == 0
    use_up(running, container)
    samples = scrape(running.server)
    assert samples[f"pleiad_partition_throttled_total{place}"] >= 1
    assert samples[f"pleiad_partition_normalized_ru_percent{place}"] == 100
    assert samples['pleiad_requests_total{operation="read",status="429"}'] >= 1


def use_up(running: Any, container: Any) -> None:
    """Spends more than the partition has, and asks once more."""
    inside = running.ask(running.node.engine.container("d", "c"))
    governor = inside.map.partitions[0].governor
    governor.spend(500.0)
    assert container.read_item("1", "a")["id"] == "1", "the client waits and gets its answer"


def test_connections_commits_and_memory_are_told(server: RunningServer, container: ContainerProxy) -> None:
    before = scrape(server)
    container.upsert_item({"id": "1", "pk": "a"})
    after = scrape(server)
    assert after["pleiad_open_connections"] >= 1
    assert changed(before, after, "pleiad_commit_writes_count") == 1
    assert changed(before, after, "pleiad_commit_writes_sum") == 1
    assert changed(before, after, 'pleiad_commit_writes_bucket{le="1"}') == 1
    assert after["process_resident_memory_bytes"] > 10_000_000


def test_beyond_loopback_the_metrics_need_a_key(run: Callable[..., Any]) -> None:
    own = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTEyMzQ="
    read_only = "cmVhZC1vbmx5LXJlYWQtb25seS1yZWFkLW9ubHktMTI="
    server = run(host="0.0.0.0", key=own, read_only_key=read_only).server
    for given in (None, "Bearer nonsense", own, "Bearer ", "Bearer é"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            scrape(server, **({} if given is None else {"Authorization": given}))
        assert caught.value.code == 401
    assert scrape(server, Authorization=f"Bearer {own}")["pleiad_open_connections"] >= 1
    assert scrape(server, Authorization=f"bearer {read_only}")


def test_names_with_quotes_and_line_breaks_stay_in_their_labels() -> None:
    page = Page()
    page.add("x", "gauge", "text", [({"name": 'a"b\\c\nd'}, 1.5)])
    assert page.text().decode().splitlines()[-1] == 'x{name="a\\"b\\\\c\\nd"} 1.5'


WINDOW_SECONDS = 60.0


def heat_of(spent_ru: float = 0.0) -> Heat:
    return Heat(lambda key: len(str(key[0])), lambda: spent_ru)


def test_the_hottest_keys_are_found_among_very_many() -> None:
    heat = heat_of()
    for number in range(5 * KEYS_MAX):
        heat.note((f"cold-{number}",), 1.0)
        if number % 10 == 0:
            heat.note(("hot",), 5.0)
            assert len(heat._window) <= KEYS_MAX + 1
    first, second = heat.hottest(2)
    assert first.key == ("hot",)
    assert second.ru_per_second < first.ru_per_second / 100
    assert len(heat._window) >= KEYS_KEPT


def test_what_was_hot_long_ago_is_forgotten() -> None:
    heat = heat_of()
    start = heat._began_at
    heat.note(("old",), 100.0)
    heat.turn(start + WINDOW_SECONDS)
    heat.note(("new",), 10.0)
    assert [each.key for each in heat.hottest(5, start + WINDOW_SECONDS + 1)] == [("old",), ("new",)]
    heat.turn(start + 2 * WINDOW_SECONDS)
    (left,) = heat.hottest(5, start + 3 * WINDOW_SECONDS)
    assert left.key == ("new",)
    assert left.ru_per_second == pytest.approx(10.0 / (2 * WINDOW_SECONDS))


def test_what_keys_used_is_in_their_slices_however_many_there_are() -> None:
    heat = heat_of()
    for number in range(5 * KEYS_MAX):
        heat.note((f"{number:04}",), 2.0)
        heat.note((f"{number:07}",), 1.0)
    slices = heat.slices_ru()
    assert slices[4] == pytest.approx(2.0 * 5 * KEYS_MAX)
    assert slices[7] == pytest.approx(1.0 * 5 * KEYS_MAX)
    assert sum(slices) == pytest.approx(3.0 * 5 * KEYS_MAX)
    assert heat.keys_seen == KEYS_MAX
    heat.turn()
    assert sum(heat.slices_ru()) == 0


def test_refusals_and_shares_of_keys_are_told() -> None:
    heat = heat_of(spent_ru=40.0)
    heat.note(("a",), 30.0)
    heat.note(("b",), 10.0)
    for _ in range(3):
        heat.refuse(("a",))
    first, second = heat.hottest(2)
    assert (first.key, first.share_percent, first.refused) == (("a",), 75.0, 3)
    assert (second.key, second.share_percent, second.refused) == (("b",), 25.0, 0)
    assert heat.keys_seen == 2


def test_a_container_that_is_deleted_while_the_page_is_made_is_left_out(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = run()
    engine = running.node.engine
    database = CosmosClient(running.server.endpoint, EMULATOR_KEY).create_database("d")
    for name in ("goes", "stays"):
        database.create_container(name, PartitionKey("/pk")).create_item({"id": "1", "pk": "a"})
    counted = Partition.state

    async def counted_late(partition: Partition) -> PartitionState:
        monkeypatch.setattr(Partition, "state", counted)
        await engine.delete((await engine.container("d", "goes")).resource)
        return await counted(partition)

    monkeypatch.setattr(Partition, "state", counted_late)
    samples = scrape(running.server)
    assert 'pleiad_partition_items{database="d",container="stays",partition="0"}' in samples
    assert not [sample for sample in samples if 'container="goes"' in sample]
