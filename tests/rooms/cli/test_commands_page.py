"""The commands of pages in docs/, run as they stand there, one block after the other on one server for a page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests import warm_command
from tests.project import ROOT
from tests.rooms.cli.test_serve import serving
from tests.waiting import SECONDS_MAX

PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
LINES = dict(re.findall(r"^\| (bash|zsh|fish) \| `[^`]+` \| `([^`]+)` \|$", PAGE, flags=re.MULTILINE))

bash = shutil.which("bash")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with the command `pleiad` in it."""
    folder = tmp_path / "programs"
    folder.mkdir()
    warm_command.program(folder)
    return folder


def run(script: str, programs: Path, port: int = 1) -> subprocess.CompletedProcess[str]:
    assert bash is not None
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PLEIAD_ENDPOINT": f"http://localhost:{port}",
    }
    return subprocess.run(
        [bash, "-eo", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        env=environment,
        cwd=programs,
        timeout=300,
    )


@pytest.mark.skipif(bash is None, reason="the pages are written for bash")
@pytest.mark.parametrize(
    ("page", "blocks_min"),
    [("commands", 6), ("for-applications", 1), ("for-partition-keys", 3), ("for-operators", 1)],
)
def test_every_command_of_the_page_works(page: str, blocks_min: int, programs: Path) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    blocks = [
        textwrap.dedent(block) for block in re.findall(r"^ *```sh\n(.*?)^ *```", text, flags=re.M | re.S)
    ]
    assert len(blocks) >= blocks_min
    with serving("--ephemeral", "--port", 0, "--sample") as server:
        for block in blocks:
            done = run(block, programs, server.port)
            assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
            assert done.stdout or done.stderr


def test_the_completion_of_each_shell_is_the_line_on_the_page(programs: Path) -> None:
    assert LINES.keys() == {"bash", "zsh", "fish"}
    for shell, line in LINES.items():
        if shutil.which(shell) is not None:
            done = subprocess.run(
                [shell, "-c", line.replace("\\|", "|")],
                capture_output=True,
                text=True,
                env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
                timeout=SECONDS_MAX,
            )
            assert (done.returncode, done.stderr) == (0, "")
