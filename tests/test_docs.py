"""The documentation agrees with the code: options, verbs, limits, requirement entries and the tour.

What a page says is read from the page itself, so a change on one side without the other fails here.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from pleiad.limits import Limits
from pleiad.sample import sample_containers
from pleiad.store.postgres import schema as postgres_schema
from pleiad.store.sqlite import schema as sqlite_schema
from tests import warm_command
from tests.project import ROOT

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "src").rglob("*.md")),
    *sorted((ROOT / "tests").glob("*.md")),
]
TOUR_ENDPOINT = "http://localhost:8081"
MAKE_VERB = re.compile(r"^([a-z][a-z-]*):(?!=)", flags=re.MULTILINE)


@pytest.fixture(scope="module")
def requirements_tool() -> ModuleType:
    """tools/requirements.py, which is a script and not part of the package."""
    specification = importlib.util.spec_from_file_location(
        "requirements_tool", ROOT / "tools" / "requirements.py"
    )
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def code_blocks(markdown: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", markdown, flags=re.MULTILINE | re.DOTALL)


def section(markdown: str, heading: str) -> str:
    """The text under a second-level heading, up to the next one."""
    match = re.search(
        rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", markdown, flags=re.MULTILINE | re.DOTALL
    )
    assert match, f"there is no heading '{heading}'"
    return match.group(1)


def recipe(makefile: str, verb: str) -> str:
    """The commands of a verb."""
    match = re.search(rf"^{verb}:.*\n((?:\t.*\n)+)", makefile, flags=re.MULTILINE)
    assert match, f"there is no verb '{verb}'"
    return match.group(1)


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(read("pyproject.toml"))["project"]
    return found


def project_extras() -> list[str]:
    """What all extras ask for, but for other extras of our own."""
    extras = project()["optional-dependencies"].values()
    return [each for extra in extras for each in extra if not each.startswith(f"{project()['name']}[")]


def serve_options() -> dict[str, str | None]:
    """The long options of `pleiad serve` and the environment variable of each."""
    serve: Any = importlib.import_module("pleiad.cli.serve").serve
    options: dict[str, str | None] = {}
    for parameter in serve.params:
        for name in (*parameter.opts, *parameter.secondary_opts):
            if name.startswith("--") and name != "--help":
                options[name] = parameter.envvar
    return options


def documented_options() -> dict[str, str]:
    table = section(read("docs/operate.md"), "Options of pleiad serve")
    return dict(re.findall(r"^\| `(--[a-z-]+)[^`]*` \| `([A-Z_]+)` \|", table, flags=re.MULTILINE))


def test_every_option_of_serve_is_documented_and_every_documented_option_exists() -> None:
    assert documented_options().keys() == serve_options().keys()


def test_every_documented_environment_variable_is_the_one_of_its_option() -> None:
    options = serve_options()
    for name, variable in documented_options().items():
        assert variable == "PLEIAD_" + name.removeprefix("--").replace("-", "_").upper()
        # No variable on the option itself means that click derives it from the prefix PLEIAD.
        assert options[name] in (variable, None), f"{name} listens to {options[name]}"


def test_the_formats_of_this_version_are_those_of_the_code() -> None:
    table = section(read("docs/operate.md"), "Upgrade and downgrade")
    formats = dict(re.findall(r"^\| (\d\S*) \| (\d+ \| \d+) \|", table, flags=re.MULTILINE))
    assert formats[project()["version"]] == f"{sqlite_schema.VERSION} | {postgres_schema.VERSION}"
    released = re.findall(r"^## (\S+)", read("CHANGELOG.md"), flags=re.MULTILINE)
    assert set(formats) == set(released)


def test_every_make_verb_in_the_documentation_exists() -> None:
    verbs = set(MAKE_VERB.findall(read("Makefile")))
    missing = {
        f"{page.relative_to(ROOT)}: make {verb}"
        for page in PAGES
        for verb in re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        if verb not in verbs
    }
    assert not missing, "verbs that the Makefile does not have: " + ", ".join(sorted(missing))


def test_make_help_lists_every_verb_with_what_it_does() -> None:
    (phony,) = re.findall(r"^\.PHONY: (.+)$", read("Makefile"), flags=re.MULTILINE)
    run = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, check=True, text=True)
    listed = dict(re.findall(r"^([a-z-]+) +(\S.*)$", run.stdout, flags=re.MULTILINE))
    assert list(listed) == [verb for verb in MAKE_VERB.findall(read("Makefile")) if verb in phony.split()]
    assert listed.keys() == set(phony.split())
    assert max(map(len, run.stdout.splitlines())) < 80


def test_the_hooks_before_a_commit_are_the_commands_of_make_lint() -> None:
    lint = re.findall(
        r"^\t\$\(BIN\)/(.+)$", recipe(read("Makefile"), "lint").replace(" .\n", "\n"), flags=re.MULTILINE
    )
    hooks = re.findall(r"^ +entry: \.venv/bin/(.+)$", read(".pre-commit-config.yaml"), flags=re.MULTILINE)
    assert [hook.replace(" --force-exclude", "") for hook in hooks] == lint


def test_the_public_workflow_runs_what_must_hold_before_a_landing() -> None:
    commands = re.findall(r"^ +- run: (.+)$", read(".github/workflows/ci.yml"), flags=re.MULTILINE)
    assert commands == [".ci/run"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_the_newest_version_among_the_changes_is_the_one_of_the_package() -> None:
    versions = re.findall(r"^## (\S+)", read("CHANGELOG.md"), flags=re.MULTILINE)
    assert versions[0] == project()["version"]
    assert versions == sorted(versions, key=Version, reverse=True)


def test_every_dependency_is_locked_to_a_version_that_is_allowed() -> None:
    lines = [line for line in read("constraints.txt").splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line) for line in lines), "versions only"
    locked = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}
    wanted = [Requirement(each) for each in (*project()["dependencies"], *project_extras())]
    assert wanted
    for requirement in wanted:
        assert locked[canonicalize_name(requirement.name)] in requirement.specifier, requirement


def test_nothing_tells_to_install_what_others_have_on_an_index_under_our_name() -> None:
    sources = [*PAGES, *sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "src").rglob("*.js"))]
    by_name = re.compile(r"pip install ['\"]?pleiad\b(?:\[[a-z,]+\])?+(?! @ )")
    assert [page for page in sources if by_name.search(page.read_text(encoding="utf-8"))] == []


def test_libraries_that_messages_tell_to_install_are_those_of_the_extras() -> None:
    told = {
        Requirement(library.strip("'")).name
        for source in (ROOT / "src").rglob("*.py")
        for libraries in re.findall(
            r"pip install ([a-z' .>=0-9\[\]-]+)\"", source.read_text(encoding="utf-8")
        )
        for library in libraries.split()
    }
    assert {"numpy", "duckdb", "backports.zstd", "psycopg", "azure-cosmos"} <= told
    assert told <= {Requirement(each).name for each in project_extras()}


def test_the_extras_that_make_run_installs_are_those_that_the_start_page_says() -> None:
    (installed,) = re.findall(r"^SERVING := \.\[(.+)\]$", read("Makefile"), flags=re.MULTILINE)
    page = section(read("docs/start.md"), "Install and run")
    extras = re.findall(r"^\| (`[a-z`, ]+`) \| ", page, flags=re.MULTILINE)
    named = [name for cell in extras for name in re.findall("[a-z]+", cell)]
    assert "`make run` installs the first two." in page
    assert set(named[:2]) == set(installed.split(","))
    assert set(named) <= project()["optional-dependencies"].keys()


def test_the_limits_table_has_every_limit_with_its_default() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| ([\d.,]+) \|", section(read("docs/operate.md"), "Limits"), flags=re.MULTILINE
    )
    documented = {name: float(value.replace(",", "")) for name, value in rows}
    actual = {field.name: float(getattr(Limits(), field.name)) for field in dataclasses.fields(Limits)}
    assert documented == actual


def test_python_in_the_documentation_compiles() -> None:
    blocks = [
        (page, block) for page in PAGES for block in code_blocks(page.read_text(encoding="utf-8"), "python")
    ]
    assert blocks
    for page, block in blocks:
        compile(block, str(page.relative_to(ROOT)), "exec")


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert not broken, "broken links: " + ", ".join(broken)


def test_the_map_of_the_house_names_every_room() -> None:
    source = ROOT / "src" / "pleiad"
    rooms = {path.parent.name + "/" for path in source.glob("*/*.py")} | {
        path.name for path in source.glob("[!_]*.py")
    }
    named = {
        name.replace("heads/nosql/", "heads/")
        for name in re.findall(r"^\| `([^`]+)`", read("src/pleiad/README.md"), re.MULTILINE)
    }
    assert not rooms - named, "rooms without a line in src/pleiad/README.md"


def test_the_sample_is_documented_with_its_partition_keys() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| `(/\w+)` \|", section(read("docs/start.md"), "Look at the sample"), re.MULTILINE
    )
    sample = [(each.container_id, "/".join(each.partition_key_paths)) for each in sample_containers()]
    assert rows == sample


def test_every_sample_item_has_its_partition_key_and_an_id_of_its_own() -> None:
    for container in sample_containers():
        (path,) = container.partition_key_paths
        keys = [(item[path.removeprefix("/")], item["id"]) for item in container.items]
        assert len(set(keys)) == len(container.items) > 0


def test_every_promise_of_the_security_page_names_a_class_of_attack_with_a_test() -> None:
    rows = re.findall(
        r"^\| \*\*.+ \| `(\w+)` \|$", section(read("docs/security.md"), "What is promised"), re.MULTILINE
    )
    classes = importlib.import_module("attack.__main__").CLASSES
    assert set(rows) == set(classes)
    for name in classes:
        assert (ROOT / "attack" / "classes" / f"{name}.py").is_file()
        assert (ROOT / "tests" / "proofs" / "attack" / f"test_{name}.py").is_file()


def test_there_are_170_requirements_with_a_text_each(requirements_tool: ModuleType) -> None:
    requirements = requirements_tool.load_requirements(ROOT)
    assert list(requirements) == [f"R{number}" for number in range(1, 171)]
    assert all(requirement.text for requirement in requirements.values())


def test_every_documentation_only_requirement_has_its_page_and_heading(requirements_tool: ModuleType) -> None:
    assert requirements_tool.missing_documentation(requirements_tool.load_requirements(ROOT), ROOT) == []


def test_no_test_claims_a_requirement_that_does_not_exist(
    requirements_tool: ModuleType, claimed_requirements: dict[str, tuple[str, ...]]
) -> None:
    known = requirements_tool.load_requirements(ROOT)
    unknown = {
        (test, name) for test, names in claimed_requirements.items() for name in names if name not in known
    }
    assert not unknown


def test_a_requirement_counts_as_shown_only_when_no_test_of_it_fails(requirements_tool: ModuleType) -> None:
    requirements = requirements_tool.load_requirements(ROOT)
    claims = {
        "R1": requirements_tool.Claims(passed=("tests/test_a.py::test_one",)),
        "R2": requirements_tool.Claims(
            passed=("tests/test_a.py::test_two",), failed=("tests/test_a.py::test_three",)
        ),
    }
    report = requirements_tool.render(requirements, claims)
    assert "Shown by a passing test: 1\n" in report
    assert "(failing: tests/test_a.py::test_three)" in report


def test_a_claim_of_an_unknown_requirement_is_reported(requirements_tool: ModuleType) -> None:
    requirements = requirements_tool.load_requirements(ROOT)
    (problem,) = requirements_tool.unknown_claims(requirements, {"R171": requirements_tool.Claims()})
    assert problem.startswith("R171")


def test_headings_inside_code_are_not_headings(requirements_tool: ModuleType) -> None:
    assert requirements_tool.headings("# One\n```sh\n# not one\n```\n## Two\n") == {"One", "Two"}


def test_the_tour_of_the_readme_runs_as_written(capsys: pytest.CaptureFixture[str]) -> None:
    pleiad: Any = importlib.import_module("pleiad")
    tour = code_blocks(section(read("README.md"), "Five-minute tour"), "python")[0]
    assert TOUR_ENDPOINT in tour
    with pleiad.start() as server:
        # Only the address differs from the text: a test takes a free port.
        exec(compile(tour.replace(TOUR_ENDPOINT, server.endpoint), "README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Microsoft"
    assert lines[3:] == ["Seattle", "2 items", "1 physical partition"]


def test_the_commands_of_import_and_export_run_as_written(tmp_path: Path) -> None:
    pleiad: Any = importlib.import_module("pleiad")
    lines = [
        line
        for block in code_blocks(read("docs/import-export.md"), "sh")
        for line in block.splitlines()
        if not line.startswith("pleiad serve")
    ]
    assert len(lines) >= 7
    (tmp_path / "orders.jsonl").write_text('{"id": "1", "customerId": "a", "total": 12}\n')
    (tmp_path / "people.csv").write_text("country,city\nno,Oslo\n")
    (tmp_path / "seed/shop").mkdir(parents=True)
    with pleiad.start() as server:
        for line in lines:
            command = re.sub(r"^pleiad\b", shlex.join(warm_command.words()), line)
            environment = {**os.environ, "PLEIAD_ENDPOINT": server.endpoint}
            subprocess.run(
                command, shell=True, check=True, cwd=tmp_path, env=environment, capture_output=True
            )
    made = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*") if path.is_file()}
    assert made == {
        "orders.jsonl",
        "people.csv",
        "orders.csv.gz",
        "orders.jsonl.gz",
        "seed/shop/orders.jsonl",
        "seed/shop/orders.container.json",
    }
    with pleiad.start(load=tmp_path / "seed") as server:
        assert server.port


def test_the_way_to_a_key_runs_as_written(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    warm_command.program(programs)
    (programs / "python").symlink_to(sys.executable)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    blocks = code_blocks(read("docs/choose-a-key.md"), "sh")
    assert len(blocks) >= 4
    for block in blocks:
        done = subprocess.run(
            ["sh", "-e", "-c", block], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{block}\n{done.stderr}"
    assert "best fit" in done.stdout
    assert "<html" in (tmp_path / "advice.html").read_text(encoding="utf-8")
