"""Profiles of limits: what is said of a file that cannot be used, and how messages name a size."""

from __future__ import annotations

from pathlib import Path

import pytest

from pleiad.limits import GB, KB, MB, load, size_text


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "limits.toml"
    file.write_text("item_bytes = 5")

    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(ValueError, match=r"limits\.toml cannot be read: Permission denied"):
        load(str(file))


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (20 * GB, "20 GB"),
        (2 * MB, "2 MB"),
        (2_000_000, "1.9 MB"),
        (1_536, "1.5 KB"),
        (20 * KB, "20 KB"),
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1_000, "1 KB"),
        (150.4 * KB, "150 KB"),
        (8.5 * MB, "8.5 MB"),
        (2**50, "1,024 TB"),
    ],
)
def test_a_size_is_named_with_three_digits_at_most_below_a_thousand_terabytes(
    size_bytes: float, text: str
) -> None:
    assert size_text(size_bytes) == text
