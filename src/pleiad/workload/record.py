"""One request in a workload record, and files of them.

A file is UTF-8 text of one JSON object a line. `docs/workload.md` describes the form for people who make such files
from the logs of a service of their own; the classes here are the same in memory.

Invariants
- `decode(encode(request)) == request`: nothing is lost in the file but fields that have their default.
- A bad line costs itself only, and is named by its number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import IO, Any, Final, TypeAlias

import orjson

LINE_BYTES_MAX: Final = 1 << 20
"""A line that is longer is bad; what Pleiad writes is far below."""
_AT_MAX: Final = 253_402_300_799
"""The end of the year 9999. Milliseconds of this century are beyond it."""
_CHARGE_MAX: Final = 1e12
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SHOWN_CHARACTERS: Final = 60
_PLAIN: Final = (
    "id",
    "equals",
    "ranges",
    "partitions",
    "charge",
    "bytes",
    "changed",
    "range",
    "continued",
    "hashed",
)
"""Fields that are written as they are, where they are not empty."""

Value: TypeAlias = str | int | float | bool | Mapping[str, Any] | None
"""A scalar of JSON; `{}` says that an item has no value there, as it does in the header of a partition key."""


class Operation(StrEnum):
    """What a request was."""

    CREATE = "create"
    READ = "read"
    REPLACE = "replace"
    UPSERT = "upsert"
    PATCH = "patch"
    DELETE = "delete"
    QUERY = "query"
    BATCH = "batch"
    """A transactional batch: its members succeed or fail together."""
    BULK = "bulk"
    """Operations that share a request and nothing else."""
    SCRIPT = "script"
    READ_FEED = "read_feed"
    CHANGE_FEED = "change_feed"
    DELETE_PARTITION_KEY = "delete_partition_key"
    """All items of one logical partition."""


WRITES: Final = frozenset(
    {
        Operation.CREATE,
        Operation.REPLACE,
        Operation.UPSERT,
        Operation.PATCH,
        Operation.DELETE,
        Operation.BATCH,
        Operation.BULK,
        Operation.SCRIPT,
        Operation.DELETE_PARTITION_KEY,
    }
)
"""What may change items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One operation inside a batch, a bulk request or a script."""

    operation: Operation
    id: str = ""
    key: tuple[Value, ...] | None = None
    """Only where it is not the key of the request."""
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One answered request. The names are those of the file, and the units those that stand here."""

    at: float
    """When it was answered, in seconds since the epoch."""
    operation: Operation
    container: str = ""
    """As `database/container`."""
    status: int = 200
    """How it was answered, in the numbers of HTTP."""
    key: tuple[Value, ...] | None = None
    """The components of its partition key, one for each level it names; None when it has no key and asks everywhere."""
    id: str = ""
    """The item of an operation on one item."""
    equals: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    """Paths to the values one of which every item that the filter of a query lets through must have there."""
    ranges: tuple[str, ...] = ()
    """Paths that the filter compares in another way than by equality."""
    partitions: int = 0
    """How many physical partitions it went to; 0 when that is not known."""
    charge: float = 0.0
    """What it cost, in request units."""
    bytes: int = 0
    """The size of the item, or of the answer where there is more than one."""
    members: tuple[Member, ...] = ()
    changed: tuple[str, ...] = ()
    """Paths where a replace, an upsert or a patch left another value than it found."""
    range: str = ""
    """The physical partition that its client sent it to, by id: some clients ask one after the other and merge."""
    continued: bool = False
    """Whether it is a further page of what was asked before."""
    hashed: bool = False
    """Whether keys, ids and values were replaced by hashes; equal ones are equal still."""


class RecordError(ValueError):
    """A line that is no record; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that was passed over."""

    line: int
    """Its number; the first is 1."""
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


def encode(request: Request) -> bytes:
    """The line of a request, without its end."""
    return line_of(fields_of(request))


def line_of(fields: dict[str, Any] | list[Any]) -> bytes:
    """The line of the fields of a request, or of several; what JSON has no word for is no value."""
    return orjson.dumps(fields, default=_missing)


def _missing(_: object) -> dict[str, Any]:
    return {}


def fields_of(request: Request) -> dict[str, Any]:
    """A request as its line has it: those fields that do not have their default."""
    fields: dict[str, Any] = {"at": request.at, "operation": request.operation.value}
    if request.container:
        fields["container"] = request.container
    if request.status != 200:
        fields["status"] = request.status
    if request.key is not None:
        fields["key"] = request.key
    for name in _PLAIN:
        value = getattr(request, name)
        if value:
            fields[name] = value
    if request.members:
        fields["members"] = [_member_fields(member) for member in request.members]
    return fields


def _member_fields(member: Member) -> dict[str, Any]:
    fields: dict[str, Any] = {"operation": member.operation.value}
    if member.id:
        fields["id"] = member.id
    if member.key is not None:
        fields["key"] = member.key
    if member.bytes:
        fields["bytes"] = member.bytes
    return fields


