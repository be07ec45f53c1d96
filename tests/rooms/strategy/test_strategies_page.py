"""docs/strategies.md runs as written, and tells of everything that the room offers."""

from __future__ import annotations

import pytest

import pleiad.strategy
from tests.project import ROOT
from tests.test_docs import code_blocks

PAGE = (ROOT / "docs" / "strategies.md").read_text(encoding="utf-8")
TYPES_ONLY = {"Answer", "AsyncContainer", "Container", "Plan", "Reconciled", "SyntheticKey", "Unsettled"}
REASONS_ONLY = {"BadKeyPart", "MissingProperty", "MoveConflict"}


def test_the_examples_of_the_page_run_as_one_program(capsys: pytest.CaptureFixture[str]) -> None:
    program = "\n".join(code_blocks(PAGE, "python"))
    exec(compile(program, "strategies.md", "exec"), {})
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("one of 20 suffixes has it")
    assert said[1] == "0 finished, 0 undone, 0 left to people"


def test_the_page_tells_of_everything_there_is() -> None:
    offered = set(pleiad.strategy.__all__) - TYPES_ONLY - REASONS_ONLY
    assert {name for name in offered if name not in PAGE} == set()
    assert all(hasattr(pleiad.strategy, name) for name in pleiad.strategy.__all__)
