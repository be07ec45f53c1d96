"""The value of a property that is not there.

JSON has no word for it, the service does: a missing partition key has a hash of its own, and a missing
property in a query is neither null nor an error.
"""

from __future__ import annotations

from typing import Final


class Undefined:
    """The type of UNDEFINED, of which there is one instance."""

    __slots__ = ()
    _instance: Undefined | None = None

    def __new__(cls) -> Undefined:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __repr__(self) -> str:
        return "UNDEFINED"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> tuple[type[Undefined], tuple[()]]:
        return (Undefined, ())


UNDEFINED: Final = Undefined()
