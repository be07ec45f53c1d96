"""The scripts of one container as the catalog has them now, and the processes that run them."""

from __future__ import annotations

from typing import NamedTuple

from pleiad.catalog.catalog import Catalog
from pleiad.catalog.resource import Kind, Resource
from pleiad.script.pool import ScriptPool


class ContainerScripts(NamedTuple):
    """Where a container finds its scripts."""

    catalog: Catalog
    pool: ScriptPool
    container_rid: str

    def find(self, kind: Kind, name: str) -> Resource | None:
        """The script of that name."""
        return self.catalog.find(kind, self.container_rid, name)
