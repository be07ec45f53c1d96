"""Damaged files are found: flipped bits, files cut short, files of a newer version, a damaged catalog."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import apsw
import pytest

import pleiad
from pleiad.store.sqlite.schema import SchemaError
from pleiad.testing.start import start
from tests.proofs.damage.account import Client, flip_bit, segments
from tests.rooms.cli.test_serve import refused
from tests.waiting import wait_until


def offsets_of(path: Path, text: bytes) -> list[int]:
    content = path.read_bytes()
    return [place for place in range(len(content)) if content.startswith(text, place)]


def test_a_flipped_bit_in_a_body_is_503_and_never_another_text(data: Path) -> None:
    victim = segments(data)[0]
    for place in offsets_of(victim, b"the text of 17"):  # pages that were divided hold it twice
        flip_bit(victim, place + 3)
    with pleiad.start(data=data) as server:
        client = Client(server)
        assert client.read("first", 17).status == 503
        assert client.statuses("first") == {503}, "the segment is out of service"
        assert client.statuses("second") == {200}, "the others serve on"
        assert client.create("first", 500).status == 503
        (warning,) = client.warnings()
        assert (warning["kind"], warning["container"]) == ("segment-out-of-service", "first")
        status, body = client.probe("health")
        assert (status, body["status"], body["problems"]) == (200, "degraded", ["segment-out-of-service"])
        assert client.probe("ready")[0] == 200


def test_a_flipped_bit_in_an_index_is_found_by_the_scrub(data: Path) -> None:
    victim = segments(data)[0]
    connection = apsw.Connection(str(victim))
    ((root,),) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'item_key'")
    page_bytes = connection.pragma("page_size")
    connection.close()
    in_index = [
        place
        for place in offsets_of(victim, b"item-17")
        if (root - 1) * page_bytes <= place < root * page_bytes
    ]
    flip_bit(victim, in_index[0] + 6)
    with start(data=data, child_process=True) as server:
        client = Client(server)
        assert wait_until(lambda: client.statuses("first") == {503})
        assert client.statuses("second") == {200}
        assert "index of keys" in client.warnings()[0]["message"]


@pytest.mark.parametrize("seed", range(12))
def test_a_bit_flipped_anywhere_never_gives_a_wrong_item_once_the_scrub_has_been_there(
    data: Path, seed: int
) -> None:
    victim = segments(data)[0]
    chooser = random.Random(seed)
    flip_bit(victim, chooser.randrange(100, victim.stat().st_size), chooser.randrange(8))
    with pleiad.start(data=data) as server:
        client = Client(server)
        # `statuses` compares the text of every item that is answered with 200. What is left is a bit that nobody
        # reads, or a segment out of service.
        assert wait_until(lambda: client.statuses("first") in ({200}, {503}))
        assert client.statuses("second") == {200}


@pytest.mark.parametrize("part", [0.5, 0.9])
def test_a_segment_that_was_cut_short_is_503_and_the_others_serve_on(data: Path, part: float) -> None:
    victim = segments(data)[0]
    with victim.open("r+b") as file:
        file.truncate(int(victim.stat().st_size * part))
    with start(data=data, child_process=True) as server:
        client = Client(server)
        assert client.statuses("first") == {503}
        assert client.statuses("second") == {200}
        assert client.count("first").status == 503
        assert client.probe("health")[1]["status"] == "degraded"
        assert "bytes" in client.warnings()[0]["message"]


def test_a_segment_full_of_something_else_is_503(data: Path) -> None:
    segments(data)[0].write_bytes(b"nothing of a database" * 10_000)
    with pytest.raises(Exception, match="another segment"), pleiad.start(data=data):
        pass


def test_queries_and_feeds_of_damaged_rows_are_503(data: Path) -> None:
    victim = segments(data)[0]
    for place in offsets_of(victim, b"the text of 17"):  # pages that were divided hold it twice
        flip_bit(victim, place + 3)
    with pleiad.start(data=data) as server:
        client = Client(server)
        link = ["dbs", "db", "colls", "first"]
        query = {"query": "SELECT * FROM c", "parameters": []}
        assert client.connection.query(link, query, {}).status == 503
    with pleiad.start(data=data) as server:
        client = Client(server)
        feed = {"A-IM": "Incremental Feed", "x-ms-documentdb-partitionkeyrangeid": "0"}
        assert client.connection.request("GET", [*link, "docs"], "docs", link, feed).status == 503


def test_a_segment_of_a_newer_version_stops_the_start_with_a_sentence(data: Path) -> None:
    connection = apsw.Connection(str(segments(data)[0]))
    connection.pragma("user_version", 99)
    connection.close()
    assert "was written by a newer Pleiad (format 99" in refused("--data", data, "--port", 0)


@pytest.mark.parametrize("seed", range(6))
def test_a_damaged_catalog_gives_a_sentence_or_is_whole(data: Path, seed: int) -> None:
    catalog = data / "catalog.sqlite"
    chooser = random.Random(seed)
    flip_bit(catalog, chooser.randrange(catalog.stat().st_size), chooser.randrange(8))
    with contextlib.suppress(SchemaError), pleiad.start(data=data) as server:
        assert Client(server).statuses("first") == {200}


def test_a_changed_record_of_the_catalog_is_found(data: Path) -> None:
    connection = apsw.Connection(str(data / "catalog.sqlite"))
    connection.execute("UPDATE record SET body = replace(body, '/pk', '/qk') WHERE kind = 'colls'")
    connection.close()
    sentence = refused("--data", data, "--port", 0)
    assert "catalog.sqlite is damaged" in sentence
    assert "backup" in sentence
