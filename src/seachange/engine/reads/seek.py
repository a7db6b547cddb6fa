"""Reading few rows through an index instead of all rows of a table.

**Invariant:** what is found is exactly the rows that the transaction sees and that the chosen ranges of keys contain;
the ranges contain every row that meets the conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from seachange.engine.buffer.predicate import compile_predicate
from seachange.engine.buffer.staged import is_hidden
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.encode.write_plan import EntryPlan
from seachange.engine.reads.key_range import KeyPath, choose_path
from seachange.model.condition import Among, Condition
from seachange.model.ids import LayoutId
from seachange.model.isolation import Isolation
from seachange.model.schema.descriptor import Column, Table
from seachange.storage.arrow import column_name, schema_of
from seachange.storage.image import SnapshotParts
from seachange.storage.projection import compile_row
from seachange.storage.small_arrays import array_of

if TYPE_CHECKING:
    from seachange.engine.reads.row_reads import RowReads

Row = tuple[Any, ...]
Project = Callable[[Row], Row] | None

# More rows than this are scanned; of a table with files, more than one in so many: each may cost a row group.
_ROWS_MAX = 2_000
_ROWS_IN_FILES_MIN = 16
_ROWS_PER_MATCH = 100_000


@dataclass(frozen=True, slots=True)
class AccessPath:
    """How a table is read: `rows` if they were found, else a scan, of the index `path` where that `covers` all that
    is needed; `reason` for people."""

    reason: str
    path: KeyPath | None = None
    rows: list[Row] | None = None
    covers: bool = False


def choose_access(
    txn: TransactionState, reads: RowReads, table: Table, columns: Sequence[Column], conditions: Sequence[Condition]
) -> AccessPath:
    """The rows that meet the conditions, as `columns`, if an index leads to few of them."""
    path = choose_path(table, _readable(txn, table), conditions)
    if path is None or not columns:
        return AccessPath("no index on the columns of the conditions")
    is_covered = covers(path, columns)
    rows = find_rows(txn, reads, table, path, columns, is_covered)
    if rows is not None:
        return AccessPath(f"{path} gives {len(rows)} rows", path, rows)
    return AccessPath(f"{path} gives too many rows", path, covers=is_covered and not path.plan.is_primary)


def select_rows(
    txn: TransactionState, reads: RowReads, table: Table, columns: Sequence[Column], conditions: Sequence[Condition]
) -> list[Row] | None:
    """Exactly the rows that meet the conditions, as `columns`; None if no index leads to few rows."""
    path = choose_path(table, _readable(txn, table), conditions)
    if path is None:
        return None
    needed = _needed(table, columns, conditions)
    if txn.isolation is Isolation.SERIALIZABLE:
        rows = _find_serializable(txn, reads, table, path, needed, conditions)
    else:
        rows = find_rows(txn, reads, table, path, needed, covers(path, needed))
    if rows is None:
        return None
    meets = compile_predicate(needed, conditions)
    return [row[: len(columns)] for row in rows if meets(row)]


def _readable(txn: TransactionState, table: Table) -> list[EntryPlan]:
    """One that was built in this transaction cannot be read as of an earlier snapshot."""
    entries = txn.parts.write_plan(table).entries
    return [plan for plan in entries if txn.block.is_readable(plan.index.id, txn.snapshot.seq)]


def _needed(table: Table, columns: Sequence[Column], conditions: Sequence[Condition]) -> list[Column]:
    """The columns, then others that have to be looked at."""
    known = {column.id for column in columns}
    others = dict.fromkeys(c.column for c in conditions if c.column not in known)
    return [*columns, *(table.column_by_id[c] for c in others)]


def _find_serializable(
    txn: TransactionState,
    reads: RowReads,
    table: Table,
    path: KeyPath,
    columns: Sequence[Column],
    conditions: Sequence[Condition],
) -> list[Row] | None:
    """What is read is noted, found or not: a unique key as such, anything else by its conditions."""
    among = {c.column: c.values for c in conditions if isinstance(c, Among)}
    index = path.plan.index
    if index.unique and path.is_whole and all(len(among[c]) == 1 for c in index.key):
        row = reads.find_unique(table, index, tuple([among[c][0] for c in index.key]))
        places = _places(table, columns)
        return [] if row is None else [tuple([row[place] for place in places])]
    reads.note_scan(table, conditions)
    return find_rows(txn, reads, table, path, columns, covers(path, columns))


def covers(path: KeyPath, columns: Sequence[Column]) -> bool:
    stored = {column_id for column_id, _ in path.plan.columns}
    return all(column.id in stored for column in columns)


def find_rows(
    txn: TransactionState, reads: RowReads, table: Table, path: KeyPath, columns: Sequence[Column], is_covered: bool
) -> list[Row] | None:
    """The rows in the path's ranges as `columns`, in no order; None if they are too many."""
    count_max = _count_max(txn, table)
    entries: list[tuple[LayoutId, Row]] = []
    for low, high in path.ranges:
        found = _find_entries(txn, table, path.plan, low, high, count_max - len(entries))
        if found is None:
            return None
        entries += found
        if len(entries) > count_max:
            return None
    if is_covered:
        return list(_project(table, path.plan, columns, entries))
    return list(_fetch(reads, table, path, columns, entries))


