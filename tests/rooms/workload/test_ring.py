"""The ring of files: whole lines in their order, within a limit, whatever is left of an earlier life."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pleiad.workload.ring import FILES, Mark, Place, Ring


def _lines(ring: Ring, mark: Mark | None = None, writer: int = 0) -> list[bytes]:
    return [line for piece in ring.pieces(writer, mark) for line in piece.lines.splitlines()]


def test_lines_come_back_in_their_order_after_every_opening(tmp_path: Path) -> None:
    for number in range(3):
        ring = Ring(tmp_path / "r", 1_000)
        ring.append(b"a%d\nb%d\n" % (number, number))
        ring.close()
    assert _lines(Ring(tmp_path / "r", 1_000)) == [b"a0", b"b0", b"a1", b"b1", b"a2", b"b2"]


def test_the_oldest_files_go_and_the_limit_is_kept(tmp_path: Path) -> None:
    ring = Ring(tmp_path, 8_000)
    for number in range(2_000):
        ring.append(b"%06d\n" % number)
        assert ring.size_bytes <= 8_000 + 7
    found = [int(line) for line in _lines(ring)]
    assert found == list(range(found[0], 2_000))
    assert len(found) * 7 > 8_000 * (FILES - 2) / FILES


def test_a_torn_end_is_no_line_and_what_comes_after_it_is_read(tmp_path: Path) -> None:
    ring = Ring(tmp_path, 10_000)
    ring.append(b"one\ntw")
    ring.close()
    again = Ring(tmp_path, 10_000)
    again.append(b"three\n")
    assert _lines(again) == [b"one", b"three"]


_ON_A_DISK_THAT_FILLS = """
import resource, sys
from pathlib import Path
from pleiad.workload.ring import Ring
ring = Ring(Path(sys.argv[1]), 10_000)
ring.append(b"one\\n")
resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
try:
    ring.append(b"two\\nthree\\nfour\\n")
except OSError:
    print("refused")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
ring.append(b"five\\n")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="files are limited as on Unix")
def test_a_disk_that_takes_a_part_of_the_lines_gets_none_and_spoils_no_other(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _ON_A_DISK_THAT_FILLS, str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told == "refused\n"
    assert _lines(Ring(tmp_path, 10_000)) == [b"one", b"five"]


def test_a_reader_goes_on_where_it_was_also_when_that_has_left_the_ring(tmp_path: Path) -> None:
    ring = Ring(tmp_path, 800)
    ring.append(b"first\n")
    ((_, _, mark),) = ring.pieces(0)
    ring.append(b"second\n")
    assert _lines(ring, mark) == [b"second"]
    for number in range(200):
        ring.append(b"%020d\n" % number)
    found = _lines(ring, mark)
    assert found
    assert b"second" not in found
    assert found[-1] == b"%020d" % 199


def test_a_directory_with_other_things_in_it_is_read_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text("x\n")
    (tmp_path / "switch.json").write_text("{}")
    ring = Ring(tmp_path, 800)
    ring.append(b"line\n")
    assert _lines(ring) == [b"line"]
    ring.clear()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.jsonl", "switch.json"]


_NO_PLACES = ["", "1", "1.", ".1", "1.0.0", "-1.0.0.0", "0.1.2.3_", "0.1.2.3.4", "a.b.c.d", "٣.1.0.0"]


@pytest.mark.parametrize("text", [*_NO_PLACES, "0.0.0." + "9" * 16, "_".join(["0.1.2.3"] * 2_000)])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no place"):
        Place.of(text)


def test_a_place_comes_back_from_its_text() -> None:
    place = Place(((0, Mark(3, 4_096)), (2, Mark(4, 0, 17))))
    assert Place.of(str(place)) == place


def test_a_mark_beyond_all_files_has_nothing_behind_it(tmp_path: Path) -> None:
    ring = Ring(tmp_path, 800)
    ring.append(b"first\n")
    assert _lines(ring, Mark(1, 999_999_999_999_999)) == []


def test_writers_share_the_limit_and_the_oldest_lines_go_whoever_wrote_them(tmp_path: Path) -> None:
    quiet, busy = Ring(tmp_path, 16_000, 0, 2), Ring(tmp_path, 16_000, 1, 2)
    for number in range(50):
        quiet.append(b"%06d\n" % number)
    os.utime(tmp_path / "00000001.jsonl", ns=(1, 1))
    for number in range(5_000):
        busy.append(b"%06d\n" % number)
        assert busy.size_bytes <= 16_000 + 2 * 7
    assert busy.writers() == [1]
    found = [int(line) for line in _lines(busy, writer=1)]
    assert found == list(range(found[0], 5_000))
    assert len(found) * 7 > 16_000 * (FILES - 2) / FILES
    # The one whose file has left the ring goes on in another.
    quiet.append(b"again\n")
    assert _lines(busy, writer=0) == [b"again"]


def test_a_writer_goes_on_in_a_new_file_when_all_was_cleared(tmp_path: Path) -> None:
    one, other = Ring(tmp_path, 16_000, 0, 2), Ring(tmp_path, 16_000, 1, 2)
    one.append(b"one\n")
    other.append(b"other\n")
    one.clear()
    other.append(b"more\n")
    assert one.writers() == [1]
    assert _lines(one, writer=1) == [b"more"]
