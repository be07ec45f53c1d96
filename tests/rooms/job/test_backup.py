"""Backups of an account in SQLite: one moment over all files, what they share, and what is never taken for whole."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from pleiad.engine import items
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.job.backup import make
from pleiad.job.backup.make import BackupStoppedError, make_backup
from pleiad.job.backup.manifest import BackupError, Manifest, faults_of, read_manifest
from pleiad.job.backup.restore import find_backup, restore
from pleiad.job.backup.run import BackupRefusedError, Backups
from pleiad.job.backup.shelf import Shelf
from pleiad.job.backup.source import RestingAccount, at_rest
from pleiad.job.check import check_directory
from pleiad.keys.range import WHOLE
from pleiad.limits import Limits
from pleiad.store.sqlite import point, schema
from pleiad.store.sqlite.directory import BACKUP_FILE
from pleiad.store.sqlite.schema import SchemaError
from pleiad.store.sqlite.store import SqliteStore
from tests.waiting import until


@contextlib.asynccontextmanager
async def account(data: Path, **given: Any) -> AsyncIterator[tuple[SqliteStore, Engine]]:
    store = SqliteStore(data, **given)
    engine = Engine(store, Limits())
    await engine.open()
    try:
        yield store, engine
    finally:
        await engine.close()


async def new_container(engine: Engine, name: str) -> Container:
    with contextlib.suppress(Exception):
        await engine.create_database({"id": "db"}, None)
    definition = {"id": name, "partitionKey": {"paths": ["/pk"], "version": 2}}
    await engine.create_container(engine.database("db"), definition, None)
    return await engine.container("db", name)


async def write(container: Container, number: int) -> None:
    body = f'{{"id":"i{number}","pk":"k{number % 7}"}}'.encode()
    await items.create(container, body, (f"k{number % 7}",))


async def numbers_in(container: Container) -> set[int]:
    rows = [row for part in container.map.partitions for row in await part.scan(WHOLE, 0, 100_000)]
    return {int(row.id[1:]) for row in rows}


async def whole_run(backups: Backups, keep: int | None = None) -> Manifest:
    run = backups.start(keep)
    assert await until(lambda: run.is_over)
    assert run.made is not None, run.failure
    return run.made


def told(*_: object) -> None:
    """Nobody looks."""


def inodes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_ino for path in (folder / "segments").iterdir()}


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are taken for settled at once: the tests write to none in the moment of a backup."""
    monkeypatch.setattr(point, "SETTLED_SECONDS", -1.0)


async def test_a_backup_beside_writers_is_one_moment_over_all_segments_and_has_all_that_was_acknowledged(
    tmp_path: Path,
) -> None:
    """Each number is written to the containers one after the other, so of two containers the first is never behind."""
    counts: list[tuple[Manifest, list[int]]] = []
    async with account(tmp_path / "data") as (store, engine):
        chain = [await new_container(engine, f"c{place}") for place in range(4)]
        acknowledged = [0] * len(chain)
        stops = asyncio.Event()

        async def keep_writing(first: int) -> None:
            number = first
            while not stops.is_set():
                for place, container in enumerate(chain):
                    await write(container, number)
                    acknowledged[place] += 1
                number += 4

        writers = [asyncio.create_task(keep_writing(first)) for first in range(4)]
        backups = Backups(store, tmp_path / "backups")
        await backups.open()
        for _ in range(6):
            target = acknowledged[-1] + 20
            assert await until(lambda target=target: acknowledged[-1] >= target)
            before = list(acknowledged)
            counts.append((await whole_run(backups), before))
        stops.set()
        await asyncio.gather(*writers)
    for manifest, before in counts:
        data = tmp_path / f"restored-{manifest.name}"
        restore(tmp_path / "backups" / manifest.name, manifest, data, told)
        async with account(data) as (store, engine):
            found = [await numbers_in(await engine.container("db", f"c{place}")) for place in range(4)]
            for earlier, later in itertools.pairwise(found):
                assert later <= earlier, (
                    "a write is there without the one that was acknowledged before it began"
                )
            assert all(len(each) >= least for each, least in zip(found, before, strict=True))
            assert store.problems.standing() == []


