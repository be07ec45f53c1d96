from __future__ import annotations

import pytest

from pleiad.advise.key import Key, KeyTextError, Kind, parse
from pleiad.limits import Limits


@pytest.mark.parametrize(
    "text",
    [
        "/tenantId",
        "/address/city",
        "/tenantId,/userId,/id",
        "concat(/deviceId,/date)",
        "random(/date,400)",
        "suffix(/date,/vin,400)",
        "day(/at)",
        '/"a,/b"',
    ],
)
def test_a_key_is_written_as_it_is_read(text: str) -> None:
    assert parse(text, Limits()).text == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tenantId", "is no path"),
        ("/a,/b,/c,/d", "more than 3 levels"),
        ("concat(/a)", "puts nothing together"),
        ("random(/a)", "number of suffixes"),
        ("random(/a,1)", "from 2 to"),
        ("suffix(/a,10)", "names 1 paths, and takes 2"),
        ("day(/a,/b)", "names 2 paths, and takes 1"),
        ("/a,/a", "names a path twice"),
    ],
)
def test_a_text_that_is_no_key_says_why(text: str, said: str) -> None:
    with pytest.raises(KeyTextError, match=said):
        parse(text, Limits())


@pytest.mark.requirement("R102", "R108")
def test_what_clients_make_is_in_a_property_of_its_own() -> None:
    assert Key(Kind.CONCAT, ("/deviceId", "/date")).definition().paths == ("/partitionKey",)
    assert parse("/tenantId,/userId", Limits()).definition().kind == "MultiHash"
