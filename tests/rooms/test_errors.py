"""The error table, and what every head makes of it."""

from __future__ import annotations

from string import Formatter
from typing import Any

import pytest

from pleiad import errors
from pleiad.errors import ErrorRow, PleiadError, Reason
from pleiad.heads.nosql import failures as nosql
from pleiad.script.failure import NUMBERS
from pleiad.server.http import failures as http

TABLES = {"the server": http, "the NoSQL head": nosql, "every room": errors}
ROWS = {
    f"{place}: {name}": row
    for place, module in TABLES.items()
    for name, row in vars(module).items()
    if isinstance(row, ErrorRow)
}


def failed(row: ErrorRow) -> PleiadError:
    facts: dict[str, Any] = {place: "x" for _, place, _, _ in Formatter().parse(row.text) if place}
    return row(**facts)


def test_every_reason_has_a_status_and_a_number_for_scripts() -> None:
    assert set(http.STATUS_OF_REASON) == set(Reason)
    assert set(NUMBERS) == set(Reason)
    assert set(http.STATUS_OF_REASON.values()) <= set(http.NAMES)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_every_failure_is_told_to_clients_by_status_name_and_words(row: ErrorRow) -> None:
    error = failed(row)
    assert nosql.code_of(error) == http.NAMES[http.status_of(error)]
    assert nosql.message_of(error)
    assert 0 <= nosql.substatus_of(error) <= 65535


def test_every_reason_is_the_reason_of_some_failure() -> None:
    assert {row.reason for row in ROWS.values()} == set(Reason)


def test_a_failure_keeps_its_facts_for_heads_with_other_words() -> None:
    error = errors.BAD_CONTINUATION(token="abc")
    assert error.facts == {"token": "abc"}
    assert "x-ms-continuation" not in error.message
    assert "'abc' specified for the header 'x-ms-continuation'" in nosql.message_of(error)


@pytest.mark.parametrize("name", [name for name, row in vars(errors).items() if isinstance(row, ErrorRow)])
def test_no_failure_of_the_house_names_a_header(name: str) -> None:
    assert "x-ms-" not in getattr(errors, name).text
