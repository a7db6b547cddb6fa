"""The files of COPY: a path, opened here, or what the caller has opened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TextIO

from seachange import errors

CopyFile = str | PathLike[str] | TextIO


@contextmanager
def reading(file: CopyFile) -> Iterator[TextIO]:
    if not isinstance(file, str | PathLike):
        yield file
        return
    try:
        with Path(file).open(encoding="utf-8", newline="") as opened:
            yield opened
    except OSError as error:
        raise errors.InputOutputError(action="read", file=file, detail=error.strerror) from error


@contextmanager
def writing(file: CopyFile) -> Iterator[TextIO]:
    """A path gets its content at the end, in one step."""
    if not isinstance(file, str | PathLike):
        yield file
        return
    partial = Path(f"{os.fspath(file)}.partial")
    try:
        with partial.open("w", encoding="utf-8", newline="") as opened:
            yield opened
        partial.replace(file)
    except OSError as error:
        raise errors.InputOutputError(action="write", file=file, detail=error.strerror) from error
    finally:
        partial.unlink(missing_ok=True)
