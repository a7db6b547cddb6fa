"""The positional read plan: a snapshot of an index as one DuckDB query.

Untouched files are read raw; touched ones through an anti-join of row positions; inline rows and the transaction's own
rows come as Arrow tables. The text depends on the shape of the parts only: file lists are parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from seachange.model.descriptor import Column, Index, Table
from seachange.model.ids import LayoutId
from seachange.model.scan import Scan
from seachange.storage.arrow import column_name
from seachange.storage.image import FileSlice, SnapshotParts
from seachange.storage.projection import StoredColumns, select_list
from seachange.storage.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Overlay:
    """A transaction's own writes to an index: its rows in the current layout, and the entry keys that hide
    committed rows (as a table of the key columns by their `c<id>` names). Files are what it staged in bulk."""

    rows: pa.Table | None = None
    hidden_keys: pa.Table | None = None
    files: tuple[FileSlice, ...] = ()


@dataclass(slots=True)
class _Builder:
    prefix: str
    parameters: dict[str, object] = field(default_factory=dict)
    relations: dict[str, object] = field(default_factory=dict)

    def parameter(self, value: object) -> str:
        name = f"{self.prefix}_p{len(self.parameters)}"
        self.parameters[name] = value
        return f"${name}"

    def relation(self, table: pa.Table) -> str:
        name = f"{self.prefix}_r{len(self.relations)}"
        self.relations[name] = table
        return name


def plan_scan(
    table: Table,
    index: Index,
    columns: Sequence[Column],
    parts: SnapshotParts,
    overlay: Overlay,
    warehouse: Warehouse,
    prefix: str,
) -> Scan:
    """The rows of a snapshot as `columns`, each under its own name. `prefix` makes the scan's names its own."""
    builder = _Builder(prefix)
    needed = list(columns)
    if overlay.hidden_keys is not None:
        needed += [table.column_by_id[c] for c in table.entry_key(index) if all(c != n.id for n in columns)]
    committed = _union(_branches(builder, table, index, needed, parts, warehouse))
    if committed and overlay.hidden_keys is not None:
        own = builder.relation(overlay.hidden_keys)
        same = " AND ".join(f"s.{column_name(c)} = k.{column_name(c)}" for c in table.entry_key(index))
        committed = f"SELECT * FROM ({committed}) s ANTI JOIN {own} k ON {same}"
    own_parts = SnapshotParts(overlay.files, ((table.layout.id, overlay.rows),) if overlay.rows is not None else ())
    own_rows = list(_branches(builder, table, index, needed, own_parts, warehouse))
    body = _union([*([f"({committed})"] if committed else []), *own_rows]) or _nothing(needed)
    names = ", ".join(f"{column_name(c.id)} AS {quote(c.name)}" for c in columns)
    return Scan(f"SELECT {names} FROM ({body}) AS {prefix}", builder.parameters, builder.relations)


def plan_rewrite(table: Table, index: Index, parts: SnapshotParts, warehouse: Warehouse, prefix: str) -> Scan:
    """The rows of these parts as a segment of the current layout stores them, by column id."""
    builder = _Builder(prefix)
    columns = [table.column_by_id[c] for c, _ in table.stored_columns(index, table.layout)]
    body = _union(_branches(builder, table, index, columns, parts, warehouse)) or _nothing(columns)
    return Scan(body, builder.parameters, builder.relations)


def _union(branches: Iterable[str]) -> str:
    return " UNION ALL ".join(branches)


def _branches(
    builder: _Builder,
    table: Table,
    index: Index,
    columns: Sequence[Column],
    parts: SnapshotParts,
    warehouse: Warehouse,
) -> Iterator[str]:
    for layout_id in sorted({f.segment.layout_id for f in parts.files}):
        files = [f for f in parts.files if f.segment.layout_id == layout_id]
        select = select_list(_stored(table, index, layout_id), columns)
        untouched = [f.segment for f in files if not len(f.superseded)]
        touched = [f for f in files if 0 < len(f.superseded) < f.segment.rows]
        if untouched:
            yield f"SELECT {select} FROM read_parquet({builder.parameter(warehouse.paths(untouched))})"
        if touched:
            paths = builder.parameter(warehouse.paths([f.segment for f in touched]))
            gone = builder.relation(_positions(touched))
            yield (
                f"SELECT {select} FROM read_parquet({paths}) f ANTI JOIN {gone} p "
                "ON f.file_index = p.file_index AND f.file_row_number = p.file_row_number"
            )
    for layout_id, rows in parts.inline:
        yield f"SELECT {select_list(_stored(table, index, layout_id), columns)} FROM {builder.relation(rows)}"


def _stored(table: Table, index: Index, layout_id: LayoutId) -> StoredColumns:
    return table.stored_columns(index, table.layout_by_id[layout_id])


def _positions(touched: Sequence[FileSlice]) -> pa.Table:
    """Which positions of the i-th file of the list are not to be read."""
    ordinals = np.repeat(np.arange(len(touched), dtype=np.uint64), [len(f.superseded) for f in touched])
    rows = np.concatenate([f.superseded for f in touched])
    return pa.table({"file_index": pa.array(ordinals), "file_row_number": pa.array(rows)})


def _nothing(columns: Sequence[Column]) -> str:
    nulls = ", ".join(f"CAST(NULL AS {c.type.duckdb}) AS {column_name(c.id)}" for c in columns)
    return f"SELECT {nulls} WHERE false"


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