@pytest.mark.usefixtures("settled")
async def test_only_what_has_changed_is_copied_again(tmp_path: Path) -> None:
    async with account(tmp_path / "data") as (store, engine):
        quiet, busy = await new_container(engine, "quiet"), await new_container(engine, "busy")
        for container in (quiet, busy):
            await write(container, 1)
        backups = Backups(store, tmp_path / "backups")
        first = await whole_run(backups)
        await write(busy, 2)
        second = await whole_run(backups)
        third = await whole_run(backups)
        before, after, last = (inodes(tmp_path / "backups" / each.name) for each in (first, second, third))
        names = {c.map.partitions[0].segment_name + ".sqlite": c for c in (quiet, busy)}
        assert {name for name in names if before[name] == after[name]} == {
            name for name, container in names.items() if container is quiet
        }
        assert after == last
    assert third.new_bytes < second.new_bytes < first.new_bytes
    shelf = Shelf(tmp_path / "backups")
    with at_rest(tmp_path / "data") as source:
        fourth = make_backup(source, shelf, None, told)
    assert inodes(shelf.folder(fourth)).keys() == before.keys()
    for each in (first, second, third, fourth):
        assert faults_of(shelf.folder(each), each) == []
        assert check_directory(shelf.folder(each), told).is_whole


@pytest.mark.usefixtures("settled")
async def test_with_very_many_segments_the_quiet_ones_are_copied_before_the_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make, "SNAPSHOTS_MAX", 2)
    async with account(tmp_path / "data") as (store, engine):
        containers = [await new_container(engine, f"c{number}") for number in range(7)]
        for container in containers:
            await write(container, 1)
        made = await whole_run(Backups(store, tmp_path / "backups"))
        assert made.segments == len(containers)
    folder = tmp_path / "backups" / made.name
    assert faults_of(folder, made) == []
    assert check_directory(folder, told).items == len(containers)


async def test_the_log_of_a_segment_grows_while_its_snapshot_is_held_and_no_write_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "WAL_PAGES_TRUNCATE", 20)
    monkeypatch.setattr(schema, "WAL_PAGES_CHECKPOINT", 10)
    async with account(tmp_path / "data") as (store, engine):
        container = await new_container(engine, "c")
        name = container.map.partitions[0].segment_name
        log = tmp_path / "data" / "segments" / f"{name}.sqlite-wal"
        await write(container, 0)
        store.hold_log(name, True)
        for number in range(1, 60):
            await write(container, number)
        assert log.stat().st_size > 60 * 4_096, "nothing has emptied it"
        store.hold_log(name, False)
        # A log that somebody reads from at the moment is emptied some writes later.
        for number in range(60, 2_000):
            await write(container, number)
            if log.stat().st_size < 60 * 4_096:
                break
        assert log.stat().st_size < 60 * 4_096


async def test_two_backups_at_a_time_are_refused_and_one_that_is_given_up_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with account(tmp_path / "data") as (store, engine):
        await write(await new_container(engine, "c"), 1)
        backups = Backups(store, tmp_path / "backups")
        await backups.open()
        run = backups.start(None)
        with pytest.raises(BackupRefusedError):
            backups.start(None)
        await backups.close()
        assert run.is_over
        with pytest.raises(BackupError, match="under way"), Shelf(tmp_path / "backups").locked():
            make_backup_at_rest(tmp_path)
    left = [path.name for path in (tmp_path / "backups").iterdir() if path.name != ".lock"]
    assert left == ([run.name] if run.made else [])
    with at_rest(tmp_path / "data") as source, pytest.raises(BackupStoppedError):
        make_backup(source, Shelf(tmp_path / "backups"), "given-up", told, stops=lambda: True)
    assert not list((tmp_path / "backups").glob("*given-up*"))


def make_backup_at_rest(tmp_path: Path) -> Manifest:
    return make_backup(RestingAccount(tmp_path / "data"), Shelf(tmp_path / "backups"), None, told)


def make_account(data: Path, containers: int = 1) -> None:
    async def fill() -> None:
        async with account(data) as (_, engine):
            for number in range(containers):
                container = await new_container(engine, f"c{number}")
                for each in range(5):
                    await write(container, each)

    asyncio.run(fill())


def segment_file(folder: Path) -> Path:
    return next((folder / "segments").glob("*.sqlite"))


def test_of_a_damaged_segment_no_backup_is_made_and_the_ones_before_stay(tmp_path: Path) -> None:
    make_account(tmp_path / "data")
    good = make_backup_at_rest(tmp_path)
    path = segment_file(tmp_path / "data")
    content = bytearray(path.read_bytes())
    at = content.rindex(b"i3")
    content[at + 1] = ord("4")
    path.write_bytes(bytes(content))
    with pytest.raises(BackupError, match=r"damaged.*no backup was made"):
        make_backup_at_rest(tmp_path)
    assert [each.name for each in Shelf(tmp_path / "backups").all()] == [good.name]
    assert not list((tmp_path / "backups").glob(".unfinished*"))


