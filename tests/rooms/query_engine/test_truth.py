"""Whatever way a query is executed, its answer is that of the oracle.

One seed makes a container of one to five physical partitions and queries on it. Each query runs whole in
memory, in one page, in small pages, in pages that have no time, in pages with a restart between them, with physical
indexes, and after items were changed.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from pleiad.engine.kept import KEPT_BYTES_MAX
from pleiad.engine.query.job import prepare
from pleiad.errors import PleiadError
from pleiad.query import compile_query
from pleiad.query.pace import Pace

CASES = {"sqlite": 45, "postgres": 15}
LONG_CASES = int(os.environ.get("PLEIAD_TRUTH_CASES", "100000"))
LONG_SHARE = {"sqlite": 1, "postgres": 10}
"""A query costs several times as much on PostgreSQL, so there are fewer of them at length."""
LONG_SEED = int(os.environ.get("PLEIAD_TRUTH_SEED", "20"))
QUERIES_OF_SEED = 15

KEYS = ("p0", "p1", "p2", "p3", "p4", None, True, 7, 0, 1.5, "é")
COMPOSITES = [
    [{"path": f"/{one}", "order": "ascending"}, {"path": f"/{two}", "order": direction}]
    for one, two in (("n", "s"), ("s", "n"))
    for direction in ("ascending", "descending")
]


def literal(value: Any) -> str:
    """A scalar as the query language writes it."""
    return orjson.dumps(value).decode()


class Case:
    """The random choices of one seed."""

    def __init__(self, seed: int, generator: Any) -> None:
        self.random = random.Random(seed)
        self.made = generator.Generator(seed)
        self.levels = self.random.choice((1, 1, 2, 3))
        self.key_paths = tuple(f"/{name}" for name in ("pk", "k2", "k3")[: self.levels])
        self.partitions = self.random.randrange(1, 6)
        self.count = self.random.randrange(40)
        self.items = [self.item(number) for number in range(self.count)]

    def item(self, number: int) -> dict[str, Any]:
        item: dict[str, Any] = {**self.made.item(), "id": f"i{number}"}
        for name in ("pk", "k2", "k3")[: self.levels]:
            if self.random.random() < 0.95:
                item[name] = self.random.choice(KEYS)
        return item

    def query(self) -> tuple[str, dict[str, Any]]:
        """A query of any form, or one of the forms that have a way of execution of their own."""
        if self.random.random() < 0.45:
            text, parameters = self.made.query()
            return text, parameters
        self.made.parameters = {}
        where = " AND ".join(self.condition() for _ in range(self.random.choice((0, 1, 1, 2, 3))))
        rest = f" FROM c WHERE {where}" if where else " FROM c"
        kind = self.random.random()
        if kind < 0.25:
            argument = self.random.choice(("1", "c", "c.n", "c.s", "undefined", "null"))
            function = self.random.choice(("COUNT", "COUNT", "SUM", "MIN", "MAX", "AVG"))
            return f"SELECT VALUE {function}({argument}){rest}", self.made.parameters
        selection = self.random.choice(("*", "VALUE c", "VALUE c.id", "c.id, c.n", "c.id, t", "VALUE c.n"))
        distinct = "DISTINCT " if selection == "VALUE c.n" else ""
        if selection == "c.id, t":
            rest = rest.replace(" FROM c", " FROM c JOIN t IN c.tags", 1)
        top = f"TOP {self.random.randrange(9)} " if self.random.random() < 0.2 else ""
        text = f"SELECT {distinct}{top}{selection}{rest}"
        if self.random.random() < 0.5:
            keys = self.random.choice((["n"], ["s"], ["_ts"], ["id"], ["pk"], ["n", "s"], ["s", "n"]))
            ways = [self.random.choice((" ASC", " DESC")) for _ in keys]
            text += " ORDER BY " + ", ".join(f"c.{key}{way}" for key, way in zip(keys, ways, strict=True))
        if not top and self.random.random() < 0.2:
            text += f" OFFSET {self.random.randrange(6)} LIMIT {self.random.randrange(9)}"
        return text, self.made.parameters

    def address(self) -> str:
        """The whole key and the id of an item, as clients write them that read many items at once."""
        item = self.random.choice(self.items) if self.items else {}
        paths = [path[1:] for path in self.key_paths]
        equal = [f"c.{name} = {literal(item[name])}" for name in (*paths, "id") if name in item]
        return f"({' AND '.join(equal)})" if equal else "true"

    def condition(self) -> str:
        """A condition that routing, lookups or the store understand, or one that they do not."""
        constant = self.made.constant

        def key() -> str:
            return literal(self.random.choice(KEYS))

        def id() -> str:
            return f"'i{self.random.randrange(max(1, self.count))}'"

        forms = (
            lambda: f"c.pk = {key()}",
            lambda: f"c.pk IN ({key()}, {key()})",
            lambda: f"(c.pk = {key()} OR c.pk = {key()})",
            lambda: f"c.k2 = {key()}",
            lambda: f"c.id = {id()}",
            lambda: f"c.id IN ({id()}, {id()}, {id()}, {id()})",
            self.address,
            self.address,
            lambda: f"({self.address()} OR {self.address()} OR {self.address()})",
            lambda: f"c.n {self.random.choice(('=', '<', '<=', '>', '>=', '!='))} {constant()}",
            lambda: f"c.s {self.random.choice(('=', '<', '<=', '>', '>=', '!='))} {constant()}",
            lambda: f"(c.n BETWEEN {constant()} AND {constant()})",
            lambda: f"c.{self.random.choice('abns')} IN ({constant()}, {constant()})",
            lambda: f"IS_DEFINED(c.{self.random.choice('abns')})",
            lambda: f"STARTSWITH(c.s, {self.random.choice(('a', 'é', '', '😀'))!r})",
            lambda: f"ARRAY_CONTAINS(c.tags, {constant()})",
            lambda: f"c.o.{self.random.choice('abns')} = {constant()}",
            lambda: "c._ts > 0",
            lambda: self.made.expression(["c"], 2),
        )
        return self.random.choice(forms)()


class Truth:
    """One seed's container and the ways to ask it."""

    def __init__(self, seed: int, directory: Path, oracle: Any, generator: Any, open_world: Any) -> None:
        self.case = Case(seed, generator)
        self.seed = seed
        self.oracle = oracle
        self.failures: list[str] = []
        self._directory = directory
        self._open = open_world

    def opened(self, **options: Any) -> Any:
        case = self.case
        policy = {"compositeIndexes": COMPOSITES}
        return self._open(
            self._directory,
            partitions=case.partitions,
            key_paths=case.key_paths,
            indexingPolicy=policy,
            **options,
        )

    async def run(self, no_indexes: Any, indexes: Any) -> list[str]:
        case = self.case
        queries = [case.query() for _ in range(QUERIES_OF_SEED)]
        charges: dict[str, float] = {}
        tokens: dict[str, tuple[str, list[Any]]] = {}
        async with self.opened(indexes=no_indexes) as world:
            for item in case.items:
                await world.put(item)
            for text, parameters in queries:
                await self.compare("scanned", world, text, parameters, charges)
                await self.keep_token(world, text, parameters, tokens)
        async with self.opened(indexes=indexes) as world:
            for text, parameters in queries:
                if text in tokens:
                    await self.resume("resumed after a restart", world, text, parameters, *tokens[text])
                await self.compare("indexes wanted", world, text, parameters, charges)
            await world.indexes_built()
            for text, parameters in queries:
                await self.compare("indexed", world, text, parameters, charges)
            for number in range(case.random.randrange(case.count + 3)):
                await self.change(world, number)
            for text, parameters in queries:
                await self.compare("changed", world, text, parameters, {})
        return self.failures

    async def change(self, world: Any, number: int) -> None:
        """Removes, replaces, moves to another key or adds an item."""
        rows = [row for row in await world.rows() if row.id == f"i{number}"]
        for row in rows:
            if self.case.random.random() < 0.4:
                await world.remove(world.item_of(row))
        if self.case.random.random() < 0.7:
            await world.put(self.case.item(number))

    async def expected(self, world: Any, text: str, parameters: dict[str, Any]) -> list[Any] | None:
        """The oracle's answer, which the compiled query in memory must give too; None when it has none."""
        container = world.container
        items = await world.items_in_order_of(prepare(container, world.request(text, parameters), Pace()))
        try:
            wanted = [self.oracle.canon(value) for value in self.oracle.run(text, items, parameters)]
        except self.oracle.OracleError:
            return None
        found = compile_query(text, container.limits).run(items, parameters, container.query_context())
        if [self.oracle.canon(value) for value in found] != wanted:
            self.fail("in memory", text, parameters, wanted, found)
        return wanted

    async def compare(
        self, way: str, world: Any, text: str, parameters: dict[str, Any], charges: dict[str, float]
    ) -> None:
        wanted = await self.expected(world, text, parameters)
        if wanted is None:
            return
        try:
            whole = await world.query(text, parameters)
            paged = await world.query(text, parameters, lambda: self.case.random.randrange(1, 6))
            hurried = await self.without_time(world, text, parameters)
        except PleiadError as error:
            self.fail(way, text, parameters, wanted, error)
            return
        answers = {"in one page": whole, "in small pages": paged, "without time": hurried}
        for name, answer in answers.items():
            if [self.oracle.canon(value) for value in answer.results] != wanted:
                self.fail(f"{way}, {name}", text, parameters, wanted, answer.results)
        usual = charges.setdefault(f"{text} {parameters}", whole.charge_ru)
        charged = [answer.charge_ru for answer in answers.values()]
        if charged != [usual] * len(charged):
            self.fail(f"{way}, charge", text, parameters, usual, charged)

    async def without_time(self, world: Any, text: str, parameters: dict[str, Any]) -> Any:
        """The answer in pages that end as soon as they may, now and then with nothing kept between them."""
        container = world.container
        limits = container.limits
        container.limits = replace(limits, operation_seconds=0.0)
        container.kept.bytes_max = self.case.random.choice((KEPT_BYTES_MAX, -1))
        try:
            return await world.query(text, parameters, lambda: self.case.random.randrange(1, 6))
        finally:
            container.limits = limits
            container.kept.bytes_max = KEPT_BYTES_MAX

    async def keep_token(self, world: Any, text: str, parameters: Any, tokens: dict[str, Any]) -> None:
        """Reads the first small page; the rest is read from its token later."""
        try:
            page = await world.page(text, parameters, items_max=2)
        except PleiadError:
            return
        if page.token is not None:
            tokens[text] = (page.token, page.results)

    async def resume(
        self, way: str, world: Any, text: str, parameters: Any, token: str, begun: list[bytes]
    ) -> None:
        try:
            rest = await world.query(text, parameters, lambda: 3, token=token)
            whole = await world.query(text, parameters)
        except PleiadError:
            return
        if (
            len(begun) + len(rest.results) != len(whole.results)
            or whole.results[len(begun) :] != rest.results
        ):
            self.fail(way, text, parameters, whole.results[len(begun) :], rest.results)

    def fail(self, way: str, text: str, parameters: Any, wanted: Any, found: Any) -> None:
        self.failures.append(
            f"seed {self.seed}, {way}: {text}\n  with {parameters}\n  wanted {wanted}\n  found  {found}"
        )


