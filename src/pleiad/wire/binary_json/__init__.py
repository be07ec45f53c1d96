"""Binary JSON, the form in which some clients send items and may be answered: `0x80` and then one value.

A value is a marker byte and what the marker says follows. `read` gives the JSON text of a body, `write` the body of a
value, `strings` has the compressed forms of strings.
"""

PREAMBLE = 0x80
"""The first byte of every body; no text in UTF-8 begins with it."""
START = b"\x80"
"""The same as bytes."""
DEPTH_MAX = 256
"""How many containers may be open at once, for all who speak this form."""


def is_binary(body: bytes) -> bool:
    """Whether a body is in this form."""
    return body[:1] == START
