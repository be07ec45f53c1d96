"""Recording the workload: every request on the items of a container leaves a record, while that is switched on.

The record of a container is in a directory of its rid. A request only appends what it notes to a list; twice a second,
or when the list grows, a thread writes it out. The switch of each container is a file in its directory, so it and the
record are there again after a restart. What is left of a container that is no more is removed.

The workers of a server share the directory: each writes files of its own, and the switches hold for all of them. Who
changes one has the others look at it, and who reads has them write what waits.

Invariants
- A request on a container that is not recorded costs one look at `Container.recording`.
- All records together have a limit, and so has each, whoever writes them.
- A switch is in force at all workers when the change of it is answered, but for those that do not answer; these find
  it when they go on or start.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, ParamSpec, Protocol, TypeVar

from pleiad import errors
from pleiad.catalog.catalog import Catalog
from pleiad.catalog.resource import Kind
from pleiad.engine.at_work import AtWork
from pleiad.engine.fresh import Looks
from pleiad.engine.recording import Fields, Mode, Recording
from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.workload.hashing import SECRET_BYTES, Hasher
from pleiad.workload.ring import Place, Ring

_log = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 0.5
_SWITCH: Final = "switch.json"
_SECRET: Final = "secret"
_P = ParamSpec("_P")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingState:
    """How the record of a container stands."""

    mode: Mode
    is_own: bool
    """Whether the container was switched itself; else it goes by what the server was started with."""
    records: int
    size_bytes: int
    lost: int
    """Requests since the start of the server whose record could not be kept."""


class OtherWorkers(Protocol):
    """The other workers of this server, which write to the same records."""

    async def switched(self, rid: str) -> None:
        """Has them look at the switch of a container."""

    async def forgotten(self, rid: str) -> None:
        """Has them let go of what waits to be written."""

    async def written(self, rid: str) -> int:
        """Has them write what waits; how many requests they have lost."""


class WorkloadRecorder:
    """The records of an account, in a directory of this server."""

    def __init__(self, limits: Limits, at_work: AtWork, catalog: Catalog, looks: Looks) -> None:
        self._limits = limits
        self._at_work = at_work
        self._catalog = catalog
        self._looks = looks
        self.others: OtherWorkers | None = None
        at_work.recording_of = self.recording
        self.is_on = False
        """Whether any container is recorded."""
        self.default = Mode.OFF
        self._directory: Path | None = None
        self._hasher: Hasher | None = None
        self._making_secret = asyncio.Lock()
        self._recordings: dict[str, Recording] = {}
        self._writing: asyncio.Task[None] | None = None
        self._due = asyncio.Event()
        self._writer, self._writers = 0, 1

    async def open(self, directory: Path, default: Mode, writer: int = 0, writers: int = 1) -> None:
        """Finds the switches and the records that are there, and begins to write, as one of so many."""
        self._directory, self.default = directory, default
        self._writer, self._writers = writer, writers
        found = await asyncio.to_thread(_found_in, directory)
        if (
            found or default is not Mode.OFF or writers > 1
        ):  # the first worker makes it, and starts before the others
            self._hasher = Hasher(await asyncio.to_thread(_secret_in, directory))
        for rid in found:
            await self.look_at(rid)
        self._look()
        self._writing = asyncio.create_task(self._write_for_ever())

    async def close(self) -> None:
        """Writes what waits and ends."""
        self.default = Mode.OFF
        for recording in self._recordings.values():
            recording.switch(Mode.OFF)
        self._look()
        if self._writing is not None:
            self._writing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._writing
            self._writing = None
        await self.flush()
        for recording in self._recordings.values():
            recording.ring.close()

    def recording(self, rid: str) -> Recording | None:
        """Where the requests of a container are noted; None where they are not."""
        recording = self._recordings.get(rid)
        if recording is None:
            return None if self.default is Mode.OFF else self._recording_of(rid)
        return None if recording.mode is Mode.OFF else recording

    # -- the switch, and the record --------------------------------------------------------------------

    async def switch(self, rid: str, mode: Mode) -> None:
        """Has a container recorded, or no more; what was recorded stays."""
        recording = await self._ready(rid)
        async with recording.turn:
            await _on_disk(_keep_switch, recording.ring.directory, mode)
        await self.look_at(rid)
        if self.others is not None:
            await self.others.switched(rid)

    async def forget(self, rid: str) -> None:
        """Removes the record of a container and its switch."""
        recording = await self._ready(rid)
        await _on_disk(_remove_switch, recording.ring.directory)
        await self.let_go(rid)
        if self.others is not None:
            await self.others.forgotten(rid)
        async with recording.turn:
            await _on_disk(_remove, recording.ring)
        await self.look_at(rid)  # one that was set meanwhile is gone as well
        if self.others is not None:
            await self.others.switched(rid)

    async def look_at(self, rid: str) -> None:
        """Goes by the switch of a container as its file says."""
        recording = await self._ready(rid)
        async with recording.turn:  # so that who has looked later is the last to go by it
            mode = await asyncio.to_thread(_switch_in, recording.ring.directory)
            recording.switch(self.default if mode is None else mode)
            recording.is_own = mode is not None
        self._look()

    async def look_at_all(self) -> None:
        """Goes by all switches that there are."""
        assert self._directory is not None
        for rid in await asyncio.to_thread(_found_in, self._directory):
            await self.look_at(rid)

    async def let_go(self, rid: str) -> None:
        """Forgets what waits to be written, and goes by the switch as it is now."""
        recording = await self._ready(rid)
        await self.look_at(rid)
        async with recording.turn:
            recording.forget_pending()
            recording.ring.close()

    async def write_out(self, rid: str) -> int:
        """Writes what waits; how many requests could not be kept since the start."""
        recording = await self._ready(rid)
        await recording.flush()
        return recording.lost

    async def _write_all_out(self, rid: str) -> int:
        """The same at all workers."""
        lost = await self.write_out(rid)
        return lost if self.others is None else lost + await self.others.written(rid)

    async def state(self, rid: str) -> RecordingState:
        recording = await self._ready(rid)
        lost = await self._write_all_out(rid)
        records, size_bytes = await asyncio.to_thread(recording.count)
        return RecordingState(
            mode=recording.mode,
            is_own=recording.is_own,
            records=records,
            size_bytes=size_bytes,
            lost=lost,
        )

    async def read(
        self, rid: str, name: str, place: Place | None, hashed: bool
    ) -> tuple[bytes, Place | None]:
        """Lines of a record from a place on, with the name of the container in them, and the place of the next.

        That is None at the end.
        """
        recording = await self._ready(rid)
        if place is None:
            await self._write_all_out(rid)
        return await asyncio.to_thread(recording.read, name, place, hashed)

    async def append(self, rid: str, records: Sequence[Fields]) -> None:
        """Puts records that were made elsewhere behind that of a container."""
        recording = await self._ready(rid)
        await recording.flush()
        async with recording.turn:
            await _on_disk(recording.append, records)

    async def flush(self) -> None:
        """Writes all that waits, and removes what is too much."""
        for recording in list(self._recordings.values()):
            await recording.flush()
        await self._make_room()

    # -- within ------------------------------------------------------------------------------------------

    async def _ready(self, rid: str) -> Recording:
        if self._directory is None:
            raise errors.BAD_REQUEST(reason="This server records no workload.")
        async with self._making_secret:
            if self._hasher is None:
                self._hasher = Hasher(await _on_disk(_secret_in, self._directory))
        return self._recording_of(rid)

    def _recording_of(self, rid: str) -> Recording:
        """The recording of a container. Rids have no slash, and only one that leads to a container comes here."""
        recording = self._recordings.get(rid)
        if recording is None:
            assert self._directory is not None
            assert self._hasher is not None
            recording = Recording(
                self._directory / rid,
                self.default,
                self._limits,
                self._hasher,
                self._due,
                self._writer,
                self._writers,
            )
            self._recordings[rid] = recording
        return recording

    def _look(self) -> None:
        """Has the requests on containers at work noted, or no more."""
        modes = [recording.mode for recording in self._recordings.values()]
        self.is_on = self.default is not Mode.OFF or any(mode is not Mode.OFF for mode in modes)
        for container in self._at_work:
            container.recording = self.recording(container.resource.rid)

    async def _write_for_ever(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), FLUSH_SECONDS)
            self._due.clear()
            try:
                await self.flush()
            except Exception:
                _log.exception("writing workload records failed")

    async def _make_room(self) -> None:
        for rid in await self._gone():
            recording = self._recordings.pop(rid)
            async with recording.turn:
                await asyncio.to_thread(_remove, recording.ring)
        if self._recordings:
            assert self._directory is not None
            await asyncio.to_thread(_thin_out, self._directory, self._limits)

    async def _gone(self) -> list[str]:
        """The containers that are no more, and not only unknown here yet: another worker may have made one just now."""
        by_rid = self._catalog.by_rid
        if all(by_rid(Kind.CONTAINER, rid) is not None for rid in self._recordings):
            return []
        try:
            await self._looks.look()
        except PleiadError:
            return []  # it cannot be told now
        return [rid for rid in self._recordings if by_rid(Kind.CONTAINER, rid) is None]


async def _on_disk(call: Callable[_P, _Answer], *given: _P.args, **named: _P.kwargs) -> _Answer:
    """Waits for a call that writes, to its end; a disk that refuses is told to whoever asked."""
    try:
        return await asyncio.shield(asyncio.to_thread(call, *given, **named))
    except OSError as error:
        _log.warning("a workload record cannot be written: %s", error)
        raise errors.UNAVAILABLE(
            reason="The disk does not take the workload record; nothing was changed."
        ) from error


def _found_in(directory: Path) -> list[str]:
    """The rids of the containers that have a switch or a record."""
    try:
        folders = [entry for entry in os.scandir(directory) if entry.is_dir()]
    except FileNotFoundError:
        return []
    return sorted(each.name for each in folders if _is_record(Path(each.path)))


def _is_record(folder: Path) -> bool:
    return (folder / _SWITCH).exists() or bool(Ring(folder, 0).writers())


def _switch_in(directory: Path) -> Mode | None:
    """How a container was switched; None when it was not."""
    path = directory / _SWITCH
    try:
        return Mode(json.loads(path.read_text(encoding="utf-8"))["record"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, LookupError):
        _log.warning("%s is no switch of a workload record, and is passed over", path)
        return None


def _keep_switch(directory: Path, mode: Mode) -> None:
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    _write_whole(directory / _SWITCH, json.dumps({"record": mode.value}).encode())


def _remove_switch(directory: Path) -> None:
    (directory / _SWITCH).unlink(missing_ok=True)


def _secret_in(directory: Path) -> bytes:
    """The secret of the hashes, made when there is none."""
    path = directory / _SECRET
    with contextlib.suppress(FileNotFoundError):
        secret = path.read_bytes()
        if len(secret) == SECRET_BYTES:
            return secret
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    secret = secrets.token_bytes(SECRET_BYTES)
    _write_whole(path, secret)
    return secret


def _write_whole(path: Path, content: bytes) -> None:
    """Puts a file in its place at once, for its owner alone."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    with open(beside, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def _remove(ring: Ring) -> None:
    ring.close()
    shutil.rmtree(ring.directory, ignore_errors=True)


def _thin_out(directory: Path, limits: Limits) -> None:
    """Removes files, those of the record first that was not written to for longest, until all are within a limit."""
    rids = _found_in(directory)
    if len(rids) * limits.workload_container_bytes <= limits.workload_bytes:
        return
    rings = [Ring(directory / rid, limits.workload_container_bytes) for rid in rids]
    sizes = {ring: ring.size_bytes for ring in rings}
    surplus = sum(sizes.values()) - limits.workload_bytes
    for ring in sorted(rings, key=lambda each: each.changed_at):
        if surplus <= 0:
            return
        ring.make_room(max(0, sizes[ring] - surplus))
        surplus -= sizes[ring] - ring.size_bytes
