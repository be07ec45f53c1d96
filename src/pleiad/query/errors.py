"""What a client reads when its query is wrong: the service's own JSON, as the text of one error row.

Every failure of this room leaves as ``pleiad.errors.QUERY_ERROR`` (400). The text is a JSON document with
a list of errors, each with a code and, where the text of the query shows the place, 0-based character
offsets.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pleiad.errors import QUERY_ERROR, PleiadError


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


def query_error(complaints: Sequence[Complaint]) -> PleiadError:
    """The exception that carries these complaints in the service's JSON form."""
    document = {"errors": [complaint.document() for complaint in complaints]}
    return QUERY_ERROR(reason=json.dumps(document, ensure_ascii=False, separators=(",", ":")))


def complain(code: str | int, message: str, start: int | None = None, end: int | None = None) -> PleiadError:
    """The exception for one complaint."""
    return query_error([Complaint(code, message, start, end)])


def syntax_error(near: str, start: int, end: int) -> PleiadError:
    """SC1001: the parser did not expect this token."""
    shown = near if len(near) <= 100 else near[:100] + "…"
    return complain("SC1001", f"Syntax error, incorrect syntax near '{shown}'.", start, end)


def invalid_token(token: str, start: int, end: int) -> PleiadError:
    """SC1010: these characters are no token of the language."""
    return complain("SC1010", f"Syntax error, invalid token '{token[:100]}'.", start, end)


def plain_error(message: str) -> PleiadError:
    """The form without code or place, used by the service for what its plan cannot express."""
    return QUERY_ERROR(reason=json.dumps({"Errors": [message]}, ensure_ascii=False, separators=(",", ":")))
