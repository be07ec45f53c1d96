"""The public vectors of binary bodies, which stand beside the checkout and not in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.project import REFERENCE

Vectors = dict[str, Any]


@pytest.fixture(scope="session")
def vectors() -> Callable[[str], Vectors]:
    """The vectors in a file; a test that asks for a file that is not there is skipped."""

    def load(name: str) -> Vectors:
        path = REFERENCE / name
        if not path.is_file():
            pytest.skip(f"{name} is not beside the checkout")
        document: Vectors = json.loads(path.read_text(encoding="utf-8"))
        return document

    return load


@pytest.fixture(scope="session")
def hybridrow_vectors(vectors: Callable[[str], Vectors]) -> Vectors:
    return vectors("hybridrow_vectors.json")


@pytest.fixture(scope="session")
def captured(vectors: Callable[[str], Vectors]) -> Vectors:
    """What the .NET client sent, and what it made of answers."""
    return vectors("hybridrow_captured.json")


@pytest.fixture(scope="session")
def binary_json_vectors(vectors: Callable[[str], Vectors]) -> Vectors:
    return vectors("binary_json_vectors.json")


@pytest.fixture(scope="session")
def rntbd_vectors(vectors: Callable[[str], Vectors]) -> Vectors:
    """What the .NET client sent in direct mode, and answers that satisfied it."""
    return vectors("rntbd_vectors.json")
