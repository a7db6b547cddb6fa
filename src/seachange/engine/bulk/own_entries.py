"""The entries of an index that a transaction has written already, and a bulk change writes again.

**Invariant:** an entry that is written again keeps its base and whether it existed, as for single rows: what was
written first decides what it conflicts with. Afterwards it is in the files of the change alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.buffer.write_buffer import Entry, IndexBuffer, StagedFile
from seachange.engine.encode.write_plan import EntryPlan
from seachange.model.ids import LayoutId, Seq
from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Table
from seachange.model.segments import SegmentKind
from seachange.storage.arrow import arrow_type, column_name
from seachange.storage.projection import select_list
from seachange.storage.small_arrays import array_of
from seachange.storage.sorter import Sorter

_OWN = "own"
# Entries in memory are numbered like the rows of a file.
_IN_MEMORY = -1


@dataclass(frozen=True, slots=True)
class Stamp:
    """What entries of one file have in common: the snapshot at which they were first written, whether no committed
    entry has their key, and whether they take or give up keys."""

    base: Seq
    fresh: bool
    moves: bool


@dataclass(frozen=True, slots=True)
class _Group:
    """Files that are read alike."""

    base: Seq
    layout_id: LayoutId
    kind: SegmentKind
    fresh: bool
    brings_keys: bool


class OwnEntries:
    """Those with the keys of a query: `touched` selects the keys that the change writes to."""

    def __init__(
        self, txn: TransactionState, sorter: Sorter, table: Table, plan: EntryPlan, own: IndexBuffer, touched: str
    ) -> None:
        self._txn = txn
        self._sorter = sorter
        self._table = table
        self._plan = plan
        self._own = own
        self._key = [table.column_by_id[c] for c, _ in plan.columns[: plan.key_width]]
        self._files: list[list[StagedFile]] = []
        self._entries: list[tuple[bytes, Entry]] = list(own.entries.items())
        parameters: dict[str, object] = {}
        relations: dict[str, object] = {}
        branches = [*self._read_files(parameters, relations), *self._read_entries(relations)]
        same = self._same("u", "t")
        sql = f"SELECT u.* FROM ({' UNION ALL '.join(branches)}) u SEMI JOIN ({touched}) t ON {same}"  # noqa: S608
        sorter.keep(_OWN, sql, Scan(sql, parameters, relations))

    def _same(self, one: str, other: str) -> str:
        names = [column_name(c.id) for c in self._key]
        return " AND ".join(f"{one}.{name} IS NOT DISTINCT FROM {other}.{name}" for name in names)

    def _read_files(self, parameters: dict[str, object], relations: dict[str, object]) -> list[str]:
        groups: dict[_Group, list[StagedFile]] = {}
        for file in (*self._own.staged, *self._own.removed):
            brings = file.hashes is None or file.brings_keys or file.segment.kind is SegmentKind.TOMBSTONES
            segment = file.segment
            group = _Group(file.base, segment.layout_id, segment.kind, segment.fresh, brings)
            groups.setdefault(group, []).append(file)
        branches = []
        for number, (group, files) in enumerate(groups.items()):
            self._files.append(files)
            parameters[f"own_p{number}"] = self._txn.parts.warehouse.paths([file.segment for file in files])
            stored = self._table.stored_columns(self._plan.index, self._table.layout_by_id[group.layout_id])
            keys = select_list(stored, self._key)
            stamp = _stamp(group.base, not group.fresh, group.brings_keys)
            sql = (
                f"SELECT {keys}, {number} AS place, f.file_index::BIGINT AS file, "  # noqa: S608 - named by id
                f"f.file_row_number::BIGINT AS position, {stamp} FROM read_parquet($own_p{number}) f"
            )
            deleted = [(n, position) for n, file in enumerate(files) for position in file.deleted]
            if deleted:
                relations[f"own_r{number}"] = _positions(deleted)
                sql += f" ANTI JOIN own_r{number} p ON f.file_index = p.file AND f.file_row_number = p.position"
            branches.append(sql)
        return branches

    def _read_entries(self, relations: dict[str, object]) -> list[str]:
        if not self._entries:
            return []
        found = [entry for _, entry in self._entries]
        names = [column_name(c.id) for c in self._key]
        types = [arrow_type(c.type) for c in self._key]
        columns = zip(*(entry.key for entry in found), strict=True)
        arrays = [array_of(values, type_) for values, type_ in zip(columns, types, strict=True)]
        arrays += [
            pa.array(np.arange(len(found), dtype=np.int64)),
            pa.array([entry.base for entry in found], pa.int64()),
            pa.array([entry.existed for entry in found], pa.bool_()),
        ]
        relations["own_entries"] = pa.Table.from_arrays(arrays, [*names, "position", "base", "existed"])
        keys = ", ".join(
            f"CAST({name} AS {column.type.duckdb}) AS {name}" for name, column in zip(names, self._key, strict=True)
        )
        return [
            f"SELECT {keys}, {_IN_MEMORY} AS place, 0 AS file, position, "  # noqa: S608 - named by id
            "base, existed, NOT existed AS moves FROM own_entries"
        ]

    # Entries of the change.

    def stamped(self, entries: str, stamp: Stamp) -> str:
        """The entries, or keys, of a query, each with a stamp: its own, or this one if it is written first now."""
        first = f"coalesce(o.base, {int(stamp.base)}) AS base, coalesce(NOT o.existed, {stamp.fresh}) AS fresh"
        moves, same = f"coalesce(o.moves, {stamp.moves}) AS moves", self._same("e", "o")
        return f"SELECT e.*, {first}, {moves} FROM ({entries}) e LEFT JOIN {_OWN} o ON {same}"  # noqa: S608

    # What is left.

    def rest(self) -> IndexBuffer:
        """The buffer without the entries that are written again."""
        found = self._sorter.arrow(f"SELECT place, file, position FROM {_OWN}")  # noqa: S608 - a name of our own
        self._sorter.drop(_OWN)
        place, file, position = (found.column(name).to_numpy() for name in ("place", "file", "position"))
        replaced: dict[int, StagedFile | None] = {}
        for number, files in enumerate(self._files):
            for n, each in enumerate(files):
                taken = position[(place == number) & (file == n)]
                if len(taken):
                    deleted = each.deleted.union(taken.tolist())
                    is_left = len(deleted) < each.segment.rows
                    replaced[id(each)] = replace(each, deleted=deleted) if is_left else None
        gone = set(position[place == _IN_MEMORY].tolist())
        rest = IndexBuffer(
            self._own.plan,
            staged=[f for each in self._own.staged if (f := replaced.get(id(each), each)) is not None],
            removed=[f for each in self._own.removed if (f := replaced.get(id(each), each)) is not None],
        )
        for number, (encoded, entry) in enumerate(self._entries):
            if number not in gone:
                rest.set(encoded, entry)
        return rest


def _stamp(base: Seq, existed: bool, moves: bool) -> str:
    return f"{int(base)} AS base, {existed} AS existed, {moves} AS moves"


def _positions(deleted: list[tuple[int, int]]) -> pa.Table:
    files, positions = zip(*deleted, strict=True)
    return pa.table({"file": pa.array(files, pa.int64()), "position": pa.array(positions, pa.int64())})
