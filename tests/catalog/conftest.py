"""Every test that takes `catalog` runs on both back ends."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seachange.catalog.open import open_catalog
from seachange.catalog.port import Catalog
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.runtime.entropy import SYSTEM_ENTROPY

Opener = Callable[[], Catalog]


@pytest.fixture(params=["sqlite", "postgres"])
def catalog_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a catalog that does not exist yet."""
    if request.param == "postgres":
        url: str = request.getfixturevalue("postgres_catalog_url")
        return url
    return f"sqlite:///{tmp_path / 'catalog.sqlite'}"


@pytest.fixture
def open_one(catalog_url: str, tmp_path: Path) -> Iterator[Opener]:
    opened: list[Catalog] = []

    def open_it() -> Catalog:
        opened.append(open_catalog(catalog_url, tmp_path, SYSTEM_CLOCK, SYSTEM_ENTROPY))
        return opened[-1]

    yield open_it
    for catalog in opened:
        catalog.close()


@pytest.fixture
def catalog(open_one: Opener) -> Catalog:
    return open_one()
