"""Databases for the bench."""

from collections.abc import Iterator

import pytest

from seachange.runtime.faults import FAULTS
from tests.schemachange.world import Worlds
from tests.support.databases import MakePlace, catalog_kind, place_for

__all__ = ["MakePlace", "catalog_kind", "place_for"]


@pytest.fixture
def worlds(place_for: MakePlace) -> Iterator[Worlds]:
    yield Worlds(place_for)
    FAULTS.disarm()
