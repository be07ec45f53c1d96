"""The site that `make docs` builds: links lead somewhere, nothing comes from elsewhere, pictures are of real runs."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.project import ROOT
from tools import pictures

DOCS = ROOT / "docs"
PAGES = sorted(path.stem for path in DOCS.glob("*.md"))

needs_sphinx = pytest.mark.skipif(find_spec("sphinx") is None, reason="the extra `docs` is not installed")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it: a warning, such as of a link that leads nowhere, fails."""
    folder = tmp_path_factory.mktemp("site")
    recipe = re.search(r"sphinx-build (.*)\n", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert recipe is not None
    arguments = recipe[1].replace("build/docs", str(folder)).split()
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


@needs_sphinx
def test_every_page_is_on_the_site_and_can_be_searched(site: Path) -> None:
    assert {path.stem for path in site.glob("*.html")} >= {*PAGES, "search"}
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert all(f'"{page}"' in index for page in PAGES)


@needs_sphinx
def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loads = re.compile(r'<(?:script|img|iframe)\b[^>]*\bsrc="([^"]+)"|<link\b[^>]*\bhref="([^"]+)"')
    for page in site.rglob("*.html"):
        for found in loads.findall(page.read_text(encoding="utf-8")):
            assert not re.match(r"(https?:)?//", "".join(found)), (page.name, found)
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", style.read_text(encoding="utf-8")), (
            style.name
        )


PLOTS = {"growth"}
"""Drawn from a measurement, by `make bench-growth`."""


def test_every_picture_is_one_that_a_tool_draws_and_a_page_shows() -> None:
    there = {path.stem for path in (DOCS / "pictures").glob("*.svg")}
    shown = {name for page in PAGES for name in re.findall(r"\(pictures/([\w-]+)\.svg\)", read(page))}
    assert there == shown == pictures.PICTURES.keys() | PLOTS


def test_pictures_show_what_the_commands_print_today(tmp_path: Path) -> None:
    pictures.main(tmp_path)
    for name in pictures.PICTURES:
        assert forms(tmp_path / f"{name}.svg") == forms(DOCS / "pictures" / f"{name}.svg"), name


def forms(picture: Path) -> list[str]:
    """The lines of a picture without the words that hold digits, which differ from run to run."""
    lines = re.findall(r"<text[^>]*>(.*?)</text>", picture.read_text(encoding="utf-8"))
    kept = ([word for word in line.split() if not re.search(r"\d|…|^[-░█]+$", word)] for line in lines)
    return [" ".join(words[:3]) for words in kept]


def read(page: str) -> str:
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")
