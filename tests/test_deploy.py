"""What is in `deploy/` agrees with the server: options, variables, paths of the checks, and what tools say of it."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pleiad.heads.admin.head import HEALTH_PATH, READY_PATH
from tests.project import ROOT
from tests.test_docs import serve_options
from tests.waiting import SECONDS_MAX

DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "pleiad.service"
KUBERNETES = DEPLOY / "kubernetes"


class _Unit(configparser.RawConfigParser):
    """A unit of systemd, as far as one line each goes."""

    def __init__(self) -> None:
        super().__init__(strict=False, comment_prefixes=("#",), interpolation=None)

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def unit() -> configparser.RawConfigParser:
    found = _Unit()
    found.read(UNIT)
    return found


def test_the_service_starts_the_server_with_options_it_has() -> None:
    command = shlex.split(unit()["Service"]["ExecStart"])
    assert command[0].endswith("/pleiad")
    assert command[1] == "serve"
    assert {part for part in command if part.startswith("--")} <= serve_options().keys()


def test_the_service_is_shut_in() -> None:
    service = unit()["Service"]
    for name in (
        "NoNewPrivileges",
        "PrivateTmp",
        "PrivateDevices",
        "MemoryDenyWriteExecute",
        "LockPersonality",
    ):
        assert service[name] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert service["User"] == "pleiad"
    assert service["CapabilityBoundingSet"] == ""
    assert f"/var/lib/{service['StateDirectory']}" in service["ExecStart"]
    assert service["ReadWritePaths"] in service["ExecStart"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_takes_the_service(tmp_path: Path) -> None:
    # The programs that it names are not on this machine.
    text = re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", UNIT.read_text(), flags=re.MULTILINE)
    (tmp_path / "pleiad.service").write_text(text)
    command = ["systemd-analyze", "verify", str(tmp_path / "pleiad.service")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    complaints = [line for line in run.stderr.splitlines() if "pleiad.service" in line]
    assert (run.returncode, complaints) == (0, [])


def test_the_pods_have_settings_and_checks_that_the_server_has() -> None:
    text = (KUBERNETES / "pleiad.yaml").read_text()
    variables = set(re.findall(r"name: (PLEIAD_\w+)", text))
    assert variables
    assert variables <= set(serve_options().values())
    probes = re.findall(r"(\w+)Probe:\n +httpGet: \{path: (\S+), port: nosql\}", text)
    assert dict(probes) == {
        "startup": HEALTH_PATH.decode(),
        "liveness": HEALTH_PATH.decode(),
        "readiness": READY_PATH.decode(),
    }
    mounted = dict(re.findall(r"\{name: (\w+), mountPath: ([^,}]+)", text))
    files = re.findall(r"value: (/\S+)", text)
    assert all(any(file.startswith(f"{place}/") for place in mounted.values()) for file in files)
    volumes = set(re.findall(r"^        - name: (\w+)\n          (?:secret|emptyDir)", text, re.MULTILINE))
    claims = set(re.findall(r"metadata:\n        name: (\w+)", text))
    assert mounted.keys() == volumes | claims


def test_the_image_is_that_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"newTag: {version}" in (KUBERNETES / "kustomization.yaml").read_text()


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl here")
def test_kubernetes_own_tool_reads_the_files() -> None:
    command = ["kubectl", "kustomize", str(KUBERNETES)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert run.returncode == 0, run.stderr
    assert re.findall(r"^kind: (\w+)", run.stdout, flags=re.MULTILINE) == ["Service", "StatefulSet"]
    assert (
        f"image: pleiad:{tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']['version']}"
        in run.stdout
    )


def test_every_file_of_the_folder_is_told_in_the_documentation() -> None:
    pages = (ROOT / "docs" / "operate.md").read_text() + (ROOT / "docs" / "admin-api.md").read_text()
    for path in (*DEPLOY.glob("*.*"), KUBERNETES):
        assert f"deploy/{path.name}" in pages, path.name
    json.loads((DEPLOY / "grafana.json").read_text())
