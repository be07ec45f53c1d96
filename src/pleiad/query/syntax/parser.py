"""Tokens to syntax tree: statements. Expressions are in ``expressions``.

The grammar is fixed in clause order. Nesting of parentheses, calls and subqueries is bounded by
``limits.query_nesting``, the length of the text by ``limits.query_text_bytes``; every failure is a 400
with the place in the text.
"""

from __future__ import annotations

from typing import Final

from pleiad.limits import Limits
from pleiad.query import errors
from pleiad.query.syntax import ast
from pleiad.query.syntax.expressions import ExpressionParser
from pleiad.query.syntax.tokens import Kind, tokenize

COUNT_MAX: Final = 4_294_967_295
_COUNT_ROWS: Final = {"TOP": "SC2060", "LIMIT": "SC2061", "OFFSET": "SC2062"}
DEPTH_SLACK: Final = 64
"""A tree is deeper than its parentheses by the operators between them."""


class Parser(ExpressionParser):
    """Recursive descent over one token list."""

    def statement(self) -> ast.Query:
        """The whole text as one query."""
        query = self.query()
        if self.token.kind is not Kind.END:
            raise self.unexpected()
        return query

    def query(self) -> ast.Query:
        """One SELECT statement, at the top or in parentheses."""
        self.enter()
        start = self.token.start
        self.expect("SELECT")
        distinct = self.accept("DISTINCT")
        top: ast.Count | None = None
        top_place = group_place = order_place = cut_place = (0, 0)
        begin = self.token.start
        if self.accept("TOP"):
            top = self._top()
            top_place = (begin, self.last_end)
        selection = self._selection()
        sources = self._sources() if self.accept("FROM") else ()
        where = self.expression() if self.accept("WHERE") else None
        group_by: tuple[ast.Expression, ...] = ()
        begin = self.token.start
        if self.accept("GROUP"):
            self.expect("BY")
            group_by = self.expression_list()
            group_place = (begin, self.last_end)
        begin = self.token.start
        order_by, is_rank = self._order_by()
        if order_by:
            order_place = (begin, self.last_end)
        offset = limit = None
        begin = self.token.start
        if self.accept("OFFSET"):
            offset = self._count()
            self.expect("LIMIT")
            limit = self._count()
            cut_place = (begin, self.last_end)
        self.leave()
        return ast.Query(
            selection,
            distinct,
            top,
            sources,
            where,
            group_by,
            order_by,
            is_rank,
            offset,
            limit,
            top_place,
            group_place,
            order_place,
            cut_place,
            start=start,
            end=self.last_end,
        )

    def _top(self) -> ast.Count:
        """The count of TOP: any number, which binding checks, or a parameter."""
        token = self.token
        if token.kind is Kind.PARAMETER:
            self.advance()
            return ast.Parameter(token.value, start=token.start, end=token.end)
        if token.kind is not Kind.NUMBER:
            raise self.unexpected()
        self.advance()
        return ast.Literal(token.value, start=token.start, end=token.end)

    def _count(self) -> ast.Count:
        """The count of OFFSET or LIMIT: written as an integer, or a parameter."""
        token = self.token
        raw = self.text[token.start : token.end]
        if token.kind is Kind.NUMBER and not (raw.isdigit() or raw[:2] in ("0x", "0X")):
            raise self.unexpected()
        return self._top()

    def _selection(self) -> ast.Selection:
        start = self.token.start
        if self.accept("*"):
            return ast.SelectStar(start=start, end=self.last_end)
        if self.accept("VALUE"):
            return ast.SelectValue(self.expression(), start=start, end=self.last_end)
        items = [self._select_item()]
        while self.accept(","):
            items.append(self._select_item())
        return ast.SelectList(tuple(items), start=start, end=self.last_end)

    def _select_item(self) -> ast.SelectItem:
        """An expression with its name, which may be a string."""
        start = self.token.start
        expression = self.expression()
        is_named = self.accept("AS")
        token = self.token
        if token.kind is Kind.NAME or token.kind is Kind.STRING:
            self.advance()
            place = (token.start, token.end)
            return ast.SelectItem(expression, token.value, place, start=start, end=self.last_end)
        if is_named:
            raise self.unexpected()
        return ast.SelectItem(expression, start=start, end=self.last_end)

    def _sources(self) -> tuple[ast.Source, ...]:
        sources = [self._source()]
        while self.accept("JOIN"):
            sources.append(self._source())
        return tuple(sources)

    def _source(self) -> ast.Source:
        token = self.token
        start = token.start
        if token.kind is Kind.NAME and self.peek().word == "IN":
            self.advance()
            self.advance()
            place = (token.start, token.end)
            return ast.Source(self._collection(), token.value, True, place, start=start, end=self.last_end)
        collection = self._collection()
        is_named = self.accept("AS")
        token = self.token
        if is_named or token.kind is Kind.NAME:
            alias = self.name()
            place = (token.start, token.end)
            return ast.Source(collection, alias, False, place, start=start, end=self.last_end)
        return ast.Source(collection, None, False, start=start, end=self.last_end)

    def _collection(self) -> ast.Expression | ast.Query:
        if self.accept("("):
            query = self.query()
            self.expect(")")
            return query
        start = self.token.start
        target: ast.Expression = ast.Identifier(self.name(), start=start, end=self.last_end)
        while self.at(".") or self.at("["):
            if self.at("[") and self.peek().kind not in (Kind.STRING, Kind.NUMBER):
                self.advance()
                raise self.unexpected()
            if self.at("[") and self.peek(2).word != "]":
                self.advance()
                self.advance()
                raise self.unexpected()
            target = self.postfix(target, start)
        return target

    def _order_by(self) -> tuple[tuple[ast.SortItem, ...], bool]:
        if not self.accept("ORDER"):
            return (), False
        self.expect("BY")
        if self._at_rank():
            self.advance()
            return (self._rank_item(),), True
        items = [self._sort_item()]
        while self.accept(","):
            items.append(self._sort_item())
        return tuple(items), False

    def _at_rank(self) -> bool:
        """RANK is no reserved word: it is the clause only where the name of a function follows."""
        token, following = self.token, self.peek()
        is_rank = token.kind is Kind.NAME and token.value.upper() == "RANK"
        return is_rank and (following.kind is Kind.NAME or following.word in ("LEFT", "RIGHT", "udf"))

    def _rank_item(self) -> ast.SortItem:
        start = self.token.start
        if self.token.kind is Kind.NAME:
            if self.peek().word != "(":
                self.advance()
                raise self.unexpected()
            call = self.primary()
        else:
            call = self.keyword_call()
        return ast.SortItem(call, self._direction(), start=start, end=self.last_end)

    def _sort_item(self) -> ast.SortItem:
        start = self.token.start
        expression = self.expression()
        return ast.SortItem(expression, self._direction(), start=start, end=self.last_end)

    def _direction(self) -> str | None:
        if not (self.at("ASC") or self.at("DESC")):
            return None
        word = self.token.word
        self.advance()
        return word


def count_problem(word: str, value: object, start: int | None, end: int | None) -> errors.Complaint | None:
    """What is wrong with the count of TOP, OFFSET or LIMIT, None when nothing is."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and isinstance(value, int | float) and 0 <= value <= COUNT_MAX and value == int(value):
        return None
    return errors.complaint(_COUNT_ROWS[word], start, end)


def check_count(word: str, value: object, start: int | None = None, end: int | None = None) -> int:
    """The value as a count for TOP, OFFSET or LIMIT, or the service's error for one that cannot be."""
    problem = count_problem(word, value, start, end)
    if problem is not None:
        raise errors.query_error([problem])
    assert isinstance(value, int | float)
    return int(value)


def parse(text: str, limits: Limits) -> ast.Query:
    """The syntax tree of a query text."""
    if len(text) > limits.query_text_bytes:
        raise errors.refusal("SC3020", 0, len(text), limit=limits.query_text_bytes)
    parser = Parser(text, tokenize(text), limits)
    query = parser.statement()
    if ast.depth(query) > limits.query_nesting + DEPTH_SLACK:
        raise parser.too_deep()
    return query
