"""The container files in `deploy/`: what can be known of them without an engine that builds and runs them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pleiad.cli.main import VERBS, verb
from tests.project import ROOT
from tests.test_docs import project, serve_options

HADOLINT = Path(sys.executable).with_name("hadolint")
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
COMPOSE = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")


def instructions() -> list[tuple[str, str]]:
    """The instructions of the container file, each in one line."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def of(word: str) -> list[str]:
    return [rest for each, rest in instructions() if each == word]


def test_what_is_copied_into_the_image_is_there_and_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [name for line in of("COPY") if "--from" not in line for name in line.split()[:-1]]
    assert "src" in copied
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in ignored
    readme, licence = project()["readme"], project()["license-files"]
    assert {readme, *licence} <= set(copied), "the package cannot be built without them"


def test_the_image_runs_as_a_user_and_keeps_its_data_on_a_volume() -> None:
    (user,) = of("USER")
    assert user.partition(":")[0] not in ("0", "root")
    (volume,) = of("VOLUME")
    variables = dict(line.split("=", 1) for line in of("ENV"))
    assert Path(variables["PLEIAD_DATA"]).is_relative_to(volume)
    settings = {name for name in variables if name.startswith("PLEIAD_")}
    assert settings <= set(serve_options().values())
    # The volume belongs to the user, and nobody else works in the image.
    assert any(f"--owner={user.partition(':')[0]}" in line and volume in line for line in of("RUN"))


def test_the_image_serves_and_its_health_check_is_a_verb() -> None:
    assert [json.loads(line) for line in (*of("ENTRYPOINT"), *of("CMD"))] == [["pleiad"], ["serve"]]
    (check,) = of("HEALTHCHECK")
    words = json.loads(check.partition("CMD ")[2])
    assert words[0] == "pleiad"
    assert words[1] in VERBS
    verb(words[1]).make_context(words[1], words[2:])


@pytest.mark.skipif(not HADOLINT.exists(), reason="the linter of container files is not installed here")
def test_the_linter_has_nothing_to_say_of_the_container_file() -> None:
    done = subprocess.run([HADOLINT, DOCKERFILE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_composition_is_two_services_that_wait_for_each_other() -> None:
    yaml = pytest.importorskip("yaml")
    composed = yaml.safe_load(COMPOSE)
    assert composed["services"].keys() == {"postgres", "pleiad"}
    assert composed["services"]["pleiad"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert (ROOT / "deploy" / composed["services"]["pleiad"]["build"]["context"]).resolve() == ROOT
    mounted = {
        each.partition(":")[0] for service in composed["services"].values() for each in service["volumes"]
    }
    assert mounted == composed["volumes"].keys()


def test_the_composition_has_settings_that_the_server_has() -> None:
    variables = set(re.findall(r"^      (PLEIAD_\w+):", COMPOSE, flags=re.MULTILINE))
    assert variables
    assert variables <= set(serve_options().values())
    assert f"image: pleiad:{project()['version']}\n" in COMPOSE
    assert re.search(r"context: \.\.\n +dockerfile: deploy/Dockerfile\n", COMPOSE)
    assert re.search(r"depends_on:\n      postgres:\n        condition: service_healthy\n", COMPOSE)
    mounted = re.findall(r"^      - (\w+):/", COMPOSE, flags=re.MULTILINE)
    declared = re.findall(r"^  (\w+):$", COMPOSE.partition("\nvolumes:\n")[2], flags=re.MULTILINE)
    assert mounted == declared


def test_no_secret_of_the_composition_has_a_default() -> None:
    for name in ("PLEIAD_KEY", "POSTGRES_PASSWORD"):
        assert re.search(rf"^      {name}: \$\{{{name}:\?", COMPOSE, flags=re.MULTILINE)
    assert f"pleiad:{project()['version']}" in DOCKERFILE.read_text(encoding="utf-8")
