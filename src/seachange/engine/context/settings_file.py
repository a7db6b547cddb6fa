"""`seachange.toml` in the data folder: what every session and every job of the database is to have set."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from seachange import errors
from seachange.sql.settings.settings import SETTINGS

FILE_NAME = "seachange.toml"


# What a database cannot say for all transactions.
_NOT_HERE = frozenset({"transaction_isolation", "seachange.as_of"})


def read_settings(data: Path) -> dict[str, str]:
    """By their full names, in canonical form; none if there is no file."""
    path = data / FILE_NAME
    try:
        body = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        # Opening the folder reports what is wrong with it.
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise errors.SettingsFileProblem(file=path, detail=str(problem)) from problem
    return {name: _checked(path, name, value) for name, value in _flattened("", body)}


def _checked(path: Path, name: str, value: object) -> str:
    setting = SETTINGS.get(name)
    if setting is None or name in _NOT_HERE:
        raise errors.SettingsFileProblem(file=path, detail=f'there is no setting "{name}" of a database')
    if not isinstance(value, str | int | float):
        raise errors.SettingsFileProblem(file=path, detail=f'setting "{name}" must be text, a number, true or false')
    text = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        return setting.check(text)
    except ValueError:
        raise errors.SettingsFileProblem(file=path, detail=f'setting "{name}" cannot be "{text}"') from None


def _flattened(prefix: str, body: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """
    >>> list(_flattened("", {"seachange": {"local_rows": 0, "spark": {"master": "local[2]"}}}))
    [('seachange.local_rows', 0), ('seachange.spark.master', 'local[2]')]
    """
    for name, value in body.items():
        if isinstance(value, Mapping):
            yield from _flattened(f"{prefix}{name}.", value)
        else:
            yield f"{prefix}{name}", value
