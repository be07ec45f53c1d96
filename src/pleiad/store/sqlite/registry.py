"""What the catalog file knows of segments: which were made, which are to go, and how far they came.

A segment is noted as made before the first commit in it is answered, so one that is noted and not there has lost
something; one that is not noted has nothing to lose. One that nobody needs any more is noted as to be dropped in the
transaction in which its container lets go of it, so nothing else is ever removed.

`generation` counts the changes of the catalog. Segments take the newest one in with their own commits, so that a
catalog that is older than they are is found.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import apsw

from pleiad.store.checksum import fields_checksum
from pleiad.store.problems import DISK, Problems
from pleiad.store.sqlite import schema

_MADE = "made"
_DROPPING = "dropping"
_NOTE_MADE = (
    "INSERT INTO segment VALUES(?1, 'made', ?2, 0) "
    "ON CONFLICT(name) DO UPDATE SET state = 'made', is_stamped = ?2, reached = 0"
)
_NOTE_DROPPING = (
    "INSERT INTO segment VALUES(?1, 'dropping', 0, 0) ON CONFLICT(name) DO UPDATE SET state = 'dropping'"
)
_NOTE_REACHED = "UPDATE segment SET reached = max(reached, ?2) WHERE name = ?1"


class Registry:
    """The segments of one data directory; `turn` is held while the connection of the catalog is used."""

    def __init__(self, catalog: apsw.Connection, turn: threading.Lock, problems: Problems) -> None:
        self._catalog = catalog
        self._turn = turn
        self.problems = problems
        self.disk = problems.outage(DISK)
        schema.make_catalog(catalog, str(uuid.uuid4()), fields_checksum)
        account: Any = catalog.execute("SELECT id, generation FROM account").fetchone()
        if account is None:
            raise apsw.CorruptError("it has tables and no account")
        self.account: str = account[0]
        self.generation: int = account[1]
        rows: Any = catalog.execute("SELECT name, state, is_stamped, reached FROM segment").fetchall()
        self._states: dict[str, str] = {name: state for name, state, _, _ in rows}
        self._stamped = {name for name, _, is_stamped, _ in rows if is_stamped}
        self._reached: dict[str, int] = {name: reached for name, _, _, reached in rows}

    # -- what is known ---------------------------------------------------------------------------

    def is_made(self, name: str) -> bool:
        """Whether a segment was made, and is needed."""
        return self._states.get(name) == _MADE

    def is_stamped(self, name: str) -> bool:
        """Whether the file of a segment tells whose it is."""
        return name in self._stamped

    def reached(self, name: str) -> int:
        """A sum of LSNs that a segment has certainly come to."""
        return self._reached.get(name, 0)

    def known(self) -> set[str]:
        return set(self._states)

    def made(self) -> set[str]:
        return {name for name, state in self._states.items() if state == _MADE}

    def dropping(self) -> set[str]:
        return {name for name, state in self._states.items() if state == _DROPPING}

    # -- changes, each durable when it returns ------------------------------------------------------

    def note_made(self, name: str) -> None:
        """Notes that a segment is there, and that its file tells whose it is."""
        if not self.is_made(name) or name not in self._stamped:
            self._save(_NOTE_MADE, [(name, True)])
            self._states[name] = _MADE
            self._stamped.add(name)
            self._reached.setdefault(name, 0)

    def note_found(self, names: Iterable[str]) -> None:
        """Notes that segments are there which were made by an older version, or not noted before a crash."""
        new = [name for name in names if not self.is_made(name)]
        if new:
            self._save(_NOTE_MADE, [(name, False) for name in new])
            self._states.update((name, _MADE) for name in new)
            self._reached.update((name, 0) for name in new)

    def note_dropping(self, names: Iterable[str]) -> None:
        new = [name for name in names if self._states.get(name) != _DROPPING]
        if new:
            self._save(_NOTE_DROPPING, [(name,) for name in new])
            self.dropping_saved(new)

    def save_dropping(self, names: Iterable[str]) -> None:
        """The same as a part of a transaction that the caller has open; `dropping_saved` when it is durable."""
        self._catalog.executemany(_NOTE_DROPPING, [(name,) for name in names])

    def dropping_saved(self, names: Iterable[str]) -> None:
        self._states.update((name, _DROPPING) for name in names)

    def forget(self, names: Iterable[str]) -> None:
        gone = [name for name in names if name in self._states]
        if gone:
            self._save("DELETE FROM segment WHERE name = ?1", [(name,) for name in gone])
        for name in gone:
            del self._states[name]
            self._stamped.discard(name)
            self._reached.pop(name, None)

    def note_reached(self, reached: Mapping[str, int]) -> None:
        """Notes how far segments came, so that an older copy of one is found."""
        further = {name: lsns for name, lsns in reached.items() if lsns > self._reached.get(name, lsns)}
        if further:
            self._save(_NOTE_REACHED, list(further.items()))
            self._reached.update(further)

    def raise_generation(self, least: int) -> None:
        """Counts on from the generation that segments know."""
        if least > self.generation:
            self._save("UPDATE account SET generation = ?1", [(least,)])
            self.generation = least

    def _save(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with self._turn, self._catalog:
            self._catalog.executemany(statement, rows)
