"""Where the database of the demonstration is: in one folder, or in an object store and a PostgreSQL catalog, with a
local folder for each process as if each had a machine of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import seachange
from tests.support.postgres import LocalPostgres
from tests.support.s3 import S3Server

_SETTINGS = '[seachange]\nworker = "off"\nnode_expiry = "3s"\n'
_SETTINGS_FILE = "seachange.toml"


@dataclass(frozen=True)
class Place:
    """`folder` has the local folders of the processes if the data is in an object store."""

    data: str
    folder: Path
    catalog: str | None = None

    def options(self, process: str) -> list[str]:
        """The options of a command that runs as this process."""
        local = self._local(process)
        found = ["--data", self.data]
        found += ["--catalog", self.catalog] if self.catalog is not None else []
        return found + (["--local", str(local)] if local is not None else [])

    def connect(self, process: str) -> seachange.Connection:
        return seachange.connect(self.data, self.catalog, local=self._local(process))

    def _local(self, process: str) -> Path | None:
        if self.catalog is None:
            return None
        local = self.folder / process.replace(" ", "-")
        _create(local)
        return local


def folder_place(folder: Path) -> Place:
    place = Place(str(folder / "data"), folder)
    _create(folder / "data")
    return place


@contextmanager
def store_place(folder: Path) -> Iterator[Place]:
    """The servers end with the demonstration."""
    with ExitStack() as stack:
        server = stack.enter_context(S3Server())
        catalog = stack.enter_context(LocalPostgres())
        for name, value in server.environment(server.port).items():
            stack.callback(_restore, name, os.environ.get(name))
            os.environ[name] = value
        yield Place(f"{server.create_place()}/demo", folder, catalog.url)


def _create(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (folder / _SETTINGS_FILE).exists():
        (folder / _SETTINGS_FILE).write_text(_SETTINGS)


def _restore(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
