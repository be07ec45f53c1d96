"""Scenarios on real servers: what is claimed happens, and the page shows it as it is."""

from __future__ import annotations

import json
from functools import cache

import pytest
from click.testing import CliRunner

from pleiad.cli.main import cli
from pleiad.cli.scenario import SEED_DEFAULT
from pleiad.scenario import knowledge, view
from pleiad.scenario.model import PARTITION_RU, ScenarioResult
from pleiad.scenario.run import run
from pleiad.scenario.shelf import SCENARIOS
from tests.project import ROOT
from tools import scenarios as tool

_REQUIREMENTS = {
    "user-profiles": ("R154", "R158"),
    "device-state": ("R155", "R158"),
    "few-writes": ("R159",),
    "many-writes": ("R156", "R158", "R160"),
    "monthly": ("R161",),
    "tenants-by-key": ("R157", "R162"),
    "tenants-by-container": ("R163",),
    "tenants-mixed": ("R164",),
    "food-groups": ("R19", "R38"),
}
_EACH = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.requirement(*ids)) for name, ids in _REQUIREMENTS.items()]
)


@cache
def _ran(name: str, seed: int = SEED_DEFAULT) -> ScenarioResult:
    return run(SCENARIOS[name], seed)


def test_every_scenario_is_shown_here() -> None:
    assert list(_REQUIREMENTS) == list(SCENARIOS)


@_EACH
@pytest.mark.parametrize("seed", [SEED_DEFAULT, 2])
def test_what_is_claimed_happens_with_more_than_one_seed(name: str, seed: int) -> None:
    claims = dict(_ran(name, seed).claims())
    assert claims
    assert [sentence for sentence, holds in claims.items() if not holds] == []


@_EACH
def test_the_page_shows_the_run_as_it_is(name: str) -> None:
    page = (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")
    assert view.page_section(_ran(name)) in page, "run `python -m tools.scenarios`"
    assert page.startswith(tool.HEAD)


@_EACH
def test_the_picture_fits_a_terminal_and_the_figures_add_up(name: str) -> None:
    result = _ran(name)
    assert max(map(len, view.text(result).splitlines())) <= view.COLUMNS
    found = json.loads(json.dumps(view.as_json(result)))
    assert [each["title"] for each in found["attempts"]] == [each.title for each in result.attempts]
    for attempt in result.attempts:
        assert sum(each.throttled for each in attempt.partitions) == attempt.throttled
        assert sum(each.charge_ru for each in attempt.partitions) == pytest.approx(attempt.charge_ru, abs=0.5)
        assert attempt.full == 0


def test_the_same_seed_gives_the_same_figures_and_another_one_others() -> None:
    again = run(SCENARIOS["few-writes"], SEED_DEFAULT)
    assert again.attempts == _ran("few-writes").attempts
    assert _ran("few-writes", 2).attempts != again.attempts


def test_no_physical_partition_serves_more_than_it_is_allowed() -> None:
    for attempt in _ran("many-writes").attempts:
        seconds = 5
        for each in attempt.partitions:
            assert each.charge_ru <= PARTITION_RU * (seconds + 1) + 20


@pytest.mark.requirement("R165", "R166", "R167")
def test_the_knowledge_check_is_answered_from_live_data() -> None:
    found = knowledge.questions()
    components, physical, synthetic, chosen = found
    assert components.answer.startswith(components.choices[0])
    assert "/userId" in components.shown
    assert "Andrew" in components.shown
    assert physical.answer.startswith(physical.choices[0])
    assert "1,000 logical partitions, 0 on two of them" in physical.shown
    assert "abc-123-2018" in synthetic.shown
    assert "1,001 values on 4 physical partitions" in chosen.shown
    page = (ROOT / "docs" / "knowledge-check.md").read_text(encoding="utf-8")
    assert page == f"{tool.KNOWLEDGE_HEAD}\n{knowledge.page_sections(found)}", (
        "run `python -m tools.scenarios`"
    )
    assert max(map(len, knowledge.text(found).splitlines())) <= view.COLUMNS


def test_the_command_lists_runs_and_refuses() -> None:
    runner = CliRunner()
    listed = runner.invoke(cli, ["scenario"]).output
    assert [line.split()[0] for line in listed.splitlines()] == [*SCENARIOS, knowledge.NAME]
    ran = runner.invoke(cli, ["scenario", "few-writes"])
    assert ran.exit_code == 0
    assert "running few-writes: /day" in ran.stderr
    assert "a query visits 4.0" in ran.stdout
    shown = json.loads(runner.invoke(cli, ["scenario", "few-writes", "--json", "--seed", "2"]).stdout)
    assert shown["seed"] == 2
    wrong = runner.invoke(cli, ["scenario", "nobody"])
    assert wrong.exit_code == 2
    assert "there is no scenario 'nobody'" in wrong.stderr
