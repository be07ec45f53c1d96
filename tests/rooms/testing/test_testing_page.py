"""docs/testing.md says what is: options, fixtures, its tests run, and its workflows do what they say."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pleiad
from pleiad.testing import plugin
from tests import warm_command
from tests.ports import reserved_port
from tests.project import ROOT
from tests.test_docs import code_blocks, project, section

pytest_plugins = ["pytester"]

PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
WORKFLOWS = code_blocks(PAGE, "yaml")
_YAML_LINE = re.compile(r"( *)(- )?([\w-]+):(?: (\S.*))?")

bash = shutil.which("bash")


def first_column(text: str) -> set[str]:
    return set(re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE))


def test_every_option_of_start_is_documented() -> None:
    assert first_column(section(PAGE, "Without pytest")) == set(inspect.signature(pleiad.start).parameters)


def test_every_fixture_is_documented() -> None:
    made = {name for name in vars(plugin) if name.startswith("pleiad_")}
    assert first_column(section(PAGE, "The fixtures")) == made


def test_the_extra_has_what_the_page_says() -> None:
    extra = project()["optional-dependencies"]["test"]
    assert {re.split(r"[<>=]", each)[0] for each in extra} == {"pytest", "azure-cosmos", "aiohttp"}


def test_the_programs_of_the_page_run_as_written() -> None:
    programs = code_blocks(section(PAGE, "Without pytest"), "python")
    assert len(programs) == 2
    for program in programs:
        exec(compile(program, "testing.md", "exec"), {})


def test_the_tests_of_the_page_pass_as_written(pytester: pytest.Pytester) -> None:
    (shared,) = code_blocks(section(PAGE, "Share a loaded account"), "python")
    (options,) = code_blocks(section(PAGE, "The fixtures"), "python")
    pytester.makeconftest(options)
    pytester.makepyfile(shared)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def steps(workflow: str) -> list[dict[str, str]]:
    """The steps of the one job of a workflow: as much of YAML as the page uses, and nothing that it does not."""
    assert re.search(r"^jobs:\n  \w+:\n    runs-on: ubuntu-latest\n", workflow, flags=re.MULTILINE)
    found: list[dict[str, str]] = []
    for line in workflow.partition("\n    steps:\n")[2].splitlines():
        match = _YAML_LINE.fullmatch(line)
        assert match, line
        indent, dash, name, value = match.groups()
        assert len(indent) == (6 if dash else 8 if value is None else 10), line
        if dash:
            found.append({})
        found[-1][name] = value or ""
    return found


def test_the_workflows_have_steps_of_known_kinds() -> None:
    assert len(WORKFLOWS) == 2
    for workflow in WORKFLOWS:
        for step in steps(workflow):
            assert ("uses" in step) != ("run" in step)
        assert [step["uses"] for step in steps(workflow) if "uses" in step] == [
            "actions/checkout@v4",
            "actions/setup-python@v5",
        ]
        commands = [step["run"] for step in steps(workflow) if "run" in step]
        install = "pip install 'pleiad[test] @ git+https://git.example.com/pleiad.git'"
        assert (commands[0], commands[-1]) == (install, "pytest")


@pytest.mark.skipif(bash is None, reason="a workflow runs its steps by bash")
def test_the_workflow_with_a_shared_server_does_what_it_says(tmp_path: Path) -> None:
    """Every step but the installation, in one shell instead of one each."""
    workflow = WORKFLOWS[1]
    (connection_string,) = re.findall(
        r"^      PLEIAD_CONNECTION_STRING: (\S+)$", workflow, flags=re.MULTILINE
    )
    commands = [step["run"] for step in steps(workflow) if "run" in step][1:]
    warm_command.program(tmp_path)
    (tmp_path / "pytest").write_text(f'#!/bin/sh\nexec {sys.executable} -m pytest -p no:cacheprovider "$@"\n')
    (tmp_path / "pytest").chmod(0o755)
    with reserved_port() as number:
        port = str(number)
        (tmp_path / "test_shop.py").write_text(
            "def test_it_is_the_server_of_the_workflow(pleiad_server, pleiad_database):\n"
            f"    assert pleiad_server.port == {port}\n"
        )
        environment = {
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "PLEIAD_PORT": port,
            "PLEIAD_CONNECTION_STRING": connection_string.replace("8081", port),
        }
        assert bash is not None
        script = "\n".join(["trap 'kill $!' EXIT", *commands])
        done = subprocess.run(
            [bash, "-e", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
