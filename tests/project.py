"""Where things are: the project, and what lies beside a checkout of it and may be absent."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
REFERENCE = SHARED / "reference"
"""Data that tests compare with; those that find none are left out."""
