"""The planner in a process of its own, since a few texts crash the library; a crashed one is started again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from differential.ours import Case

ENGINE = {
    "maxJoinsPerSqlQuery": 10,
    "queryEnableFullText": True,
    "maxSqlQueryInputLength": 524288,
    "maxLogicalAndPerSqlQuery": 2147483647,
    "maxLogicalOrPerSqlQuery": 2147483647,
    "maxInExpressionItemsCount": 2147483647,
}
# The library writes remarks of its own to the standard output, so the answers have a file of their own.
_PROGRAM = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from query_oracle import Oracle
answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
oracle = Oracle(json.loads(sys.argv[2]))
for line in sys.stdin:
    asked = json.loads(line)
    plan, error = oracle.plan(asked["query"], asked["parameters"], asked["paths"], vector=asked["vector"])
    print(json.dumps({"plan": plan} if error is None else {"error": error}), file=answers, flush=True)
"""


def is_here(shared: Path) -> bool:
    """Whether the planner lies in the folder."""
    folder = shared / "oracle"
    return (folder / "query_oracle.py").is_file() and (folder / "libQueryPlanInterop.so").is_file()


class Planner:
    """Asks the planner one case at a time; None is the answer to a text that crashes it."""

    def __init__(self, shared: Path) -> None:
        self._command = [sys.executable, "-c", _PROGRAM, str(shared / "oracle"), json.dumps(ENGINE)]
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Planner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def ask(self, case: Case) -> dict[str, Any] | None:
        """The planner's document for a case."""
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**os.environ, "PYTHONIOENCODING": "utf-8"},
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {
            "query": case.text,
            "parameters": list(case.parameters),
            "paths": list(case.paths),
            "vector": case.vector,
        }
        try:
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.close()
            return None
        document: dict[str, Any] = json.loads(line)
        return document

    def ask_all(self, cases: Sequence[Case]) -> Iterator[tuple[Case, dict[str, Any]]]:
        """The cases that the planner answers, with its answers."""
        for case in cases:
            document = self.ask(case)
            if document is not None:
                yield case, document
