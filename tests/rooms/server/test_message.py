"""Requests, responses and header lines as values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pleiad.server.http.message import Request, render_headers


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"/", b"/", b""),
        (b"/dbs/a%20b?x=1&y=?", b"/dbs/a%20b", b"x=1&y=?"),
        (b"http://host:8081/dbs/d?q", b"/dbs/d", b"q"),
        (b"http://host", b"/", b""),
        (b"/a?u=http://b/c", b"/a", b"u=http://b/c"),
        (b"*", b"*", b""),
    ],
)
def test_a_target_is_divided_into_path_and_query(target: bytes, path: bytes, query: bytes) -> None:
    request = Request("GET", target, {})
    assert (request.raw_path, request.query) == (path, query)
    assert request.target == target


def test_a_header_is_text_without_surrounding_blanks_and_has_a_default() -> None:
    request = Request("GET", b"/", {b"x-a": b" caf\xe9 ", b"x-empty": b""})
    assert request.header(b"x-a") == "caf\xe9"
    assert request.header(b"x-empty", "default") == ""
    assert request.header(b"x-none", "default") == "default"


def test_header_lines_are_rendered_in_order() -> None:
    assert render_headers([("ETag", '"1"'), ("x-tab", "a\tb")]) == b'ETag: "1"\r\nx-tab: a\tb\r\n'
    assert render_headers([]) == b""


def test_characters_beyond_latin_1_are_replaced() -> None:
    assert render_headers([("x", "\xe9\u20ac")]) == b"x: \xe9?\r\n"


@pytest.mark.parametrize("value", ["a\r\nset-cookie: b", "a\nb", "a\rb", "a\x00b", "\x7f"])
def test_a_value_that_would_forge_a_header_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="control character"):
        render_headers([("x-good", value)])


@pytest.mark.parametrize("name", ["", "a b", "a:", "a\r\nb", "\xe9"])
def test_a_name_outside_the_grammar_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a header name"):
        render_headers([(name, "value")])


@given(st.text())
def test_whatever_is_rendered_is_exactly_one_line(value: str) -> None:
    try:
        line = render_headers([("x", value)])
    except ValueError:
        return
    assert line.endswith(b"\r\n")
    assert b"\r" not in line[:-2]
    assert b"\n" not in line[:-2]
