"""Running a query: the compiled form of one text or syntax tree, and one execution of it over items.

``Query`` is shared and cached; it holds no state of an execution. ``Execution`` has the parameters and
the context of one run and offers both the whole run in memory and its pieces, so that a caller can stream
pages of one partition and merge several.

Order of the steps: sources and filter, groups, order, projection, DISTINCT, OFFSET and LIMIT or TOP.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any, Final

from pleiad.errors import PleiadError
from pleiad.limits import MB, Limits
from pleiad.query import errors, plan
from pleiad.query.aggregate import Groups
from pleiad.query.bind.parameters import parameters_hold
from pleiad.query.bind.statements import bind
from pleiad.query.compile.factory import Factory, builds, compile_plan
from pleiad.query.compile.support import tag_of
from pleiad.query.context import QueryContext
from pleiad.query.facts import (
    Plainness,
    filter_names,
    filters_plainly,
    gives_items,
    leaves,
    plainness,
    read_names,
    shared_arguments,
)
from pleiad.query.measure import RESULT_BYTES_MAX, rendered, size_of, text_of
from pleiad.query.pace import Pace, in_turns
from pleiad.query.paths.compared import FilterPaths, filter_paths
from pleiad.query.rank import Ranking
from pleiad.query.sorting import Descending, paced_sort
from pleiad.query.syntax import ast
from pleiad.query.syntax.parser import check_count, parse
from pleiad.query.syntax.rewrite import text_without_filter
from pleiad.query.syntax.tree import checked_text
from pleiad.query.values import hash_key, order_key
from pleiad.values.undefined import UNDEFINED

Row = tuple[Any, ...]
_VARIANTS_MAX: Final = 16
_QUERY_BYTES: Final = 8_000
_SORTED_ROW_BYTES: Final = 200
LONG_TEXT_CHARS: Final = 4_000
"""Texts longer than this are compiled one at a time, and their code is counted."""
_CHARACTER_BYTES: Final = 130
_NO_TAGS: Final[dict[str, str]] = {}


class Query:
    """One query text, parsed and bound, or one syntax tree; executions are made from it."""

    __slots__ = (
        "_filter_paths",
        "_on_growth",
        "_variants",
        "builds",
        "filter_names",
        "filters_plainly",
        "gives_items",
        "leaves",
        "limits",
        "plain",
        "plan",
        "read_names",
        "size_bytes",
        "syntax",
        "text",
        "text_without_filter",
    )

    def __init__(
        self,
        text: str,
        limits: Limits,
        on_growth: Callable[[], None] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        """Raises what is wrong with the text, and with it what is wrong with its parameters where they are given."""
        self._bind(parse(text, limits), text, text, limits, on_growth, parameters)

    @classmethod
    def of_tree(cls, syntax: ast.Query, limits: Limits, on_growth: Callable[[], None] | None = None) -> Query:
        """The query of a syntax tree that a head made itself; its text is what the tree is printed as."""
        query = cls.__new__(cls)
        query._bind(syntax, checked_text(syntax, limits), "", limits, on_growth)
        return query

    def _bind(
        self,
        syntax: ast.Query,
        text: str,
        placed_text: str,
        limits: Limits,
        on_growth: Callable[[], None] | None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        """Binds a tree; ``placed_text`` is the text that its places are in, if they are in one."""
        self.text = text
        self._on_growth = on_growth
        self.size_bytes = _QUERY_BYTES + _CHARACTER_BYTES * len(text)
        """What the query takes in memory, at most: its trees, and the code of each shape of its parameters."""
        self.limits = limits
        self.syntax: ast.Query = syntax
        try:
            self.plan: plan.Plan = bind(syntax, limits, placed_text)
        except PleiadError:
            if parameters is not None:
                bind(syntax, limits, placed_text, parameters)
            raise
        _check_conditions(self.plan, limits)
        self._variants: dict[Any, Factory] = {}
        self._filter_paths: FilterPaths | None = None
        self.gives_items: bool = gives_items(self.plan)
        """Whether each result is an item as it is: SELECT * or SELECT VALUE of the root, without JOIN."""
        self.filters_plainly: bool = filters_plainly(self.plan)
        """Whether the filter reads only properties that clients wrote, and no item as a whole."""
        self.builds: bool = builds(self.plan.block)
        """Whether it may build large values."""
        self.leaves: int = leaves(self.plan)
        """How often the output may name a value of the item or of the text."""
        self.filter_names: frozenset[str] | None = filter_names(self.plan)
        """The top-level properties the filter names; None when it may read others too."""
        self.read_names: frozenset[str] | None = read_names(self.plan)
        """The properties of an item that it looks at; None when it may look at others too."""
        self.plain: Plainness = plainness(self.plan)
        """What of it is only named, and not evaluated."""
        self.text_without_filter: str | None = text_without_filter(self.syntax)
        """For a query in the form of an ordered query's plan, its text but for the filter; else None."""

    # -- what the query is -----------------------------------------------------------------------

    @property
    def block(self) -> plan.Block:
        """The outermost SELECT."""
        return self.plan.block

    @property
    def filter_paths(self) -> FilterPaths:
        """Which paths the filter compares; found out when somebody asks first."""
        if self._filter_paths is None:
            self._filter_paths = filter_paths(self.plan)
        return self._filter_paths

    @property
    def aliases(self) -> tuple[str, ...]:
        """The aliases that FROM and JOIN write or imply."""
        names: list[str] = []
        for source in self.syntax.sources:
            if source.alias is not None:
                names.append(source.alias)
            elif isinstance(source.collection, ast.Identifier | ast.Property):
                names.append(source.collection.name)
        return tuple(names)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters the text uses, each with its ``@``."""
        return self.plan.parameters

    @property
    def is_aggregate(self) -> bool:
        """Whether the rows are aggregated, with or without GROUP BY."""
        return self.block.is_grouped

    @property
    def group_by(self) -> tuple[plan.Expression, ...]:
        return self.block.group_by

    @property
    def order_by(self) -> tuple[plan.SortKey, ...]:
        return self.block.order_by

    @property
    def is_ranked(self) -> bool:
        """Whether ORDER BY RANK orders the rows, which needs all of them."""
        return self.block.rank is not None

    @property
    def ranks_text(self) -> bool:
        """Whether scores of texts order the rows, which need the statistics of those that the filter drops too."""
        rank = self.block.rank
        return rank is not None and any(component.is_full_text for component in rank.components)

    @property
    def distinct(self) -> bool:
        return self.block.distinct

    @property
    def reads_items(self) -> bool:
        """Whether the query ranges over items; without FROM it runs once."""
        return self.block.reads_items

    @property
    def is_per_item(self) -> bool:
        """Whether rows can be found item by item, so that pages stream and partitions merge."""
        return self.block.is_per_item

    # -- running ---------------------------------------------------------------------------------

    def execution(self, parameters: Mapping[str, Any], context: QueryContext) -> Execution:
        """One execution with these parameters."""
        return Execution(self, parameters, context)

    def run(
        self, items: Iterable[dict[str, Any]], parameters: Mapping[str, Any], context: QueryContext
    ) -> list[Any]:
        """The whole result over the items; undefined values are left out."""
        return Execution(self, parameters, context).run(items)

    def matches(self, item: dict[str, Any], parameters: Mapping[str, Any], context: QueryContext) -> bool:
        """Whether the item gives at least one row that passes the filter."""
        return Execution(self, parameters, context).matches(item)

    def factory(self, tags: dict[str, str], computed: tuple[str, ...]) -> Factory:
        """The compiled form for parameters of these types; kept, since few shapes of a text are used."""
        key = (*tags.values(), computed) if computed else tuple(tags.values())
        found = self._variants.get(key)
        if found is None:
            if len(self._variants) >= _VARIANTS_MAX:
                self.size_bytes -= sum(each.size_bytes for each in self._variants.values())
                self._variants.clear()
            found = self._variants[key] = compile_plan(self.plan, tags, computed)
            self.size_bytes += found.size_bytes
            if self._on_growth is not None:
                self._on_growth()
        return found


class Execution:
    """One run of a query: the compiled functions over its parameters and context."""

    __slots__ = (
        *("_functions", "_leaf_bytes", "block", "context", "limit", "offset", "parameters", "query", "top"),
    )

    def __init__(self, query: Query, parameters: Mapping[str, Any], context: QueryContext) -> None:
        self.query = query
        self.block = query.plan.block
        self.context = context
        self.parameters = parameters
        tags = _NO_TAGS
        if query.plan.parameters:
            tags = _tags(query.plan.parameters, parameters, context.limits)
            if not parameters_hold(query.plan.parameter_rules, parameters):
                bind(query.syntax, query.limits, query.text, parameters)
                raise errors.refusal("2206")
        computed: tuple[str, ...] = ()
        values: dict[str, Any] = {}
        if context.computed_properties:
            computed = tuple(name for name, _ in context.computed_properties)
            values = {name: _ComputedValue(each, context) for name, each in context.computed_properties}
        factory = query.factory(tags, computed)
        if len(query.text) > LONG_TEXT_CHARS:
            context.pace.share(query.size_bytes)
        self._functions = factory(parameters, context, values)
        self._leaf_bytes = len(query.text) + sum(map(size_of, parameters.values()))
        self.top = self._count("TOP", self.block.top)
        self.offset = self._count("OFFSET", self.block.offset)
        self.limit = self._count("LIMIT", self.block.limit)

    def _count(self, word: str, count: int | plan.Parameter | None) -> int | None:
        if isinstance(count, plan.Parameter):
            return check_count(word, self.parameters.get(count.name))
        return count

    # -- pieces ----------------------------------------------------------------------------------

    def rows(self, items: Iterable[dict[str, Any]]) -> Iterator[Row]:
        """The rows that pass the filter; a row is the values of the aliases."""
        found: Iterator[Row] = self._functions["rows"](items)
        return found

    def filter_rows(self, item: dict[str, Any]) -> Iterator[Row]:
        """The rows of one item; only meaningful when the query is per item."""
        found: Iterator[Row] = self._functions["rows"]((item,))
        return found

    def matches(self, item: dict[str, Any]) -> bool:
        """Whether the item gives at least one row."""
        match = self._functions.get("match")
        if match is not None:
            return bool(match(item))
        return next(self.filter_rows(item), None) is not None

    @property
    def placed(self) -> Callable[[Iterable[tuple[int, dict[str, Any]]]], Iterator[Any]] | None:
        """What gives, for items with their places, the place of each row that passes the filter.

        Behind it, where there are groups, come the keys of the row's group and the arguments of the aggregates, and
        where items are ordered plainly, what they are ordered by. None for queries that may look at all properties.
        """
        return self._functions.get("placed")

    def project(self, row: Row) -> Any:
        """The output of a row, or of a group's keys and aggregate results; UNDEFINED is to be left out."""
        return self._functions["project"](*row)

    def renderer(self, item_bytes: int) -> Callable[[Any], bytes]:
        """What makes the JSON text of an output of an item of that size.

        Only where the query names or builds so much that an output may be large is it measured first.
        """
        query = self.query
        if not query.builds and query.leaves * (item_bytes + self._leaf_bytes) <= MB:
            return text_of
        return partial(rendered, pace=self.context.pace)

    def values(self, items: Iterable[dict[str, Any]]) -> Iterator[Any]:
        """The outputs in scan order, DISTINCT within this call; not for grouped or ordered queries."""
        found: Iterator[Any] = self._functions["values"](items)
        return found

    def sort_key_values(self, row: Row) -> tuple[Any, ...]:
        """The values of the ORDER BY expressions; for a vector distance how near it is."""
        found: tuple[Any, ...] = self._functions["sort_keys"](*row)
        return found

    def order_key(self, row: Row) -> tuple[Any, ...]:
        """A key that sorts rows as ORDER BY asks, descending keys included, so that streams can be merged."""
        return tuple(
            Descending(order_key(value)) if key.descending else order_key(value)
            for key, value in zip(self.block.order_by, self._functions["sort_keys"](*row), strict=True)
        )

    def new_groups(self) -> Groups:
        """An empty state for ``add(row)``, ``merge(other)`` and ``finish``."""
        kinds = tuple(aggregate.kind for aggregate in self.block.aggregates)
        block, roles = self.block, self._functions
        _, arguments_at = shared_arguments(block)
        keys_count = len(block.group_by)
        return Groups(
            kinds, roles["keys"], roles["arguments"], self.context.pace.hold, keys_count, arguments_at
        )

    def finish(self, groups: Groups) -> list[Any]:
        """The result of the whole query from its groups; they come by their first rows where it asks for no order."""
        rows: list[Row] = list(groups.results())
        if self.block.order_by:
            rows = self.sorted_rows(rows)
        return self.outputs(rows)

    def new_ranking(self) -> Ranking:
        """An empty state for ``take(items)`` and ``best_first()``; only for ORDER BY RANK."""
        assert self.block.rank is not None
        return Ranking(self.block.rank, self.context, self.parameters, self._functions)

    def sorted_rows(self, rows: Iterable[Row]) -> list[Row]:
        """The rows as ORDER BY has them; ties keep scan order, reversed when the first key is DESC."""
        sort_keys, pace = self._functions["sort_keys"], self.context.pace
        decorated = []
        for row in rows:
            pace.hold(_SORTED_ROW_BYTES)
            decorated.append((tuple(map(order_key, sort_keys(*row))), row))
        directions = [key.descending for key in self.block.order_by]
        if directions[0]:
            decorated.reverse()
        if all(directions) or not any(directions):
            decorated = paced_sort(decorated, itemgetter(0), pace, directions[0])
        else:
            for number in reversed(range(len(directions))):
                key = _sort_key_at(number)
                decorated = paced_sort(decorated, key, pace, directions[number])
        return [row for _, row in decorated]

    def outputs(self, rows: Iterable[Row]) -> list[Any]:
        """Projection, DISTINCT, OFFSET and LIMIT or TOP over rows that are filtered, grouped and ordered."""
        project = self._functions["project"]
        values = (value for row in rows if (value := project(*row)) is not UNDEFINED)
        return self.slice(_distinct(values, self.context.pace) if self.block.distinct else values)

    def slice(self, values: Iterable[Any]) -> list[Any]:
        """What OFFSET and LIMIT or TOP leave of the values."""
        if self.limit is not None:
            start = self.offset or 0
            values = islice(values, start, start + self.limit)
        elif self.top is not None:
            values = islice(values, self.top)
        pace = self.context.pace
        found = []
        for value in values:
            pace.tick(1)
            pace.hold(size_of(value, RESULT_BYTES_MAX))
            found.append(value)
        return found

    # -- the whole -------------------------------------------------------------------------------

    def run(self, items: Iterable[dict[str, Any]]) -> list[Any]:
        """The whole result over the items."""
        try:
            return self._run(items)
        except RecursionError:
            raise errors.plain_error("The query works on values that are nested too deeply.") from None

    def _run(self, items: Iterable[dict[str, Any]]) -> list[Any]:
        block = self.block
        if block.is_grouped:
            groups = self.new_groups()
            for row in self.rows(items):
                groups.add(row)
            return self.finish(groups)
        if block.rank is not None:
            ranking = self.new_ranking()
            ranking.take(items)
            return self.outputs(ranking.best_first())
        if block.order_by:
            return self.outputs(self.sorted_rows(self.rows(items)))
        return self.slice(self.values(items))


