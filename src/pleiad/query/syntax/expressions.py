"""Tokens to syntax tree: expressions, by precedence climbing.

One level of nesting costs two Python frames, so the nesting limit keeps the parser far from the
interpreter's own. Levels, loosest first: ``?:``, ``??`` (both to the right), BETWEEN, OR, AND, IN and LIKE (one of
them, and nothing tighter behind it), comparisons and shifts, ``||``, ``+ - & ^ |``, ``* / %``, prefix operators.
BETWEEN stands between two operands of comparisons: beside AND or OR it needs parentheses.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.query import errors
from pleiad.query.pace import worked
from pleiad.query.syntax import ast
from pleiad.query.syntax.tokens import Kind, Token, number_of
from pleiad.values.undefined import UNDEFINED

_COMPARISON, _CONCAT, _SUM, _PRODUCT = 1, 2, 3, 4
_POWERS: Final[dict[str, int]] = {
    **dict.fromkeys(("=", "!=", "<>", "<", "<=", ">", ">=", "<<", ">>", ">>>"), _COMPARISON),
    "||": _CONCAT,
    **dict.fromkeys(("+", "-", "&", "^", "|"), _SUM),
    **dict.fromkeys(("*", "/", "%"), _PRODUCT),
}
_DIGITS_MAX: Final = 400
_EXPRESSION_STEPS: Final = 8
_PREFIXES: Final = frozenset(("+", "-", "~", "NOT"))
_NUMBER_WORDS: Final = {"NaN": float("nan"), "Infinity": float("inf")}
_WORD_VALUES: Final = {"true": True, "false": False, "null": None, "undefined": UNDEFINED, **_NUMBER_WORDS}
_OPEN_SUBQUERIES: Final = {"ALL": None, "FIRST": ast.SubqueryKind.FIRST, "LAST": ast.SubqueryKind.LAST}


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
        if self.token.kind is Kind.BAD:
            raise self.unexpected()

    def advance(self) -> None:
        self.last_end = self.token.end
        self.position += 1
        self.token = token = self.tokens[self.position]
        if token.kind is Kind.BAD:
            raise self.unexpected()

    def peek(self, places: int = 1) -> Token:
        """A token after the current one."""
        return self.tokens[min(self.position + places, len(self.tokens) - 1)]

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
        """What is wrong with the current token: that it is none, that it is missing, or that it is here."""
        token = self.token
        if token.kind is Kind.BAD:
            return errors.query_error([token.value])
        if token.kind is Kind.END:
            return errors.refusal("SC1002", token.start, token.end)
        return errors.refusal("SC1001", token.start, token.end, token=self.text[token.start : token.end])

    def enter(self) -> None:
        self.nesting += 1
        if self.nesting > self.limits.query_nesting:
            raise self.too_deep()

    def leave(self) -> None:
        self.nesting -= 1

    def too_deep(self) -> PleiadError:
        """Nested deeper than the limit."""
        return errors.refusal("SC1030", self.token.start, self.token.end)


class ExpressionParser(TokenCursor):
    """The expression grammar; the statement grammar adds ``query``."""

    if TYPE_CHECKING:

        def query(self) -> ast.Query: ...

    def expression_list(self) -> tuple[ast.Expression, ...]:
        """One or more expressions between commas."""
        items = [self.expression()]
        while self.accept(","):
            items.append(self.expression())
        return tuple(items)

    def expression(self) -> ast.Expression:
        """A whole expression: a conditional, ``??``, or what is tighter."""
        self.enter()
        start = self.token.start
        left = self._coalesced(start)
        if self.token.word == "?":
            self.advance()
            then = self.expression()
            self.expect(":")
            left = ast.Conditional(left, then, self.expression(), start=start, end=self.last_end)
        self.leave()
        return left

    def _coalesced(self, start: int) -> ast.Expression:
        parts = [self._condition()]
        while self.accept("??"):
            parts.append(self._condition())
        right = parts.pop()
        while parts:
            right = ast.Binary("??", parts.pop(), right, start=start, end=self.last_end)
        return right

    def _condition(self) -> ast.Expression:
        """A chain of OR, or one BETWEEN."""
        start = self.token.start
        left = self._operation(_COMPARISON)
        if self.token.word == "BETWEEN" or (self.token.word == "NOT" and self.peek().word == "BETWEEN"):
            is_negated = self.accept("NOT")
            self.advance()
            low = self._operation(_COMPARISON)
            self.expect("AND")
            high = self._operation(_COMPARISON)
            return ast.Between(left, low, high, is_negated, start=start, end=self.last_end)
        left = self._conjunction(self._predicate(left, start), start)
        if self.token.word != "OR":
            return left
        operands = [left]
        while self.accept("OR"):
            begin = self.token.start
            operand = self._predicate(self._operation(_COMPARISON), begin)
            operands.append(self._conjunction(operand, begin))
        return ast.Chain("OR", tuple(operands), start=start, end=self.last_end)

    def _conjunction(self, left: ast.Expression, start: int) -> ast.Expression:
        if self.token.word != "AND":
            return left
        operands = [left]
        while self.accept("AND"):
            begin = self.token.start
            operands.append(self._predicate(self._operation(_COMPARISON), begin))
        return ast.Chain("AND", tuple(operands), start=start, end=self.last_end)

    def _predicate(self, left: ast.Expression, start: int) -> ast.Expression:
        """IN or LIKE after its left side, with or without NOT, where one stands here."""
        word = self.token.word
        if word not in ("IN", "LIKE", "NOT"):
            return left
        negated = self.accept("NOT")
        if self.accept("IN"):
            opened = self.token.start
            self.expect("(")
            items = self.expression_list()
            self.expect(")")
            if len(items) > self.limits.query_in_items:
                raise errors.refusal("SC3004", opened, self.last_end, limit=self.limits.query_in_items)
            return ast.In(left, items, negated, start=start, end=self.last_end)
        if self.accept("LIKE"):
            pattern = self._operation(_COMPARISON)
            escape: str | None = None
            escape_place: ast.Place = (0, 0)
            if self.accept("ESCAPE"):
                token = self.token
                if token.kind is not Kind.STRING:
                    raise self.unexpected()
                escape, escape_place = token.value, (token.start, token.end)
                self.advance()
            return ast.Like(left, pattern, escape, negated, escape_place, start=start, end=self.last_end)
        raise self.unexpected()

    def _operation(self, power: int) -> ast.Expression:
        """Operators from a level on: comparisons, ``||``, sums, products, prefixes."""
        worked(_EXPRESSION_STEPS)
        start = self.token.start
        left = self._prefixed()
        while True:
            word = self.token.word
            binding = _POWERS.get(word, 0)
            if binding < power:
                return left
            if binding == _CONCAT:
                operands = [left]
                while self.accept("||"):
                    operands.append(self._operation(_SUM))
                left = ast.Chain("||", tuple(operands), start=start, end=self.last_end)
                continue
            self.advance()
            right = self._operation(binding + 1)
            operator = "!=" if word == "<>" else word
            left = ast.Binary(operator, left, right, start=start, end=self.last_end)

    def _prefixed(self) -> ast.Expression:
        """Prefix operators, then a primary with its members."""
        prefixes: list[Token] = []
        while self.token.word in _PREFIXES:
            prefixes.append(self.token)
            self.advance()
            if len(prefixes) > self.limits.query_nesting:
                raise self.too_deep()
        token = self.token
        start = token.start
        operand: ast.Expression
        is_negative = bool(prefixes) and prefixes[-1].word == "-" and prefixes[-1].end == start
        written = self.text[token.start : token.end]
        if is_negative and (token.kind is Kind.NUMBER or written in _NUMBER_WORDS):
            start = prefixes.pop().start
            self.advance()
            value = -_NUMBER_WORDS[written] if written in _NUMBER_WORDS else _negative(written)
            operand = ast.Literal(value, start=start, end=token.end)
        else:
            operand = self.primary()
        while self.token.word == "." or self.token.word == "[":
            operand = self.postfix(operand, start)
        for prefix in reversed(prefixes):
            operand = ast.Unary(prefix.word, operand, start=prefix.start, end=self.last_end)
        return operand

    def postfix(self, target: ast.Expression, start: int) -> ast.Expression:
        """One member access after a target."""
        worked(_EXPRESSION_STEPS)
        if self.accept("."):
            begin = self.token.start
            name = self.name()
            return ast.Property(target, name, False, begin, start=start, end=self.last_end)
        self.expect("[")
        begin = self.token.start
        index = self.expression()
        self.expect("]")
        if isinstance(index, ast.Literal) and isinstance(index.value, str):
            return ast.Property(target, index.value, True, begin, start=start, end=self.last_end)
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
        return self.keyword_call()

    def keyword_call(self) -> ast.FunctionCall:
        """A call whose name is a reserved word: LEFT, RIGHT, or a user-defined function."""
        token = self.token
        if token.word in ("LEFT", "RIGHT"):
            self.advance()
            return self._call(token.word, token.start, token.end, False)
        if token.word == "udf":
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
            return ast.Identifier(token.value, start=token.start, end=token.end)
        if self.peek().word == "SELECT":
            return self._open_subquery(token)
        return self._call(token.value, token.start, token.end, False)

    def _open_subquery(self, token: Token) -> ast.Expression:
        word = token.value.upper()
        self.advance()
        query = self.query()
        if word not in _OPEN_SUBQUERIES or not self.at(")"):
            raise self.unexpected()
        self.advance()
        place = {"start": token.start, "end": self.last_end}
        kind = _OPEN_SUBQUERIES[word]
        if kind is not None:
            return ast.Subquery(kind, query, **place)
        where = ast.Literal(True) if query.where is None else query.where
        opposite = dataclasses.replace(query, where=ast.Unary("NOT", where))
        return ast.Unary("NOT", ast.Subquery(ast.SubqueryKind.EXISTS, opposite, **place), **place)

    def _call(self, name: str, start: int, name_end: int, is_udf: bool) -> ast.FunctionCall:
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
        following = self.peek()
        self.advance()
        if following.word == "SELECT":
            query = self.query()
            self.expect(")")
            return ast.Subquery(ast.SubqueryKind.SCALAR, query, start=query.start, end=query.end)
        is_let = following.kind is Kind.NAME and following.value.upper() == "LET"
        inner = self._let() if is_let and self.peek().kind is Kind.NAME else self.expression()
        self.expect(")")
        return inner

    def _let(self) -> ast.Expression:
        start = self.token.start
        self.advance()
        token = self.token
        if token.value.upper() == "LET":
            raise self.unexpected()
        self.advance()
        self.expect("=")
        value = self._operation(_COMPARISON)
        self.expect("IN")
        body = self._operation(_COMPARISON)
        place = (token.start, token.end)
        return ast.Let(token.value, value, body, place, start=start, end=self.last_end)

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
        places: list[ast.Place] = []
        while True:
            if not properties and self.accept("}"):
                break
            token = self.token
            if token.kind not in (Kind.STRING, Kind.NAME):
                raise self.unexpected()
            self.advance()
            self.expect(":")
            properties.append((token.value, self.expression()))
            places.append((token.start, token.end))
            if self.accept("}"):
                break
            self.expect(",")
        return ast.ObjectLiteral(tuple(properties), tuple(places), start=start, end=self.last_end)


def _negative(raw: str) -> int | float:
    """The number of a token right behind its minus sign; so the least integer can be written."""
    if raw.isdigit() and int(raw[:_DIGITS_MAX]) == 2**63 and len(raw) <= _DIGITS_MAX:
        return -(2**63)
    value = number_of(raw)
    assert value is not None
    return -value
