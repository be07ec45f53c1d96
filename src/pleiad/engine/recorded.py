"""What a workload record keeps of a request at the desk.

The fields are those of `pleiad.workload.record.Request` but for the container, without those that have their default.
What takes long is left to the thread that writes: pairs of the texts of items stand where the paths that changed
belong. Most requests read one item, and come not here: the desk keeps a brief of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import time
from typing import Any, Final, NamedTuple, Protocol

from pleiad.engine.batch import Answer
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.items import ItemAnswer, Key
from pleiad.engine.operation import Operation
from pleiad.engine.query.request import QueryRequest
from pleiad.engine.recording import Recording
from pleiad.engine.script.execution import ProcedureAnswer
from pleiad.engine.transaction import AllowedOperation, ItemOperation
from pleiad.errors import PleiadError
from pleiad.partition.partition import Partition
from pleiad.query import known_query
from pleiad.store.rows import Row
from pleiad.workload import record

MEMBERS_MAX: Final = 100
_OK: Final = 200
_NAME_CHARACTERS_MAX: Final = 255
_BAD_REQUEST: Final = 400
_ALONE: Final = frozenset({record.Operation.READ_FEED, record.Operation.CHANGE_FEED})
"""What goes to one physical partition with every page."""
_Pair = tuple[bytes | str, bytes | str]


class BatchWork(NamedTuple):
    """The operations of one request, and how they ended when they did."""

    operations: Sequence[ItemOperation]
    is_atomic: bool
    answers: Sequence[Answer] = ()


Work = ItemAnswer | QueryRequest | BatchWork | ProcedureAnswer
"""What an operation was about, in the words of the engine."""


class Destination(Protocol):
    """Where a request goes, as it says itself."""

    @property
    def database(self) -> str: ...
    @property
    def container(self) -> str: ...
    @property
    def range_id(self) -> str: ...


class Recorded(Protocol):
    """A request at the desk, as far as its record is concerned."""

    @property
    def operation(self) -> Operation: ...
    @property
    def began_at(self) -> float: ...
    @property
    def container(self) -> Container | None: ...
    @property
    def key(self) -> Key | None: ...
    @property
    def key_spent(self) -> Key | None: ...
    @property
    def charge_ru(self) -> float: ...
    @property
    def work(self) -> Work | None: ...
    @property
    def partitions(self) -> Sequence[Partition] | None: ...
    @property
    def answer_bytes(self) -> int: ...
    @property
    def is_continued(self) -> bool: ...
    @property
    def is_kept_out(self) -> bool:
        """Whether it asks to be left out, as who looks at the workload does for the feeds that it reads itself."""
        ...

    def destination(self) -> Destination: ...
    def item_id(self) -> str:
        """The id of the item in its address."""
        ...


def note(engine: Engine, visit: Recorded, status: int) -> None:
    """Leaves the record of an answered request, where its container is recorded."""
    if visit.operation.recorded_as is None:
        return
    container, key, range_id = visit.container, visit.key_spent, ""
    if container is None or not key:
        if visit.is_kept_out:
            return
        to = visit.destination()
        range_id = to.range_id[:_NAME_CHARACTERS_MAX]
        container = container or engine.open_container(to.database, to.container)
        if container is None or container.recording is None or not hasattr(visit, "engine"):
            return  # there is no such container, nobody records it, or the caller may not ask for it
    assert container.recording is not None
    container.recording.add(*fields_of(visit, status, container, key or _key_of(visit), range_id))


def note_write(recording: Recording, operation: Operation, status: int, key: Key, answer: ItemAnswer) -> None:
    """Leaves the record of a write of one item that was no visit."""
    row = answer.row or answer.old
    assert row is not None
    fields: dict[str, Any] = {"at": time(), "operation": operation.recorded_as}
    if status != _OK:
        fields["status"] = status
    fields |= {
        "key": key,
        "charge": answer.charge.ru,
        "partitions": 1,
        "id": row.id,
        "bytes": row.size_bytes,
    }
    recording.add(fields, _add_changes(fields, [(answer.old, answer.row)]))


def _key_of(visit: Recorded) -> Key | None:
    """The partition key of a request that names one, unless that cannot be read."""
    try:
        return visit.key
    except PleiadError:
        return None


def fields_of(
    visit: Recorded, status: int, container: Container, key: Key | None, range_id: str
) -> tuple[dict[str, Any], int]:
    """The fields of an answered request, and how many bytes of items they hold on to."""
    work = visit.work
    fields: dict[str, Any] = {
        "at": time(),
        "operation": visit.operation.recorded_as,
    }
    if status != _OK:
        fields["status"] = status
    if key is not None:
        fields["key"] = key
    if visit.charge_ru:
        fields["charge"] = visit.charge_ru
    if isinstance(work, ItemAnswer):
        return fields, _add_item(fields, visit, work, container)
    item_id = visit.item_id()
    if item_id:
        fields["id"] = item_id
    fields["partitions"] = _partitions(visit, container, key, range_id)
    if visit.answer_bytes:
        fields["bytes"] = visit.answer_bytes
    if range_id:
        fields["range"] = range_id
    if visit.is_continued:
        fields["continued"] = True
    if isinstance(work, QueryRequest):
        _add_filter(fields, work, status)
    elif isinstance(work, BatchWork):
        return fields, _add_batch(fields, work)
    elif isinstance(work, ProcedureAnswer):
        return fields, _add_script(fields, work)
    return fields, 0


def _add_item(fields: dict[str, Any], visit: Recorded, answer: ItemAnswer, container: Container) -> int:
    """An operation on one item, whatever is known of it."""
    fields["partitions"] = 1
    row = answer.row or answer.old
    fields["id"] = visit.item_id() if row is None else row.id
    if row is not None:
        fields["bytes"] = row.size_bytes
    if "key" not in fields:
        # It names none, which is done only where the container has none; the row of a delete may have no body.
        fields["key"] = container.full_key(None)
    return _add_changes(fields, [(answer.old, answer.row)])


def _partitions(visit: Recorded, container: Container, key: Key | None, range_id: str) -> int:
    """How many physical partitions a request went to; 0 when nobody can tell."""
    if visit.partitions is not None:
        return len(visit.partitions)
    if range_id:
        return 1
    if key is not None:
        try:
            return len(container.map.overlapping(container.span_of(key)))
        except PleiadError:
            return 0  # the answer has said what is wrong with the key
    return 1 if visit.operation.recorded_as in _ALONE else 0


def _add_filter(fields: dict[str, Any], request: QueryRequest, status: int) -> None:
    """The paths and values in the filter of a query that was understood."""
    query = None if status == _BAD_REQUEST else known_query(request.text)
    if query is None:
        return
    equals, others = query.filter_paths.with_values(request.parameters)
    if equals:
        fields["equals"] = equals
    if others:
        fields["ranges"] = others


def _add_batch(fields: dict[str, Any], work: BatchWork) -> int:
    """The members of a batch or of a bulk request, and what its writes changed."""
    if not work.is_atomic:
        fields["operation"] = record.Operation.BULK
    answers = [each if isinstance(each, ItemAnswer) else None for each in work.answers]
    answers += [None] * (len(work.operations) - len(answers))
    members = []
    for operation, answer in zip(work.operations[:MEMBERS_MAX], answers, strict=False):
        row = None if answer is None else answer.row or answer.old
        member: dict[str, Any] = {"operation": operation.kind.value.lower()}
        member["id"] = operation.id if row is None else row.id
        member["bytes"] = len(operation.body) if row is None else row.size_bytes
        if not work.is_atomic and operation.key is not None:
            member["key"] = operation.key
        members.append({name: value for name, value in member.items() if value not in ("", 0)})
    fields["members"] = members
    if not work.is_atomic:
        fields["partitions"] = len({each.partition for each in answers if each is not None})
    return _add_changes(fields, [(each.old, each.row) for each in answers if each is not None])


def _add_script(fields: dict[str, Any], work: ProcedureAnswer) -> int:
    """The operations of a stored procedure as its members."""
    if work.steps:
        fields["members"] = [_member(step) for step in work.steps]
    return 0


def _member(step: AllowedOperation) -> dict[str, Any]:
    operation = step.plan.operation
    row = step.row or step.old
    size_bytes = step.item.size_bytes if step.item is not None else 0 if row is None else row.size_bytes
    id = operation.id if step.item is None else step.item.id
    return {"operation": operation.kind.value.lower(), "id": id, "bytes": size_bytes}


def _add_changes(fields: dict[str, Any], pairs: Iterable[tuple[Row | None, Row | None]]) -> int:
    texts: list[_Pair] = [(old.body, new.body) for old, new in pairs if old is not None and new is not None]
    if not texts:
        return 0
    fields["changed"] = texts
    return sum([len(old) + len(new) for old, new in texts])
