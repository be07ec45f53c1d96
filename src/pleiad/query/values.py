"""Values of the query language: type ranks, equality, comparison, arithmetic and order.

Items are JSON values as orjson decodes them, plus UNDEFINED for what is not there. Three rules differ
from Python's own and every function here keeps them:

- a boolean is never a number;
- a number is an integer of 64 bits (``int``) or a double (``float``): ``1`` equals ``1.0``, comparison is exact, and
  ``+ - * %`` of two integers are exact until they overflow into doubles;
- strings are ordered by UTF-16 code unit, as clients that merge pages order them.

Functions whose name ends in ``3`` answer True, False or UNDEFINED. Recursion is as deep as the values are
nested, which the limits on items and parameters bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from pleiad.query.distinct_hash import distinct_hash, ordered_bytes
from pleiad.query.pace import in_turns, paced, tick
from pleiad.values.ranks import (
    ARRAY_RANK,
    BOOLEAN_RANK,
    KINDS,
    NOSQL,
    NULL_RANK,
    NUMBER_RANK,
    OBJECT_RANK,
    STRING_RANK,
    UNDEFINED_RANK,
)
from pleiad.values.salt import SALT
from pleiad.values.text import surrogates
from pleiad.values.undefined import UNDEFINED

EXACT_INT: Final = 2**53
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
NOT_A_NUMBER: Final = -math.nan
"""With the sign that processors give it where numbers have no quotient; a hash sees it."""
_NAN_KEY: Final = ("nan",)
_INT32: Final = 2**32

_RANKS: Final[dict[type, int]] = {
    kind: NOSQL.ranks[KINDS[kind]] for kind in KINDS if KINDS[kind] in NOSQL.ranks
}
_NAMES: Final = ("undefined", "null", "boolean", "number", "string", "array", "object")


def type_rank(value: Any) -> int:
    """The type's place in undefined < null < boolean < number < string < array < object."""
    return _RANKS.get(value.__class__, OBJECT_RANK)


def type_name(value: Any) -> str:
    """The name of the value's type as the language calls it."""
    return _NAMES[type_rank(value)]


def is_number(value: Any) -> bool:
    """Whether the value is a number; booleans are not."""
    kind = value.__class__
    return kind is int or kind is float


