"""The names of what a select list gives."""

from __future__ import annotations

from pleiad.query.syntax import ast


def output_name(node: ast.Expression) -> str | None:
    """The name that an output has by its own expression: the last property of a path."""
    return node.name if isinstance(node, ast.Property | ast.Identifier) else None


def output_names(selection: ast.SelectList) -> list[str]:
    """The names of a select list: alias, last property of a path, or ``$1``, ``$2`` for others and an empty alias."""
    names: list[str] = []
    unnamed = 0
    for item in selection.items:
        if item.alias:
            name = item.alias
        elif item.alias is None and (last := output_name(item.expression)) is not None:
            name = last
        else:
            unnamed += 1
            name = f"${unnamed}"
        names.append(name)
    return names
