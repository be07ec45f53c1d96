"""The house rules as a test: what the source tree must look like, whoever writes in it.

Each test lists every offender, so one run tells all there is to put right.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import logging
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

from pleiad import errors
from pleiad.limits import Limits
from tests.project import ROOT

SOURCE = ROOT / "src" / "pleiad"

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}

# Written in pieces so that this file does not offend its own rule.
_HOSTS = ("py" + "pi.org", "python" + "hosted.org", "npm" + "js.org", "npm" + "js.com", "yarn" + "pkg.com")
_FOLDERS = ("work", "home", "root", "Users")
MACHINE_TEXT = re.compile(
    r"(?<![\w.:/-])/(?:" + "|".join(_FOLDERS) + r")/\w|" + "|".join(map(re.escape, _HOSTS))
)

# Where time itself is what passes; everywhere else tests wait for an event, or by `tests/waiting.py`.
MAY_SLEEP = {
    "tests/waiting.py": "it is how tests wait",
    "tests/browser/test_endurance.py": "requests at a steady rate are its load",
    "tests/proofs/crash/test_postgres.py": "faults that last for a time",
    "tests/proofs/simulation/clients.py": "on the simulation's clock",
    "tests/proofs/simulation/followers.py": "on the simulation's clock",
    "tests/proofs/simulation/ground.py": "the real clock, where all others are the simulation's",
    "tests/proofs/simulation/world.py": "on the simulation's clock",
    "tests/rooms/engine/test_shared_budget.py": "a client that waits as long as it is told to",
    "tests/rooms/heads/admin/test_advice.py": "a load that leaves the loop to others",
    "tests/rooms/server/test_eager.py": "a timer is one of the things to wait for",
    "tests/rooms/server/test_protocol.py": "a handler that is busy",
}


def source_files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def assert_none(offenders: list[str], rule: str) -> None:
    assert not offenders, f"{rule}:\n  " + "\n  ".join(offenders)


def names_used_in(path: Path) -> set[str]:
    """Every name a module refers to: attributes, plain names and imported names."""
    names: set[str] = set()
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) | ast.alias(name=name):
                names.add(name)
    return names


def functions_of(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_every_module_and_package_says_its_purpose() -> None:
    packages_without_init = [
        f"{shown(folder)}/ has no __init__.py"
        for folder in sorted({path.parent for path in source_files()})
        if not (folder / "__init__.py").is_file()
    ]
    silent = [shown(path) for path in source_files() if not ast.get_docstring(tree_of(path))]
    assert_none(packages_without_init + silent, "a module opens with a docstring of its purpose")


def test_files_stay_small() -> None:
    sizes = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in source_files()}
    long = [f"{shown(path)}: {lines} lines" for path, lines in sizes.items() if lines > FILE_LINES_MAX]
    assert_none(long, f"a file has at most {FILE_LINES_MAX} lines; look for the second concept in it")


def test_functions_stay_small() -> None:
    long = []
    for path in source_files():
        for function in functions_of(path):
            lines = (function.end_lineno or function.lineno) - function.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                long.append(f"{shown(path)}:{function.lineno} {function.name}: {lines} lines")
    assert_none(long, f"a function has at most {FUNCTION_LINES_MAX} lines")


def test_names_of_files_and_folders_say_what_is_inside() -> None:
    vague = [
        shown(path)
        for path in sorted(SOURCE.rglob("*"))
        if path.stem in FORBIDDEN_NAMES and "__pycache__" not in path.parts
    ]
    assert_none(vague, f"no file or folder is called {', '.join(sorted(FORBIDDEN_NAMES))}")


def test_nothing_is_left_unfinished() -> None:
    marks = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XXX)\b|NotImplemented" + r"Error")
    unfinished = [
        f"{shown(path)}:{number} {line.strip()}"
        for path in source_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if marks.search(line)
    ]
    assert_none(unfinished, "no dead doors: no reminder and no stub in the source")


def test_only_the_command_line_prints() -> None:
    printing = [
        f"{shown(path)}:{node.lineno}"
        for path in source_files()
        if not path.is_relative_to(SOURCE / "cli")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert_none(printing, "only pleiad.cli prints")


def tracked_files() -> list[str]:
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        output = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("the tracked files can only be listed by git in a checkout")
    return [name for name in output.split("\0") if name]


def test_types_are_checked_in_every_folder() -> None:
    checked = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]["files"]
    unchecked = [
        name
        for name in tracked_files()
        if name.endswith(".py") and not any(name.startswith(f"{folder}/") for folder in checked)
    ]
    assert_none(unchecked, "the folder of every Python file is among the files of tool.mypy")


def sleeps_of(path: Path) -> Iterator[int]:
    """The lines where something waits for a time; to leave the loop to others for a turn is none."""
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[seconds, *_]):
                is_turn = isinstance(seconds, ast.Constant) and seconds.value == 0
                if name.lstrip("_") in {"sleep", "wait_for_timeout"} and not is_turn:
                    yield node.lineno


def test_tests_wait_for_events_and_not_for_a_time() -> None:
    sleeps = {
        name: list(sleeps_of(ROOT / name))
        for name in tracked_files()
        if name.startswith(("tests/", "conformance/")) and name.endswith(".py")
    }
    offenders = [
        f"{name}:{line}" for name, lines in sleeps.items() if name not in MAY_SLEEP for line in lines
    ]
    assert_none(offenders, "a test waits for an event, or by tests/waiting.py, and sleeps nowhere")
    idle = [name for name in MAY_SLEEP if not sleeps.get(name)]
    assert_none(idle, "a file of MAY_SLEEP that does not sleep is not on that list")


def test_no_file_names_a_machine_path_or_a_package_registry() -> None:
    offenders = []
    for name in tracked_files():
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if match := MACHINE_TEXT.search(line):
                offenders.append(f"{name}:{number} {match.group()}")
    assert_none(offenders, "a tracked file names no path of one machine and no package registry")


def test_every_dependency_states_its_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    wanted = list(project["dependencies"])
    for extra in project.get("optional-dependencies", {}).values():
        wanted += extra
    unexplained = []
    for dependency in wanted:
        line = next((line for line in text.splitlines() if f'"{dependency}"' in line), "")
        if not re.search(r'",?\s*#\s*\S', line):
            unexplained.append(dependency)
    assert_none(unexplained, "the reason of a dependency stands on its line in pyproject.toml")


def test_every_row_of_the_error_table_is_its_own_and_is_raised_somewhere() -> None:
    rows = {name: value for name, value in vars(errors).items() if isinstance(value, errors.ErrorRow)}
    assert rows
    assert len({id(row) for row in rows.values()}) == len(rows), "two names share one row of the error table"
    used = set().union(*(names_used_in(path) for path in source_files() if path != SOURCE / "errors.py"))
    assert_none(sorted(rows.keys() - used), "rows of errors.py that nothing raises (use them or remove them)")


def test_every_limit_is_in_force_somewhere() -> None:
    used = set().union(*(names_used_in(path) for path in source_files() if path != SOURCE / "limits.py"))
    fields = {field.name for field in dataclasses.fields(Limits)}
    assert_none(sorted(fields - used), "fields of Limits that nothing enforces (enforce them or remove them)")


def test_imports_between_rooms_point_downwards(capsys: pytest.CaptureFixture[str]) -> None:
    loggers = [each for each in logging.root.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    status = lint_imports(config_filename=str(ROOT / ".importlinter"), no_cache=True, no_logo=True)
    for logger in loggers:
        logger.disabled = (
            False  # the linter silences every logger it finds, also for the tests after this one
        )
    assert status == 0, capsys.readouterr().out