def decode(line: bytes | str) -> Request:
    """The request of a line; RecordError with a sentence when it is none. Names that are not known are passed over."""
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise RecordError(f"it is not valid JSON: {error}") from error
    if not isinstance(fields, dict):
        raise RecordError("a record is a JSON object")
    for name in ("at", "operation"):
        if name not in fields:
            raise RecordError(f"'{name}' is missing")
    return Request(
        at=_number(fields, "at", _AT_MAX, " of seconds since 1970"),
        operation=_operation(fields),
        container=_text(fields, "container"),
        status=_count(fields, "status", 200),
        key=_key(fields),
        id=_text(fields, "id"),
        equals=_equals(fields),
        ranges=_paths(fields, "ranges"),
        partitions=_count(fields, "partitions"),
        charge=_number(fields, "charge", _CHARGE_MAX),
        bytes=_count(fields, "bytes"),
        members=_members(fields),
        changed=_paths(fields, "changed"),
        range=_text(fields, "range"),
        continued=_flag(fields, "continued"),
        hashed=_flag(fields, "hashed"),
    )


def read(file: IO[bytes], bad: Callable[[BadLine], None] | None = None) -> Iterator[Request]:
    """The requests of a file of records, one at a time; empty lines are passed over.

    `bad` is told of every line that is no record, and reading goes on behind it. Without it the first one raises
    RecordError with its number.
    """
    number = 0
    while line := file.readline(LINE_BYTES_MAX):
        number += 1
        try:
            if number == 1:
                line = line.removeprefix(_BYTE_ORDER_MARK)
            if len(line) == LINE_BYTES_MAX and not line.endswith(b"\n"):
                while (rest := file.readline(LINE_BYTES_MAX)) and not rest.endswith(b"\n"):
                    pass
                raise RecordError(f"it is longer than {LINE_BYTES_MAX:,} bytes")
            if not line.strip():
                continue
            request = decode(line)
        except RecordError as error:
            found = BadLine(number, str(error))
            if bad is None:
                raise RecordError(str(found)) from error
            bad(found)
        else:
            yield request


def write(file: IO[bytes], requests: Iterable[Request]) -> int:
    """Writes requests to a file; how many they were."""
    count = 0
    for request in requests:
        file.write(encode(request) + b"\n")
        count += 1
    return count


def _refused(name: str, wanted: str, value: object) -> RecordError:
    try:
        shown = orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        shown = "nested too deeply"
    if len(shown) > _SHOWN_CHARACTERS:
        shown = f"{shown[:_SHOWN_CHARACTERS]}…"
    return RecordError(f"'{name}' must be {wanted}, and is {shown}")


def _number(fields: dict[str, Any], name: str, most: float, of_what: str = "") -> float:
    value = fields.get(name, 0.0)
    if value.__class__ not in (float, int) or not math.isfinite(value) or value < 0:
        raise _refused(name, "a number that is not negative", value)
    if value > most:
        raise _refused(name, f"a number{of_what} of at most {most:,.0f}", value)
    return float(value)


def _count(fields: dict[str, Any], name: str, default: int = 0) -> int:
    value = fields.get(name, default)
    if value.__class__ is not int or value < 0:
        raise _refused(name, "a whole number that is not negative", value)
    return int(value)


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise _refused(name, "a string", value)
    return value


def _flag(fields: dict[str, Any], name: str) -> bool:
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise _refused(name, "true or false", value)
    return value


def _operation(fields: dict[str, Any]) -> Operation:
    value: Any = fields.get("operation")
    try:
        return Operation(value)
    except ValueError:
        raise _refused("operation", f"one of {', '.join(Operation)}", value) from None


def _key(fields: dict[str, Any]) -> tuple[Value, ...] | None:
    value = fields.get("key")
    return None if value is None else _values("key", value)


def _values(name: str, value: object) -> tuple[Value, ...]:
    if not isinstance(value, list) or not all(_is_value(each) for each in value):
        raise _refused(name, "a list of strings, numbers, true, false, null or {}", value)
    return tuple(value)


def _is_value(value: object) -> bool:
    return value is None or isinstance(value, str | int | float) or value == {}


def _equals(fields: dict[str, Any]) -> dict[str, tuple[Value, ...]]:
    value = fields.get("equals")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _refused("equals", "an object of paths with their values", value)
    for path in value:
        _check_path("equals", path)
    return {path: _values("equals", values) for path, values in value.items()}


def _paths(fields: dict[str, Any], name: str) -> tuple[str, ...]:
    value = fields.get(name)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise _refused(name, "a list of paths", value)
    for path in value:
        _check_path(name, path)
    return tuple(value)


def _check_path(name: str, path: object) -> None:
    if not isinstance(path, str) or not path.startswith("/"):
        raise RecordError(f"a path in '{name}' begins with '/', as in '/address/city'; {path!r:.60} does not")


def _members(fields: dict[str, Any]) -> tuple[Member, ...]:
    value = fields.get("members")
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise _refused("members", "a list of objects", value)
    return tuple(
        Member(
            operation=_operation(member),
            id=_text(member, "id"),
            key=_key(member),
            bytes=_count(member, "bytes"),
        )
        for member in value
    )
