"""What wild queries are made of: one entry behind two spaces or a new line."""

from __future__ import annotations

import re
from typing import Any, Final


def _entries(text: str) -> tuple[str, ...]:
    return tuple(re.split(r" {2,}|\n", text.strip()))


NUMBERS: Final = _entries("""
0  1  2  3  -1  7  10  1.5  -0.5  0.1  2.5  1e2  1E2  1e+2  1e-7  0x10  0XfF  007  1.0  .5  5.  1.e3  -0.0
2147483648  -2147483648  4294967296  9007199254740991  9007199254740993  9223372036854775807  9223372036854775808
1e16  1e21  1e308  5e-324  1e-400  1.005  -Infinity  NaN
""")
TEXTS: Final = _entries(r"""
""  ''  "a"  'b'  "A"  'it''s'  'it\'s'  "a\"b"  "\\"  "\u0041"  "\q"  "é"  "ß"  "Σσς"  "😀a"  "abc"  " a "  "10"
"[1,2]"  "{\"a\":1}"  "a,b,,c"  "x y"  "a%"  "--a"  "2020-01-02T03:04:05.1234567Z"  "2020-02-30"  "yyyy"  "dd"
"hour"  "1d"  "c.a"  "NaN"  "%"  "_"  "/*"
""")
DATES: Final = _entries("""
"2020-02-29T23:59:59Z"  "1600-12-31"  "0001-01-01T00:00:00Z"  "9999-12-31T23:59:59.9999999Z"  "2020-13-01"  "2020-1-1"
"2020-01-01T00:00:00+05:30"  "2020-01-01T24:00:00Z"  "20200101"  "2020-01-01T10:20"  "2020-06-15 10:20:30"
"year"  "m"  "minute"  "n"  "second"  "mcs"  "nanosecond"  "weekday"  "wk"  "quarter"  "dayofyear"
"yyyy-MM-dd"  "yy/M/d"  "HH:mm:ss.fff"  "hh tt"  "FFFFFFF"  "dddd"  "zzz"  "h:m:s"
""")
JSON_TEXTS: Final = _entries(r"""
"1"  "01"  "+1"  ".5"  "1."  "1e5"  "1e"  "-0"  "0x10"  "NaN"  "1 "  "\u00a01"  "\u000btrue"  " null "  "Null"  "[]"
"[01]"  "[1,]"  "[1 2]"  "[-0]"  "['a']"  "[\"a\\tb\"]"  "[\"\\ud83d\"]"  "[\"\\q\"]"  "{}"  "{\"a\":{\"b\":[1]}}"
"{a:1}"  "[[[]]]"  "[9007199254740993.0]"  "9223372036854775808"  "123456789012345678901"  "[undefined]"  "[1]x"
"0001.50"  "[1.0]"
""")
OTHERS: Final = _entries("""
true  false  null  undefined  []  [1]  [3,1,2,1]  ["b","a"]  {}  {a:1}  {'x y':1}  {a:{b:1}}  [[1],[1]]  (0/0)  (1/0)
[{a:1},{a:1,b:2}]  [undefined,1]  @p  @q  @n  @gone  @arr
""")
NAMES: Final = _entries("a  b  pk  name  tags  id  x  _ts  é  日本  A  order  value  top  count  let  c")
STEPS: Final = _entries("""["$1"]  ["x y"]  ['b']  ["a"]  [0]  [1]  ["pk"]  ['order']  ["😀"]  [@p]  [007]""")
OPERATORS: Final = _entries(
    "+  -  *  /  %  &  |  ^  <<  >>  >>>  =  !=  <>  <  <=  >  >=  AND  OR  ||  ??  and  Or"
)
PREFIXES: Final = ("-", "+", "~", "NOT ", "not ", "!", "- ")
AGGREGATES: Final = _entries("COUNT  SUM  MIN  MAX  AVG  COUNTIF  MAKELIST  MAKESET  count  Sum")
SCORES: Final = (
    'FullTextScore({a}.name, "a", "b")',
    "FullTextScore({a}.name, 'a', 1, 2)",
    "VectorDistance({a}.x, [1, 2])",
    "vectordistance([1], {a}.x, true)",
    "ABS({a}.b)",
)
KEY_PATHS: Final = _entries(""".pk  .pk  ["pk"]  .a  .b  .a.b  .id  ["x y"]""")
KEYS: Final = _entries("""
1  'a'  2  null  true  false  1.5  ''  @p  @q  -1  1+1  LOWER('A')  'a' || 'b'  [1]  undefined  {}  @gone  -0.0  1e308
(0/0)  ABS(-1)  [1][0]  {a:1}.a  (1=1)  (SELECT VALUE 1)
""")
KEY_TESTS: Final = _entries("""
IS_NULL({k})  IS_BOOL({k})  IS_DEFINED({k})  NOT IS_DEFINED({k})  IS_NUMBER({k})  LOWER({k}) = {v}  UPPER({k}) = {v}
STARTSWITH({k}, {v})  CONTAINS({k}, {v})  STRINGEQUALS({k}, {v}, true)  NOT {k}  {k}  ARRAY_CONTAINS([{v}, {w}], {k})
ARRAY_CONTAINS(@arr, {k})  ARRAY_CONTAINS_ANY([{v}], {k})  [{k}] = [{v}]  {{a: {k}}}.a = {v}  {{a: {k}}} = {{a: {v}}}
-{k} = {v}  {k} * 2 = {v}  {k} || 'a' = {v}  ABS({k}) = {v}  REVERSE({k}) = {v}  LENGTH({k}) = 0  ({k} ?? 1) = {v}
IIF({k} = {v}, true, false)  ({k} = {v}) = false  EXISTS(SELECT VALUE 1 WHERE {k} = {v})  (SELECT VALUE {k}) = {v}
ARRAY(SELECT VALUE {k}) = [{v}]  {k} LIKE 'a%'  {k} LIKE {v}  NOT ({k} != {v})  (LET v = {k} IN v = {v})  {k} = {k}
CHOOSE(1, {k}, 2) = {v}  {k} != {k}  TOSTRING({k}) = {v}  udf.f({k}) = {v}  ({k} = {v} ? {k} = 1 : {k} = 2)  {v}
{k} >= {v} AND {k} <= {w}  ({k} BETWEEN {v} AND {w})  {k} NOT IN ({v}, {w})  {k} IN ({v}, {w})
""")
BREAKS: Final = (
    "",
    "(",
    ")",
    ",",
    ";",
    "'",
    "1a",
    " AND ",
    ".",
    "[",
    "{",
    "@",
    "#",
    " FROM ",
    " NOT ",
    "0x",
    "=",
)
SPACES: Final = ("  ", "\n", "\t", "\r\n", " -- x\n", '\n-- a "b\n')
VALUES: Final[list[Any]] = [
    "a",
    1,
    0,
    1.5,
    None,
    True,
    "",
    [1],
    {"a": 1},
    {},
    -1,
    "b",
    1e300,
    "x y",
    5,
    2**32,
]
ARRAYS: Final[list[Any]] = [[1, 2], ["a"], [], [1, "a", None]]
PATHS: Final = _entries("/pk  /pk  /pk  /pk  /a  /a/b  /pk /a  /a /b  /pk /a /b  /id  /x%20y  /é")
"""Key paths of a container, which a space parts; ``%20`` is a space in one."""
