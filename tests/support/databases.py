"""Fixtures of the tests that need whole databases and processes, on both catalogs."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.nodes import Place
from tests.support.postgres import LocalPostgres
from tests.support.workers import Workers

CATALOGS = ("sqlite", "postgresql")

MakePlace = Callable[[str], Place]


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


@pytest.fixture
def place_for(catalog_kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[MakePlace]:
    """Makes databases of the test's own, each by a name."""
    if catalog_kind == "sqlite":
        yield lambda name: Place(_folder(tmp_path, name))
        return
    server: LocalPostgres = request.getfixturevalue("postgres_server")
    server.start()
    made: list[str] = []

    def make(name: str) -> Place:
        made.append(server.create_database())
        return Place(_folder(tmp_path, name), made[-1])

    yield make
    server.start()
    for url in made:
        server.drop_database(url)


def _folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder


@pytest.fixture
def place(place_for: MakePlace) -> Place:
    return place_for("data")
