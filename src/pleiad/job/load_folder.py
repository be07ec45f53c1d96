"""Seeding an account from a folder: DIR/DATABASE/CONTAINER.jsonl, with the container's definition beside it.

A container that exists is left as it is, with all that was done to it since. One whose loading was interrupted, which a
small file in the data directory tells, is loaded to its end.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from pleiad.catalog.throughput import Throughput
from pleiad.engine import batch
from pleiad.engine.batch import ItemOperation, ItemVerb
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.errors import ITEM_EXISTS, RESOURCE_EXISTS, PleiadError, Reason
from pleiad.job.item_file.entry import Entry, ItemFileError, with_id
from pleiad.job.item_file.form import DEFINITION_ENDING, form_of_name, plain_name
from pleiad.job.item_file.reader import ReadOptions, open_items
from pleiad.partition.governor import SYSTEM

_THROUGHPUT = "throughput"
_BATCH_ITEMS = 500
_BATCH_BYTES = 4 * 1024 * 1024
_TOLD_ITEMS = 50_000
"""After so many items something is told."""
_MARK = "loading.json"

Tell = Callable[[str], None]


class LoadError(Exception):
    """A folder that cannot be loaded; the text is a sentence for the operator."""


@dataclass(frozen=True, slots=True)
class Seed:
    """One container to be loaded: its items, if there are any, and its definition."""

    database: str
    container: str
    items: Path | None
    definition: Path

    @property
    def name(self) -> str:
        return f"{self.database}/{self.container}"


def seeds_in(folder: Path) -> list[Seed]:
    """What a folder holds, in the order of names; LoadError when something in it is not clear."""
    if not folder.is_dir():
        raise LoadError(f"there is no folder {folder} to load")
    seeds: dict[tuple[str, str], Seed] = {}
    for path in sorted(folder.glob("*/*")):
        if path.name.startswith(".") or path.parent.name.startswith(".") or not path.is_file():
            continue
        is_definition = path.name.endswith(DEFINITION_ENDING)
        if not is_definition and form_of_name(path.name) is None:
            continue
        name = path.name.removesuffix(DEFINITION_ENDING) if is_definition else plain_name(path.name)
        database, items = path.parent.name, None if is_definition else path
        found = seeds.get((database, name))
        if found is not None and found.items is not None and items is not None:
            raise LoadError(f"{found.items} and {items} are both of the container {database}/{name}")
        items = items or (found.items if found is not None else None)
        seeds[database, name] = Seed(database, name, items, path.with_name(name + DEFINITION_ENDING))
    return list(seeds.values())


async def load_folder(engine: Engine, folder: Path, data: Path, tell: Tell) -> int:
    """Loads the containers of a folder that are not there yet; how many that were."""
    mark = data / _MARK
    interrupted = _marked(mark)
    loaded = 0
    for seed in seeds_in(folder):
        is_resumed = seed.name == interrupted
        try:
            if not is_resumed and await _exists(engine, seed):
                continue
            definition, throughput = _definition(seed, engine)
            mark.write_text(json.dumps({"container": seed.name}), encoding="utf-8")
            is_new = await _make(engine, seed, definition, throughput)
            if not is_new and not is_resumed:
                mark.unlink()  # another server on the same database was faster, and loads it
                continue
            container = await engine.container(seed.database, seed.container)
            count = 0 if seed.items is None else await _load(container, seed, seed.items, is_resumed, tell)
        except (PleiadError, ItemFileError) as error:
            reason = error.message if isinstance(error, PleiadError) else str(error)
            raise LoadError(f"{seed.name} cannot be loaded: {reason}") from None
        mark.unlink()
        loaded += 1
        tell(f"loaded {seed.name}: {count:,} {'item' if count == 1 else 'items'}")
    return loaded


def _marked(mark: Path) -> str | None:
    try:
        return str(json.loads(mark.read_bytes())["container"])
    except (OSError, ValueError, TypeError, LookupError):
        return None


async def _exists(engine: Engine, seed: Seed) -> bool:
    try:
        await engine.container(seed.database, seed.container)
    except PleiadError as error:
        if error.reason is not Reason.MISSING:
            raise
        return False
    return True


def _definition(seed: Seed, engine: Engine) -> tuple[dict[str, Any], Throughput | None]:
    """The definition of a container, and its throughput where the account has such a thing."""
    if not seed.definition.is_file():
        raise LoadError(
            f"the partition key of {seed.name} is not said: write it into {seed.definition}, such as "
            '{"partitionKey": {"paths": ["/city"]}}'
        )
    try:
        found = json.loads(seed.definition.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise LoadError(f"{seed.definition} cannot be read: {error}") from None
    if not isinstance(found, dict) or not isinstance(found.get("partitionKey"), dict):
        raise LoadError(f"{seed.definition} must be an object with the 'partitionKey' of the container")
    ru = found.pop(_THROUGHPUT, engine.limits.throughput_ru_default)
    if not isinstance(ru, int) or isinstance(ru, bool):
        raise LoadError(f"'{_THROUGHPUT}' in {seed.definition} must be RU/s, a whole number")
    key = found["partitionKey"]
    paths = key.get("paths")
    kind = "MultiHash" if isinstance(paths, list) and len(paths) > 1 else "Hash"
    found["partitionKey"] = {"kind": kind, "version": 2, **key}
    return {**found, "id": seed.container}, None if engine.provisioning.is_serverless else Throughput(ru)


async def _make(
    engine: Engine, seed: Seed, definition: dict[str, Any], throughput: Throughput | None
) -> bool:
    """Makes a container and its database where they are not there; whether the container is new."""
    try:
        await engine.create_database({"id": seed.database}, None)
    except PleiadError as error:
        if error.row is not RESOURCE_EXISTS:
            raise
    try:
        await engine.create_container(engine.database(seed.database), definition, throughput)
    except PleiadError as error:
        if error.row is not RESOURCE_EXISTS:
            raise
        return False
    return True


async def _load(container: Container, seed: Seed, path: Path, is_resumed: bool, tell: Tell) -> int:
    """Loads the items of a file; how many there are."""
    count = 0
    family = uuid5(NAMESPACE_URL, seed.name)
    with open_items(path, ReadOptions()) as file:
        entries = iter(file)
        while chunk := await asyncio.to_thread(_taken, entries):
            chunk = [with_id(entry, family) for entry in chunk]
            for entry in chunk:
                if entry.value is None:
                    raise ItemFileError(f"{path}, line {entry.line}: {entry.problem}")
            operations = [_operation(container, entry) for entry in chunk]
            done = await batch.run_bulk(container, operations, lane=SYSTEM)
            for entry, answer in zip(chunk, done.answers, strict=True):
                is_left = is_resumed and isinstance(answer, PleiadError) and answer.row is ITEM_EXISTS
                if isinstance(answer, PleiadError) and not is_left:
                    raise ItemFileError(f"{path}, line {entry.line}: {answer.message}")
            if (count + len(chunk)) // _TOLD_ITEMS > count // _TOLD_ITEMS:
                tell(f"loading {seed.name}: {count + len(chunk):,} items")
            count += len(chunk)
    return count


def _taken(entries: Iterator[Entry]) -> list[Entry]:
    """The next entries: so many, and fewer where they are large."""
    taken: list[Entry] = []
    size_bytes = 0
    for entry in islice(entries, _BATCH_ITEMS):
        taken.append(entry)
        size_bytes += len(entry.text)
        if size_bytes > _BATCH_BYTES:
            break
    return taken


def _operation(container: Container, entry: Entry) -> ItemOperation:
    assert entry.value is not None
    return ItemOperation(ItemVerb.CREATE, body=entry.text, key=container.key.extract(entry.value))
