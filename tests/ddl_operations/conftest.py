"""A database with the schema that the statements of the catalogue are about, with rows and without; each test has a
copy."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.ddl_operations.schema import FILL, SETUP


def _make(folder: Path, statements: Sequence[str]) -> Path:
    with closing(open_node(folder)) as node, closing(Session(node)) as session:
        for sql in statements:
            session.execute(sql)
    return folder


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _make(tmp_path_factory.mktemp("catalogue") / "db", (*SETUP, *FILL))


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _make(tmp_path_factory.mktemp("catalogue") / "empty", SETUP)


@pytest.fixture
def node(filled: Path, tmp_path: Path) -> Iterator[Node]:
    shutil.copytree(filled, tmp_path / "db")
    with closing(open_node(tmp_path / "db")) as opened:
        yield opened
