"""What types the built-in functions take and give: enough to see that a call never has a value.

A signature is written as the types of each argument and, behind ``>``, those of the value: ``SN>S``. The last argument
stands for all that follow it. N is a number, S a string, B a boolean, U null, A an array, O an object, M undefined,
``*`` anything but undefined, ``?`` anything at all. Several types of one argument stand in brackets. A function has no
value where one argument is of no type that it takes; without a signature nothing is known of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MISSING, NULL, FALSE, TRUE, NUMBER, STRING, ARRAY, OBJECT = (1 << place for place in range(8))
BOOLEAN: Final = FALSE | TRUE
ANYTHING: Final = 255
DEFINED: Final = ANYTHING & ~MISSING
COMPARABLE: Final = NULL | BOOLEAN | NUMBER | STRING

_LETTERS: Final = {
    "N": NUMBER,
    "S": STRING,
    "B": BOOLEAN,
    "U": NULL,
    "A": ARRAY,
    "O": OBJECT,
    "M": MISSING,
    "*": DEFINED,
    "?": ANYTHING,
}
_ARGUMENT: Final = re.compile(r"\[([^]]+)]|(.)")

_WRITTEN: Final[dict[str, str]] = {
    "N>N": "ABS ACOS ASIN ATAN ATN2 CEILING COS COT DEGREES EXP FLOOR LOG LOG10 NUMBERBIN POWER RADIANS ROUND SIGN SIN "
    "SQRT SQUARE TAN TRUNC INTADD INTBITAND INTBITLEFTSHIFT INTBITNOT INTBITOR INTBITRIGHTSHIFT INTBITXOR INTDIV "
    "INTMOD INTMUL INTSUB",
    "S>S": "CONCAT LASTSUBSTRINGAFTER LASTSUBSTRINGBEFORE LOWER LTRIM RTRIM TRIM REGEXREPLACE REGEXREPLACEALL REPLACE "
    "REVERSE SUBSTRINGAFTER SUBSTRINGBEFORE UPPER DATETIMEFORMAT",
    "SN>S": "LEFT RIGHT REPLICATE SUBSTRING NOW AGO",
    "SSB>B": "CONTAINS ENDSWITH STARTSWITH STRINGEQUALS",
    "S>B": "REGEXMATCH STRINGTOBOOLEAN CONTAINS_ALL_CI CONTAINS_ALL_CS CONTAINS_ANY_CI CONTAINS_ANY_CS",
    "S>N": "LENGTH STRINGTONUMBER DATETIMEDIFF DATETIMEPART DATETIMETOTICKS DATETIMETOTIMESTAMP DAY MONTH YEAR",
    "SSN>N": "INDEX_OF",
    "SS[NM]>N": "LASTINDEXOF",
    "AS>S": "STRINGJOIN",
    "S>A": "STRINGSPLIT STRINGTOARRAY",
    "S>O": "STRINGTOOBJECT",
    "S>U": "STRINGTONULL",
    "SSSN>S": "REGEXEXTRACT",
    "SSS[NA]>A": "REGEXEXTRACTALL",
    "SNS>S": "DATETIMEADD",
    "SSNS>S": "DATETIMEBIN",
    "N>S": "DATETIMEFROMPARTS",
    "NS>S": "TICKSTODATETIME TIMESTAMPTODATETIME",
    "A>N": "ARRAY_AVG ARRAY_LENGTH ARRAY_MEDIAN ARRAY_SUM",
    "A>*": "ARRAY_MAX ARRAY_MIN",
    "A[SA]>A": "ARRAY_CONCAT",
    "A*B>B": "ARRAY_CONTAINS",
    "A*>B": "ARRAY_CONTAINS_ALL ARRAY_CONTAINS_ANY",
    "AN>A": "ARRAY_SLICE",
    "A>A": "SETDIFFERENCE SETINTERSECT SETUNION",
    "A>B": "SETEQUAL",
    "O??>A": "OBJECTTOARRAY",
    "*>S": "TOSTRING",
    "?>N": "HASH _FULLTEXTSCORE _FULLTEXTWORDCOUNT RAND PI GETCURRENTTICKS GETCURRENTTIMESTAMP GETCURRENTTICKSSTATIC "
    "GETCURRENTTIMESTAMPSTATIC",
    "*>N": "ST_AREA ST_DISTANCE",
    "AA?>N": "VECTORDISTANCE _VECTORSCORE",
    "?>S": "GETCURRENTDATETIME GETCURRENTDATETIMESTATIC",
    "O>N": "DOCUMENTID",
    "*>B": "ST_INTERSECTS ST_WITHIN",
    "?>B": "ST_ISVALID",
    "?>O": "ST_ISVALIDDETAILED",
    "?>A": "GENERATEEMBEDDINGS",
    "S[SO]>B": "FULLTEXTCONTAINS FULLTEXTCONTAINSALL FULLTEXTCONTAINSANY",
}
"""Functions by their signature."""

ALL_OF: Final = frozenset(("CONTAINS_ALL_CI", "CONTAINS_ALL_CS", "ARRAY_CONTAINS_ALL", "FULLTEXTCONTAINSALL"))
ANY_OF: Final = frozenset(("CONTAINS_ANY_CI", "CONTAINS_ANY_CS", "ARRAY_CONTAINS_ANY", "FULLTEXTCONTAINSANY"))
"""An AND, or an OR, over the arguments behind the first; one that they do not take is undefined in it."""
TESTS: Final = {
    "IS_ARRAY": ARRAY,
    "IS_BOOL": BOOLEAN,
    "IS_BOOLEAN": BOOLEAN,
    "IS_DATETIME": STRING,
    "IS_DEFINED": DEFINED,
    "IS_FINITE_NUMBER": NUMBER,
    "IS_INTEGER": NUMBER,
    "IS_NULL": NULL,
    "IS_NUMBER": NUMBER,
    "IS_OBJECT": OBJECT,
    "IS_PRIMITIVE": COMPARABLE,
    "IS_STRING": STRING,
}
"""The types for which a test of the type can be true."""
_SURE: Final = frozenset(
    ("IS_ARRAY", "IS_BOOL", "IS_BOOLEAN", "IS_DEFINED", "IS_NULL", "IS_OBJECT", "IS_STRING")
)
"""Tests that are true for every value of the types."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The types of the arguments, of which the last stands for all that follow, and of the value."""

    arguments: tuple[int, ...]
    value: int

    def argument(self, place: int) -> int:
        """The types that the argument at a place may have."""
        return self.arguments[min(place, len(self.arguments) - 1)]