def _count_max(txn: TransactionState, table: Table) -> int:
    if txn.pending.is_new(table):
        return _ROWS_MAX
    in_files = txn.block.image(table, table.primary, txn.snapshot.seq).rows_in_files
    return _ROWS_MAX if not in_files else min(max(in_files // _ROWS_PER_MATCH, _ROWS_IN_FILES_MIN), _ROWS_MAX)


def _find_entries(
    txn: TransactionState, table: Table, plan: EntryPlan, low: bytes, high: bytes, count_max: int
) -> list[tuple[LayoutId, Row]] | None:
    """The entries that the transaction sees, each with the layout that it is stored in."""
    own = txn.buffer.indexes.get(plan.index.id)
    mine = own.entries if own is not None else {}
    found: list[tuple[LayoutId, Row]] = []
    if not txn.pending.is_new(table):
        image = txn.block.image(table, plan.index, txn.snapshot.seq)
        committed = image.find_between(low, high, txn.snapshot.seq, count_max)
        if committed is None:
            return None
        encode, width = plan.codec.encode, plan.key_width
        if own is not None and own.hiding:
            committed = [f for f in committed if not is_hidden(txn.parts.warehouse, own, f.row)]
        found += [(f.layout_id, f.row) for f in committed if not mine or encode(f.row[:width]) not in mine]
    found += [(plan.layout_id, e.row) for code, e in mine.items() if low <= code < high and e.row is not None]
    for file in own.staged if own is not None else ():
        reader = txn.parts.warehouse.reader(file.segment, plan.columns[: plan.key_width])
        hits = reader.find_between(low, high, count_max + len(file.deleted))
        found += [(file.segment.layout_id, row) for position, row in hits if position not in file.deleted]
    return found


def _project(
    table: Table, plan: EntryPlan, columns: Sequence[Column], entries: Sequence[tuple[LayoutId, Row]]
) -> Iterator[Row]:
    compiled: dict[LayoutId, Project] = {}
    for layout_id, row in entries:
        if layout_id not in compiled:
            stored = table.stored_columns(plan.index, table.layout_by_id[layout_id])
            compiled[layout_id] = compile_row(stored, columns)
        project = compiled[layout_id]
        yield row if project is None else project(row)


def _fetch(
    reads: RowReads,
    table: Table,
    path: KeyPath,
    columns: Sequence[Column],
    entries: Sequence[tuple[LayoutId, Row]],
) -> Iterator[Row]:
    entry_key = table.entry_key(path.plan.index)
    key = [entry_key.index(column_id) for column_id in table.primary.key]
    places = _places(table, columns)
    for _, entry in entries:
        row = reads.peek(table, tuple([entry[i] for i in key]))
        if row is not None:
            yield tuple([row[i] for i in places])


def _places(table: Table, columns: Sequence[Column]) -> list[int]:
    """By id: in a scan of all columns, one that is yet to come goes by another name."""
    ids = [column.id for column in table.columns]
    return [ids.index(column.id) for column in columns]


def rows_as_parts(table: Table, columns: Sequence[Column], rows: Sequence[Row]) -> SnapshotParts:
    """Rows that were found, in the form of which scans are planned."""
    schema = schema_of([(column.id, column.type) for column in columns])
    values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    arrays = [array_of(v, schema.field(column_name(c.id)).type) for v, c in zip(values, columns, strict=True)]
    return SnapshotParts((), ((table.layout.id, pa.Table.from_arrays(arrays, schema=schema)),))
