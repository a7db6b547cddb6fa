"""`seachange.toml` in the data folder: what every session and every job of the database is to have set."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from seachange import errors
from seachange.sql.settings import SessionSettings

FILE_NAME = "seachange.toml"


def read_settings(data: Path) -> dict[str, str]:
    """By their full names, in canonical form; none if there is no file."""
    path = data / FILE_NAME
    try:
        body = tomllib.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise errors.DataFolderProblem(path=path, detail=str(problem)) from problem
    checked = SessionSettings()
    names = []
    for name, value in _flattened("", body):
        try:
            checked.set(name, value)
        except errors.Error as problem:
            raise problem.located(str(path))  # noqa: B904 - the same error
        names.append(name)
    return {name: checked.get(name) for name in names}


def _flattened(prefix: str, body: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """
    >>> list(_flattened("", {"seachange": {"local_rows": 0, "spark": {"master": "local[2]"}}}))
    [('seachange.local_rows', '0'), ('seachange.spark.master', 'local[2]')]
    """
    for name, value in body.items():
        if isinstance(value, Mapping):
            yield from _flattened(f"{prefix}{name}.", value)
        else:
            yield f"{prefix}{name}", str(value)