def _read(written: str) -> Signature:
    taken, _, given = written.partition(">")
    arguments = tuple(_mask(many or one) for many, one in _ARGUMENT.findall(taken))
    return Signature(arguments, _mask(given))


def _mask(letters: str) -> int:
    mask = 0
    for letter in letters:
        mask |= _LETTERS[letter]
    return mask


SIGNATURES: Final[dict[str, Signature]] = {
    name: _read(written) for written, names in _WRITTEN.items() for name in names.split()
}


def takes_all(name: str) -> bool:
    """Whether every argument has to be of its types for the function to have a value."""
    return name not in ALL_OF and name not in ANY_OF and name not in TESTS


def call_kinds(name: str, arguments: Sequence[int]) -> int:
    """The types that a call can have, given those of its arguments."""
    if name == "CHOOSE":
        found = MISSING
        for each in arguments[1:]:
            found |= each
        return found if arguments[0] & NUMBER else MISSING
    if name in TESTS:
        return _test_kinds(name, arguments[0])
    signature = SIGNATURES.get(name)
    if signature is None:
        return ANYTHING
    if name in ALL_OF or name in ANY_OF:
        return _many_kinds(name, signature, arguments)
    if not all(each & signature.argument(place) for place, each in enumerate(arguments)):
        return MISSING
    return signature.value | MISSING


def _test_kinds(name: str, argument: int) -> int:
    wanted = TESTS[name]
    is_sure = name in _SURE and not argument & ~wanted
    return (TRUE if argument & wanted else 0) | (0 if is_sure else FALSE)


def _many_kinds(name: str, signature: Signature, arguments: Sequence[int]) -> int:
    if not arguments[0] & signature.argument(0):
        return MISSING
    fitting = [bool(each & signature.argument(1)) for each in arguments[1:]]
    if not any(fitting):
        return MISSING
    if all(fitting):
        return BOOLEAN | MISSING
    return (FALSE if name in ALL_OF else TRUE) | MISSING