def test_the_newest_backups_of_an_account_are_kept_and_nothing_else_is_removed(tmp_path: Path) -> None:
    make_account(tmp_path / "data")
    make_account(tmp_path / "other")
    shelf = Shelf(tmp_path / "backups")
    mine = [make_backup_at_rest(tmp_path).name for _ in range(3)]
    with at_rest(tmp_path / "other") as source:
        foreign = make_backup(source, shelf, None, told).name
    (tmp_path / "backups" / "notes").mkdir()
    newest = read_manifest(tmp_path / "backups" / mine[-1])
    assert shelf.keep(newest, 5) == []
    assert shelf.keep(newest, 2) == mine[:1]
    assert [each.name for each in shelf.all()] == [*mine[1:], foreign]
    assert (tmp_path / "backups" / "notes").is_dir()
    for name in (*mine[1:], foreign):
        folder = tmp_path / "backups" / name
        assert faults_of(folder, read_manifest(folder)) == [], "shared files stay with those that are left"


def test_a_clock_that_was_set_back_does_not_cost_the_backup_just_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_account(tmp_path / "data")
    old = make_backup_at_rest(tmp_path)
    hour_ago = time.time() - 3_600
    monkeypatch.setattr(time, "time", lambda: hour_ago)
    new = make_backup_at_rest(tmp_path)
    assert new.taken_at < old.taken_at
    shelf = Shelf(tmp_path / "backups")
    assert shelf.keep(new, 1) == [old.name]
    assert [each.name for each in shelf.all()] == [new.name]


def test_what_an_interrupted_backup_has_left_is_no_backup_and_goes_with_the_next(tmp_path: Path) -> None:
    make_account(tmp_path / "data")
    left = tmp_path / "backups" / ".unfinished-2026-01-01T000000Z"
    left.mkdir(parents=True)
    (left / "catalog.sqlite").write_bytes(b"half")
    assert Shelf(tmp_path / "backups").all() == []
    with pytest.raises(BackupError, match="no backup"):
        find_backup(tmp_path / "backups")
    made = make_backup_at_rest(tmp_path)
    assert not left.exists()
    assert find_backup(tmp_path / "backups")[1] == made


@pytest.mark.parametrize("place", ["data", "data/backups", "data/segments", "elsewhere/backups"])
def test_no_backup_is_put_where_the_data_is(tmp_path: Path, place: str) -> None:
    make_account(tmp_path / "data")
    (tmp_path / "elsewhere").symlink_to(tmp_path / "data")
    before = set((tmp_path / "data").rglob("*"))
    with (
        at_rest(tmp_path / "data") as source,
        pytest.raises(BackupError, match="is inside the data directory"),
    ):
        make_backup(source, Shelf(tmp_path / place), None, told)
    assert set((tmp_path / "data").rglob("*")) == before


def test_a_directory_with_data_is_not_restored_into(tmp_path: Path) -> None:
    make_account(tmp_path / "data")
    made = make_backup_at_rest(tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / "data").rglob("*.sqlite")}
    with pytest.raises(BackupError, match="is not empty"):
        restore(tmp_path / "backups" / made.name, made, tmp_path / "data", told)
    assert {path: path.read_bytes() for path in (tmp_path / "data").rglob("*.sqlite")} == before
    store = SqliteStore(tmp_path / "served")
    try:
        with pytest.raises(BackupError, match="is in use"):
            restore(tmp_path / "backups" / made.name, made, tmp_path / "served", told)
    finally:
        asyncio.run(store.close())


@pytest.mark.parametrize("harm", ["changed", "cut", "missing"])
def test_a_backup_that_is_not_what_was_written_is_not_restored(tmp_path: Path, harm: str) -> None:
    make_account(tmp_path / "data")
    made = make_backup_at_rest(tmp_path)
    folder = tmp_path / "backups" / made.name
    path = segment_file(folder)
    content = path.read_bytes()
    if harm == "missing":
        path.unlink()
    else:
        path.write_bytes(content[:-1] + (b"" if harm == "cut" else bytes([content[-1] ^ 1])))
    with pytest.raises(BackupError, match="nothing was restored"):
        restore(folder, made, tmp_path / "new", told)
    assert not list((tmp_path / "new").rglob("*.sqlite"))
    assert faults_of(folder, made)
    asyncio.run(SqliteStore(tmp_path / "new").close())


