"""What an item of the source is in the target: its properties, its partition key, and what the store keeps beside it.

Pure: the same row gives the same change, whoever asks and whenever, so that what was copied can be found again to be
compared, replaced or removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from pleiad.catalog.container import unique_keys_of
from pleiad.engine.container import Container
from pleiad.errors import PleiadError
from pleiad.item.body import check_names, dump, dump_exact, load, parse_exact, splice
from pleiad.item.ttl import check_item_ttl
from pleiad.job.copy.plan import expression_query
from pleiad.job.digest import compact
from pleiad.keys.definition import split_path
from pleiad.keys.hash import epk
from pleiad.keys.value import check_size, to_json_text
from pleiad.limits import size_text
from pleiad.query import Execution, QueryContext, compile_query
from pleiad.query.pace import Pace
from pleiad.store.rows import ItemKey, Mutation, Row, Verb
from pleiad.values.undefined import UNDEFINED


class Unfit(Exception):
    """An item that cannot be in the target, and why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Placed(NamedTuple):
    """An item as it has to be in the target."""

    origin: ItemKey
    """What names it in the source."""
    key: ItemKey
    put: Mutation
    ts: int

    def is_in(self, row: Row | None) -> bool:
        """Whether a row of the target is this item."""
        if row is None or row.ts != self.ts or row.ttl != self.put.ttl:
            return False
        return row.body == self.put.body or compact(row.body) == compact(self.put.body)


class Transform:
    """The way from one container to another."""

    def __init__(self, source: Container, target: Container, sets: Mapping[str, str]) -> None:
        self._source = source
        self._target = target
        self._queries = {
            split_path(path)[0]: compile_query(expression_query(text), target.limits)
            for path, text in sets.items()
        }
        self._unique = target.definition.unique_keys
        self._own_unique_count = len(unique_keys_of(source.resource.properties))
        has_same_terms = (
            source.definition.indexing.to_json() == target.definition.indexing.to_json()
            and source.computed_names == target.computed_names
        )
        self._keeps_terms = has_same_terms and not self._queries
        self._may_lack_key = source.key.paths == target.key.paths

    @property
    def is_costly(self) -> bool:
        """Whether items are evaluated, which may take any time."""
        return bool(self._queries)

    def execution(self, pace: Pace) -> dict[str, Execution]:
        """The expressions, ready for some items."""
        context = QueryContext(limits=self._target.limits, is_planar=self._source.is_planar, pace=pace)
        return {name: query.execution({}, context) for name, query in self._queries.items()}

    def place(self, row: Row, expressions: Mapping[str, Execution]) -> Placed:
        """The item of a row in the target; Unfit says why it cannot be there."""
        item: dict[str, Any] = load(row.body)
        body = row.body
        if expressions:
            body, item = self._with_values(row, item, expressions)
        key = self._target.key.extract(item)
        if not self._may_lack_key and not self._target.key.system_key and UNDEFINED in key:
            missing = ", ".join(
                path for path, value in zip(self._target.key.paths, key, strict=True) if value is UNDEFINED
            )
            raise Unfit(f"it has no value for the partition key {missing}")
        try:
            check_size(key, self._target.key, self._target.limits)
        except PleiadError as error:
            raise Unfit(error.message) from None
        hashed = epk(key, self._target.key)
        is_image = not row.size_bytes
        if self._keeps_terms and not is_image:
            size_bytes, terms = row.size_bytes, row.terms - self._own_unique_count
        else:
            size_bytes, terms = len(dump(item)), self._target.terms.count(item)
        ttl = check_item_ttl(item, self._target.limits) if is_image else row.ttl
        unique = tuple([each.value_in(item) for each in self._unique])
        put = Mutation(Verb.UPSERT, hashed, row.id, body, size_bytes, terms + len(unique), ttl, unique)
        return Placed(ItemKey(row.epk, row.id), ItemKey(hashed, row.id), put, row.ts)

    def _with_values(
        self, row: Row, item: dict[str, Any], expressions: Mapping[str, Execution]
    ) -> tuple[bytes, dict[str, Any]]:
        """Text and value of an item with what the expressions give; undefined values set nothing."""
        seen = {**item, **self._source.system_properties(row)}
        values: dict[str, Any] = {}
        for name, execution in expressions.items():
            for value in execution.values((seen,)):
                values[name] = value
        if not values:
            return row.body, item
        if values.keys().isdisjoint(item):
            body = splice(row.body, b"," + orjson.dumps(values)[1:])
        else:
            body = dump_exact({**parse_exact(row.body), **values})
        limit = self._target.limits.item_bytes
        if len(body) > limit:
            raise Unfit(f"with what is set in it, it is larger than {size_text(limit)}")
        made = load(body)
        try:
            check_names(body, made)
        except PleiadError as error:
            raise Unfit(error.message) from None
        return body, made

    def name_of(self, row: Row) -> str:
        """An item of the source as people find it."""
        key = self._source.key.extract(load(row.body))
        return f"{row.id} of the partition key {to_json_text(key)}"