def _check_conditions(bound: plan.Plan, limits: Limits) -> None:
    """Refuses more conditions than the account says a text may have."""
    counts = {"AND": 0, "OR": 0}
    for node in plan.walk(bound.block):
        if isinstance(node, plan.Chain) and node.operator in counts:
            counts[node.operator] += len(node.operands) - 1
            if counts[node.operator] > limits.query_conditions:
                raise errors.plain_error(
                    f"The SQL query exceeded the maximum number of {node.operator} conditions. "
                    f"The allowed limit is {limits.query_conditions}."
                )


def _sort_key_at(number: int) -> Callable[[tuple[Any, ...]], Any]:
    return lambda pair: pair[0][number]


def _distinct(values: Iterable[Any], pace: Pace) -> Iterator[Any]:
    seen: set[Any] = set()
    for value in values:
        key = hash_key(value)
        if key not in seen:
            pace.hold(size_of(value))
            seen.add(key)
            yield value


class _ComputedValue:
    """The value of a computed property of an item; compiled when it is first asked for."""

    __slots__ = ("_context", "_execution", "_query")

    def __init__(self, query: Query, context: QueryContext) -> None:
        self._query = query
        self._context = context
        self._execution: Execution | None = None

    def __call__(self, item: dict[str, Any]) -> Any:
        if self._execution is None:
            self._execution = Execution(self._query, {}, _without_computed(self._context))
        return next(iter(self._execution.values((item,))), UNDEFINED)


def _without_computed(context: QueryContext) -> QueryContext:
    return dataclasses.replace(context, udfs={}, computed_properties=())


def _tags(names: tuple[str, ...], parameters: Mapping[str, Any], limits: Limits) -> dict[str, str]:
    """The type of each parameter of the text; one without a value is undefined, one nested too deeply a 400."""
    tags: dict[str, str] = {}
    for name in names:
        value = parameters.get(name, UNDEFINED)
        if value.__class__ is list or value.__class__ is dict:
            _check_depth(name, value, limits.item_depth)
        tags[name] = tag_of(value)
    return tags


def _check_depth(name: str, value: Any, depth_max: int) -> None:
    level = [value]
    for _ in range(depth_max):
        level = [
            part
            for each in in_turns(level)
            for part in in_turns(each.values() if each.__class__ is dict else each)
            if part.__class__ is dict or part.__class__ is list
        ]
        if not level:
            return
    raise errors.plain_error(f"The value of the parameter '{name}' is nested deeper than {depth_max} levels.")
