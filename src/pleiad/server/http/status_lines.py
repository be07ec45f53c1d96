"""The first lines of a response: status, Server and Date, made once per second and status."""

from __future__ import annotations

from email.utils import formatdate
from http import HTTPStatus

_REASONS = {status.value: status.phrase for status in HTTPStatus} | {449: "Retry With"}


class StatusLines:
    """The lines of this second."""

    def __init__(self) -> None:
        self.made: dict[int, bytes] = {}
        """By status; what is not there yet `make` adds."""
        self._date = b""

    def renew(self, second: int) -> None:
        """Another second has begun."""
        self._date = formatdate(second, usegmt=True).encode()
        self.made.clear()

    def make(self, status: int) -> bytes:
        if not 200 <= status <= 999:
            raise ValueError(f"{status} is not a final status")
        reason = _REASONS.get(status, "Unknown").encode()
        lines = b"HTTP/1.1 %d %b\r\nServer: Pleiad\r\nDate: %b\r\n" % (status, reason, self._date)
        self.made[status] = lines
        return lines
