"""The parameters of a query as a client lists them: names that begin with @, each given once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pleiad.query import errors
from pleiad.query.bind.vector_options import option_problems
from pleiad.query.plan import ParameterRule
from pleiad.query.syntax.parser import count_problem
from pleiad.query.values import is_number

_NAME: Final = re.compile(r"@[^\W\d]\w*")


def parameter_values(given: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The values by name; a wrong name and a name given twice are errors even when the text does not use them.

    A parameter without a value is undefined, so it is left out.
    """
    values: dict[str, Any] = {}
    seen: set[str] = set()
    for parameter in given:
        name = parameter["name"]
        if not _NAME.fullmatch(name):
            raise errors.plain_error(
                f"Invalid query. Specified parameter name '{name}' is invalid. Parameter names should be in the "
                "format of symbol '@' followed by a valid identifier. E.g. @param1"
            )
        if name in seen:
            raise errors.plain_error(f"Invalid query. Specified duplicate parameter name '{name}'.")
        seen.add(name)
        if "value" in parameter:
            values[name] = parameter["value"]
    return values


def parameters_hold(rules: Sequence[ParameterRule], values: Mapping[str, Any]) -> bool:
    """Whether parameters are right where only some values may stand: counts, brackets, flags, vectors."""
    return not any(True for rule in rules for _ in parameter_problems(rule, values.get(rule.name)))


def parameter_problems(rule: ParameterRule, value: Any) -> Iterator[errors.Complaint]:
    """What is wrong with the value of a parameter where it stands."""
    kind = type(value)
    if rule.row in ("TOP", "OFFSET", "LIMIT"):
        problem = count_problem(rule.row, value, rule.start, rule.end)
        if problem is not None:
            yield problem
    elif rule.row == "2206":
        if kind is not list or not all(map(is_number, value)):
            yield errors.complaint(rule.row)
    elif rule.row == "SC2210 object" and kind is dict:
        for name, option in value.items():
            for row, facts in option_problems(name, option):
                yield errors.complaint(row, rule.start, rule.end, **facts)
    elif not (rule.row == "SC2990" and kind in (str, int, float)) and not (
        rule.row == "SC2212" and kind is bool
    ):
        yield errors.complaint(rule.row, rule.start, rule.end)
