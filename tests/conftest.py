"""Options and fixtures that every test may use."""

from collections.abc import Iterator

import pytest

from tests.support.postgres import LocalPostgres


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--exhaustive",
        action="store_true",
        help="run the exhaustive variants too (tests marked slow)",
    )
    parser.addoption("--rewrite", action="store_true", help="write golden files anew instead of comparing with them")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--exhaustive"):
        return
    skip = pytest.mark.skip(reason="an exhaustive variant; run with --exhaustive")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(skip)


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are written anew."""
    return bool(request.config.getoption("--rewrite"))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[LocalPostgres]:
    """One real PostgreSQL server for the whole run."""
    with LocalPostgres() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_url(postgres_server: LocalPostgres) -> str:
    """The server's maintenance database."""
    return postgres_server.url


@pytest.fixture
def postgres_catalog_url(postgres_server: LocalPostgres) -> Iterator[str]:
    """A database of this test's own; the server is started again if a test left it down."""
    postgres_server.start()
    url = postgres_server.create_database()
    yield url
    postgres_server.start()
    postgres_server.drop_database(url)
