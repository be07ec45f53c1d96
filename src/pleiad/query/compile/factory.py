"""Bound plan to Python source: one factory per plan and shape of its parameters.

The factory takes the parameters and the context of one execution and returns the functions that run it, so
that parameters and constants are plain closure variables. It is made of chunks: each a short function that takes
what it needs from the names known so far and adds what it defines. So no chunk takes Python long to compile, and
other requests have their turn between two of them. A block becomes a generator of nested loops over
its sources, with the filter inside; a subquery becomes a generator of its own that takes the outer aliases.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from pleiad.query import errors, plan
from pleiad.query.aggregate import LIST_STATES
from pleiad.query.compile.expressions import BUILDING, ExpressionEmitter
from pleiad.query.facts import read_names, shared_arguments, sifted_names, sorts_plainly
from pleiad.query.pace import worked
from pleiad.query.plan import SourceKind
from pleiad.query.rank import nearness
from pleiad.query.syntax.ast import SubqueryKind
from pleiad.values.undefined import UNDEFINED

_CHUNK_CHARS: Final = 4_000
_CHARS_STEPS: Final = 1
"""What Python takes to compile a character of source, in steps."""
_CODE_BYTES: Final = 12
_ENVIRONMENT_BYTES: Final = 16_000
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_DEFINED: Final = re.compile(r"(?:def )?(\w+)")


def builds(block: plan.Block) -> bool:
    """Whether rows of a block may build large values, in expressions or in subqueries."""
    return any(
        (isinstance(node, plan.Call) and node.function.name in BUILDING)
        or isinstance(node, plan.UdfCall)
        or (isinstance(node, plan.Subquery) and node.kind is not SubqueryKind.EXISTS)
        or (isinstance(node, plan.Chain) and node.operator == "||")
        or (isinstance(node, plan.Source) and node.block is not None)
        for node in plan.walk((block.sources, block.where, block.selection, block.group_by, block.aggregates))
    )


class PlanEmitter(ExpressionEmitter):
    """Generates the functions of a whole plan."""

    marks: Sequence[str] = ()
    """The notes of the loops around the row that is emitted, of what was built before them."""
    has_places: bool = False
    """Whether items come with their places, which go into the rows."""

    def subquery(self, block: plan.Block) -> tuple[str, str]:
        outer = tuple(name for name in self.frame if name not in ("K", "G"))
        return self.block(block, outer, self.value), ", ".join(outer)

    def found(self, block: plan.Block) -> str:
        outer = tuple(name for name in self.frame if name not in ("K", "G"))
        name = self.fresh("q")
        saved_frame, saved_level, saved_marks = self.frame, self.level, self.marks
        self.frame, self.level = outer, 0
        lines = [f"def {name}({', '.join(outer)}):"]

        def answer(depth: int) -> None:
            pad = "    " * depth
            lines.extend((f"{pad}v = {self.value(block.selection)}", f"{pad}if v is not U: return True"))

        self._loops(block, lines, 1, answer)
        lines.append("    return False")
        self.definitions.append("\n".join(lines))
        self.frame, self.level, self.marks = saved_frame, saved_level, saved_marks
        return f"{name}({', '.join(outer)})"

    def block(self, block: plan.Block, outer: tuple[str, ...], form: Callable[[plan.Expression], str]) -> str:
        """Define a generator function over a block's values, in their form as values or as output; returns its name."""
        name = self.fresh("q")
        saved_frame, saved_level, saved_marks = self.frame, self.level, self.marks
        self.frame, self.level = outer, 0
        lines: list[str] = [f"def {name}({', '.join(outer)}):"]
        if block.distinct:
            lines.append("    seen = set()")
        if block.is_grouped:
            self.marks = []
            self._grouped_body(block, outer, lines, form)
        else:
            self._loops(block, lines, 1, lambda depth: self._yield_value(block, lines, depth, form))
        self.definitions.append("\n".join(lines))
        self.frame, self.level, self.marks = saved_frame, saved_level, saved_marks
        return name

    def _yield_value(
        self, block: plan.Block, lines: list[str], depth: int, form: Callable[[plan.Expression], str]
    ) -> None:
        """Yield the value of the row, unless it is undefined or was seen."""
        pad = "    " * depth
        text = form(block.selection)
        is_always_defined = isinstance(block.selection, plan.MakeObject)
        if is_always_defined and not block.distinct:
            self._yield(text, lines, pad)
            return
        lines.append(f"{pad}v = {text}")
        if not is_always_defined:
            lines.append(f"{pad}if v is not U:")
            pad += "    "
        if block.distinct:
            lines.append(f"{pad}key = hash_key(v)")
            lines.append(f"{pad}if key not in seen:")
            lines.append(f"{pad}    seen.add(key)")
            lines.append(f"{pad}    carry_value(v)")
            pad += "    "
        self._yield("v", lines, pad)

    def _yield(self, text: str, lines: list[str], pad: str) -> None:
        """Yields a value; what is built meanwhile by whoever takes it belongs to no iteration of these loops."""
        if not self.marks:
            lines.append(f"{pad}yield {text}")
            return
        lines.append(f"{pad}w = {text}")
        lines.append(f"{pad}d = M.passing_bytes")
        lines.append(f"{pad}yield w")
        lines.append(f"{pad}d = M.passing_bytes - d")
        lines.extend(f"{pad}{mark} += d" for mark in self.marks)

    def _grouped_body(
        self,
        block: plan.Block,
        outer: tuple[str, ...],
        lines: list[str],
        form: Callable[[plan.Expression], str],
    ) -> None:
        rows = self.rows(block, outer)
        arguments = ", ".join(outer)
        own = tuple(f"a{source.slot}" for source in block.sources)
        self.frame = (*outer, *own)
        row_arguments = ", ".join(own)
        keys = "None"
        if block.group_by:
            keys = "keys"
            lines.append(f"    def keys({row_arguments}):")
            lines.append(f"        return {self._keys(block)}")
        self.level = 0
        lines.append(f"    def arguments({row_arguments}):")
        lines.append(f"        return {self._arguments(block)}")
        kinds = self.fresh("k")
        self.environment[kinds] = tuple(each.kind for each in block.aggregates)
        groups = (f"K{block.scope}", f"G{block.scope}")
        named = ", ".join(groups)
        lines.append(
            f"    for {named} in grouped({rows}({arguments}), {kinds}, {keys}, arguments, X.pace.carry):"
        )
        self.frame = (*outer, *groups)
        self._yield_value(block, lines, 2, form)

    def _keys(self, block: plan.Block) -> str:
        """The keys of a group, which are seen in the output."""
        return f"({self._joined(self.output, block.group_by)},)"

    def _arguments(self, block: plan.Block) -> str:
        """The arguments of the aggregates; what lists and sets are made of is seen in the output."""
        seen = {id(each.argument) for each in block.aggregates if each.kind in LIST_STATES}
        arguments = [each.argument for each in block.aggregates]
        listed = self._joined(lambda node: (self.output if id(node) in seen else self.value)(node), arguments)
        return f"({listed},)" if listed else "()"

    def _tuple(self, nodes: list[plan.Expression]) -> str:
        listed = self._list(tuple(nodes))
        return f"({listed},)" if listed else "()"

    def rows(self, block: plan.Block, outer: tuple[str, ...]) -> str:
        """Define a generator function over the rows that pass the filter; returns its name."""
        name = self.fresh("r")
        saved_frame, saved_level, saved_marks = self.frame, self.level, self.marks
        self.frame, self.level = outer, 0
        lines = [f"def {name}({', '.join(outer)}):"]
        own = [f"a{source.slot}" for source in block.sources]
        row = f"({', '.join(own)},)" if own else "()"
        self._loops(block, lines, 1, lambda depth: self._yield(row, lines, "    " * depth))
        self.definitions.append("\n".join(lines))
        self.frame, self.level, self.marks = saved_frame, saved_level, saved_marks
        return name

    def placed(self, block: plan.Block) -> str:
        """Define a generator function over places and items that gives, for each row that passes the filter, its place.

        Behind it the keys of its group, and the arguments of the aggregates, or the sort keys. Returns its name.
        """
        name = self.fresh("r")
        self.frame, self.level, self.has_places = (), 0, True
        lines = [f"def {name}(items):"]
        is_ordered = sorts_plainly(self.plan)

        def give(depth: int) -> None:
            if is_ordered:
                keys, arguments = "", self._joined(self.value, [key.expression for key in block.order_by])
            else:
                keys = self._joined(self.output, block.group_by)
                arguments = self._joined(self.value, shared_arguments(block)[0])
            row = ", ".join(part for part in ("p", keys, arguments) if part)
            self._yield(f"({row},)" if block.is_grouped or is_ordered else "p", lines, "    " * depth)

        self._loops(block, lines, 1, give)
        self.definitions.append("\n".join(lines))
        self.frame, self.marks, self.has_places = (), (), False
        return name

    def _loops(self, block: plan.Block, lines: list[str], depth: int, body: Callable[[int], None]) -> None:
        """The loops over the sources and the test of the filter, around a body."""
        lines.append(f"{'    ' * depth}n = 0")
        lines.append(f"{'    ' * depth}tick(16)")
        self.marks = [f"b{source.slot}" for source in block.sources] if builds(block) else []
        for source in block.sources:
            depth = self._loop(source, lines, depth)
            self.frame = (*self.frame, f"a{source.slot}")
        if block.where is not None:
            lines.append(f"{'    ' * depth}if {self.truth(block.where)}:")
            depth += 1
        body(depth)

    def _loop(self, source: plan.Source, lines: list[str], depth: int) -> int:
        pad = "    " * depth
        name = f"a{source.slot}"
        if source.kind is SourceKind.VALUE and source.expression is not None:
            self._mark(source, lines, pad)
            lines.append(f"{pad}{name} = {self.value(source.expression)}")
            lines.append(f"{pad}if {name} is not U:")
            return depth + 1
        if source.kind is SourceKind.ELEMENTS and source.expression is not None:
            lines.append(f"{pad}s{source.slot} = {self.value(source.expression)}")
            lines.append(f"{pad}if s{source.slot}.__class__ is list:")
            self._mark(source, lines, pad + "    ")
            lines.append(f"{pad}    for {name} in s{source.slot}:")
            depth += 2
        elif source.block is not None:
            generator, arguments = self.subquery(source.block)
            rows = f"{generator}({arguments})"
            if source.kind is SourceKind.ROW_ELEMENTS:
                rows = f"elements_of({rows})"
            self._mark(source, lines, pad)
            lines.append(f"{pad}for {name} in {rows}:")
            depth += 1
        else:
            self._mark(source, lines, pad)
            lines.append(f"{pad}for {'p, ' if self.has_places else ''}{name} in items:")
            depth += 1
        pad = "    " * depth
        lines.append(f"{pad}n += 1")
        lines.append(f"{pad}if not n & 63: tick()")
        if self.marks:
            lines.append(f"{pad}M.passing_bytes = b{source.slot}")
        return depth

    def _mark(self, source: plan.Source, lines: list[str], pad: str) -> None:
        """Notes what was built before a loop: each of its iterations gives back what the one before has built."""
        if self.marks:
            lines.append(f"{pad}b{source.slot} = M.passing_bytes")

    # -- the functions of an execution -----------------------------------------------------------

    def function(self, frame: tuple[str, ...], body: Callable[[], str]) -> str:
        """Define a function of a row that returns an expression; returns its name."""
        name = self.fresh("e")
        self.frame, self.level = frame, 0
        text = body()
        self.definitions.append(f"def {name}({', '.join(frame)}):\n    return {text}")
        self.frame = ()
        return name

    def sort_keys(self, block: plan.Block) -> str:
        """The values to sort by: those of the expressions, but nearness for vector distances."""
        self.environment["nearness"] = nearness

        def key_of(node: plan.Expression) -> str:
            if isinstance(node, plan.Call) and node.function.name in ("VECTORDISTANCE", "_VECTORSCORE"):
                return self._call("nearness", True, node.arguments)
            return self.value(node)

        return f"({self._joined(key_of, [key.expression for key in block.order_by])},)"

    def roles(self) -> dict[str, str]:
        """Defines the functions of the plan; returns the name of each by its role."""
        block = self.plan.block
        own = tuple(f"a{source.slot}" for source in block.sources)
        outer = ("items",)
        names = {"rows": self.rows(block, outer)}
        if block.is_grouped:
            names["keys"] = "None"
            if block.group_by:
                names["keys"] = self.function(own, lambda: self._keys(block))
            names["arguments"] = self.function(own, lambda: self._arguments(block))
            row_frame: tuple[str, ...] = (f"K{block.scope}", f"G{block.scope}")
        else:
            row_frame = own
            if not block.order_by and block.rank is None:
                names["values"] = self.block(block, outer, self.output)
        names["project"] = self.function(row_frame, lambda: self.output(block.selection))
        if block.order_by:
            names["sort_keys"] = self.function(row_frame, lambda: self.sort_keys(block))
        if block.rank is not None:
            components = block.rank.components
            names["rank_inputs"] = self.function(
                own,
                lambda: "(" + "".join(f"{self._tuple(list(each.arguments))}, " for each in components) + ")",
            )
            names["all_rows"] = self.rows(dataclasses.replace(block, where=None), outer)
            condition = plan.Constant(True) if block.where is None else block.where
            names["passes"] = self.function(own, lambda: self.truth(condition))
        looks_at_some = read_names(self.plan) is not None or sifted_names(self.plan) is not None
        if block.sources and block.sources[0].kind is SourceKind.ITEMS and looks_at_some:
            names["placed"] = self.placed(block)
        if len(block.sources) == 1 and block.sources[0].kind is SourceKind.ITEMS:
            where = plan.Constant(True) if block.where is None else block.where
            names["match"] = self.function(own, lambda: self.truth(where))
        return names

    def chunks(self) -> Iterator[str]:
        """The sources of the factory, each of a function ``make(N)`` over the names known so far."""
        known = {"X", "C", "M", "tick", *self.parameters.values()}
        chunk: list[str] = []
        chars = 0
        for definition in self.definitions:
            chunk.append(definition)
            chars += len(definition)
            if chars > _CHUNK_CHARS:
                yield _chunk(chunk, known)
                chunk, chars = [], 0
        if chunk:
            yield _chunk(chunk, known)


