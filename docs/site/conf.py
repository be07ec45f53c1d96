"""How `make docs` builds the pages of `docs/` into a site."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from sphinx.application import Sphinx

_ROOT = Path(__file__).resolve().parent.parent.parent
_OUTSIDE = re.compile(r"\]\((\.\./[^)#]+\.md)(?:#[^)]*)?\)")

project = "Pleiad"
author = "the Pleiad project"
version = release = str(
    tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
)

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["site"]
root_doc = "index"
myst_heading_anchors = 4
nitpicky = True

html_theme = "furo"
html_title = f"Pleiad {version}"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False


def _give_files(app: Sphinx, name: str, source: list[str]) -> None:
    """Pages outside of `docs/` are no pages of the site: links to them give the file."""
    source[0] = _OUTSIDE.sub(r"](path:\1)", source[0])


def setup(app: Sphinx) -> None:
    app.connect("source-read", _give_files)
