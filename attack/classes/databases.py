"""What can be missing or wrong in a PostgreSQL database: schemas of segments, the catalog, its records.

Part of the class `files`. No schema is ever dropped by a server because something else is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
from psycopg import sql

from attack.ground import key_header, make_container, put
from attack.report import Outcome
from attack.target import MASTER, DidNotStartError, Launch, Target, launch, serving

ITEMS = 20
BRIEF_LOSSES = ("catalog empty", "segment missing")


def attack(outcome: Outcome, store: str, directory: Path, brief: bool) -> None:
    """Each loss on a database of its own, made from one that is good."""
    with serving(Launch(data=directory / "template", store=store)) as target:
        connection = target.connect()
        for name in ("one", "two"):
            container = make_container(connection, name)
            for number in range(ITEMS):
                put(connection, container, {"id": f"i{number}", "pk": "p", "text": name})
        connection.close()
    for name, loss in _LOSSES.items():
        if brief and name not in BRIEF_LOSSES:
            continue
        copy = _copied(store, name.replace(" ", "_"))
        before = _schemas(copy)
        lost = loss(copy, sorted(before))
        _judge(outcome, copy, directory / name.replace(" ", "-"), name)
        gone = before - _schemas(copy) - lost
        if gone:
            outcome.lose(f"{name}: the server dropped {', '.join(sorted(gone))}")


def _copied(store: str, name: str) -> str:
    base, _, _ = store.partition("?")
    database = base.rpartition("/")[2]
    other = store.replace(f"/{database}?", "/postgres?")
    name = f"{database[:30]}_{name}"
    with psycopg.connect(other, autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(database))
        )
    return store.replace(f"/{database}?", f"/{name}?")


def _schemas(store: str) -> set[str]:
    with psycopg.connect(store) as connection:
        rows = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pleiad%'").fetchall()
    return {str(name) for (name,) in rows}


def _drop(store: str, names: list[str]) -> set[str]:
    with psycopg.connect(store, autocommit=True) as connection:
        for name in names:
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))
    return set(names)


def _emptied(store: str, schemas: list[str]) -> set[str]:
    with psycopg.connect(store, autocommit=True) as connection:
        connection.execute("DELETE FROM pleiad.record")
    return set()


def _forgotten(store: str, schemas: list[str]) -> set[str]:
    """The records of one container are gone, as in an older backup of the catalog."""
    with psycopg.connect(store, autocommit=True) as connection:
        connection.execute("DELETE FROM pleiad.record WHERE name = 'two'")
    return set()


_LOSSES: dict[str, Callable[[str, list[str]], set[str]]] = {
    "catalog missing": lambda store, schemas: _drop(store, ["pleiad"]),
    "catalog empty": _emptied,
    "catalog forgot a container": _forgotten,
    "segment missing": lambda store, schemas: _drop(
        store, [name for name in schemas if name != "pleiad"][:1]
    ),
    "all segments missing": lambda store, schemas: _drop(
        store, [name for name in schemas if name != "pleiad"]
    ),
}


def _judge(outcome: Outcome, store: str, data: Path, name: str) -> None:
    try:
        target = launch(Launch(data=data, store=store))
    except DidNotStartError as error:
        if "Traceback" in str(error):
            outcome.tracebacks += 1
            outcome.breaks(
                f"{name}: the server ended with a traceback: {str(error).strip().splitlines()[-1][:200]}"
            )
        return
    try:
        _read(outcome, target, name)
    finally:
        target.stop()
    outcome.took_tracebacks(target.tracebacks(), target.said())


def _read(outcome: Outcome, target: Target, name: str) -> None:
    connection = target.connect()
    for container in ("one", "two"):
        for number in range(ITEMS):
            segments = ["dbs", "ground", "colls", container, "docs", f"i{number}"]
            answer = connection.send(MASTER, "GET", segments, headers=key_header("p"))
            outcome.answered(answer.status, f"{name}: {container}/i{number}")
            right = answer.status == 200 and answer.json["text"] == container
            forgotten = name == "catalog forgot a container" and container == "two" and answer.status == 404
            if not right and not forgotten and answer.status != 503:
                outcome.lose(f"{name}: {container}/i{number} -> {answer.status}")
    connection.close()