@pytest.fixture
def disagreements(
    tmp_path: Path,
    oracle: Any,
    generator: Any,
    world_in: Any,
    index_settings: tuple[Any, Any],
    remove_data: Callable[[Path], None],
) -> Callable[[range], list[str]]:
    """A description of every case of some seeds in which some way of execution differs."""

    def of(seeds: range) -> list[str]:
        found: list[str] = []
        for seed in seeds:
            directory = tmp_path / str(seed)
            truth = Truth(seed, directory, oracle, generator, world_in)
            found += asyncio.run(truth.run(*index_settings))
            remove_data(directory)
        return found

    return of


@pytest.mark.every_store
def test_every_way_of_execution_agrees_with_the_oracle(
    disagreements: Callable[[range], list[str]], store_kind: str
) -> None:
    found = disagreements(range(CASES[store_kind] // QUERIES_OF_SEED))
    assert not found, "\n".join(found[:5])


@pytest.mark.every_store
@pytest.mark.long
@pytest.mark.timeout(7200)
def test_every_way_of_execution_agrees_with_the_oracle_at_length(
    disagreements: Callable[[range], list[str]], store_kind: str
) -> None:
    cases = LONG_CASES // LONG_SHARE[store_kind]
    found = disagreements(range(LONG_SEED, LONG_SEED + cases // QUERIES_OF_SEED))
    assert not found, "\n".join(found[:5])
