"""Rewrites of the syntax tree for clients that merge partitions: rows with sort values and _rid."""

from __future__ import annotations

import dataclasses
from typing import Final

from pleiad.query import errors
from pleiad.query.syntax import ast
from pleiad.query.syntax.outputs import output_names
from pleiad.query.syntax.print import is_plain_name, print_query

ORDER_FILTER: Final = "documentdb-formattableorderbyquery-filter"


def payload_of(syntax: ast.Query) -> ast.Expression:
    """The projection as one expression."""
    selection = syntax.selection
    if isinstance(selection, ast.SelectValue):
        return selection.expression
    if isinstance(selection, ast.SelectList):
        names = output_names(selection)
        pairs = zip(names, [item.expression for item in selection.items], strict=True)
        return ast.ObjectLiteral(tuple(pairs))
    return ast.Identifier(root_name(syntax))


def root_name(syntax: ast.Query) -> str:
    """The name whose _rid the rewritten query selects: of the item behind a path, else of the first source."""
    source = syntax.sources[0]
    collection = source.collection
    if isinstance(collection, ast.Query) and source.iterates and collection.sources:
        return root_name(collection)
    base = collection
    while isinstance(base, ast.Property | ast.Element):
        base = base.target
    if isinstance(base, ast.Identifier) and (base is not collection or source.iterates):
        is_own = source.alias is not None and not source.iterates
        return source.alias if is_own and source.alias is not None else base.name
    if source.alias is not None:
        return source.alias
    if isinstance(collection, ast.Identifier) and is_plain_name(collection.name):
        return collection.name
    raise errors.plain_error("The first source of FROM needs an alias for a query with ORDER BY.")


def ordered_rewrite(syntax: ast.Query) -> ast.Query:
    """The query for rows with their _rid and sort values, with room for a client's resume filter."""
    parts = tuple(ast.ObjectLiteral((("item", item.expression),)) for item in syntax.order_by)
    payload = payload_of(syntax)
    items = (
        ast.SelectItem(ast.Property(ast.Identifier(root_name(syntax)), "_rid")),
        ast.SelectItem(ast.ArrayLiteral(parts), "orderByItems"),
        ast.SelectItem(payload, "payload"),
    )
    where = with_filter(syntax.where)
    if syntax.group_by:
        groups = group_items(syntax).expression
        payload = ast.ObjectLiteral((("groupByItems", groups), ("payload", payload)))
        items = (*items[:2], ast.SelectItem(payload, "payload"))
    elif isinstance(syntax.selection, ast.SelectValue):
        where = ast.Chain("AND", (where, ast.FunctionCall("IS_DEFINED", (payload,))))
    return dataclasses.replace(syntax, selection=ast.SelectList(items), where=where, distinct=False)


def group_items(syntax: ast.Query) -> ast.SelectItem:
    """The keys of a group as a client reads them."""
    parts = tuple(ast.ObjectLiteral((("item", key),)) for key in syntax.group_by)
    return ast.SelectItem(ast.ArrayLiteral(parts), "groupByItems")


def with_filter(where: ast.Expression | None) -> ast.Expression:
    """The filter with the place for the client's own condition."""
    place = ast.Placeholder(f"({{{ORDER_FILTER}}})")
    return place if where is None else ast.Chain("AND", (where, place))


def text_without_filter(syntax: ast.Query) -> str | None:
    """The text of a query that selects rows as `ordered_rewrite` has them, without its filter."""
    selection = syntax.selection
    if not syntax.order_by or not isinstance(selection, ast.SelectList) or len(selection.items) != 3:
        return None
    first, *others = selection.items
    is_rid = isinstance(first.expression, ast.Property) and first.expression.name == "_rid"
    if not is_rid or [item.alias for item in others] != ["orderByItems", "payload"]:
        return None
    return print_query(dataclasses.replace(syntax, where=None))
