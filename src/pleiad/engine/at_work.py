"""The containers at work: those that somebody has asked for since the server started, and how requests find them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pleiad.catalog.catalog import Catalog
from pleiad.catalog.resource import Kind
from pleiad.engine.container import Container
from pleiad.engine.recording import Recording
from pleiad.engine.traffic import AccountTraffic


def _no_recording(_: str) -> Recording | None:
    return None


class AtWork:
    """The open containers of one account, by rid and by the path that a request named them by."""

    def __init__(self) -> None:
        self._by_rid: dict[str, Container] = {}
        self.traffic = AccountTraffic()
        """The counters of the account, with those of the containers at work."""
        self.by_path: dict[tuple[str, str], Container] = {}
        """The containers by database and container, as requests named them that led there before."""
        self.by_link: dict[bytes, Container] = {}
        """Those of them that were named by their ids, by the path that says so."""
        self.recording_of: Callable[[str], Recording | None] = _no_recording
        """Where the requests on a container are noted, by its rid."""

    def __iter__(self) -> Iterator[Container]:
        """All of them as they are now; others may come and go meanwhile."""
        return iter(list(self._by_rid.values()))

    def __contains__(self, rid: str) -> bool:
        return rid in self._by_rid

    def get(self, rid: str) -> Container | None:
        return self._by_rid.get(rid)

    def add(self, container: Container) -> Container:
        """Puts a container to work; the one that is already, if another request was faster."""
        container.recording = self.recording_of(container.resource.rid)
        found = self._by_rid.setdefault(container.resource.rid, container)
        if found is container:
            self.traffic.parts.append(container.traffic)
        return found

    def note_path(self, database: str, container: str, at_work: Container) -> None:
        self.by_path[database, container] = at_work
        if container != at_work.resource.rid:
            self.by_link[f"/dbs/{database}/colls/{container}".encode("utf-8", "surrogatepass")] = at_work

    def forget_paths(self) -> None:
        """What paths lead to may have changed."""
        self.by_path.clear()
        self.by_link.clear()

    def forget(self, rid: str) -> None:
        container = self._by_rid.pop(rid, None)
        if container is not None:
            self.traffic.let_go(container.traffic)
            container.traffic = self.traffic  # for the requests on it that are under way

    def forget_deleted(self, catalog: Catalog) -> list[str]:
        """Lets go of containers that the catalog has no more; their rids."""
        gone = [rid for rid in self._by_rid if catalog.by_rid(Kind.CONTAINER, rid) is None]
        for rid in gone:
            self.forget(rid)
        return gone
