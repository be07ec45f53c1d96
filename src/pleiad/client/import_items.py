"""Bringing the items of a file into a container, over several connections.

Invariants:
- what is written to one item is written in the order of the file: an item has one lane, a lane has one request in
  flight, and no request names an id twice;
- everything up to the place that is noted is decided; a run that was ended goes on behind it;
- what may have been written without an answer is looked at before it is called a conflict: nothing is lost or doubled;
- what one item is refused for costs that item only.

The items of a request are of one physical partition as far as is known, so that the server commits them together. Where
that is no longer true, because partitions were split meanwhile, it is only slower.
"""

from __future__ import annotations

import dataclasses
import queue
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar
from uuid import UUID

import orjson

from pleiad.client.admin import RequestRefusedError
from pleiad.client.bulk import BUSY, OPERATIONS_MAX, THROTTLED, BulkWriter, Ending, ItemWrite
from pleiad.client.connection import ConnectionFailedError
from pleiad.client.containers import FoundContainer
from pleiad.client.rate import Rate
from pleiad.errors import PleiadError
from pleiad.job.import_state import ImportState, StateFile
from pleiad.job.item_file.entry import Entry, ItemFileError, with_id
from pleiad.job.rejects import Rejects
from pleiad.keys.hash import epk
from pleiad.keys.value import KeyValue
from pleiad.values.undefined import UNDEFINED

BATCH_BYTES_MAX = 1024 * 1024
_OPEN_ENTRIES_MAX = 20_000
_OPEN_BYTES_MAX = 64 * 1024 * 1024
"""How far back in the file a request may begin that waits for more items, and how much all of them may hold."""
_NOTE_SECONDS = 1.0
_TELL_SECONDS = 0.1
_WAITING_BATCHES = 2
_PATIENCE_SECONDS = (0.2, 0.5, 1.0, 2.0)
"""Between attempts to reach a server that does not answer."""
_AGAIN_SECONDS = 0.1
_LEAST_SECONDS = 0.001
_CONFLICT = 409
_OF_THE_REQUEST = frozenset({400, 413})
"""Refusals of a whole request that one bad item in it may be the reason of."""


