"""One index under examination: its names, columns and key, and how its anomalies are described."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from seachange.model.ids import LayoutId
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.states import READABLE
from seachange.storage.keys import KeyCodec
from seachange.values.canonical import parse_canonical
from seachange.verify.anomalies import Anomaly, AnomalyKind


@dataclass(frozen=True)
class CheckedIndex:
    """`complete`: the index has an entry for every row. It has once it has a generation, in whatever state; until then
    only what was written since it came."""

    table: Table
    index: Index
    complete: bool = True

    @property
    def is_primary(self) -> bool:
        return self.index.id == self.table.primary.id

    @property
    def table_name(self) -> str:
        return self.table.full_name

    @cached_property
    def key(self) -> tuple[Column, ...]:
        return tuple(self.table.column_by_id[c] for c in self.table.entry_key(self.index))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """What the index stores today, the entry key first; a dropped column is not looked at."""
        stored = self.table.stored_columns(self.index, self.table.layout)
        return tuple(self.table.column_by_id[c] for c, _ in stored if c in self.table.column_by_id)

    @cached_property
    def unique(self) -> tuple[Column, ...]:
        """The columns of which no two rows may share the values: as long as it is only enforced, older ones may."""
        if not (self.is_primary or self.index.unique) or self.index.state not in READABLE:
            return ()
        return tuple(self.table.column_by_id[c] for c in self.index.key)

    @property
    def generated(self) -> tuple[Column, ...]:
        """The columns that all rows have, and that are made from others."""
        columns = self.table.visible_columns
        return tuple(c for c in columns if c.generated is not None and not c.virtual)

    def as_version(self, layout_id: LayoutId, stored: tuple[Any, ...]) -> tuple[Any, ...]:
        """What is stored in a layout, as the table's version sees it, in the order of the columns."""
        places = self._places.get(layout_id)
        if places is None:
            layout = self.table.layout_by_id[layout_id]
            known = {c: place for place, (c, _) in enumerate(self.table.stored_columns(self.index, layout))}
            places = self._places[layout_id] = [
                (known.get(c.id), parse_canonical(c.type, c.frozen)) for c in self.columns
            ]
        return tuple([frozen if place is None else stored[place] for place, frozen in places])

    @cached_property
    def _places(self) -> dict[LayoutId, list[tuple[int | None, Any]]]:
        """Of each layout that was met: where each column is, or what it reads as if it is not there."""
        return {}

    def whole_rows(self, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Rows of the primary index in the order of the table's columns, those that are not stored without a value."""
        stored = {column.id: position for position, column in enumerate(self.columns)}
        places = [stored.get(column.id) for column in self.table.columns]
        return [tuple([None if place is None else row[place] for place in places]) for row in rows]

    def codec(self) -> KeyCodec:
        return KeyCodec([column.type for column in self.key])

    def anomaly(self, kind: AnomalyKind, key: Sequence[Any] = (), detail: object = "") -> Anomaly:
        names = [column.name for column in self.key]
        return Anomaly(kind, self.table_name, self.index.name, tuple(zip(names, key, strict=False)), str(detail))
