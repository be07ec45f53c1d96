"""Nothing is deleted because something is missing: lost catalogs, lost segments, and files that nobody knows."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import signal
import stat
from pathlib import Path
from typing import Any

import apsw
import pytest
from click.testing import CliRunner

import pleiad
from pleiad.account.keys import EMULATOR_KEY
from pleiad.cli.main import cli
from pleiad.store.problems import MissingDataError
from pleiad.testing.start import RunningServer, start
from tests.proofs.damage.account import DATABASE, KEY, Client, copy_of, segments
from tests.rooms.cli.test_serve import refused, serving


def kill(server: RunningServer) -> None:
    os.kill(server.process_id, signal.SIGKILL)


def contents(data: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in segments(data)}


def lose(path: Path) -> None:
    """Takes a database away, with its log."""
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def test_a_server_killed_and_robbed_of_its_catalog_refuses_and_touches_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with start(data=data, child_process=True) as server:
        Client(server).fill("first")
        kill(server)
    lose(data / "catalog.sqlite")
    before = contents(data)
    sentence = refused("--data", data, "--port", 0)
    assert "holds 1 segment with items and no catalog" in sentence
    assert "--allow-missing-data" in sentence
    assert contents(data) == before
    assert not (data / "catalog.sqlite").exists(), "a second start must find the same"
    assert "no catalog" in refused("--data", data, "--port", 0)


def test_with_the_loss_accepted_the_segments_are_set_aside_whole(data: Path) -> None:
    before = contents(data)
    lose(data / "catalog.sqlite")
    with serving("--data", data, "--port", 0, "--allow-missing-data") as server:
        assert server.get("/_pleiad/health")[0] == 200
        _, _, log = server.stop()
    assert "segments-set-aside" in log
    (folder,) = (data / "set-aside").iterdir()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert segments(data) == []


@pytest.mark.parametrize("size", [0, 10])
def test_a_catalog_that_is_empty_or_cut_short_is_refused_with_a_sentence(data: Path, size: int) -> None:
    catalog = data / "catalog.sqlite"
    catalog.write_bytes(catalog.read_bytes()[:size])
    before = contents(data)
    sentence = refused("--data", data, "--port", 0)
    assert "catalog" in sentence
    assert contents(data) == before


def test_a_catalog_whose_tables_are_empty_is_refused_with_a_sentence_and_found_by_the_check(
    data: Path,
) -> None:
    with apsw.Connection(str(data / "catalog.sqlite")) as catalog:
        for table in ("record", "segment", "account"):
            catalog.execute(f"DELETE FROM {table}")
    catalog.close()
    before = contents(data)
    sentence = refused("--data", data, "--port", 0)
    assert "no account" in sentence
    assert "Traceback" not in sentence
    done = CliRunner().invoke(cli, ["check", str(data)])
    assert done.exit_code == 1
    assert "no account" in done.output
    assert contents(data) == before


def test_a_catalog_without_an_account_beside_segments_is_refused(data: Path, tmp_path: Path) -> None:
    with pleiad.start(data=tmp_path / "new"):
        pass
    lose(data / "catalog.sqlite")
    shutil.copy(tmp_path / "new" / "catalog.sqlite", data)
    before = contents(data)
    with pytest.raises(MissingDataError, match="a catalog without an account"), pleiad.start(data=data):
        pass
    assert contents(data) == before


def test_an_older_catalog_is_refused_and_with_the_loss_accepted_sets_aside_what_it_does_not_know(
    data: Path, tmp_path: Path
) -> None:
    old = copy_of(data, tmp_path / "old")
    with pleiad.start(data=data) as server:
        client = Client(server)
        client.fill("third")
        assert client.create("first", 100).status == 201
    shutil.copy(old / "catalog.sqlite", data / "catalog.sqlite")
    before = contents(data)
    with pytest.raises(MissingDataError, match="is older than the items"), pleiad.start(data=data):
        pass
    assert contents(data) == before
    assert not (data / "set-aside").exists()


def test_of_what_was_created_since_an_older_catalog_nothing_is_lost(data: Path, tmp_path: Path) -> None:
    old = copy_of(data, tmp_path / "old")
    with pleiad.start(data=data) as server:
        Client(server).fill("third")
    third = segments(data)[-1].read_bytes()
    shutil.copy(old / "catalog.sqlite", data / "catalog.sqlite")
    with serving("--data", data, "--port", 0, "--allow-missing-data") as server:
        server.stop()
    ((aside,),) = [list(folder.iterdir()) for folder in (data / "set-aside").iterdir()]
    assert aside.read_bytes() == third
    with pleiad.start(data=data) as again:
        assert Client(again).statuses("first") == {200}
        assert Client(again).probe("health") == (200, {"status": "ok"})


@pytest.mark.parametrize("loss", ["gone", "empty"])
def test_a_segment_that_held_items_and_is_gone_or_empty_stops_the_start(data: Path, loss: str) -> None:
    victim = segments(data)[0]
    lose(victim)
    if loss == "empty":
        victim.touch()
    sentence = refused("--data", data, "--port", 0)
    assert f"{victim} held items and is gone or empty" in sentence
    assert "--allow-missing-data" in sentence


def test_a_segment_that_was_just_made_is_missed_after_a_kill_too(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with start(data=data, child_process=True) as server:
        Client(server).fill("first")
        kill(server)
    lose(segments(data)[0])
    with pytest.raises(MissingDataError, match="held items"), pleiad.start(data=data):
        pass


def test_a_segment_that_a_crash_left_empty_before_anything_was_in_it_is_no_loss(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with start(data=data) as server:
        client = Client(server)
        client.fill("first")
        client.send("POST", ["dbs", DATABASE], "colls", {"id": "second", "partitionKey": KEY})
    with contextlib.closing(apsw.Connection(str(data / "catalog.sqlite"))) as catalog:
        bodies: list[Any] = catalog.execute("SELECT body FROM record WHERE kind = 'partition'").fetchall()
    named = {json.loads(body)["segment"] for (body,) in bodies}
    (unused,) = named - {path.stem for path in segments(data)}
    # As it is between the making of the file and the first page in it.
    (data / "segments" / f"{unused}.sqlite").touch()
    for _ in range(3):
        with start(data=data) as server:
            assert Client(server).statuses("first") == {200}
    with start(data=data) as server:
        assert Client(server).create("second", 1).status == 201


def test_with_the_loss_accepted_a_container_starts_empty_and_the_others_are_whole(data: Path) -> None:
    lose(segments(data)[0])
    with serving("--data", data, "--port", 0, "--allow-missing-data") as server:
        here = Client(RunningServer(f"http://localhost:{server.port}", EMULATOR_KEY, server.port, 0))
        assert here.statuses("first") == {404}
        assert here.statuses("second") == {200}
        assert "data-missing" in {warning["kind"] for warning in here.warnings()}
        assert here.probe("health")[1]["status"] == "degraded"
    with pleiad.start(data=data) as again:
        assert Client(again).create("first", 1).status == 201


def test_two_segments_that_changed_places_stop_the_start(data: Path, tmp_path: Path) -> None:
    first, second = segments(data)
    first.rename(tmp_path / "kept")
    second.rename(first)
    (tmp_path / "kept").rename(second)
    with pytest.raises(MissingDataError, match="that of another segment"), pleiad.start(data=data):
        pass


def test_a_segment_of_another_account_stops_the_start(data: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    with pleiad.start(data=other) as server:
        Client(server).fill("first")
    shutil.copy(segments(other)[0], segments(data)[0])
    with pytest.raises(MissingDataError, match="that of another segment"), pleiad.start(data=data):
        pass


def test_an_older_copy_of_a_segment_is_out_of_service_and_not_served_as_if_it_were_new(
    data: Path, tmp_path: Path
) -> None:
    old = copy_of(data, tmp_path / "old")
    with pleiad.start(data=data) as server:
        assert Client(server).create("first", 100).status == 201
    shutil.copy(segments(old)[0], segments(data)[0])
    with pleiad.start(data=data) as server:
        assert Client(server).statuses("first") == {503}
        assert Client(server).statuses("second") == {200}


def test_a_file_that_nobody_knows_is_set_aside_and_said(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = data / "segments" / "c99-p0.sqlite"
    shutil.copy(segments(data)[0], stranger)
    before = stranger.read_bytes()
    with caplog.at_level(logging.WARNING), pleiad.start(data=data) as server:
        client = Client(server)
        assert client.statuses("first") == {200}
        assert [each["kind"] for each in client.warnings()] == ["segments-set-aside"]
        assert client.probe("health") == (200, {"status": "ok"})
    assert "c99-p0" in caplog.text
    (folder,) = (data / "set-aside").iterdir()
    assert folder.name.endswith("-unknown")
    assert (folder / stranger.name).read_bytes() == before


def test_what_a_deleted_container_held_is_removed_and_nothing_set_aside(data: Path) -> None:
    with pleiad.start(data=data) as server:
        assert Client(server).delete_container("first").status == 204
    assert len(segments(data)) == 1
    with pleiad.start(data=data):
        pass
    assert not (data / "set-aside").exists()


def test_a_drop_that_a_crash_interrupted_is_brought_to_its_end(data: Path) -> None:
    saved = segments(data)[0].read_bytes()
    with pleiad.start(data=data) as server:
        assert Client(server).delete_container("first").status == 204
    # As if the process had died between letting go of the container and removing its file.
    name = "c2-p0"
    (data / "segments" / f"{name}.sqlite").write_bytes(saved)
    catalog = apsw.Connection(str(data / "catalog.sqlite"))
    catalog.execute("INSERT INTO segment VALUES(?1, 'dropping', 1, 0)", (name,))
    catalog.close()
    with pleiad.start(data=data):
        pass
    assert name not in {path.stem for path in segments(data)}
    assert not (data / "set-aside").exists()


def test_files_of_a_directory_that_others_may_read_are_kept_from_them(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    data.chmod(0o755)
    with pleiad.start(data=data) as server:
        Client(server).fill("first")
        loose = [
            path
            for path in data.rglob("*")
            if path.is_file() and path.name != "tls.crt" and stat.S_IMODE(path.stat().st_mode) & 0o077
        ]
        assert loose == []


def test_files_that_were_readable_by_all_are_closed_at_the_next_start(data: Path) -> None:
    for path in [data / "catalog.sqlite", *segments(data)]:
        path.chmod(0o644)
    with pleiad.start(data=data):
        pass
    for path in [data / "catalog.sqlite", *segments(data)]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_data_directory_that_is_a_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    place = tmp_path / "data"
    place.write_text("something else")
    assert "data" in refused("--data", place, "--port", 0)
    assert place.read_text() == "something else"


def test_a_data_directory_behind_a_link_is_served_and_locked_as_one(data: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(data)
    with pleiad.start(data=tmp_path / "link") as server:
        assert Client(server).statuses("first") == {200}
        assert "another Pleiad server" in refused("--data", data, "--port", 0)
