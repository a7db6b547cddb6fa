"""The read plan: a snapshot of an index as one DuckDB query, the union of its parts.

The text depends on the shape of the parts only: file lists are parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from seachange.model.ids import ColumnId, LayoutId
from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.segments import Segment
from seachange.model.states import READABLE
from seachange.storage.arrow import column_name
from seachange.storage.branches import Branches, union
from seachange.storage.image import FileSlice, SnapshotParts
from seachange.storage.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Overlay:
    """A transaction's own writes to an index: its rows, in the current layout unless `layout_id` is set, and the entry
    keys that hide committed rows (as a table of the key columns by their `c<id>` names). `files` are its staged bulk
    files; `hiding` are the files, with or without rows to read, whose keys hide committed rows too."""

    rows: pa.Table | None = None
    hidden_keys: pa.Table | None = None
    files: tuple[FileSlice, ...] = ()
    hiding: tuple[Segment, ...] = ()
    layout_id: LayoutId | None = None

    @property
    def hides(self) -> bool:
        return self.hidden_keys is not None or bool(self.hiding)


def plan_scan(
    table: Table,
    index: Index,
    columns: Sequence[Column],
    parts: SnapshotParts,
    overlay: Overlay,
    warehouse: Warehouse,
    prefix: str,
    whole: bool = False,
) -> Scan:
    """The rows of a snapshot as `columns`, each under its own name. `prefix` makes the scan's names unique; `whole`:
    the statement reads nearly all rows."""
    layout_id = table.layout.id if overlay.layout_id is None else overlay.layout_id
    own_parts = SnapshotParts(overlay.files, ((layout_id, overlay.rows),) if overlay.rows is not None else ())
    if not columns and not overlay.hides:
        return _count(_rows(parts) + _rows(own_parts), prefix)
    needed = list(columns)
    if overlay.hides:
        needed += [table.column_by_id[c] for c in table.entry_key(index) if all(c != n.id for n in columns)]
    branches = Branches(prefix, table, index, needed, warehouse)
    committed = union(branches.read(parts, from_memory=whole))
    if committed and overlay.hides:
        own = _hidden(overlay, branches, table.entry_key(index))
        same = " AND ".join(_same(table.column_by_id[c]) for c in table.entry_key(index))
        committed = f"SELECT * FROM ({committed}) s ANTI JOIN {own} k ON {same}"
    body = union([*([f"({committed})"] if committed else []), *branches.read(own_parts)]) or _nothing(needed)
    names = ", ".join(f"{column_name(c.id)} AS {quote(c.name)}" for c in columns) or "1"
    return Scan(f"SELECT {names} FROM ({body}) AS {prefix}", branches.parameters, branches.relations)


def _hidden(overlay: Overlay, branches: Branches, key: Sequence[ColumnId]) -> str:
    names, sources = ", ".join(map(column_name, key)), []
    if overlay.hidden_keys is not None:
        sources.append(branches.relation(overlay.hidden_keys))
    if overlay.hiding:
        sources.append(f"read_parquet({branches.parameter(branches.warehouse.paths(overlay.hiding))})")
    return f"({union(f'SELECT {names} FROM {source}' for source in sources)})"


def plan_rewrite(table: Table, index: Index, parts: SnapshotParts, warehouse: Warehouse, prefix: str) -> Scan:
    """The rows of these parts in the stored form of the current layout, by column id."""
    columns = [table.column_by_id[c] for c, _ in table.stored_columns(index, table.layout)]
    return plan_columns(table, index, columns, parts, warehouse, prefix)


def plan_columns(
    table: Table,
    index: Index,
    columns: Sequence[Column],
    parts: SnapshotParts,
    warehouse: Warehouse,
    prefix: str,
    positions: str = "",
) -> Scan:
    """Some columns of the rows of these parts, by column id; `positions` is a condition on `file_row_number` that
    selects rows of files."""
    branches = Branches(prefix, table, index, columns, warehouse, positions)
    body = union(branches.read(parts)) or _nothing(columns)
    return Scan(body, branches.parameters, branches.relations)


def _same(column: Column) -> str:
    """Keys of secondary indexes may be NULL."""
    name = column_name(column.id)
    return (
        f"s.{name} IS NOT DISTINCT FROM k.{name}"
        if column.nullable or column.not_null not in READABLE
        else f"s.{name} = k.{name}"
    )


def _count(rows: int, prefix: str) -> Scan:
    """The right number of rows, for a query that reads no columns."""
    return Scan(f"SELECT 1 FROM range(${prefix}_p0)", {f"{prefix}_p0": rows})


def _rows(parts: SnapshotParts) -> int:
    inline: int = sum(table.num_rows for _, table in parts.inline)
    return inline + sum(f.segment.rows - len(f.superseded) for f in parts.files)


def _nothing(columns: Sequence[Column]) -> str:
    nulls = ", ".join(f"CAST(NULL AS {c.type.duckdb}) AS {column_name(c.id)}" for c in columns)
    return f"SELECT {nulls} WHERE false"


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
