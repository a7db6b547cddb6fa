"""Databases that many tests begin with: built once in each process that runs tests, copied for each test."""

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.support.nodes import Place
from tests.support.postgres import LocalPostgres

Build = Callable[[Place], None]


class Models:
    """**Invariant:** nothing has a model open, so that its files and its database can be copied as they are."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._built: dict[tuple[Build, bool], Place] = {}

    def copy(self, build: Build, data: Path, server: LocalPostgres | None = None, new_catalog: str = "") -> Place:
        """A database as `build` makes it; with a server, its catalog is there, first a copy of `new_catalog`."""
        model = self._built.get((build, server is None))
        if model is None:
            url = None if server is None else server.create_database(like=new_catalog)
            model = Place(self._folder / f"{len(self._built)}", url)
            model.data.mkdir()
            build(model)
            self._built[build, server is None] = model
        shutil.copytree(model.data, data, dirs_exist_ok=True)
        return Place(data, None if server is None else server.create_database(like=model.catalog))
