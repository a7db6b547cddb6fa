"""One database, and one or two nodes over it, on one catalog or on both."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from seachange.engine.node.node import Node
from tests.engine.blocks import nodes, place, sessions
from tests.engine.database import open_quiet
from tests.support.databases import catalog_kind, place_for

__all__ = ["catalog_kind", "nodes", "place", "place_for", "sessions"]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = open_quiet(tmp_path)
    yield node
    node.close()


@pytest.fixture
def other(tmp_path: Path, node: Node) -> Iterator[Node]:
    """A second node over the database of `node`, with a catalog connection and caches of its own."""
    other = open_quiet(tmp_path, "two")
    yield other
    other.close()
