"""Fixtures of the tests that need whole databases and processes, on both catalogs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.support.models import Build, Models
from tests.support.nodes import Place, put_in_store
from tests.support.postgres import LocalPostgres
from tests.support.s3 import S3Server
from tests.support.workers import Workers

# The server refuses a wider data folder.
FOLDER_MODE = 0o700
CATALOGS = ("sqlite", "postgresql")


class MakePlace(Protocol):
    def __call__(self, name: str, build: Build | None = None) -> Place:
        """A database of the test's own: new, or as `build` makes it."""


@pytest.fixture(scope="session")
def all_workers() -> Iterator[Workers]:
    workers = Workers()
    yield workers
    workers.end()


@pytest.fixture
def workers(all_workers: Workers) -> Iterator[Workers]:
    yield all_workers
    all_workers.end_given()


@pytest.fixture(params=CATALOGS)
def catalog_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _make_folder(data: Path, request: pytest.FixtureRequest) -> Path:
    """The folder of a database, with `--s3` for one in an object store."""
    data.mkdir(mode=FOLDER_MODE)
    if request.config.getoption("--s3"):
        server: S3Server = request.getfixturevalue("s3_server")
        put_in_store(data, f"{server.create_place()}/shop", server.environment(server.port))
    return data


@pytest.fixture
def place_for(catalog_kind: str, tmp_path: Path, models: Models, request: pytest.FixtureRequest) -> Iterator[MakePlace]:
    """Makes databases of the test's own, each by a name."""
    in_store = request.config.getoption("--s3")
    if catalog_kind == "sqlite":

        def make_file(name: str, build: Build | None = None) -> Place:
            place = Place(_make_folder(tmp_path / name, request))
            if build and in_store:
                build(place)
            return models.copy(build, place.data) if build and not in_store else place

        yield make_file
        return
    server: LocalPostgres = request.getfixturevalue("postgres_server")
    server.start()
    new_catalog: str = request.getfixturevalue("new_catalog_url")
    # A test that is about the first migrations begins with an empty database.
    is_bare = request.node.get_closest_marker("bare_catalog") is not None
    made: list[str] = []

    def make(name: str, build: Build | None = None) -> Place:
        data = _make_folder(tmp_path / name, request)
        if build is None or in_store:
            place = Place(data, server.create_database(like=None if is_bare else new_catalog))
            if build is not None:
                build(place)
        else:
            place = models.copy(build, data, server, new_catalog)
        assert place.catalog is not None
        made.append(place.catalog)
        return place

    yield make
    server.start()
    for url in made:
        server.drop_database(url)


@pytest.fixture
def place(place_for: MakePlace) -> Place:
    return place_for("data")