class ImportStoppedError(Exception):
    """The import cannot go on; the text is a sentence for the person at the terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """How items are brought in."""

    is_upsert: bool = False
    generates_ids: bool = False
    connections: int = 24
    items_per_second: float | None = None
    ru_per_second: float | None = None
    rejects_max: int = 1_000

    @property
    def batch_items(self) -> int:
        """How many items share a request: few when little may go in a second."""
        by_items = OPERATIONS_MAX if self.items_per_second is None else int(self.items_per_second / 10)
        by_ru = OPERATIONS_MAX if self.ru_per_second is None else int(self.ru_per_second / 50)
        return max(1, min(OPERATIONS_MAX, by_items, by_ru))


@dataclass(slots=True)
class ImportCounts:
    """What has happened so far."""

    written: int = 0
    rejected: int = 0
    resumed: int = 0
    """Entries that an earlier run decided."""
    charge_ru: float = 0.0
    throttled_seconds: float = 0.0
    """How long connections waited because the server had no request units left, all added up."""


Told = Callable[[ImportCounts], None]
TellReject = Callable[[Entry, str], None]
MakeWriter = Callable[[], BulkWriter]
_Answer = TypeVar("_Answer")


class ItemImport:
    """One run of an import."""

    def __init__(
        self,
        make_writer: MakeWriter,
        container: FoundContainer,
        options: ImportOptions,
        state: ImportState,
        state_file: StateFile,
        rejects: Rejects,
        tell: Told,
        tell_reject: TellReject,
        is_resumed: bool = False,
    ) -> None:
        self.options = options
        self._batch_items = options.batch_items
        self.make_writer = make_writer
        self.is_resumed = is_resumed
        """Whether an earlier run may have written some of it."""
        self.counts = ImportCounts(
            written=state.done - state.rejected, rejected=state.rejected, resumed=state.done
        )
        self.items_rate = Rate(options.items_per_second)
        self.ru_rate = Rate(options.ru_per_second)
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self._failure: Exception | None = None
        self._key, self._bounds = container.key, container.bounds
        self._batches_of_range = -(-options.connections // (len(container.bounds) + 1))
        self._state, self._state_file = state, state_file
        self._rejects = rejects
        self._tell, self._tell_reject = tell, tell_reject
        self._run = UUID(state.run)
        self._noted_at = self._told_at = 0.0
        self._taken = state.done
        """The last entry that was rejected or given to a lane."""
        self._rejected_behind: list[int] = []
        """The rejected entries behind the place that was noted last."""
        self._open: dict[int, _Batch] = {}
        """The requests that wait for more items, the one that began first in front."""
        self._open_bytes = 0
        self._undecided: set[int] = set()
        """The entries with which requests begin that are not yet decided."""
        self._lanes = [_Lane(self) for _ in range(options.connections)]

    def run(self, entries: Iterable[Entry]) -> ImportCounts:
        """Brings all entries in; ImportStoppedError says why it cannot, and then the state is kept."""
        self._note()
        for lane in self._lanes:
            lane.start()
        problem: ItemFileError | None = None
        try:
            with self._lanes_ended():
                try:
                    for entry in islice(entries, self._state.done, None):
                        self._take(entry)
                        self._taken = entry.number
                except ItemFileError as error:
                    problem = error  # what was read before is brought in all the same
        finally:
            self._rejects.close()
        if problem is not None:
            raise ImportStoppedError(str(problem))
        self._state_file.remove()
        return self.counts

    @property
    def is_kept(self) -> bool:
        """Whether another run can go on from where this one is."""
        return self._state_file.path is not None

    @contextmanager
    def _lanes_ended(self) -> Iterator[None]:
        """At the end of the with-block all that was taken is decided, or the failure of a lane is raised."""
        try:
            yield
            while self._open:
                self._flush(next(iter(self._open)))
        except BaseException:
            # What is on the way is answered before the state is noted for the last time.
            self.stopping.set()
            raise
        finally:
            for lane in self._lanes:
                lane.end()
            for lane in self._lanes:
                while lane.is_alive():
                    self.look_after()
                    lane.join(_TELL_SECONDS)
            self._note()
            self._tell(self.counts)
        self.raise_failure()

    # -- in the thread that reads ------------------------------------------------------------------

    def _take(self, entry: Entry) -> None:
        if entry.value is None:
            self.reject(entry, entry.problem, None)
            return
        value = entry.value
        if "id" not in value and self.options.generates_ids:
            entry = with_id(entry, self._run)
            value = entry.value or value
        id = value.get("id")
        if not isinstance(id, str):
            hint = "; --generate-id gives it one" if "id" not in value else ""
            self.reject(entry, f"the item has no id that is a string{hint}", None)
            return
        values = self._key.extract(value)
        key = orjson.dumps([{} if part is UNDEFINED else part for part in values])
        # Written anew without blanks, which is the form that servers keep and take fastest.
        self._add(self._place(values, id), ItemWrite(entry.number, entry.line, id, key, orjson.dumps(value)))

    def _place(self, values: tuple[KeyValue, ...], id: str) -> int:
        """The request that an item belongs into: one of those of its physical partition."""
        share = hash(id) % self._batches_of_range
        if not self._bounds:
            return share
        try:
            position = bisect_right(self._bounds, epk(values, self._key))
        except (PleiadError, ValueError, OverflowError):
            position = 0  # the server says what is wrong with the key
        return position * self._batches_of_range + share

    def _add(self, place: int, item: ItemWrite) -> None:
        batch = self._open.get(place)
        if batch is not None:
            is_full = (
                len(batch.items) >= self._batch_items or batch.size_bytes + len(item.body) > BATCH_BYTES_MAX
            )
            if is_full or item.id in batch.ids:
                self._flush(place)
                batch = None
        if batch is None:
            batch = self._open[place] = _Batch(self.is_resumed)
            self._undecided.add(item.number)
        batch.items.append(item)
        batch.ids.add(item.id)
        batch.size_bytes += len(item.body)
        self._open_bytes += len(item.body)
        oldest, waiting = next(iter(self._open.items()))
        is_old = item.number - waiting.items[0].number >= _OPEN_ENTRIES_MAX
        if is_old or self._open_bytes > _OPEN_BYTES_MAX:
            self._flush(oldest)

    def _flush(self, place: int) -> None:
        batch = self._open.pop(place)
        self._open_bytes -= batch.size_bytes
        self._lanes[place % len(self._lanes)].put(batch)

    def look_after(self) -> None:
        """Notes and tells how far the import is, now and then."""
        now = time.monotonic()
        if now - self._told_at >= _TELL_SECONDS:
            self._told_at = now
            self._tell(self.counts)
        if now - self._noted_at >= _NOTE_SECONDS:
            self._note()

    def raise_failure(self) -> None:
        """Raises what ended a lane."""
        if self._failure is not None:
            raise self._failure

    def _note(self) -> None:
        self._noted_at = time.monotonic()
        with self.lock:
            done = min(self._taken, min(self._undecided, default=self._taken + 1) - 1)
            behind = [number for number in self._rejected_behind if number > done]
            rejected = self._state.rejected + len(self._rejected_behind) - len(behind)
            self._rejected_behind = behind
        self._rejects.sync()
        self._state = dataclasses.replace(self._state, done=done, rejected=rejected)
        self._state_file.save(self._state)

    # -- from any thread ---------------------------------------------------------------------------

    def decided(self, batch: _Batch) -> None:
        with self.lock:
            self._undecided.remove(batch.items[0].number)

    def reject(self, entry: Entry, reason: str, status: int | None) -> None:
        self._rejects.add(entry, reason, status)
        with self.lock:
            self.counts.rejected += 1
            self._rejected_behind.append(entry.number)
            is_too_many = self.counts.rejected > self.options.rejects_max
        self._tell_reject(entry, reason)
        if is_too_many:
            raise ImportStoppedError(
                f"more than {self.options.rejects_max:,} items were rejected; --max-rejects allows more of them"
            )

    def fail(self, error: Exception) -> None:
        with self.lock:
            self._failure = self._failure or error
        self.stopping.set()


class _Batch:
    """The items of one request, and whether an earlier attempt may have written them."""

    __slots__ = ("ids", "is_uncertain", "items", "size_bytes")

    def __init__(self, is_uncertain: bool) -> None:
        self.items: list[ItemWrite] = []
        self.ids: set[str] = set()
        self.size_bytes = 0
        self.is_uncertain = is_uncertain


class _Lane(threading.Thread):
    """One connection and what waits for it."""

    def __init__(self, run: ItemImport) -> None:
        super().__init__(name="pleiad-import", daemon=True)
        self._import = run
        self._queue: queue.Queue[_Batch | None] = queue.Queue(_WAITING_BATCHES)
        self._writer: BulkWriter | None = None

    # -- in the thread that reads ------------------------------------------------------------------

    def end(self) -> None:
        if self.is_alive():
            self.put(None)

    def put(self, batch: _Batch | None) -> None:
        """Waits until there is room for a request; None is the end."""
        while True:
            if batch is not None:
                self._import.raise_failure()
            try:
                self._queue.put(batch, timeout=_TELL_SECONDS)
                break
            except queue.Full:
                self._import.look_after()
        self._import.look_after()

    # -- in its own thread -------------------------------------------------------------------------

    def run(self) -> None:
        try:
            while (batch := self._queue.get()) is not None:
                if self._import.stopping.is_set():
                    continue
                self._deliver(batch, batch.items)
                self._import.decided(batch)
        except Exception as error:
            self._import.fail(error)
            while self._queue.get() is not None:
                pass
        finally:
            self._close()

    def _deliver(self, batch: _Batch, items: list[ItemWrite]) -> None:
        """Returns when all of them are decided."""
        left = items
        patience = iter(_PATIENCE_SECONDS)
        while left:
            self._wait_for_rates(len(left))
            try:
                endings = self._ask(batch, left, BulkWriter.write)
            except RequestRefusedError as error:
                if error.status not in _OF_THE_REQUEST:
                    raise ImportStoppedError(str(error)) from None
                if len(left) == 1:
                    self._reject(left[0], Ending(error.status, 0, 0, str(error)))
                    return
                middle = len(left) // 2
                self._deliver(batch, left[:middle])
                left = left[middle:]
                continue
            again = self._settle(batch, left, endings)
            if len(again) < len(left):
                patience = iter(_PATIENCE_SECONDS)
            self._wait_to_repeat(endings, patience)
            left = again

    def _wait_to_repeat(self, endings: list[Ending], patience: Iterator[float]) -> None:
        """Waits before what ended busy is sent again: as long as it takes for throughput, for a while for the rest."""
        busy = [ending for ending in endings if ending.status in BUSY]
        others = [ending for ending in busy if ending.status != THROTTLED]
        pause_seconds = max((ending.retry_after_ms for ending in busy), default=0) / 1000
        if others:
            patient_seconds = next(patience, None)
            if patient_seconds is None:
                raise ImportStoppedError(others[0].message or f"the server answers with {others[0].status}")
            pause_seconds = max(pause_seconds, patient_seconds)
        if busy:
            self._pause(max(pause_seconds, _LEAST_SECONDS), is_throttled=not others)

    def _ask(
        self,
        batch: _Batch,
        items: list[ItemWrite],
        call: Callable[[BulkWriter, list[ItemWrite]], list[_Answer]],
    ) -> list[_Answer]:
        """The answers of one request; while the server is busy or away it is sent again, for a while."""
        patience = iter(_PATIENCE_SECONDS)
        while True:
            try:
                if self._writer is None:
                    self._writer = self._import.make_writer()
                return call(self._writer, items)
            except ConnectionFailedError as error:
                self._close()
                batch.is_uncertain = True
                pause_seconds = next(patience, None)
                if pause_seconds is None:
                    raise ImportStoppedError(str(error)) from None
                self._pause(pause_seconds, is_throttled=False)
            except RequestRefusedError as error:
                if error.status == THROTTLED:
                    self._pause(_AGAIN_SECONDS, is_throttled=True)
                    continue
                pause_seconds = next(patience, None) if error.status in BUSY else None
                if pause_seconds is None:
                    raise
                batch.is_uncertain = True
                self._pause(pause_seconds, is_throttled=False)

    def _settle(self, batch: _Batch, items: list[ItemWrite], endings: list[Ending]) -> list[ItemWrite]:
        """Takes note of how items ended; those that have to be sent again."""
        written = 0
        again, conflicts = [], []
        for item, ending in zip(items, endings, strict=True):
            if ending.is_success:
                written += 1
            elif ending.status in BUSY:
                batch.is_uncertain = batch.is_uncertain or ending.status != THROTTLED
                again.append(item)
            elif ending.status == _CONFLICT and batch.is_uncertain and not self._import.options.is_upsert:
                conflicts.append((item, ending))
            else:
                self._reject(item, ending)
        written += self._settle_conflicts(batch, conflicts)
        charge_ru = sum(ending.charge_ru for ending in endings)
        self._import.ru_rate.spend(charge_ru)
        with self._import.lock:
            self._import.counts.written += written
            self._import.counts.charge_ru += charge_ru
        return again

    def _settle_conflicts(self, batch: _Batch, conflicts: list[tuple[ItemWrite, Ending]]) -> int:
        """How many of the items that exist already are there because an earlier attempt wrote them."""
        held = 0
        while conflicts:
            looks = self._ask(batch, [item for item, _ in conflicts], BulkWriter.holds)
            unknown = []
            for conflict, is_there in zip(conflicts, looks, strict=True):
                if is_there is None:
                    unknown.append(conflict)
                elif is_there:
                    held += 1
                else:
                    self._reject(*conflict)
            conflicts = unknown
            if conflicts:
                self._pause(_AGAIN_SECONDS, is_throttled=True)
        return held

    def _reject(self, item: ItemWrite, ending: Ending) -> None:
        entry = Entry(item.number, item.line, item.body, orjson.loads(item.body))
        self._import.reject(
            entry, ending.message or f"the server answered with {ending.status}", ending.status
        )

    def _wait_for_rates(self, items: int) -> None:
        for rate in (self._import.items_rate, self._import.ru_rate):
            while (wait_seconds := rate.wait_seconds()) > 0:
                self._pause(wait_seconds, is_throttled=False)
        self._import.items_rate.spend(items)

    def _pause(self, seconds: float, is_throttled: bool) -> None:
        if self._import.stopping.wait(seconds):
            raise ImportStoppedError("the import was stopped")
        if is_throttled:
            with self._import.lock:
                self._import.counts.throttled_seconds += seconds

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.__exit__(None, None, None)
            self._writer = None
