"""Tables as pyiceberg reads them, next to what SQL shows."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.iceberg.export import Exported
from seachange.model.schema.descriptor import Table
from seachange.runtime.location import DataLocation

pytest.importorskip("pyiceberg", reason="pyiceberg is not installed (make setup)")

from pyiceberg.table import StaticTable

Rows = list[dict[str, Any]]


class Lake:
    """A database, and its tables as another engine sees them."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.session = Session(node)

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.session.execute(statement)

    def table(self, name: str = "t") -> Table:
        # Another node may have created it.
        self.node.epoch.catch_up()
        return self.node.epoch.schemas.newest.within().by_name["public", name]

    def export(self, name: str = "t") -> Exported:
        return self.node.exports.export(self.table(name).id)

    def sql(self, name: str = "t") -> Rows:
        result = self.session.execute(f'select * from "{name}"')
        names = [column.name for column in result.columns or ()]
        return in_order([dict(zip(names, row, strict=True)) for row in result.rows])

    def check(self, name: str = "t") -> Exported:
        """The table has the same rows for pyiceberg and for SQL."""
        exported = self.export(name)
        assert read(exported.address) == self.sql(name)
        return exported

    @property
    def folder(self) -> Path:
        return self.node.parts.data / "iceberg"

    def names(self, name: str = "t") -> set[str]:
        return {path.name for path in (self.folder / str(self.table(name).id)).iterdir()}


def read(address: str, snapshot: int | None = None) -> Rows:
    return in_order(StaticTable.from_metadata(address).scan(snapshot_id=snapshot).to_arrow().to_pylist())


def in_order(rows: Rows) -> Rows:
    return sorted(({k: show(v) for k, v in row.items()} for row in rows), key=repr)


def show(value: Any) -> Any:
    """Values are compared as texts: a numeric has trailing zeros for other engines, and JSON is text."""
    if isinstance(value, list):
        return [show(each) for each in value]
    return None if value is None else str(value)


@contextmanager
def open_lake(data: Path | DataLocation, catalog: str | None = None, maintained: bool = False) -> Iterator[Lake]:
    """Compacted only on request; `maintained`: exports and garbage collection run by themselves, too."""
    node = open_node(data, catalog)
    node.maintenance.paused = True
    if not maintained:
        node.threads["maintenance"].stop()
    try:
        lake = Lake(node)
        yield lake
        lake.session.close()
    finally:
        node.close()
