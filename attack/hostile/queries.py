"""Query texts that want far more than they look like, by the part of the server they are aimed at.

They are run on items with an array `a` of 200 numbers, a string `s` of many a's, a number `n`, a point `geo`, a vector
`v`, a text `t`, and a few items with a string `big` of a million characters and an array `many` of 5,000.
"""

from __future__ import annotations

import math
from typing import Any

from attack.hostile.collisions import behind_zero, on_the_way_of_zero

TEXT_CHARS = 262_144
"""The longest text that the service takes."""

Parameters = list[dict[str, Any]]
Text = tuple[str, Parameters]


def _numbers(count: int) -> str:
    return "[" + ",".join(map(str, range(count))) + "]"


def _joins(count: int, source: str = "c.a") -> str:
    return " ".join(f"JOIN j{number} IN {source}" for number in range(count))


def _nested(before: str, inner: str, after: str, depth: int) -> str:
    return before * depth + inner + after * depth


def _filled(pattern: str, piece: str, joint: str, chars: int = TEXT_CHARS) -> str:
    """The pattern with as many pieces in its place as a text may have."""
    room = chars - len(pattern) - 10
    return pattern.replace("{}", joint.join([piece] * max(1, room // (len(piece) + len(joint)))))


def _multiplied(source: str, width: int, depth: int, wrapped: int = 1) -> str:
    """Arrays that hold one value many times, and arrays of such arrays: small to build, endless to write."""
    text = f"SELECT VALUE {source} FROM c"
    for level in range(depth):
        members = ",".join([f"y{level}"] * width)
        text = f"SELECT VALUE {'[' * wrapped}{members}{']' * wrapped} FROM ({text}) AS y{level}"
    return text


def _polygon(points: int, radius: float = 30.0) -> dict[str, Any]:
    """A star with very many corners, closed."""
    ring = [
        [
            radius * (1 if number % 2 else 0.6) * math.cos(2 * math.pi * number / points),
            radius * (1 if number % 2 else 0.6) * math.sin(2 * math.pi * number / points),
        ]
        for number in range(points)
    ]
    return {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}


def _with(name: str, value: Any) -> Parameters:
    return [{"name": name, "value": value}]


JOINS: dict[str, Text] = {
    "join of 5": (f"SELECT VALUE 1 FROM c {_joins(5)} WHERE j0 + j1 + j2 + j3 + j4 < 0", []),
    "join of 10": (f"SELECT VALUE 1 FROM c {_joins(10)} WHERE j9 < 0", []),
    "count over joins": (f"SELECT VALUE COUNT(1) FROM c {_joins(4)}", []),
    "sum over joins": (f"SELECT VALUE SUM(j0 * j1 * j2) FROM c {_joins(4)}", []),
    "join of an array of 5,000 with itself": (f"SELECT VALUE 1 FROM c {_joins(3, 'c.many')} WHERE j2 < 0", []),
    "join of subqueries": (
        "SELECT VALUE 1 FROM c JOIN (SELECT VALUE x FROM x IN c.a WHERE x > 0) AS p "
        "JOIN (SELECT VALUE x FROM x IN c.a WHERE x > p) AS q JOIN (SELECT VALUE x FROM x IN c.a) AS r WHERE r < 0",
        [],
    ),
    "join of literals": (
        f"SELECT VALUE 1 FROM c JOIN (SELECT VALUE {_numbers(400)}) AS q {_joins(4, 'q')} WHERE j3 < 0",
        [],
    ),
    "exists in exists": (
        "SELECT VALUE 1 FROM c WHERE EXISTS(SELECT VALUE x FROM x IN c.a WHERE EXISTS(SELECT VALUE y FROM y IN c.a "
        "WHERE EXISTS(SELECT VALUE z FROM z IN c.a WHERE x + y + z < 0)))",
        [],
    ),
    "array of arrays": (
        "SELECT ARRAY(SELECT VALUE ARRAY(SELECT VALUE ARRAY(SELECT VALUE x + y + z FROM z IN c.a) FROM y IN c.a) "
        "FROM x IN c.a) AS r FROM c",
        [],
    ),
    "scalar subqueries in a row": (
        "SELECT " + ", ".join(
            f"(SELECT VALUE COUNT(1) FROM x IN c.a JOIN y IN c.a JOIN z IN c.a WHERE x+y+z > {n}) AS r{n}"
            for n in range(5)
        ) + " FROM c",
        [],
    ),
    "offset beyond everything": (f"SELECT VALUE 1 FROM c {_joins(3)} OFFSET 2000000000 LIMIT 1", []),
    "top of everything": (f"SELECT TOP 2000000000 VALUE j0 FROM c {_joins(3)}", []),
}  # fmt: skip

MEMORY: dict[str, Text] = {
    "order by over joins": (f"SELECT VALUE c.big FROM c {_joins(3)} ORDER BY c.n", []),
    "order by a million rows": (f"SELECT c.id, j0, j1, j2 FROM c {_joins(3)} ORDER BY c.n DESC", []),
    "makelist of long strings": (f"SELECT VALUE MAKELIST(c.big) FROM c {_joins(3)}", []),
    "makelist over joins": (f"SELECT VALUE MAKELIST(j0 + j1) FROM c {_joins(3)}", []),
    "makeset over joins": (f"SELECT VALUE MAKESET(CONCAT(c.id, ToString(j0), ToString(j1))) FROM c {_joins(3)}", []),
    "group by a built string": (
        f"SELECT k, COUNT(1) AS n FROM c {_joins(2)} JOIN (SELECT VALUE CONCAT(REPLICATE('k', 1000), c.id, "
        "ToString(j0), '-', ToString(j1))) AS k GROUP BY k",
        [],
    ),
    "group by built expressions": (
        f"SELECT COUNT(1) AS n FROM c {_joins(2)} GROUP BY CONCAT(c.id, REPLICATE(ToString(j0), 1000), ToString(j1))",
        [],
    ),
    "distinct built strings": (
        f"SELECT DISTINCT VALUE CONCAT(REPLICATE('d', 1000), c.id, ToString(j0), '-', ToString(j1)) FROM c {_joins(2)}",
        [],
    ),
    "distinct built arrays": (f"SELECT DISTINCT VALUE [c.a, c.s, j0, j1] FROM c {_joins(2)}", []),
    "replicate in replicate": (
        "SELECT VALUE REPLICATE(REPLICATE(REPLICATE(REPLICATE('x', 10000), 10000), 10000), 10000) FROM c",
        [],
    ),
    "concat of concat": (
        "SELECT VALUE " + _nested("CONCAT(", "c.big", ", c.big, c.big)", 12) + " FROM c",
        [],
    ),
    "array concat": ("SELECT VALUE " + _nested("ARRAY_CONCAT(", "c.many", ", c.many, c.many)", 14) + " FROM c", []),
    "replace that grows": (
        "SELECT VALUE REPLACE(REPLACE(REPLACE(c.big, 'x', 'xxxxxxxxxx'), 'x', 'xxxxxxxxxx'), 'x', 'xxxxxxxxxx') FROM c",
        [],
    ),
    "string join": ("SELECT VALUE STRINGJOIN(ARRAY(SELECT VALUE c.big FROM x IN c.many), c.big) FROM c", []),
    "string split": ("SELECT VALUE STRINGSPLIT(REPLICATE(c.big, 10), 'x') FROM c", []),
    "to string of everything": ("SELECT VALUE ToString([" + ",".join(["c"] * 2000) + "]) FROM c", []),
    "objects of everything": ("SELECT " + ", ".join(f"c.big AS b{n}" for n in range(2000)) + " FROM c", []),
    "wide rows": ("SELECT VALUE [" + ",".join(["c.big"] * 5000) + "] FROM c", []),
    "array of long strings": (
        "SELECT VALUE ARRAY(SELECT VALUE CONCAT(c.big, ToString(x)) FROM x IN c.many) FROM c", [],
    ),
    "union of arrays": (
        "SELECT VALUE SETUNION(c.many, ARRAY(SELECT VALUE x * y FROM x IN c.a JOIN y IN c.a)) FROM c", [],
    ),
    "sets of arrays": (
        "SELECT VALUE SETINTERSECT(ARRAY(SELECT VALUE [x, y] FROM x IN c.a JOIN y IN c.a), "
        "ARRAY(SELECT VALUE [y, x] FROM x IN c.a JOIN y IN c.a)) FROM c",
        [],
    ),
    "references multiplied": (_multiplied("c.big", 10, 6), []),
    "references of items": (_multiplied("c", 10, 5), []),
    "references in an order": ("SELECT VALUE [" + ",".join(["c.big"] * 3000) + "] FROM c ORDER BY c.n", []),
    "references in groups": ("SELECT COUNT(1) AS n FROM c GROUP BY [" + ",".join(["c.big"] * 500) + "]", []),
    "references told apart": ("SELECT DISTINCT VALUE [" + ",".join(["c.big"] * 500) + "] FROM c", []),
    "references in a list": ("SELECT VALUE MAKELIST([" + ",".join(["c.big"] * 500) + "]) FROM c", []),
    "references compared": (
        "SELECT VALUE 1 FROM c WHERE [" + ",".join(["c.big"] * 500) + "] = [" + ",".join(["c.big"] * 500) + "]", [],
    ),
    "values too deep to write": (_multiplied("c.n", 1, 3, wrapped=100), []),
    "deep values told apart": (_multiplied("c.n", 1, 3, wrapped=100).replace("VALUE", "DISTINCT VALUE", 1), []),
    "object to array": ("SELECT VALUE ObjectToArray(c) FROM c JOIN x IN c.many JOIN y IN c.many", []),
}  # fmt: skip

PATTERNS: dict[str, Text] = {
    "pattern on items": ("SELECT VALUE 1 FROM c WHERE RegexMatch(c.s, '(a+)+$')", []),
    "pattern of a parameter": ("SELECT VALUE 1 FROM c WHERE RegexMatch(c.s, @p)", _with("@p", "^(a|a)*$")),
    "pattern on a parameter": (
        "SELECT VALUE 1 FROM c WHERE RegexMatch(@t, @p)",
        [{"name": "@t", "value": "a" * 40_000 + "!"}, {"name": "@p", "value": "(a*)*b"}],
    ),
    "pattern on a constant": (f"SELECT VALUE RegexMatch('{'a' * 3000}!', '(a|aa)+$') FROM c", []),
    "pattern with back references": ("SELECT VALUE RegexMatch(c.s, '(a*)*\\\\1(a*)*\\\\2b') FROM c", []),
    "pattern with many choices": (
        "SELECT VALUE RegexMatch(c.big, @p) FROM c", _with("@p", "|".join(f"x*{'x' * n}y" for n in range(500))),
    ),
    "pattern of 100 KB": ("SELECT VALUE RegexMatch(c.s, @p) FROM c", _with("@p", "(a?)" * 25_000)),
    "pattern with counts": ("SELECT VALUE RegexMatch(c.s, '((a{1,100}){1,100}){1,100}b') FROM c", []),
    "patterns over joins": (f"SELECT VALUE RegexMatch(CONCAT(c.s, ToString(j0)), '(a+)+b') FROM c {_joins(2)}", []),
    "pattern that remembers every round": (
        "SELECT VALUE RegexMatch(CONCAT(c.big, c.big, c.big, c.big), '^(x|xx|xxx)*$') FROM c", [],
    ),
    "pattern that calls itself": ("SELECT VALUE RegexMatch(CONCAT(c.big, c.big, c.big), '^(x(?1)?)$') FROM c", []),
    "pattern in a filter over a million characters": (
        "SELECT VALUE 1 FROM c WHERE RegexMatch(c.big, '(x+x+)+y')", [],
    ),
    "like with many wildcards": (f"SELECT VALUE 1 FROM c WHERE c.big LIKE '{'%x' * 3000}%y'", []),
    "like on strings of a's": (f"SELECT VALUE 1 FROM c WHERE c.s LIKE '{'%a_' * 60}%b'", []),
    "like of a parameter": ("SELECT VALUE 1 FROM c WHERE c.s LIKE @p", _with("@p", "%a" * 20_000 + "b")),
    "12 nested likes": ("SELECT VALUE " + _nested("(c.s LIKE (", "'%a%'", "))", 12) + " FROM c", []),
    "40 likes": ("SELECT VALUE 1 FROM c WHERE " + " OR ".join(f"c.s LIKE '%a%a%{n}%b'" for n in range(40)), []),
    "index of in long strings": ("SELECT VALUE INDEX_OF(c.big, CONCAT(c.s, 'b')) FROM c JOIN x IN c.many", []),
    "replace in long strings": ("SELECT VALUE LENGTH(REPLACE(c.big, 'x', 'y')) FROM c JOIN x IN c.many", []),
    "last index of in long strings": (
        "SELECT VALUE LASTINDEXOF(c.big, @p) FROM c", _with("@p", "xy" + "x" * 400_000),
    ),
    "what comes after the last part": (
        "SELECT VALUE LASTSUBSTRINGAFTER(c.big, @p) FROM c", _with("@p", "xy" + "x" * 400_000),
    ),
    "very many parts looked for in long strings": (
        f"SELECT VALUE CONTAINS_ANY_CI(c.big{', @p' * 4_000}) FROM c", _with("@p", "x" * 2_000 + "y"),
    ),
    "trim of very many characters": ("SELECT VALUE TRIM(c.big, @p) FROM c", _with("@p", "y" * 400_000 + "x")),
    "case of letters beyond ASCII": (
        "SELECT VALUE LENGTH(UPPER(CONCAT(REPLACE(c.big, 'x', 'é'), REPLACE(c.big, 'x', 'é'), c.big))) FROM c", [],
    ),
    "reverse and upper": ("SELECT VALUE REVERSE(UPPER(LOWER(c.big))) FROM c JOIN x IN c.many WHERE x < 0", []),
}  # fmt: skip

TEXTS: dict[str, Text] = {
    "262 KB of or": (_filled("SELECT VALUE 1 FROM c WHERE {}", "c.n=1", " OR "), []),
    "262 KB of and": (_filled("SELECT VALUE 1 FROM c WHERE {}", "c.n!=1", " AND "), []),
    "262 KB of in": (_filled("SELECT VALUE 1 FROM c WHERE c.n IN ({})", "1", ","), []),
    "262 KB of plus": (_filled("SELECT VALUE {} FROM c", "c.n", "+"), []),
    "262 KB of properties": (_filled("SELECT VALUE c{} FROM c", ".a", ""), []),
    "262 KB of brackets": (_filled("SELECT VALUE c{} FROM c", '["a"]', ""), []),
    "262 KB of parentheses": ("SELECT VALUE " + "(" * 131_000 + "1" + ")" * 131_000, []),
    "262 KB of arrays": ("SELECT VALUE " + "[" * 131_000 + "]" * 131_000, []),
    "262 KB of objects": ("SELECT VALUE " + _nested('{"a":', "1", "}", 43_000), []),
    "262 KB of array members": (_filled("SELECT VALUE [{}] FROM c", "c.n", ","), []),
    "262 KB of selected": (_filled("SELECT {} FROM c", "c.n", ","), []),
    "262 KB of not": (_filled("SELECT VALUE {} true FROM c", "NOT", " "), []),
    "262 KB of minus": (_filled("SELECT VALUE {}1 FROM c", "- ", ""), []),
    "262 KB of one string": ("SELECT VALUE '" + "x" * 262_000 + "' FROM c", []),
    "262 KB of escapes": (_filled("SELECT VALUE '{}' FROM c", "\\u0041", ""), []),
    "262 KB of one name": ("SELECT VALUE c." + "x" * 262_000 + " FROM c", []),
    "262 KB of one number": ("SELECT VALUE 1" + "0" * 262_000 + " FROM c", []),
    "262 KB of white space": ("SELECT" + " \n" * 131_000 + "VALUE 1 FROM c", []),
    "262 KB of ternaries": (_filled("SELECT VALUE {}1 FROM c", "c.n=1?2:", ""), []),
    "262 KB of coalescing": (_filled("SELECT VALUE {} FROM c", "c.x", "??"), []),
    "262 KB of concat": (_filled("SELECT VALUE CONCAT({}) FROM c", "c.s", ","), []),
    "262 KB of subqueries": (_filled("SELECT {} FROM c", "(SELECT VALUE COUNT(1) FROM x IN c.a)", ","), []),
    "262 KB of exists": (_filled("SELECT VALUE 1 FROM c WHERE {}", "EXISTS(SELECT VALUE 1 FROM x IN c.a)", " OR "), []),
    "262 KB of order by": (_filled("SELECT VALUE 1 FROM c ORDER BY {}", "c.n", ","), []),
    "262 KB of group by": (_filled("SELECT COUNT(1) AS n FROM c GROUP BY {}", "c.n", ","), []),
    "262 KB of likes": (_filled("SELECT VALUE 1 FROM c WHERE {}", "c.s LIKE '%a%b'", " OR "), []),
    "262 KB of between": (_filled("SELECT VALUE 1 FROM c WHERE {}", "c.n BETWEEN 1 AND 2", " OR "), []),
    "262 KB of parameters": (_filled("SELECT VALUE [{}] FROM c", "@p", ","), _with("@p", "x" * 1000)),
    "490 KB": (_filled("SELECT VALUE 1 FROM c WHERE {}", "c.n=1", " OR ", 490_000), []),
    "nesting of 60": ("SELECT VALUE " + _nested("(c.n + ", "1", ")", 60) + " FROM c", []),
    "nested subqueries": (
        "SELECT VALUE 1 FROM c WHERE " + _nested("EXISTS(SELECT VALUE 1 FROM x IN c.a WHERE ", "x < 0", ")", 30), [],
    ),
    "16,000 values in a list": (f"SELECT VALUE 1 FROM c {_joins(2)} WHERE j0 IN ({_numbers(16_000)[1:-1]})", []),
    "10,000 parameters": (
        "SELECT VALUE 1 FROM c WHERE c.n IN (" + ",".join(f"@p{n}" for n in range(10_000)) + ")",
        [{"name": f"@p{n}", "value": n} for n in range(10_000)],
    ),
    "a parameter of a megabyte": (
        "SELECT VALUE ARRAY_CONTAINS(@p, c.a, true) FROM c", _with("@p", [[n, {"a": n}] for n in range(50_000)]),
    ),
    "400,000 ids in a parameter": (
        "SELECT VALUE 1 FROM c WHERE ARRAY_CONTAINS(@p, c.id)", _with("@p", list(range(400_000))),
    ),
}  # fmt: skip

SEARCH: dict[str, Text] = {
    "polygon of 20,000 corners": ("SELECT VALUE 1 FROM c WHERE ST_WITHIN(c.geo, @p)", _with("@p", _polygon(20_000))),
    "distance to a polygon": ("SELECT VALUE ST_DISTANCE(c.geo, @p) FROM c", _with("@p", _polygon(20_000))),
    "polygons that cross": (
        "SELECT VALUE ST_INTERSECTS(@p, @q) FROM c",
        [{"name": "@p", "value": _polygon(8_000)}, {"name": "@q", "value": _polygon(8_001, 29.0)}],
    ),
    "validity of a polygon": ("SELECT VALUE ST_ISVALIDDETAILED(@p) FROM c", _with("@p", _polygon(30_000))),
    "area over joins": (f"SELECT VALUE ST_AREA(@p) FROM c {_joins(2)}", _with("@p", _polygon(2_000))),
    "vector of 4,096 over joins": (
        f"SELECT VALUE VectorDistance(@p, @p) FROM c {_joins(3)}", _with("@p", [0.5] * 4096),
    ),
    "vector order": (
        "SELECT TOP 1000 c.id FROM c ORDER BY VectorDistance(c.v, @p, true)", _with("@p", [0.5] * 128),
    ),
    "full text of many words": (
        "SELECT VALUE 1 FROM c WHERE FullTextContainsAny(c.t, " + ",".join(f"'w{n}'" for n in range(5000)) + ")", [],
    ),
    "full text over joins": (f"SELECT VALUE FullTextContains(c.t, 'alpha') FROM c {_joins(3)}", []),
    "rank of many words": (
        "SELECT TOP 100 c.id FROM c ORDER BY RANK FullTextScore(c.t, "
        + ",".join(f"'w{n}'" for n in range(200)) + ")", [],
    ),
    "ranks fused": (
        "SELECT TOP 1000 c.id FROM c ORDER BY RANK RRF("
        + ",".join(["FullTextScore(c.t, 'alpha', 'beta')"] * 20) + ")", [],
    ),
    "math over joins": (f"SELECT VALUE POWER(SQRT(EXP(j0 % 50)), j1) FROM c {_joins(3)} WHERE j2 < 0", []),
    "numbers to strings": (f"SELECT VALUE SUM(StringToNumber(ToString(j0 * 1.1))) FROM c {_joins(3)}", []),
    "dates over joins": (
        f"SELECT VALUE DateTimeToTimestamp(DateTimeAdd('dd', j0, '2020-01-01T00:00:00.0000000Z')) FROM c {_joins(3)} "
        "WHERE j1 < 0",
        [],
    ),
    "date bins": ("SELECT VALUE DateTimeBin('9999-01-01T00:00:00.0000000Z', 'ns', 1) FROM c JOIN x IN c.many", []),
    "contains without case": (f"SELECT VALUE CONTAINS(c.big, CONCAT(c.s, 'q'), true) FROM c {_joins(2)}", []),
    "strings to objects": (f"SELECT VALUE StringToObject(CONCAT('{{\"a\":\"', c.big, '\"}}')) FROM c {_joins(1)}", []),
    "strings to deep arrays": (
        f"SELECT VALUE StringToArray(CONCAT(REPLICATE('[', 9000), REPLICATE(']', 9000))) FROM c {_joins(2)}", [],
    ),
    "array slices": ("SELECT VALUE ARRAY_SLICE(c.many, x) FROM c JOIN x IN c.many", []),
    "array contains": ("SELECT VALUE 1 FROM c JOIN x IN c.many WHERE ARRAY_CONTAINS(c.many, -x)", []),
    "array contains parts": (
        "SELECT VALUE ARRAY_CONTAINS(ARRAY(SELECT x, c.a AS y FROM x IN c.many), {'y': c.many}, true) FROM c", [],
    ),
    "choose of many": ("SELECT VALUE CHOOSE(3, " + ",".join(["c.big"] * 3000) + ") FROM c", []),
    "documents compared": (
        f"SELECT VALUE 1 FROM c {_joins(2)} WHERE c = [c, c.a] OR c.a != ARRAY_CONCAT(c.a, [j0])", [],
    ),
}  # fmt: skip

_WAY = on_the_way_of_zero(17, in_a_row=1)

COLLISIONS: dict[str, Text] = {
    "set of one number met again and again": (
        "SELECT VALUE ARRAY_LENGTH(SETUNION(@p, [])) FROM c", _with("@p", [*_WAY, *[0] * 200_000]),
    ),
    "numbers looked for behind many": (
        "SELECT VALUE ARRAY_LENGTH(SETINTERSECT(@p, @q)) FROM c",
        [{"name": "@p", "value": behind_zero(17, 60_000)}, {"name": "@q", "value": _WAY}],
    ),
    "distinct numbers of one place": (
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE x FROM c JOIN x IN (SELECT VALUE @p))",
        _with("@p", [*_WAY, *[0] * 200_000]),
    ),
    "groups of numbers of one place": (
        "SELECT x, COUNT(1) AS n FROM c JOIN x IN (SELECT VALUE @p) GROUP BY x",
        _with("@p", [*_WAY, *[0] * 200_000]),
    ),
    "keys of one place": ("SELECT VALUE 1 FROM c WHERE c.n IN (" + ",".join(map(str, _WAY[:16_000])) + ")", []),
}  # fmt: skip
"""Numbers that are slow to tell apart, should a server hash them as they are."""

KEYS: dict[str, Text] = {
    "16,000 keys": ("SELECT * FROM c WHERE c.pk IN (" + ",".join(f"'k{n}'" for n in range(16_000)) + ")", []),
    "keys of two lists": (
        "SELECT * FROM c WHERE " + " AND ".join(
            "c.pk IN (" + ",".join(f"'k{n + m}'" for n in range(8_000)) + ")" for m in range(2)
        ),
        [],
    ),
    "count over 16,000 keys": (
        "SELECT VALUE COUNT(1) FROM c WHERE c.pk IN (" + ",".join(f"'k{n}'" for n in range(16_000)) + ")", [],
    ),
    "order over 8,000 keys": (
        "SELECT * FROM c WHERE c.pk IN (" + ",".join(f"'k{n}'" for n in range(8_000)) + ") ORDER BY c.n", [],
    ),
    "keys far below": (
        "SELECT * FROM c WHERE " + _nested("NOT (", " OR ".join(f"c.pk='k{n}'" for n in range(1_900)), ")", 60), [],
    ),
    "ranges that do not exclude each other": (
        "SELECT * FROM c WHERE " + " AND ".join(f"c.n > {-1 - n} AND c.n < {9_000 + n}" for n in range(950)), [],
    ),
}  # fmt: skip
"""Filters that are read for the partition keys they leave; asked without one."""

CHANGES: dict[str, Text] = {
    "joins": (
        "SELECT * FROM c WHERE EXISTS(SELECT VALUE 1 FROM " + "x IN c.a " + _joins(4) + " WHERE j3 < 0)",
        [],
    ),
    "pattern": ("SELECT * FROM c WHERE RegexMatch(c.s, '(a+)+b')", []),
    "262 KB": (_filled("SELECT * FROM c WHERE c.n IN ({})", "1", ","), []),
}
"""Filters of a change feed."""

METADATA: dict[str, Text] = {
    "joins on metadata": (
        f"SELECT VALUE 1 FROM r JOIN (SELECT VALUE {_numbers(300)}) AS q {_joins(4, 'q')} WHERE j3 < 0",
        [],
    ),
    "pattern on metadata": ("SELECT VALUE RegexMatch(@t, '(a|aa)+$') FROM r", _with("@t", "a" * 5000 + "!")),
    "replicate on metadata": ("SELECT VALUE REPLICATE(REPLICATE(r.id, 10000), 10000) FROM r", []),
    "makelist on metadata": (
        f"SELECT VALUE MAKELIST(REPLICATE('x', 10000)) FROM r JOIN (SELECT VALUE {_numbers(1000)}) AS q "
        + _joins(3, "q"),
        [],
    ),
    "polygon on metadata": ("SELECT VALUE ST_ISVALIDDETAILED(@p) FROM r", _with("@p", _polygon(20_000))),
    "262 KB on metadata": (_filled("SELECT * FROM r WHERE {}", "r.id='x'", " OR "), []),
}  # fmt: skip
