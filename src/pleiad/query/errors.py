"""What a client reads when its query is wrong: the service's own JSON, as the text of one error row.

Every failure of this room leaves as ``pleiad.errors.QUERY_ERROR`` (400). The text is a JSON document with
a list of errors, each with a code and, where the text of the query shows the place, 0-based character
offsets. RULES is the one table of them: code, the service's text, and when it is told. A code with several
texts has a row for each, named by what follows the code.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pleiad.errors import QUERY_ERROR, PleiadError

_SHOWN_CHARS_MAX: Final = 127
"""Of a token as long as a text the service shows this much."""
_COMPLAINTS_TOLD_MAX: Final = 1_000

_RANK: Final = "not allowed with the ORDER BY RANK clause."
_GROUPED: Final = "because it is not contained in either an aggregate function or the GROUP BY clause."
_OPTION: Final = "VectorDistance function options argument property value"
_VECTOR_RANGE: Final = (
    "specified in the VectorDistance function is outside the supported range. The value must be"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: the text with its facts in braces, and when it is told."""

    text: str
    when: str


RULES: Final[dict[str, Rule]] = {
    "SC1001": Rule(
        "Syntax error, incorrect syntax near '{token}'.", "a token that the grammar does not expect here"
    ),
    "SC1002": Rule("Syntax error, unexpected end-of-file.", "the text ends too early"),
    "SC1010": Rule("Syntax error, invalid token '{token}'.", "a character that begins no token"),
    "SC1011": Rule(
        "Syntax error, invalid numeric value token '{token}'.",
        "letters in a number, or no double can hold it",
    ),
    "SC1012": Rule(
        "Syntax error, invalid string literal token '{token}'.", "a string without its end, or a broken \\u"
    ),
    "SC1021": Rule(
        "Syntax error, 'SELECT *' is not valid if FROM clause is omitted.", "SELECT * at the top without FROM"
    ),
    "SC1030": Rule(
        "The query is too complex to be processed. To resolve this issue, please consider breaking the query into "
        "multiple smaller queries, simplifying the complex expression, and/or using Computed Properties.",
        "nested too deeply",
    ),
    "SC2001": Rule("Identifier '{name}' could not be resolved.", "a name that no source of FROM has"),
    "SC2005": Rule("'{name}' is not a recognized built-in function name.", "a call of an unknown function"),
    "SC2021": Rule(
        "The input set name or alias '{name}' is specified more than once in the FROM clause.",
        "an alias twice in FROM, or again in a subquery of an expression",
    ),
    "SC2022": Rule(
        "Object creation error, property name '{name}' specified more than once.",
        "two outputs of a select list or members of an object with one name",
    ),
    "SC2023": Rule(
        "The variable name '{name}' in the LET expression must be unique.", "LET of a name that is in use"
    ),
    "SC2040": Rule(
        "'SELECT *' is not allowed with aggregate functions.", "SELECT * with an aggregate in ORDER BY"
    ),
    "SC2041": Rule("'SELECT *' is not allowed with GROUP BY.", "SELECT * of groups"),
    "SC2042": Rule(
        "'SELECT *' is only valid with a single input set.",
        "SELECT * with JOIN or over a subquery's elements",
    ),
    "SC2050": Rule(
        "The {name} function requires {count} argument(s).", "a call with too few or too many arguments"
    ),
    "SC2051": Rule("The modulo value for the 'Hash' function must be a non-zero integer literal.", "HASH"),
    "SC2052": Rule("The seed value for the 'Hash' function must be an integer literal.", "HASH"),
    "SC2053": Rule(
        "The timespan argument provided to the DateTime function is invalid.", "NOW, AGO, DATETIMEADD of two"
    ),
    "SC2060": Rule(
        "The count value provided for a TOP clause must be an integer.", "TOP of no whole number of 32 bits"
    ),
    "SC2061": Rule(
        "The LIMIT count value exceeds the maximum allowed value.", "LIMIT of no whole number of 32 bits"
    ),
    "SC2062": Rule(
        "The OFFSET count value exceeds the maximum allowed value.", "OFFSET of no whole number of 32 bits"
    ),
    "SC2090": Rule("LET expressions are not allowed in the GROUP BY clause.", "LET in GROUP BY"),
    "SC2091": Rule("LET expressions are not allowed in the ORDER BY clause.", "LET in ORDER BY"),
    "SC2101": Rule(
        "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.",
        "an aggregate in an aggregate",
    ),
    "SC2102": Rule(
        "Property reference '{name}' is invalid in the select list " + _GROUPED, "a path that is no group key"
    ),
    "SC2103": Rule(
        "Property reference '{name}' is invalid in the ORDER BY clause " + _GROUPED, "the same in ORDER BY"
    ),
    "SC2104": Rule("Aggregates are not allowed in the WHERE clause.", "an aggregate in WHERE"),
    "SC2110": Rule(
        "Each GROUP BY expression must contain at least one property reference.", "GROUP BY of a constant"
    ),
    "SC2111": Rule(
        "Cannot use an aggregate or a subquery in an expression used for the group by list of a GROUP BY clause.",
        "an aggregate or a subquery in GROUP BY",
    ),
    "SC2201": Rule(
        "The cardinality of a scalar subquery result set cannot be greater than one.",
        "a scalar subquery over many rows, found when it is compiled or when it runs",
    ),
    "SC2202": Rule("'ORDER BY' is not supported in subqueries.", "the clause in a subquery"),
    "SC2203": Rule("'TOP' is not supported in subqueries.", "the clause in a subquery"),
    "SC2204": Rule("'OFFSET LIMIT' clause is not supported in subqueries.", "the clause in a subquery"),
    "SC2205": Rule("A TOP cannot be used in the same query or subquery as an OFFSET.", "both in one query"),
    "2206": Rule(
        "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.",
        "ORDER BY of something that is no path into the item",
    ),
    "SC2207": Rule(
        "The invalid escape character '{name}' was specified in a LIKE predicate.",
        "ESCAPE of no single character",
    ),
    "SC2210 order": Rule(
        "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported. VectorDistance will "
        "always sort in the order of most similar (first) to least similar (last).",
        "a direction after ORDER BY VectorDistance",
    ),
    "SC2210 name": Rule(
        "'{name}' is not a valid option name for VectorDistance function options argument.", "an option"
    ),
    "SC2210 object": Rule(
        "Options argument of VectorDistance function must be an object literal expression.", "an option"
    ),
    "SC2210 value": Rule(_OPTION + " '{value}' is not a valid value for option '{name}'.", "an option"),
    "SC2210 kind": Rule(_OPTION + " of option '{name}' must be a {kind} literal.", "an option"),
    "SC2212": Rule(
        "The third argument provided in the VectorDistance function is invalid. This value must be a boolean value set "
        'to either "true" to execute an exact search or "false" to execute an efficient search leveraging the index.',
        "VectorDistance",
    ),
    "SC2213": Rule(
        "The 'searchListSizeMultiplier' value {value} " + _VECTOR_RANGE + " between 1 and 100.", "an option"
    ),
    "SC2213 whole": Rule(
        "The 'searchListSizeMultiplier' value specified in the VectorDistance function must be an integer between "
        "1 and 100.",
        "an option",
    ),
    "SC2214": Rule(
        "The 'quantizedVectorListMultiplier' value {value} " + _VECTOR_RANGE + " between 1 and 50.",
        "an option",
    ),
    "SC2214 whole": Rule(
        "The 'quantizedVectorListMultiplier' value specified in the VectorDistance function must be an integer between "
        "1 and 50.",
        "an option",
    ),
    "SC2215": Rule(
        "The 'filterPriority' value specified in the VectorDistance function must be a value between 0 and 1.",
        "an option",
    ),
    "SC2216": Rule(
        "The 'GenerateEmbeddings' function requires a single string literal argument.", "GENERATEEMBEDDINGS"
    ),
    "SC2220": Rule("The DISTINCT keyword is " + _RANK, "ORDER BY RANK"),
    "SC2221": Rule(
        "The ORDER BY RANK clause must be followed by a VectorDistance and/or a FullTextScore function call.",
        "ORDER BY RANK of something else",
    ),
    "SC2222": Rule(
        "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed.", "ORDER BY RANK"
    ),
    "SC2223": Rule("The FROM clause with the IN operator is " + _RANK, "ORDER BY RANK"),
    "SC2224": Rule("The JOIN operator is " + _RANK, "ORDER BY RANK"),
    "SC2225": Rule("Subqueries in the FROM clause are " + _RANK, "ORDER BY RANK"),
    "SC2226": Rule("Aggregate functions are " + _RANK, "ORDER BY RANK"),
    "SC2227": Rule("The GROUP BY clause is " + _RANK, "ORDER BY RANK"),
    "SC2228": Rule("The ORDER BY RANK clause is not supported in subqueries.", "ORDER BY RANK in a subquery"),
    "SC2229": Rule(
        "The last parameter of the RRF function is an optional array of weights. When present, it must be a literal "
        "array of numbers, one for each of the component scores used for the RRF function. The length of this array "
        "must be the same as the number of the component scores.",
        "weights of RRF",
    ),
    "SC2230": Rule(
        "The last parameter of the COMBINEDSCORE function is an optional array of weights. When present, it must be a "
        "literal array of numbers, one for each of the component scores used for the COMBINEDSCORE function. The "
        "length of this array must be the same as the number of the component scores.",
        "weights of COMBINEDSCORE",
    ),
    "SC2231": Rule(
        "The COMBINEDSCORE function only supports FullTextScore component scores.",
        "COMBINEDSCORE of a vector",
    ),
    "SC2232": Rule(
        "The optional search list size multiplier argument to a score fusion function must be a positive integer.",
        "the argument behind the weights",
    ),
    "SC2233": Rule(
        "A score fusion function requires at least two component score functions.", "RRF of one score"
    ),
    "SC2240": Rule(
        "The FullTextScore function is only allowed in the ORDER BY RANK clause.", "FullTextScore elsewhere"
    ),
    "SC2241": Rule(
        "The second through last arguments of the 'FullTextScore' function must be literals of type string or object "
        "specifying the fuzzy search argument containing a 'term' property which is a string and a 'distance' property "
        "which is a number between 0 and 2 (inclusive).",
        "terms of FullTextScore",
    ),
    "SC2990": Rule(
        "The specified query includes 'member indexer' which is currently not supported.",
        "brackets around anything but a string, a number or a parameter with such a value",
    ),
    "SC3002": Rule(
        "The SQL query exceeded the maximum number of joins. The allowed limit is {limit}.",
        "limits.query_joins",
    ),
    "SC3004": Rule(
        "The SQL query exceeded the maximum number of items in an IN expression. The allowed limit is {limit}.",
        "limits.query_in_items; the service has no such limit today",
    ),
    "SC3005": Rule(
        "The SQL query exceeded the maximum number of user-defined function calls. The allowed limit is {limit}.",
        "limits.query_udfs",
    ),
    "SC3020": Rule(
        "The SQL query text exceeded the maximum limit of {limit} characters.", "limits.query_text_chars"
    ),
}


