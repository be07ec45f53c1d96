"""Binary forms of bodies and frames that clients send and read: bytes in, plain values out, and back.

Everything here is pure and knows neither operations nor protocols. A decoder trusts no length, count or reference
in its input: whatever is wrong with it ends in `MalformedError`, after work and memory in proportion to its bytes.
"""

from __future__ import annotations


class MalformedError(ValueError):
    """The bytes are not what they claim to be; the text says where and why, in words for whoever sent them."""
