"""Which types an expression can have, whatever the item: enough to see that a filter can never be true.

A kind is a set of types as bits. The answer is a superset: a value always has one of the types said.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from pleiad.keys.undefined import UNDEFINED
from pleiad.query import plan
from pleiad.query.ast import SubqueryKind
from pleiad.query.functions.registry import Function
from pleiad.query.pace import in_turns
from pleiad.query.values import array_index, is_number

MISSING, NULL, FALSE, TRUE, NUMBER, STRING, ARRAY, OBJECT = (1 << place for place in range(8))
BOOLEAN: Final = FALSE | TRUE
ANYTHING: Final = 255
COMPARABLE: Final = NULL | BOOLEAN | NUMBER | STRING

_BY_FAMILY: Final[dict[str, int]] = {
    "types": BOOLEAN,
    "math": NUMBER | MISSING,
    "integers": NUMBER | MISSING,
    "items": NUMBER | MISSING,
    "vector": NUMBER | MISSING,
    "fulltext": BOOLEAN | MISSING,
    "strings": STRING | MISSING,
    "dates": STRING | MISSING,
    "arrays": ARRAY | MISSING,
    "conversions": ANYTHING,
    "spatial": BOOLEAN | MISSING,
    "conditional": ANYTHING,
}
_BY_NAME: Final[dict[str, int]] = {
    **dict.fromkeys(
        (
            *("CONTAINS", "ENDSWITH", "STARTSWITH", "STRINGEQUALS", "CONTAINS_ALL_CI", "CONTAINS_ALL_CS"),
            *("CONTAINS_ANY_CI", "CONTAINS_ANY_CS", "REGEXMATCH", "ARRAY_CONTAINS", "ARRAY_CONTAINS_ALL"),
            *("ARRAY_CONTAINS_ANY", "SETEQUAL", "STRINGTOBOOLEAN"),
        ),
        BOOLEAN | MISSING,
    ),
    **dict.fromkeys(
        (
            *("INDEX_OF", "LASTINDEXOF", "LENGTH", "ARRAY_LENGTH", "ARRAY_SUM", "ARRAY_AVG", "ARRAY_MEDIAN"),
            *(
                "DATETIMEDIFF",
                "DATETIMEPART",
                "DATETIMETOTICKS",
                "DATETIMETOTIMESTAMP",
                "YEAR",
                "MONTH",
                "DAY",
            ),
            *("GETCURRENTTICKS", "GETCURRENTTIMESTAMP", "GETCURRENTTICKSSTATIC", "GETCURRENTTIMESTAMPSTATIC"),
            *("STRINGTONUMBER", "ST_DISTANCE", "ST_AREA", "_FULLTEXTSCORE", "_FULLTEXTWORDCOUNT", "HASH"),
        ),
        NUMBER | MISSING,
    ),
    **dict.fromkeys(("STRINGSPLIT", "REGEXEXTRACTALL", "STRINGTOARRAY"), ARRAY | MISSING),
    **dict.fromkeys(("ARRAY_MIN", "ARRAY_MAX"), COMPARABLE | MISSING),
    **dict.fromkeys(("STRINGTOOBJECT", "ST_ISVALIDDETAILED"), OBJECT | MISSING),
    "STRINGTONULL": NULL | MISSING,
    "TOSTRING": STRING | MISSING,
    "IS_DATETIME": BOOLEAN,
    "GENERATEEMBEDDINGS": ARRAY | MISSING,
}


_FIRST_BY_FAMILY: Final[dict[str, int]] = {
    "math": NUMBER,
    "integers": NUMBER,
    "strings": STRING,
    "arrays": ARRAY,
}
"""What the first argument has to be for a function to have a value."""
_FIRST_BY_NAME: Final[dict[str, int | None]] = {
    "OBJECTTOARRAY": OBJECT,
    "STRINGJOIN": ARRAY,
    **dict.fromkeys(
        (
            *("STRINGTOARRAY", "STRINGTOOBJECT", "STRINGTONUMBER", "STRINGTOBOOLEAN", "STRINGTONULL"),
            *(
                "DATETIMETOTICKS",
                "DATETIMETOTIMESTAMP",
                "YEAR",
                "MONTH",
                "DAY",
                "DATETIMEFORMAT",
                "DATETIMEBIN",
            ),
        ),
        STRING,
    ),
}


TEXT_PAIRS: Final = frozenset(
    (
        *(
            "CONCAT",
            "CONTAINS",
            "ENDSWITH",
            "STARTSWITH",
            "STRINGEQUALS",
            "INDEX_OF",
            "LASTINDEXOF",
            "REPLACE",
        ),
        *("DATETIMEPART", "DATETIMEFORMAT", "STRINGSPLIT"),
    )
)
"""Functions that have a value only where their first two arguments are strings."""


def kind_of_value(value: Any) -> int:
    """The type of a value."""
    if value is UNDEFINED:
        return MISSING
    if value is None:
        return NULL
    if value is True or value is False:
        return TRUE if value else FALSE
    if isinstance(value, int | float):
        return NUMBER
    if isinstance(value, str):
        return STRING
    return ARRAY if isinstance(value, list) else OBJECT


Path = tuple[int | str, ...]
"""A slot, and the names and places below it."""


def path_of(node: plan.Expression) -> Path | None:
    """The path that an expression is, None when it is more than that."""
    steps: list[int | str] = []
    while isinstance(node, plan.Member):
        key = node.key.value if isinstance(node.key, plan.Constant) else None
        if isinstance(key, str):
            steps.append(key)
        elif isinstance(key, int | float) and is_number(key):
            steps.append(array_index(key))
        else:
            return None
        node = node.target
    return (node.index, *reversed(steps)) if isinstance(node, plan.Slot) else None


def first_argument(function: Function) -> int | None:
    """What the first argument of a function has to be for it to have a value, None for anything."""
    if function.name in _FIRST_BY_NAME:
        return _FIRST_BY_NAME[function.name]
    return _FIRST_BY_FAMILY.get(function.family)


def kinds(node: plan.Expression, items: Collection[int] = ()) -> int:
    """The types that an expression can have. An item is taken for anything but an array, as the service does."""
    match node:
        case plan.Constant(value=value):
            return kind_of_value(value)
        case plan.Slot(index=index):
            return OBJECT | COMPARABLE if index in items else ANYTHING
        case plan.Member(target=target):
            return ANYTHING if kinds(target, items) & (ARRAY | OBJECT) else MISSING
        case plan.Unary(operator="NOT", operand=operand):
            inner = kinds(operand, items)
            return (
                (FALSE if inner & TRUE else 0)
                | (TRUE if inner & FALSE else 0)
                | (MISSING if inner & ~BOOLEAN else 0)
            )
        case plan.Unary(operand=operand):
            return _number_or_missing(kinds(operand, items))
        case plan.Binary(operator="<" | "<=" | ">" | ">=", left=left, right=right) if _is_not_a_number(
            left
        ) or _is_not_a_number(right):
            return MISSING
        case plan.Binary(operator=operator, left=left, right=right):
            return _binary(operator, kinds(left, items), kinds(right, items))
        case plan.Chain(operator=operator, operands=operands):
            return _chain(operator, [kinds(each, items) for each in in_turns(operands)])
        case plan.Conditional(test=test, then=then, otherwise=otherwise):
            tested = kinds(test, items)
            found = kinds(then, items) if tested & TRUE else 0
            return found | (kinds(otherwise, items) if tested & ~TRUE else 0)
    return _compound(node, items)


def _compound(node: plan.Expression, items: Collection[int]) -> int:
    match node:
        case plan.In(needle=needle, items=listed):
            inner = kinds(needle, items)
            others = [kinds(each, items) for each in in_turns(listed)]
            can_match = any(_may_equal(inner, other) for other in others)
            is_known = MISSING if inner & MISSING else 0
            return is_known | (FALSE if inner & ~MISSING else 0) | (TRUE if can_match else 0)
        case plan.Between(value=value, low=low, high=high):
            inner = kinds(value, items)
            return _chain(
                "AND", [_binary(">=", inner, kinds(low, items)), _binary("<=", inner, kinds(high, items))]
            )
        case plan.Like(value=value, pattern=pattern):
            both = kinds(value, items) & kinds(pattern, items) & STRING
            return BOOLEAN | MISSING if both else MISSING
        case plan.MakeArray():
            return ARRAY
        case plan.MakeObject():
            return OBJECT
        case plan.Call(function=function, arguments=arguments):
            return _call(function, [kinds(each, items) for each in in_turns(arguments)])
        case plan.Subquery(kind=kind, block=block):
            if kind is SubqueryKind.EXISTS:
                is_never = block.where is not None and not kinds(block.where, items) & TRUE
                return FALSE if is_never and not block.is_grouped else BOOLEAN
            return ARRAY if kind is SubqueryKind.ARRAY else kinds(block.selection, items) | MISSING
        case plan.Let(body=body):
            return kinds(body, items)
    return ANYTHING


def _is_not_a_number(node: plan.Expression) -> bool:
    return isinstance(node, plan.Constant) and isinstance(node.value, float) and node.value != node.value


def _number_or_missing(inner: int) -> int:
    return (NUMBER if inner & NUMBER else 0) | (MISSING if inner & ~NUMBER else 0)


def _may_equal(one: int, two: int) -> bool:
    return bool(one & two & ~MISSING)


def _binary(operator: str, left: int, right: int) -> int:
    if operator == "??":
        return (left & ~MISSING) | (right if left & MISSING else 0)
    if operator in ("=", "!="):
        missing = MISSING if (left | right) & MISSING else 0
        if not left & ~MISSING or not right & ~MISSING:
            return MISSING
        same, other = (TRUE, FALSE) if operator == "=" else (FALSE, TRUE)
        return missing | other | (same if _may_equal(left, right) else 0)
    if operator in ("<", "<=", ">", ">="):
        common = left & right & (NULL | NUMBER | STRING)
        booleans = left & BOOLEAN and right & BOOLEAN
        return (BOOLEAN if common or booleans else 0) | MISSING
    return NUMBER | MISSING if left & right & NUMBER else MISSING


def _chain(operator: str, parts: list[int]) -> int:
    if operator == "||":
        return STRING | MISSING if all(part & STRING for part in parts) else MISSING
    decisive, other = (FALSE, TRUE) if operator == "AND" else (TRUE, FALSE)
    found = decisive if any(part & decisive for part in parts) else 0
    if all(part & other for part in parts):
        found |= other
    # Some operand may be no boolean while none decides.
    if any(part & ~BOOLEAN for part in parts) and all(part & ~decisive for part in parts):
        found |= MISSING
    return found


def _call(function: Function, arguments: list[int]) -> int:
    if function.name == "CHOOSE":
        found = MISSING
        for each in arguments[1:]:
            found |= each
        return found
    wanted = first_argument(function)
    if function.name in TEXT_PAIRS and not all(each & STRING for each in arguments[:2]):
        return MISSING
    if wanted is not None and arguments and not arguments[0] & wanted:
        return MISSING
    return _BY_NAME.get(function.name, _BY_FAMILY.get(function.family, ANYTHING))
