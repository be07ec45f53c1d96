"""The containers at work: those that somebody has asked for since the server started, and how requests find them."""

from __future__ import annotations

from collections.abc import Iterator

from pleiad.catalog.catalog import Catalog
from pleiad.catalog.resource import Kind
from pleiad.engine.container import Container


class AtWork:
    """The open containers of one account, by rid and by the path that a request named them by."""

    def __init__(self) -> None:
        self._by_rid: dict[str, Container] = {}
        self._by_path: dict[tuple[str, str], Container] = {}

    def __iter__(self) -> Iterator[Container]:
        """All of them as they are now; others may come and go meanwhile."""
        return iter(list(self._by_rid.values()))

    def __contains__(self, rid: str) -> bool:
        return rid in self._by_rid

    def get(self, rid: str) -> Container | None:
        return self._by_rid.get(rid)

    def found(self, database: str, container: str) -> Container | None:
        """The container of a path that led to it before."""
        return self._by_path.get((database, container))

    def add(self, container: Container) -> Container:
        """Puts a container to work; the one that is already, if another request was faster."""
        return self._by_rid.setdefault(container.resource.rid, container)

    def note_path(self, database: str, container: str, at_work: Container) -> None:
        self._by_path[database, container] = at_work

    def forget_paths(self) -> None:
        """What paths lead to may have changed."""
        self._by_path.clear()

    def forget(self, rid: str) -> None:
        self._by_rid.pop(rid, None)

    def forget_deleted(self, catalog: Catalog) -> list[str]:
        """Lets go of containers that the catalog has no more; their rids."""
        gone = [rid for rid in self._by_rid if catalog.by_rid(Kind.CONTAINER, rid) is None]
        for rid in gone:
            del self._by_rid[rid]
        return gone
