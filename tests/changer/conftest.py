"""Databases on both catalogs, with a table to change."""

from collections.abc import Iterator

import pytest

from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.runtime.faults import FAULTS
from tests.changer.changing import prepare
from tests.support.databases import MakePlace, catalog_kind, place, place_for
from tests.support.nodes import Place

__all__ = ["MakePlace", "catalog_kind", "place", "place_for"]


@pytest.fixture
def shop(place_for: MakePlace) -> Place:
    return place_for("data", prepare)


@pytest.fixture
def node(shop: Place) -> Iterator[Node]:
    """A node whose worker does nothing by itself."""
    opened = open_node(shop.data, shop.catalog, name="here")
    opened.jobs.paused = True
    yield opened
    FAULTS.disarm()
    opened.close()
