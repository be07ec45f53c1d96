"""Partition keys on the command line: how they are written, found in items and shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from pleiad.cli.view.table import json_text, shown

if TYPE_CHECKING:
    from pleiad.keys.definition import KeyDefinition

MISSING: dict[str, Any] = {}
"""What stands for a value that an item does not have."""

KEY_HELP = (
    "The value of the partition key: a text as it is, or JSON, such as 5, '\"5\"' or null; "
    "of a hierarchical key a JSON list with a value for each level."
)


def key_values(context: click.Context, option: click.Parameter, text: str | None) -> list[Any] | None:
    """The option --partition-key: JSON, or a plain text, as the list of its values."""
    if text is None:
        return None
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return [text]
    values = value if isinstance(value, list) else [value]
    for each in values:
        if isinstance(each, list) or (isinstance(each, dict) and each):
            raise click.BadParameter(
                "each value of a partition key is a text, a number, true, false, null, or {} for none"
            )
    return values


def _refuse(word: str) -> Any:
    raise ValueError(word)


def definition_of(container: Mapping[str, Any]) -> KeyDefinition:
    """The partition key of a container as it was read."""
    # Here and not above: most verbs need none of it, and making it takes a fifth of their start.
    from pleiad.keys.definition import KeyDefinition
    from pleiad.limits import Limits

    return KeyDefinition.from_json(container["partitionKey"], Limits())


def key_of(definition: KeyDefinition, item: Mapping[str, Any]) -> list[Any]:
    """The key values of an item."""
    from pleiad.values.undefined import UNDEFINED

    return [MISSING if value is UNDEFINED else value for value in definition.extract(item)]


def key_text(values: list[Any]) -> str:
    """A key as a person writes it: one value alone, several as a list; what is missing says so."""
    texts = ["(none)" if value == MISSING else json_text(value) for value in values]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def paths_text(definition: KeyDefinition) -> str:
    return ", ".join(map(shown, definition.paths))
