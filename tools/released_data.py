"""Data of this version for the versions to come: `python -m tools.released_data`, once for each release.

Makes an account that has a bit of everything, in SQLite and in PostgreSQL, and puts both into
`tests/rooms/store/landed` under the version in `pyproject.toml`. `tests/rooms/store/test_landed.py` opens what is there
of every version.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import subprocess
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pleiad.engine import items
from pleiad.engine.engine import Engine
from pleiad.item.body import dump
from pleiad.limits import Limits
from pleiad.partition.governor import SYSTEM
from pleiad.store.postgres.store import PostgresStore
from pleiad.store.sqlite.store import SqliteStore
from pleiad.store.store import Store
from tests.postgres_server import PostgresServer

LANDED = Path(__file__).parent.parent / "tests" / "rooms" / "store" / "landed"
ITEMS = 40
CONTAINERS: dict[str, dict[str, Any]] = {
    "plain": {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/mail"]}]}},
    "kept": {"changeFeedPolicy": {"retentionDuration": 43_200}},
    "divided": {"defaultTtl": -1},
    "untouched": {},
}


async def fill(store: Store) -> None:
    """Makes the account in an empty store: items, versions, unique values and a split."""
    engine = Engine(store, Limits())
    await engine.open()
    await engine.create_database({"id": "landed"}, None)
    database = engine.database("landed")
    for name, settings in CONTAINERS.items():
        definition = {"id": name, "partitionKey": {"paths": ["/pk"], "version": 2}, **settings}
        await engine.create_container(database, definition, None)
        if name == "untouched":
            continue
        container = await engine.container("landed", name)
        for number in range(ITEMS):
            item = {"id": f"i{number}", "pk": f"p{number % 9}", "mail": f"{number}@x", "n": number}
            await items.create(container, dump(item), container.key.extract(item), SYSTEM)
        if name == "divided":
            await engine.split(container, container.map.partitions[0].range_id)
            await engine.keeper.settled()
    await engine.close()


def save_sqlite(target: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory) / "data"
        asyncio.run(fill(SqliteStore(data)))
        with tarfile.open(target, "w:gz") as archive:
            for path in [data / "catalog.sqlite", *sorted((data / "segments").glob("*.sqlite"))]:
                archive.add(path, str(path.relative_to(data)))


def save_postgres(target: Path, server: PostgresServer) -> None:
    dsn = server.new_database()

    async def work() -> None:
        await fill(await PostgresStore.open(dsn))

    asyncio.run(work())
    command = [str(server.programs() / "pg_dump"), "--no-owner", "--inserts", dsn]
    dump_text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # What begins with a backslash is for psql.
    lines = [line for line in dump_text.splitlines(keepends=True) if not line.startswith(("--", "\\"))]
    content = io.BytesIO()
    with gzip.GzipFile(fileobj=content, mode="wb", mtime=0) as packed:
        packed.write("".join(lines).encode())
    target.write_bytes(content.getvalue())


def main() -> None:
    """Writes the two files of this version."""
    name = version("pleiad")
    save_sqlite(LANDED / f"{name}_sqlite.tar.gz")
    server = PostgresServer()
    try:
        server.start()
        save_postgres(LANDED / f"{name}_postgres.sql.gz", server)
    finally:
        server.remove()
    for path in sorted(LANDED.glob(f"{name}_*")):
        print(f"{path} {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
