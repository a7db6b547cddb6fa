"""A database in a folder of its own, and what writers and rehearsals need of it."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session
from tests.support.databases import catalog_kind, place, place_for

__all__ = ["catalog_kind", "place", "place_for"]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    node = open_node(tmp_path / "data")
    try:
        with closing(Session(node)) as session:
            yield session
    finally:
        node.close()
