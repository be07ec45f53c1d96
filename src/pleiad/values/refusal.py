"""What is said of values that cannot be: out of the range of their type, nested too deeply, too long."""

from __future__ import annotations


class RefusedValue(ValueError):
    """A value that no caller may hand in; the text says why, without the value itself."""
