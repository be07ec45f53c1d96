"""The forms that files of items have, and how a file tells its own: by its name, or by its first bytes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from pleiad.job.item_file.entry import ItemFileError


class Form(Enum):
    """How items stand in a file; the values are the words of the option."""

    JSONL = "jsonl"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


class Compression(Enum):
    """How a file is packed."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"


_FORMS = {
    "jsonl": Form.JSONL,
    "ndjson": Form.JSONL,
    "json": Form.JSON,
    "csv": Form.CSV,
    "tsv": Form.CSV,
    "parquet": Form.PARQUET,
}
_COMPRESSIONS = {
    "gz": Compression.GZIP,
    "gzip": Compression.GZIP,
    "zst": Compression.ZSTD,
    "zstd": Compression.ZSTD,
}
_MAGIC = {b"\x1f\x8b": Compression.GZIP, b"\x28\xb5\x2f\xfd": Compression.ZSTD}
DEFINITION_ENDING = ".container.json"
"""Of the file beside one of items that says what their container is."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def compression_of_name(name: str) -> Compression:
    """What the end of a name says of its compression."""
    return _COMPRESSIONS.get(name.rpartition(".")[2].lower(), Compression.NONE)


def compression_of_bytes(first: bytes) -> Compression:
    """What the first bytes of a file say of its compression; no item begins like that."""
    return next((found for magic, found in _MAGIC.items() if first.startswith(magic)), Compression.NONE)


def form_of_name(name: str) -> Form | None:
    """The form that a name tells, below the ending of a compression."""
    return _FORMS.get(_ending(name))


def delimiter_of_name(name: str) -> str:
    """What stands between the cells of a CSV file of that name."""
    return "\t" if _ending(name) == "tsv" else ","


def plain_name(name: str) -> str:
    """The name without the endings that tell form and compression."""
    if compression_of_name(name) is not Compression.NONE:
        name = name.rpartition(".")[0]
    return name.rpartition(".")[0] if form_of_name(name) is not None else name


def definition_path(items: Path) -> Path:
    """Where the definition of the container is whose items are in that file."""
    return items.with_name(plain_name(items.name) + DEFINITION_ENDING)


def form_of_bytes(first: bytes, name: str) -> Form:
    """The form that the first bytes of a file tell, where neither name nor option does."""
    text = first.removeprefix(_BYTE_ORDER_MARK).lstrip()
    if text.startswith(b"PAR1"):
        return Form.PARQUET
    if text.startswith(b"["):
        return Form.JSON
    if text.startswith(b"{"):
        return Form.JSONL
    raise ItemFileError(f"what {name} holds is not plain: give --format with {words(list(Form))}")


def words(choices: Sequence[Enum]) -> str:
    """The words of an option, for a sentence."""
    *others, last = [str(each.value) for each in choices]
    return f"{', '.join(others)} or {last}"


def _ending(name: str) -> str:
    if compression_of_name(name) is not Compression.NONE:
        name = name.rpartition(".")[0]
    return name.rpartition(".")[2].lower() if "." in name else ""