@dataclass(frozen=True, slots=True)
class Complaint:
    """One entry of the list: where, which code, what is wrong."""

    code: str | int
    message: str
    start: int | None = None
    end: int | None = None

    def document(self) -> dict[str, object]:
        entry: dict[str, object] = {"severity": "Error"}
        if self.start is not None:
            entry["location"] = {"start": self.start, "end": self.end}
        entry["code"] = self.code
        entry["message"] = self.message
        return entry


def complaint(row: str, start: int | None = None, end: int | None = None, **facts: Any) -> Complaint:
    """The complaint of one row of the table."""
    if "token" in facts:
        facts["token"] = str(facts["token"])[:_SHOWN_CHARS_MAX]
    code: str | int = row.split(" ", maxsplit=1)[0]
    text = RULES[row].text
    message = text.format(**{name: _shown(value) for name, value in facts.items()}) if facts else text
    return Complaint(int(code) if row == "2206" else code, message, start, end)


def _shown(value: Any) -> str:
    """The text with what no character is replaced, so that it can be sent."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


def query_error(complaints: Sequence[Complaint]) -> PleiadError:
    """The exception that carries these complaints in the service's JSON form, as far as anybody reads them."""
    document = {"errors": [each.document() for each in complaints[:_COMPLAINTS_TOLD_MAX]]}
    return QUERY_ERROR(reason=json.dumps(document, ensure_ascii=False, separators=(",", ":")))


def refusal(row: str, start: int | None = None, end: int | None = None, **facts: Any) -> PleiadError:
    """The exception for one row of the table."""
    return query_error([complaint(row, start, end, **facts)])


def plain_error(message: str) -> PleiadError:
    """The form without code or place, used by the service for what its plan cannot express."""
    return QUERY_ERROR(reason=json.dumps({"Errors": [message]}, ensure_ascii=False, separators=(",", ":")))


def complaints_of(error: PleiadError) -> list[Complaint]:
    """The complaints that an exception of this room carries; what came without code or place has none."""
    try:
        document = json.loads(error.message)
    except ValueError:
        return [Complaint("", error.message)]
    found = []
    for entry in document.get("errors") or document.get("Errors") or ():
        if isinstance(entry, str):
            found.append(Complaint("", entry))
        else:
            place = entry.get("location", {})
            found.append(Complaint(entry["code"], entry["message"], place.get("start"), place.get("end")))
    return found