def _chunk(definitions: list[str], known: set[str]) -> str:
    """The source of one chunk; what it defines is known from now on."""
    words = {word for definition in definitions for word in _WORD.findall(definition)}
    used = sorted(words & known)
    defined = [_DEFINED.match(definition)[1] for definition in definitions]  # type: ignore[index]
    lines = ["def make(N):"]
    lines.extend(f"    {name} = N[{name!r}]" for name in used)
    for definition in definitions:
        lines.extend(f"    {line}" for line in definition.split("\n"))
    lines.extend(f"    N[{name!r}] = {name}" for name in defined)
    known.update(defined)
    return "\n".join(lines) + "\n"


class Factory:
    """Makes the functions of an execution."""

    __slots__ = ("_chunks", "_parameters", "_roles", "size_bytes")

    def __init__(
        self,
        chunks: list[Callable[[dict[str, Any]], None]],
        roles: dict[str, str],
        parameters: dict[str, str],
    ) -> None:
        self._chunks = chunks
        self._roles = roles
        self._parameters = parameters
        self.size_bytes = _ENVIRONMENT_BYTES
        """What the generated code takes in memory, roughly."""

    def add(self, chunk: Callable[[dict[str, Any]], None], size_bytes: int) -> None:
        self._chunks.append(chunk)
        self.size_bytes += size_bytes

    def __call__(self, parameters: Mapping[str, Any], context: Any, computed: Any) -> dict[str, Any]:
        names = {"X": context, "C": computed, "M": context.pace, "tick": context.pace.tick, "None": None}
        for name, local in self._parameters.items():
            names[local] = parameters.get(name, UNDEFINED)
        for chunk in self._chunks:
            chunk(names)
        return {role: names[name] for role, name in self._roles.items()}


def compile_plan(bound: plan.Plan, tags: dict[str, str], computed: tuple[str, ...]) -> Factory:
    """The factory of a plan for parameters of these types and these computed properties."""
    emitter = PlanEmitter(bound, tags, computed)
    try:
        roles = emitter.roles()
        sources = emitter.chunks()
        factory = Factory([], roles, emitter.parameters)
        for source in sources:
            code = compile(source, "<query>", "exec")
            environment = emitter.environment
            exec(code, environment)
            factory.add(environment.pop("make"), _CODE_BYTES * len(source))
            worked(_CHARS_STEPS * len(source))
    except (SyntaxError, RecursionError, MemoryError):
        raise errors.plain_error(
            "The query has more nested sources or expressions than can be run."
        ) from None
    return factory
