"""A database with the schema that the statements of the catalogue are about, and rows; each test has a copy."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.ddl_operations.schema import FILL, SETUP


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("catalogue") / "db"
    with closing(open_node(folder)) as node, closing(Session(node)) as session:
        for sql in (*SETUP, *FILL):
            session.execute(sql)
    return folder


@pytest.fixture
def node(filled: Path, tmp_path: Path) -> Iterator[Node]:
    shutil.copytree(filled, tmp_path / "db")
    with closing(open_node(tmp_path / "db")) as opened:
        yield opened
