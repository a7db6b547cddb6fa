"""A database whose tables are read by pyiceberg."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.iceberg.reading import Lake, open_lake


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with open_lake(tmp_path / "data") as lake:
        yield lake