def as_double(number: int | float) -> float:
    """The number as the double the language computes with."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def normal(number: int | float) -> int | float:
    """A computed number in the form it is printed: integral doubles that are exact become integers."""
    if number.__class__ is float:
        if number.is_integer() and -EXACT_INT <= number <= EXACT_INT:
            return int(number)
        return number
    if -EXACT_INT <= number <= EXACT_INT:
        return number
    return as_double(number)


def string_less(left: str, right: str) -> bool:
    """Whether left stands before right in UTF-16 code unit order."""
    if left.isascii() or right.isascii():
        return left < right
    return utf16_order(left) < utf16_order(right)


def equal(left: Any, right: Any) -> bool:
    """Deep, type-strict equality of two defined values."""
    kind = left.__class__
    if kind is str:
        return right.__class__ is str and bool(left == right)
    if kind is bool or left is None:
        return left is right
    if kind is int or kind is float:
        other = right.__class__
        if other is not int and other is not float:
            return False
        return bool(left == right)
    if kind is list or kind is tuple:
        if right.__class__ is not list and right.__class__ is not tuple:
            return False
        tick(len(left))
        return len(left) == len(right) and all(map(equal, left, right))
    if kind is dict:
        if right.__class__ is not dict or len(left) != len(right):
            return False
        tick(len(left))
        return all(name in right and equal(value, right[name]) for name, value in left.items())
    return left is right


def eq3(left: Any, right: Any) -> Any:
    """``left = right``: undefined when either side is."""
    if left is UNDEFINED or right is UNDEFINED:
        return UNDEFINED
    return equal(left, right)


def ne3(left: Any, right: Any) -> Any:
    """``left != right``: undefined when either side is."""
    if left is UNDEFINED or right is UNDEFINED:
        return UNDEFINED
    return not equal(left, right)


def less_than(left: Any, right: Any) -> Any:
    """``left < right`` for two values of the same primitive type, otherwise UNDEFINED."""
    kind, other = left.__class__, right.__class__
    if kind is int or kind is float:
        if other is not int and other is not float:
            return UNDEFINED
        if left != left or right != right:
            return UNDEFINED
        return left < right
    if kind is not other:
        return UNDEFINED
    if kind is str:
        return string_less(left, right)
    if kind is bool:
        return left < right
    return False if left is None else UNDEFINED


def lt3(left: Any, right: Any) -> Any:
    """``left < right``."""
    return less_than(left, right)


def gt3(left: Any, right: Any) -> Any:
    """``left > right``."""
    return less_than(right, left)


def le3(left: Any, right: Any) -> Any:
    """``left <= right``."""
    less = less_than(left, right)
    return less if less is UNDEFINED or less is True else equal(left, right)


def ge3(left: Any, right: Any) -> Any:
    """``left >= right``."""
    return le3(right, left)


def not3(value: Any) -> Any:
    """``NOT value``: undefined for everything but a boolean."""
    if value is True:
        return False
    return True if value is False else UNDEFINED


def and3(*values: Any) -> Any:
    """``AND``: false as soon as one operand is false, true when all are true, otherwise undefined."""
    result: Any = True
    for value in values:
        if value is False:
            return False
        if value is not True:
            result = UNDEFINED
    return result


def or3(*values: Any) -> Any:
    """``OR``: true as soon as one operand is true, false when all are false, otherwise undefined."""
    result: Any = False
    for value in values:
        if value is True:
            return True
        if value is not False:
            result = UNDEFINED
    return result


def between3(value: Any, low: Any, high: Any) -> Any:
    """``value BETWEEN low AND high``."""
    return and3(ge3(value, low), le3(value, high))


def in3(needle: Any, items: Iterable[Any]) -> Any:
    """``needle IN (items)``: undefined items never match."""
    if needle is UNDEFINED:
        return UNDEFINED
    return any(item is not UNDEFINED and equal(needle, item) for item in items)


def member(target: Any, key: Any) -> Any:
    """``target[key]``: a property by name, an array element by a number."""
    if target.__class__ is dict:
        return target.get(key, UNDEFINED) if key.__class__ is str else UNDEFINED
    if target.__class__ is list and is_number(key) and (index := array_index(key)) < len(target):
        return target[index]
    return UNDEFINED


def array_index(number: int | float) -> int:
    """The index that a number stands for: its fraction is cut off, and of its whole part 32 bits are taken."""
    if number.__class__ is float:
        number = int(number) if INT64_MIN <= number <= INT64_MAX else 0
    return int(number) % _INT32


def _numbers(left: Any, right: Any) -> bool:
    kind, other = left.__class__, right.__class__
    return (kind is int or kind is float) and (other is int or other is float)


def exact(number: int) -> int | float:
    """The integer itself, or the double nearest to it when 64 bits do not hold it."""
    return number if INT64_MIN <= number <= INT64_MAX else as_double(number)


def add3(left: Any, right: Any) -> Any:
    """``left + right``."""
    if left.__class__ is int and right.__class__ is int and INT64_MIN <= (total := left + right) <= INT64_MAX:
        return total
    if not _numbers(left, right):
        return UNDEFINED
    return as_double(left) + as_double(right)


def sub3(left: Any, right: Any) -> Any:
    """``left - right``."""
    if left.__class__ is int and right.__class__ is int and INT64_MIN <= (rest := left - right) <= INT64_MAX:
        return rest
    if not _numbers(left, right):
        return UNDEFINED
    return as_double(left) - as_double(right)


def mul3(left: Any, right: Any) -> Any:
    """``left * right``."""
    if left.__class__ is int and right.__class__ is int and INT64_MIN <= (times := left * right) <= INT64_MAX:
        return times
    if not _numbers(left, right):
        return UNDEFINED
    return as_double(left) * as_double(right)


def div3(left: Any, right: Any) -> Any:
    """``left / right``; by zero it is an infinity or not a number, as doubles divide."""
    if not _numbers(left, right):
        return UNDEFINED
    if left.__class__ is int and right.__class__ is int and right != 0 and left % right == 0:
        return exact(left // right)
    one, two = as_double(left), as_double(right)
    if two == 0:
        if one == 0 or math.isnan(one):
            return NOT_A_NUMBER
        return math.copysign(math.inf, one) * math.copysign(1.0, two)
    return one / two


def mod3(left: Any, right: Any) -> Any:
    """``left % right``, with the sign of the dividend."""
    if not _numbers(left, right):
        return UNDEFINED
    if left.__class__ is int and right.__class__ is int and right != 0:
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    one, two = as_double(left), as_double(right)
    if two == 0 or math.isinf(one):
        return NOT_A_NUMBER
    rest_of_doubles = math.fmod(one, two)
    # A whole rest is an integer again, as no result of another operator on doubles is.
    is_integer = rest_of_doubles.is_integer() and abs(rest_of_doubles) < EXACT_INT
    return int(rest_of_doubles) if is_integer else rest_of_doubles


def neg3(value: Any) -> Any:
    """Unary minus; the least integer has no opposite and stays."""
    if value.__class__ is int:
        return value if value == INT64_MIN else exact(-value)
    return -value if value.__class__ is float else UNDEFINED


def pos3(value: Any) -> Any:
    """Unary plus."""
    return value if is_number(value) else UNDEFINED


def to_int32(number: int | float) -> int:
    """The number truncated and wrapped to a signed 32-bit integer; what is not finite becomes 0."""
    double = as_double(number)
    if not math.isfinite(double):
        return 0
    wrapped = int(double) % _INT32
    return wrapped - _INT32 if wrapped >= _INT32 // 2 else wrapped


def bitnot3(value: Any) -> Any:
    """``~value``."""
    return float(~to_int32(value)) if is_number(value) else UNDEFINED


def bitand3(left: Any, right: Any) -> Any:
    """``left & right``."""
    return float(to_int32(left) & to_int32(right)) if _numbers(left, right) else UNDEFINED


def bitor3(left: Any, right: Any) -> Any:
    """``left | right``."""
    return float(to_int32(left) | to_int32(right)) if _numbers(left, right) else UNDEFINED


def bitxor3(left: Any, right: Any) -> Any:
    """``left ^ right``."""
    return float(to_int32(left) ^ to_int32(right)) if _numbers(left, right) else UNDEFINED


def shl3(left: Any, right: Any) -> Any:
    """``left << right``; the count is taken modulo 32."""
    if not _numbers(left, right):
        return UNDEFINED
    return float(to_int32(to_int32(left) << (to_int32(right) & 31)))


def sar3(left: Any, right: Any) -> Any:
    """``left >> right``, keeping the sign."""
    return float(to_int32(left) >> (to_int32(right) & 31)) if _numbers(left, right) else UNDEFINED


def shr3(left: Any, right: Any) -> Any:
    """``left >>> right``, filling with zeros; like every other bit operator it gives a double that is an integer."""
    if not _numbers(left, right):
        return UNDEFINED
    return float(to_int32((to_int32(left) % _INT32) >> (to_int32(right) & 31)))


def finite(value: Any) -> Any:
    """The value as output has it: whole numbers without a fraction, and nothing for what JSON has no word for."""
    if value.__class__ is float:
        if -EXACT_INT < value < EXACT_INT:
            return int(value) if value.is_integer() else value
        if not math.isfinite(value):
            return UNDEFINED
    return value


def all_finite(value: Any) -> Any:
    """A value as output has it, with all that is in it."""
    if value.__class__ is list:
        tick(len(value))
        return make_array(*map(all_finite, value))
    if value.__class__ is dict:
        tick(len(value))
        return make_object({name: all_finite(part) for name, part in value.items()})
    return finite(value)


def make_array(*values: Any) -> list[Any]:
    """An array of the defined values; undefined ones close the gap."""
    return [value for value in values if value is not UNDEFINED]


def make_object(properties: dict[str, Any]) -> dict[str, Any]:
    """An object of the defined properties."""
    for value in properties.values():
        if value is UNDEFINED:
            return {name: value for name, value in properties.items() if value is not UNDEFINED}
    return properties


def hash_key(value: Any) -> Any:
    """A hashable stand-in: equal for two values exactly when they are equal (undefined equals itself)."""
    kind = value.__class__
    if kind is str or value is None or value is UNDEFINED:
        return value
    if kind is int:
        return (SALT, exact(value))
    if kind is float:
        return _NAN_KEY if value != value else (SALT, value)
    if kind is bool:
        return (value,)
    tick(1 + len(value))
    if kind is dict:
        return frozenset((name, hash_key(part)) for name, part in in_turns(value.items()))
    return (None, *map(hash_key, in_turns(value)))


def order_key(value: Any) -> tuple[Any, ...]:
    """A key that sorts values by type, then by value; arrays and objects by the hash that DISTINCT has for them."""
    kind = value.__class__
    if kind is str:
        return (STRING_RANK, value) if value.isascii() else (STRING_RANK, utf16_order(value))
    if kind is int:
        return (NUMBER_RANK, value if -EXACT_INT <= value <= EXACT_INT else as_double(value))
    if kind is float:
        return (NUMBER_RANK, value if value == value else -math.inf)
    if kind is bool:
        return (BOOLEAN_RANK, value)
    if value is None:
        return (NULL_RANK,)
    if value is UNDEFINED:
        return (UNDEFINED_RANK,)
    tick(1 + len(value))
    rank = OBJECT_RANK if kind is dict else ARRAY_RANK
    return (rank, ordered_bytes(distinct_hash(value)))


def utf16_order(text: str) -> str:
    """The text with each character replaced so that code point order becomes UTF-16 code unit order.

    A character beyond U+FFFF becomes its two surrogates; as single characters those stand below U+E000, where
    UTF-16 has them.
    """
    if text.isascii() or max(text) < "\U00010000":
        return text
    return "".join([char if char < "\U00010000" else surrogates(char) for char in paced(text)])
