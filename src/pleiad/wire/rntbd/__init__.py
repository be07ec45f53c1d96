"""RNTBD: the frames in which the Java and .NET clients speak over TCP by default.

`token` reads and writes the tokens of any table, `request_tokens`, `response_tokens` and `context_tokens` are the
tables, `codes` numbers resources and operations, `frame` has the frames of requests and answers, `context` those that
open a connection, and `activity_id` the id that both carry as text. All numbers are little-endian.
"""

from __future__ import annotations

from pleiad.wire import MalformedError


class BadFrame(MalformedError):
    """The bytes are no frame: what follows them on their connection cannot be read either."""


class UnwritableToken(ValueError):
    """A token was given a value that its type cannot hold, or has no place in its table."""
