"""Tokens to syntax tree: expressions, by precedence climbing.

One level of nesting costs two Python frames, so the nesting limit keeps the parser far from the
interpreter's own. Binding powers, loosest first: ``?:``, ``??``, OR, AND, IN/LIKE/BETWEEN, ``||``, ``|``,
``^``, ``&``, equality, relation, shift, sum, product, prefix operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pleiad.errors import PleiadError
from pleiad.keys.undefined import UNDEFINED
from pleiad.limits import Limits
from pleiad.query import ast, errors
from pleiad.query.pace import worked
from pleiad.query.tokens import Kind, Token

_CONDITIONAL, _COALESCE, _OR, _AND, _PREDICATE, _CONCAT = 1, 2, 3, 4, 5, 6
_POWERS: Final[dict[str, int]] = {
    "?": _CONDITIONAL,
    "??": _COALESCE,
    "OR": _OR,
    "AND": _AND,
    "IN": _PREDICATE,
    "LIKE": _PREDICATE,
    "BETWEEN": _PREDICATE,
    "NOT": _PREDICATE,
    "||": _CONCAT,
    "|": 7,
    "^": 8,
    "&": 9,
    "=": 10,
    "!=": 10,
    "<>": 10,
    "<": 11,
    "<=": 11,
    ">": 11,
    ">=": 11,
    "<<": 12,
    ">>": 12,
    ">>>": 12,
    "+": 13,
    "-": 13,
    "*": 14,
    "/": 14,
    "%": 14,
}
_EXPRESSION_STEPS: Final = 8
_PREFIXES: Final = frozenset(("+", "-", "~", "NOT"))
_WORD_VALUES: Final = {"true": True, "false": False, "null": None, "undefined": UNDEFINED}
_NUMBER_WORDS: Final = {"NaN": float("nan"), "Infinity": float("inf")}
_OPEN_SUBQUERIES: Final = {
    "ALL": ast.SubqueryKind.ALL,
    "FIRST": ast.SubqueryKind.FIRST,
    "LAST": ast.SubqueryKind.LAST,
}


class TokenCursor:
    """The token list with a place in it, and the nesting depth."""

    def __init__(self, text: str, tokens: list[Token], limits: Limits) -> None:
        self.text = text
        self.tokens = tokens
        self.limits = limits
        self.position = 0
        self.token = tokens[0]
        self.last_end = 0
        self.nesting = 0
        self.join_count = 0

    def advance(self) -> None:
        self.last_end = self.token.end
        self.position += 1
        self.token = self.tokens[self.position]

    def peek(self) -> Token:
        """The token after the current one."""
        return self.tokens[min(self.position + 1, len(self.tokens) - 1)]

    def at(self, word: str) -> bool:
        return self.token.word == word

    def accept(self, word: str) -> bool:
        if self.token.word != word:
            return False
        self.advance()
        return True

    def expect(self, word: str) -> None:
        if self.token.word != word:
            raise self.unexpected()
        self.advance()

    def name(self) -> str:
        """The identifier here; reserved words are not identifiers."""
        if self.token.kind is not Kind.NAME:
            raise self.unexpected()
        value: str = self.token.value
        self.advance()
        return value

    def unexpected(self) -> PleiadError:
        """SC1001 at the current token; at the end of the text the last token is named."""
        token = self.token
        if token.kind is Kind.END and self.position > 0:
            token = self.tokens[self.position - 1]
        return errors.syntax_error(self.text[token.start : token.end], token.start, token.end)

    def enter(self) -> None:
        self.nesting += 1
        if self.nesting > self.limits.query_nesting:
            raise self.too_deep()

    def leave(self) -> None:
        self.nesting -= 1

    def too_deep(self) -> PleiadError:
        """SC1003: nested deeper than the limit."""
        return errors.complain(
            "SC1003",
            f"The query is nested deeper than the {self.limits.query_nesting} levels allowed.",
            self.token.start,
            self.token.end,
        )


class ExpressionParser(TokenCursor):
    """The expression part of the grammar; the statement part adds ``query``."""

    if TYPE_CHECKING:

        def query(self) -> ast.Query: ...

    def expression_list(self) -> tuple[ast.Expression, ...]:
        """One or more expressions separated by commas."""
        items = [self.expression()]
        while self.accept(","):
            items.append(self.expression())
        return tuple(items)

    def expression(self, power: int = _CONDITIONAL) -> ast.Expression:
        """An expression whose operators bind at least as tightly as ``power``."""
        self.enter()
        worked(_EXPRESSION_STEPS)
        start = self.token.start
        left = self._prefixed()
        is_predicate = False
        while True:
            word = self.token.word
            binding = _POWERS.get(word, 0)
            if binding < power or binding == 0:
                break
            if binding == _PREDICATE:
                if is_predicate:
                    raise self.unexpected()
                left = self._predicate(left, start)
                is_predicate = True
                continue
            is_predicate = False
            if binding in (_AND, _OR, _CONCAT):
                operands = [left]
                while self.accept(word):
                    operands.append(self.expression(binding + 1))
                left = ast.Chain(word, tuple(operands), start=start, end=self.last_end)
                continue
            self.advance()
            if binding == _CONDITIONAL:
                then = self.expression()
                self.expect(":")
                left = ast.Conditional(left, then, self.expression(), start=start, end=self.last_end)
                continue
            right = self.expression(binding + 1)
            operator = "!=" if word == "<>" else word
            left = ast.Binary(operator, left, right, start=start, end=self.last_end)
        self.leave()
        return left

    def _prefixed(self) -> ast.Expression:
        """Prefix operators, then a primary with its members."""
        prefixes: list[Token] = []
        while self.token.word in _PREFIXES:
            prefixes.append(self.token)
            self.advance()
            if len(prefixes) > self.limits.query_nesting:
                raise self.too_deep()
        if prefixes and self._is_sign_of_number(prefixes[-1]):
            sign = prefixes.pop()
            value = -self.token.value
            self.advance()
            operand: ast.Expression = ast.Literal(value, start=sign.start, end=self.last_end)
        else:
            start = self.token.start
            operand = self.primary()
            while self.token.word == "." or self.token.word == "[":
                operand = self.postfix(operand, start)
        for prefix in reversed(prefixes):
            operand = ast.Unary(prefix.word, operand, start=prefix.start, end=self.last_end)
        return operand

    def _is_sign_of_number(self, prefix: Token) -> bool:
        token = self.token
        return prefix.word == "-" and token.kind is Kind.NUMBER and token.start == prefix.end

    def _predicate(self, left: ast.Expression, start: int) -> ast.Expression:
        """IN, LIKE or BETWEEN after its left side, with or without NOT."""
        negated = self.accept("NOT")
        if self.accept("IN"):
            self.expect("(")
            opened = self.last_end - 1
            items = self.expression_list()
            self.expect(")")
            if len(items) > self.limits.query_in_items:
                raise errors.complain(
                    "SC2990",
                    f"An IN list has more than the {self.limits.query_in_items} items allowed.",
                    opened,
                    self.last_end,
                )
            return ast.In(left, items, negated, start=start, end=self.last_end)
        if self.accept("LIKE"):
            pattern = self.expression(_CONCAT)
            escape = self._escape() if self.accept("ESCAPE") else None
            return ast.Like(left, pattern, escape, negated, start=start, end=self.last_end)
        if self.accept("BETWEEN"):
            low = self.expression(_CONCAT)
            self.expect("AND")
            high = self.expression(_CONCAT)
            return ast.Between(left, low, high, negated, start=start, end=self.last_end)
        raise self.unexpected()

    def _escape(self) -> str:
        token = self.token
        if token.kind is not Kind.STRING or len(token.value) != 1:
            raise self.unexpected()
        self.advance()
        value: str = token.value
        return value

    def postfix(self, target: ast.Expression, start: int) -> ast.Expression:
        """One member access after a target."""
        if self.accept("."):
            name = self.name()
            return ast.Property(target, name, start=start, end=self.last_end)
        self.expect("[")
        index = self.expression()
        self.expect("]")
        if isinstance(index, ast.Literal) and isinstance(index.value, str):
            return ast.Property(target, index.value, True, start=start, end=self.last_end)
        return ast.Element(target, index, start=start, end=self.last_end)

    def primary(self) -> ast.Expression:
        """A literal, name, call, constructor, or something in parentheses."""
        token = self.token
        if token.kind is Kind.NAME:
            return self._named()
        if token.kind is Kind.STRING or token.kind is Kind.NUMBER:
            self.advance()
            return ast.Literal(token.value, start=token.start, end=token.end)
        if token.kind is Kind.PARAMETER:
            self.advance()
            return ast.Parameter(token.value, start=token.start, end=token.end)
        word = token.word
        if word == "(":
            return self._parenthesised()
        if word == "[":
            return self._array()
        if word == "{":
            return self._object()
        if word in _WORD_VALUES:
            self.advance()
            return ast.Literal(_WORD_VALUES[word], start=token.start, end=token.end)
        if word in ("EXISTS", "ARRAY"):
            self.advance()
            return self._subquery(ast.SubqueryKind(word), token.start)
        if word in ("LEFT", "RIGHT"):
            self.advance()
            return self._call(token.value, token.start, token.end, False)
        if word == "udf":
            self.advance()
            self.expect(".")
            name = self.name()
            return self._call(name, token.start, self.last_end, True)
        raise self.unexpected()

    def _named(self) -> ast.Expression:
        """An identifier, a function call, or ALL/FIRST/LAST before a subquery."""
        token = self.token
        self.advance()
        if not self.at("("):
            if token.value in _NUMBER_WORDS:
                return ast.Literal(_NUMBER_WORDS[token.value], start=token.start, end=token.end)
            return ast.Identifier(token.value, start=token.start, end=token.end)
        kind = _OPEN_SUBQUERIES.get(token.value.upper())
        if kind is not None and self.peek().word == "SELECT":
            return self._subquery(kind, token.start)
        return self._call(token.value, token.start, token.end, False)

    def _call(self, name: str, start: int, name_end: int, is_udf: bool) -> ast.Expression:
        self.expect("(")
        arguments: tuple[ast.Expression, ...] = ()
        if not self.at(")"):
            arguments = self.expression_list()
        self.expect(")")
        return ast.FunctionCall(name, arguments, is_udf, name_end, start=start, end=self.last_end)

    def _subquery(self, kind: ast.SubqueryKind, start: int) -> ast.Expression:
        self.expect("(")
        query = self.query()
        self.expect(")")
        return ast.Subquery(kind, query, start=start, end=self.last_end)

    def _parenthesised(self) -> ast.Expression:
        start = self.token.start
        if self.peek().word == "SELECT":
            return self._subquery(ast.SubqueryKind.SCALAR, start)
        self.advance()
        inner = self.expression()
        self.expect(")")
        return inner

    def _array(self) -> ast.Expression:
        start = self.token.start
        self.expect("[")
        items: tuple[ast.Expression, ...] = ()
        if not self.at("]"):
            items = self.expression_list()
        self.expect("]")
        return ast.ArrayLiteral(items, start=start, end=self.last_end)

    def _object(self) -> ast.Expression:
        start = self.token.start
        self.expect("{")
        properties: list[tuple[str, ast.Expression]] = []
        while True:
            if not properties and self.accept("}"):
                break
            token = self.token
            if token.kind not in (Kind.STRING, Kind.NAME):
                raise self.unexpected()
            self.advance()
            self.expect(":")
            properties.append((token.value, self.expression()))
            if self.accept("}"):
                break
            self.expect(",")
        return ast.ObjectLiteral(tuple(properties), start=start, end=self.last_end)
