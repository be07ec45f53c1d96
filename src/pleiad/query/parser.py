"""Tokens to syntax tree: statements. Expressions are in ``parser_expressions``.

The grammar is fixed in clause order. Nesting of parentheses, calls and subqueries is bounded by
``limits.query_nesting``, the length of the text by ``limits.query_text_bytes``; every failure is a 400
with the place in the text.
"""

from __future__ import annotations

from typing import Final

from pleiad.limits import Limits
from pleiad.query import ast, errors
from pleiad.query.parser_expressions import ExpressionParser
from pleiad.query.tokens import Kind, tokenize

COUNT_MAX: Final = 4_294_967_295
_DEPTH_SLACK: Final = 64


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
        top = self._count("TOP") if self.at("TOP") else None
        selection = self._selection()
        sources = self._sources() if self.accept("FROM") else ()
        where = self.expression() if self.accept("WHERE") else None
        group_by: tuple[ast.Expression, ...] = ()
        if self.accept("GROUP"):
            self.expect("BY")
            group_by = self.expression_list()
        order_by, is_rank = self._order_by()
        offset = limit = None
        if self.at("OFFSET"):
            if top is not None:
                raise self.unexpected()
            offset = self._count("OFFSET")
            if not self.at("LIMIT"):
                raise self.unexpected()
            limit = self._count("LIMIT")
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
            start=start,
            end=self.last_end,
        )

    def _count(self, word: str) -> ast.Count:
        """The count after TOP, OFFSET or LIMIT: a whole number or a parameter."""
        self.expect(word)
        token = self.token
        if token.kind is Kind.PARAMETER:
            self.advance()
            return ast.Parameter(token.value, start=token.start, end=token.end)
        if token.kind is not Kind.NUMBER:
            raise self.unexpected()
        check_count(word, token.value, token.start, token.end)
        self.advance()
        return ast.Literal(token.value, start=token.start, end=token.end)

    def _selection(self) -> ast.Selection:
        start = self.token.start
        if self.accept("*"):
            return ast.SelectStar(start=start, end=self.last_end)
        if self.accept("VALUE"):
            expression = self.expression()
            return ast.SelectValue(expression, self._alias(), start=start, end=self.last_end)
        items = [self._select_item()]
        while self.accept(","):
            items.append(self._select_item())
        return ast.SelectList(tuple(items), start=start, end=self.last_end)

    def _select_item(self) -> ast.SelectItem:
        start = self.token.start
        expression = self.expression()
        return ast.SelectItem(expression, self._alias(), start=start, end=self.last_end)

    def _alias(self) -> str | None:
        if self.accept("AS"):
            return self.name()
        return self.name() if self.token.kind is Kind.NAME else None

    def _sources(self) -> tuple[ast.Source, ...]:
        sources = [self._source()]
        while self.at("JOIN"):
            self.join_count += 1
            if self.join_count > self.limits.query_joins:
                raise errors.complain(
                    "SC2990",
                    f"The query has more than the {self.limits.query_joins} JOINs allowed.",
                    self.token.start,
                    self.token.end,
                )
            self.advance()
            sources.append(self._source())
        return tuple(sources)

    def _source(self) -> ast.Source:
        start = self.token.start
        if self.token.kind is Kind.NAME and self.peek().word == "IN":
            alias = self.name()
            self.expect("IN")
            return ast.Source(self._collection(), alias, True, start=start, end=self.last_end)
        collection = self._collection()
        return ast.Source(collection, self._alias(), False, start=start, end=self.last_end)

    def _collection(self) -> ast.Expression | ast.Query:
        if self.accept("("):
            query = self.query()
            self.expect(")")
            return query
        if self.token.kind is Kind.NAME and self.peek().word != "(":
            start = self.token.start
            target: ast.Expression = ast.Identifier(self.name(), start=start, end=self.last_end)
            while self.at(".") or self.at("["):
                target = self.postfix(target, start)
                if isinstance(target, ast.Element) and not isinstance(
                    target.index, ast.Literal | ast.Parameter
                ):
                    raise errors.syntax_error("[", target.start, target.end)
            return target
        token = self.token
        call = self.primary()
        if not isinstance(call, ast.FunctionCall):
            raise errors.syntax_error(self.text[token.start : token.end], token.start, token.end)
        return call

    def _order_by(self) -> tuple[tuple[ast.SortItem, ...], bool]:
        if not self.accept("ORDER"):
            return (), False
        self.expect("BY")
        is_rank = self._at_rank()
        if is_rank:
            self.advance()
        items = [self._sort_item(is_rank)]
        while self.accept(","):
            items.append(self._sort_item(is_rank))
        return tuple(items), is_rank

    def _at_rank(self) -> bool:
        token = self.token
        return token.kind is Kind.NAME and token.value.upper() == "RANK" and self.peek().kind is Kind.NAME

    def _sort_item(self, is_rank: bool) -> ast.SortItem:
        token = self.token
        expression = self.expression()
        if is_rank and not isinstance(expression, ast.FunctionCall):
            raise errors.syntax_error(self.text[token.start : token.end], token.start, token.end)
        direction = None
        if self.at("ASC") or self.at("DESC"):
            direction = self.token.word
            self.advance()
        return ast.SortItem(expression, direction, start=token.start, end=self.last_end)


def check_count(word: str, value: object, start: int | None = None, end: int | None = None) -> int:
    """The value as a count for TOP, OFFSET or LIMIT, or the service's error for one that cannot be."""
    is_integer = (
        isinstance(value, int | float) and not isinstance(value, bool) and value == value and value >= 0
    )
    if is_integer and isinstance(value, int | float) and value <= COUNT_MAX and value == int(value):
        return int(value)
    too_large = is_integer and isinstance(value, int | float) and value > COUNT_MAX
    if too_large and word == "LIMIT":
        raise errors.complain(
            "SC2061", "The LIMIT count value exceeds the maximum allowed value.", start, end
        )
    if too_large and word == "OFFSET":
        raise errors.complain(
            "SC2062", "The OFFSET count value exceeds the maximum allowed value.", start, end
        )
    raise errors.complain(
        "SC2060", f"The count value provided for a {word} clause must be an integer.", start, end
    )


def parse(text: str, limits: Limits) -> ast.Query:
    """The syntax tree of a query text."""
    if len(text) > limits.query_text_bytes or len(text.encode("utf-8", "replace")) > limits.query_text_bytes:
        raise errors.complain(
            "SC1002", f"The query text exceeds the maximum of {limits.query_text_bytes} bytes."
        )
    parser = Parser(text, tokenize(text), limits)
    query = parser.statement()
    if ast.depth(query) > limits.query_nesting + _DEPTH_SLACK:
        raise parser.too_deep()
    return query
