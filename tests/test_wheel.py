"""The wheel: what is in it, and that it works from a folder of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from pleiad.cli.main import VERBS
from tests.project import ROOT

STATIC = ROOT / "src" / "pleiad" / "heads" / "explorer" / "static"
DATA = {"pleiad/py.typed", "pleiad/README.md", "pleiad/script/prelude.js"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the sources alone: a build leaves files beside them."""
    work = tmp_path_factory.mktemp("wheel")
    source = work / "source"
    shutil.copytree(
        ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "*.pyc")
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*build, "--no-build-isolation", "--wheel-dir", str(work), str(source)], check=True)
    (made,) = work.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """A folder with the wheel in it and nothing else."""
    folder = wheel.parent / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*install, "--target", str(folder), str(wheel)], check=True)
    return folder


def run(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_one_wheel_is_for_every_platform_and_has_all_of_the_package_and_nothing_else(wheel: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert wheel.name == f"pleiad-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = archive.read(f"pleiad-{version}.dist-info/METADATA").decode()
    modules = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "pleiad").rglob("*.py")}
    page = {str(path.relative_to(ROOT / "src")) for path in STATIC.rglob("*") if path.is_file()}
    assert page
    assert names == modules | DATA | page
    assert {"License-Expression: Apache-2.0", "Provides-Extra: postgres"} <= set(metadata.splitlines())


def test_the_command_line_of_the_wheel_works_from_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    where = run(installed, tmp_path, "-c", "import pleiad; print(pleiad.__file__)")
    assert where.stdout.startswith(str(installed))
    told = run(installed, tmp_path, "-m", "pleiad", "--help")
    assert told.returncode == 0, told.stderr
    assert all(verb in told.stdout for verb in VERBS)
    assert list(tmp_path.iterdir()) == []


def test_a_server_of_the_wheel_runs_scripts_and_queries(installed: Path, tmp_path: Path) -> None:
    program = (
        "import pleiad\n"
        "from azure.cosmos import CosmosClient, PartitionKey\n"
        "with pleiad.start(child_process=True) as server:\n"
        "    with CosmosClient(server.endpoint, server.key) as client:\n"
        "        users = client.create_database('d').create_container('c', PartitionKey('/id'))\n"
        "        users.create_item({'id': '1'})\n"
        "        users.scripts.create_user_defined_function({'id': 'f', 'body': 'function (x) { return x + x }'})\n"
        "        print(list(users.query_items('SELECT VALUE udf.f(c.id) FROM c', partition_key='1')))\n"
    )
    done = run(installed, tmp_path, "-c", program)
    assert done.stdout.strip() == "['11']", done.stderr
