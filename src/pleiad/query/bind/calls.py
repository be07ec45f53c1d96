"""Rules of calls that are checked when a query is bound: known names, argument counts, and the arguments that the
service wants to see as literals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pleiad.query.bind.vector_options import option_problems
from pleiad.query.functions.dates import is_timespan
from pleiad.query.functions.registry import Function
from pleiad.query.syntax import ast
from pleiad.values.undefined import UNDEFINED

if TYPE_CHECKING:
    from pleiad.query.bind.expressions import ExpressionBinder

FULL_TEXT_SCORE: Final = "FULLTEXTSCORE"
FUSIONS: Final = ("RRF", "COMBINEDSCORE")


def count_text(low: int, high: int | None) -> str:
    """How the service writes the number of arguments that a function takes."""
    if high is None:
        return f"at least {low}"
    return str(low) if high == low else f"{low} to {high}"


class CallRules:
    """Checks calls and complains to their binder."""

    def __init__(self, binder: ExpressionBinder) -> None:
        self._binder = binder
        self._checks: dict[str, Callable[[ast.FunctionCall], bool]] = {
            "NOW": self._span,
            "AGO": self._span,
            "DATETIMEADD": self._span,
            "HASH": self._hash,
            "GENERATEEMBEDDINGS": self._embeddings,
            "VECTORDISTANCE": self.vector_distance,
        }

    def hold(self, node: ast.FunctionCall, function: Function | None) -> bool:
        """Whether the call, whose arguments are bound already, is one that can be made here."""
        binder = self._binder
        if function is None:
            if node.name.upper() == FULL_TEXT_SCORE:
                if self.counts(node, 2, None):
                    binder.complain("SC2240", node)
                return False
            binder.complain("SC2005", (node.start, node.name_end), name=node.name)
            return False
        if not self.counts(node, function.min_args, function.max_args):
            return False
        check = self._checks.get(function.name)
        return check is None or check(node)

    def counts(self, node: ast.FunctionCall, low: int, high: int | None) -> bool:
        """Whether the call has a legal number of arguments."""
        given = len(node.arguments)
        if given >= low and (high is None or given <= high):
            return True
        self._binder.complain("SC2050", node, name=node.name, count=count_text(low, high))
        return False

    def _span(self, node: ast.FunctionCall) -> bool:
        """NOW, AGO and DATETIMEADD with a span take it as a string literal that begins with digits."""
        spans = {"NOW": 1, "AGO": 1, "DATETIMEADD": 2}
        if len(node.arguments) != spans[node.name.upper()]:
            return True
        first = node.arguments[0]
        if isinstance(first, ast.Literal) and is_timespan(first.value):
            return True
        self._binder.complain("SC2053", node)
        return False

    def _hash(self, node: ast.FunctionCall) -> bool:
        is_legal = True
        for row, argument, least in zip(("SC2051", "SC2052"), node.arguments[1:], (1, 0), strict=False):
            value = argument.value if isinstance(argument, ast.Literal) else None
            # No modulo may be asked for in front of a seed.
            if value is UNDEFINED and argument is node.arguments[1] and len(node.arguments) == 3:
                continue
            if type(value) is not int or abs(value) < least:
                self._binder.complain(row, argument)
                is_legal = False
        return is_legal

    def _embeddings(self, node: ast.FunctionCall) -> bool:
        argument = node.arguments[0]
        if isinstance(argument, ast.Literal) and type(argument.value) is str:
            return True
        self._binder.complain("SC2216", argument)
        return False

    # -- VectorDistance --------------------------------------------------------------------------

    def vector_distance(self, node: ast.FunctionCall) -> bool:
        """The third argument is true or false, the fourth an object of known options."""
        binder = self._binder
        before = len(binder.complaints)
        if len(node.arguments) > 2:
            third = node.arguments[2]
            if isinstance(third, ast.Parameter):
                binder.rule("SC2212", third.name, third.start, third.end)
            elif not isinstance(third, ast.Literal) or type(third.value) is not bool:
                binder.complain("SC2212", third)
        if len(node.arguments) > 3 and len(binder.complaints) == before:
            options = node.arguments[3]
            if isinstance(options, ast.ObjectLiteral):
                for name, value in options.properties:
                    known = value.value if isinstance(value, ast.Literal) else None
                    for row, facts in option_problems(name, known):
                        binder.complain(row, options, **facts)
            elif isinstance(options, ast.Parameter):
                binder.rule("SC2210 object", options.name, options.start, options.end)
            else:
                binder.complain("SC2210 object", options)
        return len(binder.complaints) == before