@pytest.mark.parametrize("leads_to", ["/dev/zero", "a file without an end", "the file itself"])
def test_what_leads_out_of_a_backup_is_not_followed(tmp_path: Path, leads_to: str) -> None:
    make_account(tmp_path / "data")
    made = make_backup_at_rest(tmp_path)
    folder = tmp_path / "backups" / made.name
    path = segment_file(folder)
    moved = path.rename(tmp_path / "moved")
    if leads_to == "a file without an end":
        os.mkfifo(path)
    else:
        path.symlink_to(moved if leads_to == "the file itself" else leads_to)
    with pytest.raises(BackupError, match="nothing was restored"):
        restore(folder, made, tmp_path / "new", told)
    assert [wrong for wrong, _ in faults_of(folder, made)] == [f"segments/{path.name}"]


@pytest.mark.parametrize("harm", ["missing", "cut", "symlink"])
def test_what_is_not_in_the_backup_before_any_more_is_copied_anew(
    tmp_path: Path, harm: str, settled: None
) -> None:
    make_account(tmp_path / "data")
    folder = tmp_path / "backups" / make_backup_at_rest(tmp_path).name
    path = segment_file(folder)
    if harm == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        moved = path.rename(tmp_path / "moved")
        if harm == "symlink":
            path.symlink_to(moved)
    made = make_backup_at_rest(tmp_path)
    assert faults_of(tmp_path / "backups" / made.name, made) == []


@pytest.mark.parametrize(
    "path",
    [
        "../../outside",
        "/etc/passwd",
        "segments/../../x",
        "",
        "segments/\0.sqlite",
        "segments/..\\..\\x.sqlite",
    ],
)
def test_a_manifest_names_files_of_its_own_folder_only(tmp_path: Path, path: str) -> None:
    make_account(tmp_path / "data")
    folder = tmp_path / "backups" / make_backup_at_rest(tmp_path).name
    content = orjson.loads((folder / BACKUP_FILE).read_bytes())
    content["files"][0]["path"] = path
    (folder / BACKUP_FILE).write_bytes(orjson.dumps(content))
    with pytest.raises(BackupError, match="not in it"):
        read_manifest(folder)


def test_a_newer_backup_and_a_broken_manifest_are_refused_with_a_sentence(tmp_path: Path) -> None:
    make_account(tmp_path / "data")
    folder = tmp_path / "backups" / make_backup_at_rest(tmp_path).name
    content = orjson.loads((folder / BACKUP_FILE).read_bytes())
    (folder / BACKUP_FILE).write_bytes(orjson.dumps({**content, "format": 2}))
    with pytest.raises(BackupError, match="newer Pleiad"):
        find_backup(folder)
    for broken in (b"", b"[]", b"{", b'{"format":1}', b'{"format":1,"files":[3]}'):
        (folder / BACKUP_FILE).write_bytes(broken)
        with pytest.raises(BackupError, match="cannot be read"):
            find_backup(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [("taken_at", "now"), ("taken_at", 1e300), ("taken_at", None), ("account", 1), ("generation", "1")],
)
def test_a_manifest_that_nobody_wrote_hides_no_other_backup(tmp_path: Path, name: str, value: object) -> None:
    make_account(tmp_path / "data")
    folder = tmp_path / "backups" / make_backup_at_rest(tmp_path).name
    good = make_backup_at_rest(tmp_path)
    content = orjson.loads((folder / BACKUP_FILE).read_bytes())
    (folder / BACKUP_FILE).write_bytes(orjson.dumps({**content, name: value}))
    assert Shelf(tmp_path / "backups").all() == [good]
    for wrong in ({"path": 1}, {"size_bytes": "1"}, {"sha256": None}, {"signature": ["1"]}):
        files = [{**content["files"][0], **wrong}]
        (folder / BACKUP_FILE).write_bytes(orjson.dumps({**content, "files": files}))
        with pytest.raises(BackupError, match="cannot be read"):
            read_manifest(folder)


def test_no_server_works_on_a_backup_or_on_half_of_a_restore(tmp_path: Path) -> None:
    make_account(tmp_path / "data")
    made = make_backup_at_rest(tmp_path)
    with pytest.raises(SchemaError, match="is a backup"):
        SqliteStore(tmp_path / "backups" / made.name)
    (tmp_path / "half" / "restoring").mkdir(parents=True)
    with pytest.raises(SchemaError, match="was not finished"):
        SqliteStore(tmp_path / "half")
    restore(tmp_path / "backups" / made.name, made, tmp_path / "half", told)
    asyncio.run(SqliteStore(tmp_path / "half").close())


def test_backups_are_their_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settled: None) -> None:
    def refuse(*_: object) -> None:
        raise OSError("this file system has no hard links")

    make_account(tmp_path / "data")
    make_backup_at_rest(tmp_path)
    monkeypatch.setattr(os, "link", refuse)
    make_backup_at_rest(tmp_path)
    for path in [tmp_path / "backups", *(tmp_path / "backups").rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path
