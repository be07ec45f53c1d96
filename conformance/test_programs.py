"""The programs over the official clients: which are run, and what is said of one whose tools are missing."""

import dataclasses
import re
import sys
from pathlib import Path

import pytest

from conformance import client_program, clients, start_page
from conformance.client_program import EXIT_LEFT_OUT, EXIT_NOT_STARTED, ClientProgram, check_client

FOLDER = Path(__file__).resolve().parent


def program(build: list[str] | Exception) -> ClientProgram:
    def built(_directory: Path) -> list[str]:
        if isinstance(build, Exception):
            raise build
        return build

    return ClientProgram(name="made-up", language="Made-up", sections="a,b", left_out="nothing", build=built)


def test_make_clients_runs_the_program_in_every_folder() -> None:
    folders = {path.parent.name for path in FOLDER.glob("*/run.py")}
    assert folders == set(clients.NAMES)
    makefile = (FOLDER.parent / "Makefile").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^CLIENTS \?= (.*)$", makefile, flags=re.MULTILINE)
    assert set(listed.split()) == folders
    (landing,) = re.findall(r'CLIENTS="(.*)"', (FOLDER.parent / ".ci" / "run").read_text(encoding="utf-8"))
    assert set(landing.split()) <= folders


def test_a_program_whose_tools_are_missing_is_left_out_and_one_that_cannot_be_built_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client_program, "BUILD_DIR", tmp_path)
    monkeypatch.setattr(client_program, "stop_children_when_terminated", lambda: None)
    missing = client_program.ToolMissingError("tool not installed here: the Made-up client is left out")
    assert check_client(program(missing), []) == EXIT_LEFT_OUT
    assert "left out" in capfd.readouterr().err
    broken = client_program.BuildFailedError("the compiler says no")
    assert check_client(program(broken), []) == EXIT_NOT_STARTED
    assert "the compiler says no" in capfd.readouterr().err


def test_a_program_is_told_where_the_server_is_and_its_exit_code_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client_program, "BUILD_DIR", tmp_path)
    monkeypatch.setattr(client_program, "stop_children_when_terminated", lambda: None)
    names = "ACCOUNT_HOST", "ACCOUNT_KEY", "ACCOUNT_READ_ONLY_KEY", "SECTIONS"
    script = f"import os, sys; print(*[os.environ[name] for name in {names}]); sys.exit(1)"
    given = ["--endpoint", "http://there/", "--key", "k", "--read-only-key", "r", "--sections", "b"]
    assert check_client(program([sys.executable, "-c", script]), given) == 1
    assert capfd.readouterr().out.splitlines() == ["http://there/ k r b", "left out: nothing"]


def test_an_unknown_program_is_refused_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        clients.main(["cobol"])
    assert "there is no program cobol" in capsys.readouterr().err


def test_every_program_of_the_start_page_is_there_to_be_tried(tmp_path: Path) -> None:
    place = start_page.Place("https", 4711, tmp_path / "tls.crt")
    page = start_page.PAGE_FILE.read_text(encoding="utf-8")
    headings = {
        "Python": "python",
        "JavaScript": "js",
        "Go": "go",
        ".NET": "csharp",
        "Java": "java",
        "Rust": "rust",
    }
    for heading, language in {**headings, "Entra credentials": "python"}.items():
        program = place.put_into(start_page.blocks(heading, language)[0])
        assert "https://localhost:4711" in program
        assert "KEY" not in program
        assert "data/tls.crt" not in program
    tried = page.split("## A client of each kind")[1].split("\n## ")[0]
    assert set(re.findall(r"^### (.*)$", tried, re.MULTILINE)) == {
        *headings,
        "Entra credentials",
        "Entity Framework Core",
    }


@pytest.mark.parametrize("only", ["gateway", "direct", ""])
def test_a_check_that_passes_in_one_connection_mode_has_to_pass_in_the_other(
    only: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client_program, "BUILD_DIR", tmp_path)
    monkeypatch.setattr(client_program, "stop_children_when_terminated", lambda: None)
    script = (
        "import os\nmode = os.environ['CONNECTION_MODE']\nprint('ok    item: read')\n"
        f"if {only!r} in ('', mode): print('ok    item: write')"
    )
    made = dataclasses.replace(program([sys.executable, "-c", script]), modes=("gateway", "direct"))
    code = check_client(made, ["--endpoint", "http://there/"])
    printed = capfd.readouterr().out.splitlines()
    assert code == (1 if only else 0)
    assert (f"only in {only} mode: item: write" in printed) == bool(only)
    assert f"{1 if only else 2} checks passed in gateway and direct mode" in printed
