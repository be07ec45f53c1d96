"""A script process whose engine is broken: what it is given as a script it runs as Python, behind the real walls.

Started by the tests in the place of the worker's program. What an attempt needs is imported before the walls are up,
as a real attacker would bring its own code along.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import mmap
import os
import signal
import socket
import sys
from typing import Any

WORKER_AT = sys.argv[0].rpartition("/tests/")[0] + "/src/pleiad/script/worker.py"
KNOWN = {"ctypes": ctypes, "mmap": mmap, "os": os, "signal": signal, "socket": socket, "sys": sys}


class Sandbox:
    """Runs Python; an answer is what the code leaves in `answer`, or the name and number of its error."""

    def __init__(self, settings: dict[str, Any]) -> None:
        pass

    def run(self, command: int, text: str, seconds: float) -> tuple[int, str]:
        known: dict[str, Any] = dict(KNOWN)
        try:
            exec(json.loads(text)["source"], known)
        except OSError as error:
            return 0, json.dumps(["refused", error.errno])
        except BaseException as error:
            return 0, json.dumps(["failed", repr(error)])
        return 0, json.dumps(["done", known.get("answer")])


def main() -> None:
    place = importlib.util.spec_from_file_location("worker", WORKER_AT)
    assert place is not None
    assert place.loader is not None
    worker: Any = importlib.util.module_from_spec(place)
    place.loader.exec_module(worker)
    worker.Sandbox = Sandbox
    worker.main()


if __name__ == "__main__":
    main()
