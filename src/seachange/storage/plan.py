"""The read plan: a snapshot of an index as one DuckDB query, the union of its parts.

The text depends on the shape of the parts only: file lists are parameters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from glob import escape

import numpy as np
import pyarrow as pa

from seachange.model.ids import ColumnId, LayoutId
from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.segments import Segment
from seachange.model.states import READABLE
from seachange.storage.arrow import arrow_type, column_name
from seachange.storage.excerpts import Needed, ScannedFile
from seachange.storage.image import FileSlice, SnapshotParts
from seachange.storage.keys import EntryRanges
from seachange.storage.layout_groups import LayoutGroup, group_layouts
from seachange.storage.patched import Positions, TouchedFile, in_memory
from seachange.storage.projection import StoredColumns
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


# The branches of a scan's union: files read whole, by position, or from memory, and rows that are Arrow tables.
# Untouched files are read directly. Touched ones are read through an anti-join of row positions, which skips row groups
# like a direct read; or, where nothing could be skipped, from columns in memory without the superseded rows.

# Smaller hash tables make the anti-join faster for rows that are not in them.
_JOINS_MAX = 4
_JOIN_ROWS_MIN = 1_000_000


@dataclass(slots=True)
class Branches:
    """Builds branches and collects what they refer to. `prefix` makes the names of one scan unique."""

    prefix: str
    table: Table
    index: Index
    columns: Sequence[Column]
    warehouse: Warehouse
    # A condition on `file_row_number`, to read a sample of each file.
    positions: str = ""
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

    def read(self, parts: SnapshotParts, from_memory: bool = False) -> list[str]:
        """`from_memory`: all rows of committed parts are needed."""
        ids = {f.segment.layout_id for f in parts.files} | {layout_id for layout_id, _ in parts.inline}
        groups = group_layouts(self.table, self.index, sorted(ids), self.columns)
        return [branch for group in groups for branch in self._read(group, parts, from_memory)]

    def _read(self, group: LayoutGroup, parts: SnapshotParts, from_memory: bool) -> Iterator[str]:
        files: dict[LayoutId, list[FileSlice]] = {layout.id: [] for layout in group.layouts}
        rows: dict[LayoutId, list[pa.Table]] = {layout.id: [] for layout in group.layouts}
        for file in parts.files:
            if file.segment.layout_id in files:
                files[file.segment.layout_id].append(file)
        untouched: list[FileSlice] = []
        touched: list[FileSlice] = []
        for layout in group.layouts:
            ordered = _ends_first(files[layout.id])
            untouched += [f for f in ordered if not len(f.superseded)]
            own = [f for f in ordered if 0 < len(f.superseded) < f.segment.rows]
            kept = self._from_memory(group, layout.stored, own) if from_memory and own else None
            touched += own if kept is None else []
            rows[layout.id] += kept or ()
        for layout_id, table in parts.inline:
            if layout_id in rows:
                rows[layout_id].append(table)
        if untouched:
            select = group.select(_counts(group, untouched), self.parameter)
            paths = self._paths(self._scanned(group, untouched, parts.within))
            yield f"SELECT {select.names} FROM read_parquet({paths}{select.options}){self._where}"
        for part in _split(touched):
            yield self._by_position(group, part, parts.within)
        if any(rows.values()):
            yield f"SELECT {group.select_rows()} FROM {self.relation(group.rows(list(rows.values())))}"

    @property
    def _where(self) -> str:
        return f" WHERE {self.positions}" if self.positions else ""

    def _scanned(
        self, group: LayoutGroup, files: Sequence[FileSlice], within: EntryRanges | None = None
    ) -> list[ScannedFile]:
        wanted = {column.id for column in self.columns}
        names = {
            layout.id: frozenset(column_name(id_) for id_, _ in layout.stored if id_ in wanted)
            for layout in group.layouts
        }
        return self.warehouse.scanned([Needed(f.segment, names[f.segment.layout_id], within) for f in files])

    def _paths(self, files: Sequence[ScannedFile]) -> str:
        """DuckDB takes them for patterns."""
        return self.parameter([escape(file.path) for file in files])

    def _by_position(self, group: LayoutGroup, touched: Sequence[FileSlice], within: EntryRanges | None) -> str:
        ordered = sorted(touched, key=lambda f: f.segment.layout_id)
        select = group.select(_counts(group, ordered), self.parameter)
        files = self._scanned(group, ordered, within)
        paths = self._paths(files)
        gone = self.relation(_positions([each.positions(f.superseded) for each, f in zip(files, ordered, strict=True)]))
        return (
            f"SELECT {select.names} FROM read_parquet({paths}{select.options}) f ANTI JOIN {gone} p "
            f"ON f.file_index = p.file_index AND f.file_row_number = p.file_row_number{self._where}"
        )

    def _from_memory(
        self, group: LayoutGroup, stored: StoredColumns, touched: Sequence[FileSlice]
    ) -> list[pa.Table] | None:
        """The needed columns of a layout's touched files; None if they do not fit in memory."""
        wanted = {column.id for column in self.columns}
        schema = pa.schema([(column_name(c), in_memory(arrow_type(t))) for c, t in stored if c in wanted])
        if not schema.names or not self.warehouse.patched.has_room([f.segment for f in touched], schema.types):
            return None
        files = zip(touched, self._scanned(group, touched), strict=True)
        return self.warehouse.patched.tables(
            [TouchedFile(f.segment, f.superseded, file.name) for f, file in files], schema
        )


def union(branches: Iterable[str]) -> str:
    return " UNION ALL ".join(branches)


def _counts(group: LayoutGroup, files: Sequence[FileSlice]) -> list[int]:
    """How many of the files, which are in the order of their layouts, have each layout."""
    counts = Counter(f.segment.layout_id for f in files)
    return [counts[layout.id] for layout in group.layouts]


def _ends_first(files: Sequence[FileSlice]) -> list[FileSlice]:
    """In key order, but with the last one second: the first rows by key, in either direction, are found early, so that
    DuckDB can skip the rest."""
    ordered = sorted(files, key=lambda f: f.segment.key_min)
    return ordered[:1] + ordered[1:][-1:] + ordered[1:-1]


def _split(touched: Sequence[FileSlice]) -> Iterator[Sequence[FileSlice]]:
    """Several joins instead of one, where there are enough rows to outweigh the planning."""
    joins = min(_JOINS_MAX, len(touched), 1 + sum(f.segment.rows for f in touched) // _JOIN_ROWS_MIN)
    for number in range(joins):
        yield touched[number::joins]


def _positions(superseded: Sequence[Positions]) -> pa.Table:
    """The positions to skip, by the number of the file in the list."""
    ordinals = np.repeat(np.arange(len(superseded), dtype=np.uint64), [len(each) for each in superseded])
    rows = np.concatenate(superseded)
    return pa.table({"file_index": pa.array(ordinals), "file_row_number": pa.array(rows)})
