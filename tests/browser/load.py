"""Load on containers while a test looks: most of it on one value of the key, as a bad key has it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from azure.cosmos import ContainerProxy
from azure.cosmos.exceptions import CosmosHttpResponseError

HOT = "Beef Products"
GROUPS = ("Soups, Sauces, and Gravies", "Sweets", "Dairy and Egg Products", "Fruits", "Legumes", "Snacks")
FOODS = ("braised", "grilled", "roasted", "raw", "dried")


@contextmanager
def load(*containers: ContainerProxy) -> Iterator[None]:
    """Writes to all of them until it is told to stop."""
    ended = threading.Event()

    def write(first: int) -> None:
        number = first
        while not ended.is_set():
            number += 1
            group = HOT if number % 5 else GROUPS[number // 5 % len(GROUPS)]
            item = {
                "id": f"{number % 300:05}",
                "foodGroup": group,
                "description": f"{group}, {FOODS[number % len(FOODS)]}",
                "protein": round(5 + number % 311 / 10, 1),
                "tags": [group.split()[0].lower(), FOODS[number % len(FOODS)]],
                "notes": "x" * 6_000,
            }
            for container in containers:
                try:
                    container.upsert_item(item)
                except CosmosHttpResponseError as error:
                    if error.status_code != 429:
                        raise

    threads = [threading.Thread(target=write, args=(1000 * each,)) for each in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
