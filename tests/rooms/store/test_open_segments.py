"""How many segments of a server are open at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from azure.cosmos import CosmosClient, PartitionKey

import pleiad
from pleiad.limits import Limits
from tests.waiting import wait_until


def _open_segments(data: Path) -> set[str]:
    """The segments below a folder whose files this process has open."""
    links = Path("/proc/self/fd").iterdir()
    files = {os.readlink(link) for link in links if link.is_symlink()}
    return {name for name in files if name.startswith(f"{data}/segments/") and name.endswith(".sqlite")}


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        (Limits(open_segments=3), 3),
        (Limits(descriptors_reserved=30), 4),
        (Limits(), 9),
    ],
)
def test_a_server_keeps_as_many_segments_open_as_its_limits_allow(
    limits: Limits, most: int, tmp_path: Path
) -> None:
    with pleiad.start(data=tmp_path, limits=limits) as server:
        database = CosmosClient(server.endpoint, server.key).create_database("shop")
        container = database.create_container("items", PartitionKey("/pk"), offer_throughput=50_000)
        for number in range(40):
            container.create_item({"id": str(number), "pk": str(number)})

        def are_open() -> int:
            """How many are open when all have been read; one that was at work then was not closed for another."""
            for number in range(40):
                assert container.read_item(str(number), str(number))["id"] == str(number)
            return len(_open_segments(tmp_path))

        assert wait_until(lambda: are_open() == most)
