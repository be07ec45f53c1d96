"""Packing and unpacking on the way: gzip by the standard library, zstd by it from Python 3.14 on, else by an extra."""

from __future__ import annotations

import gzip
import importlib
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

from pleiad.job.item_file.entry import ItemFileError
from pleiad.job.item_file.form import Compression

_GZIP_LEVEL = 6


def unpacked(file: IO[bytes], compression: Compression) -> IO[bytes]:
    """The bytes of a file without its compression."""
    if compression is Compression.GZIP:
        return cast(IO[bytes], gzip.GzipFile(fileobj=file, mode="rb"))
    if compression is Compression.ZSTD:
        return cast(IO[bytes], io.BufferedReader(_zstd().ZstdFile(file, mode="rb")))
    return file


@contextmanager
def packing(file: IO[bytes], compression: Compression) -> Iterator[IO[bytes]]:
    """Packs what is written in the with-block; the file itself stays open, and is not whole if the block fails."""
    if compression is Compression.NONE:
        yield file
        return
    packed: Any = (
        gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=_GZIP_LEVEL, mtime=0)
        if compression is Compression.GZIP
        else _zstd().ZstdFile(file, mode="wb")
    )
    yield packed
    packed.close()


@contextmanager
def told_of_damage(name: str) -> Iterator[None]:
    """What a packed file that is damaged or cut off means to the person at the terminal."""
    try:
        yield
    except EOFError:
        raise ItemFileError(f"{name} ends in the middle: it is not whole") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ItemFileError(f"{name} is damaged: {error}") from None
    except Exception as error:
        if type(error).__name__ == "ZstdError":
            raise ItemFileError(f"{name} is damaged: {error}") from None
        raise


def _zstd() -> Any:
    for module in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(module)
        except ImportError:
            continue
    raise ItemFileError("files packed with zstd need a library more: pip install backports.zstd")
