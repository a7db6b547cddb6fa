"""The port of the consistency checker: what it needs of a node. `engine.node.Node` has this shape."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from seachange.catalog.port import Catalog
from seachange.model.ids import Epoch, Seq
from seachange.model.schema.descriptor import Index, Table
from seachange.storage.image import IndexImage
from seachange.storage.spill import SortPool
from seachange.storage.warehouse import Warehouse


class EpochView(Protocol):
    @property
    def epoch(self) -> Epoch: ...

    def image(self, table: Table, index: Index, snapshot: Seq) -> IndexImage: ...


class Parts(Protocol):
    @property
    def data(self) -> Path: ...

    @property
    def catalog(self) -> Catalog: ...

    @property
    def warehouse(self) -> Warehouse: ...

    @property
    def sorts(self) -> SortPool: ...


class Snapshot(Protocol):
    """An open transaction: while it is open, nothing that its snapshot reads is garbage collected."""

    @property
    def parts(self) -> Parts: ...

    @property
    def epoch(self) -> EpochView: ...

    @property
    def snapshot(self) -> Seq: ...

    def every_table(self) -> tuple[Table, ...]:
        """Of all databases."""

    def broken_checks(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> list[tuple[str, tuple[Any, ...]]]:
        """The rows, in the order of `table.columns`, that violate a check, with its name."""

    def fill(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
        """The rows with the values of generated columns."""

    def entries(self, table: Table, index: Index, rows: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...] | None]:
        """The entry of an index for each row, None if it has none."""

    def rollback(self) -> None: ...


class CheckedDatabase(Protocol):
    def begin_check(self) -> Snapshot: ...
