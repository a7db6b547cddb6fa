"""A transaction's own uncommitted writes.

**Invariant:** at most one final version per entry. `existed` says whether a committed version was visible when the
transaction first wrote the entry; `base` is the snapshot of that write, the oldest one that its value may depend on.

**Invariant:** a buffer that was replaced (by a rebase, or by a bulk change over earlier writes) is never written to
again, nor are its lists of files: the undo record puts it back as it was. Files that only the later buffers have are
unwanted then; files that only the earlier ones have are kept until the transaction ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from seachange.engine.encode.write_plan import EntryPlan, WritePlan
from seachange.model.ids import DescriptorId, IndexId, KeyHash, Seq
from seachange.model.schema.descriptor import Table
from seachange.model.segments import Op, Segment, SegmentKind
from seachange.storage.arrow import schema_of
from seachange.storage.image import FileSlice
from seachange.storage.keys import Hashes, Key, entry_hash, unique_hash
from seachange.storage.plan import Overlay
from seachange.storage.projection import compile_row
from seachange.storage.small_arrays import array_of

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """The final version of an entry; `row` is None if it is deleted."""

    key: Key
    row: Row | None
    existed: bool
    base: Seq


@dataclass(slots=True)
class StagedFile:
    """A segment that a bulk write of this transaction wrote, less the positions that it has replaced or removed since.
    `plan` is the plan of the write: the table may change shape before the transaction ends. `hashes` are the keys that
    the commit lists for the file; None if it lists none and probes the file instead. `brings_keys`: the file may
    contain keys that no row had before."""

    segment: Segment
    base: Seq
    plan: EntryPlan
    hashes: Hashes | None = None
    brings_keys: bool = True
    deleted: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Staging:
    """Undo record: a file was added to this list."""

    files: list[StagedFile]
    file: StagedFile


@dataclass(frozen=True, slots=True)
class RowsFit:
    """The table version that the buffered rows conform to, and a sequence at which that version is current."""

    table: Table
    seq: Seq


@dataclass(frozen=True, slots=True)
class Replaced:
    """Undo record: the buffers of a table's indexes before they were replaced, None for an index without a buffer, and
    the version that the rows conformed to."""

    table_id: DescriptorId
    buffers: dict[IndexId, IndexBuffer | None]
    fit: RowsFit | None
    listed: int


@dataclass(frozen=True, slots=True)
class Rebased:
    """No undo record: what follows `begin` in the journal has put rows into another form, and is not what statements
    have written."""

    begin: int


@dataclass(slots=True)
class IndexBuffer:
    plan: EntryPlan
    entries: dict[bytes, Entry] = field(default_factory=dict)
    # For a unique secondary index: the entries in the buffer under each unique key.
    unique: dict[Key, set[bytes]] = field(default_factory=dict)
    staged: list[StagedFile] = field(default_factory=list)
    # Tombstones that a bulk write staged.
    removed: list[StagedFile] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.entries or self.staged or self.removed)

    @property
    def hiding(self) -> list[StagedFile]:
        """The files whose keys hide committed versions. Positions that were written again have an entry, which hides
        the same key."""
        return [*self.removed, *(file for file in self.staged if not file.segment.fresh)]

    def files_of(self, kind: SegmentKind) -> list[StagedFile]:
        return self.removed if kind is SegmentKind.TOMBSTONES else self.staged

    def set(self, encoded: bytes, entry: Entry | None) -> Entry | None:
        """Replaces the buffered version (None removes it); returns the previous one."""
        before = self.entries.get(encoded)
        if self.plan.unique_width:
            self._track(encoded, before, entry)
        if entry is None:
            self.entries.pop(encoded, None)
        else:
            self.entries[encoded] = entry
        return before

    def _track(self, encoded: bytes, before: Entry | None, after: Entry | None) -> None:
        if before is not None and before.row is not None:
            self.unique[before.key[: self.plan.unique_width]].discard(encoded)
        if after is not None and after.row is not None:
            self.unique.setdefault(after.key[: self.plan.unique_width], set()).add(encoded)

    def final(self) -> Iterator[tuple[Op, bytes, Entry]]:
        """The operation that the commit performs on each entry. An entry that was inserted and deleted again yields
        nothing."""
        for encoded, entry in self.entries.items():
            if entry.row is not None:
                yield (Op.PUT if entry.existed else Op.INSERT), encoded, entry
            elif entry.existed:
                yield Op.TOMBSTONE, encoded, entry

    def projected(self, plan: EntryPlan, table: Table) -> IndexBuffer:
        """A copy whose entries are in the layout of another version; files stay in theirs."""
        project = compile_row(self.plan.columns, [table.column_by_id[c] for c, _ in plan.columns])
        entries = dict(self.entries)
        if project is not None:
            entries = {
                encoded: entry if entry.row is None else replace(entry, row=project(entry.row))
                for encoded, entry in entries.items()
            }
        unique = {key: set(encoded) for key, encoded in self.unique.items()}
        return IndexBuffer(plan, entries, unique, list(self.staged), list(self.removed))

    def listed(self) -> Iterator[tuple[Hashes, Seq]]:
        """The keys that the commit lists for the entries, with the snapshots at which they were written."""
        yield from ((file.hashes, file.base) for file in (*self.staged, *self.removed) if file.hashes is not None)
        by_base: dict[Seq, list[KeyHash]] = {}
        for op, encoded, entry in self.final():
            by_base.setdefault(entry.base, []).extend(listed_keys(self.plan, op, encoded, entry))
        yield from ((np.array(keys, np.int64), base) for base, keys in by_base.items())

    def segments(self) -> Iterator[Segment]:
        yield from (file.segment for file in (*self.staged, *self.removed))

    def tombstone_row(self, entry: Entry) -> Row:
        return entry.key + (None,) * (len(self.plan.columns) - self.plan.key_width)

    def overlay(self) -> Overlay:
        schema = schema_of(self.plan.columns)
        rows = [e.row for e in self.entries.values() if e.row is not None]
        hidden = [e.key for e in self.entries.values() if e.existed]
        key_schema = pa.schema(list(schema)[: self.plan.key_width])
        return Overlay(
            rows=_arrow(rows, schema) if rows else None,
            hidden_keys=_arrow(hidden, key_schema) if hidden else None,
            files=tuple(FileSlice(f.segment, np.array(sorted(f.deleted), dtype=np.int64)) for f in self.staged),
            hiding=tuple(file.segment for file in self.hiding),
            layout_id=self.plan.layout_id,
        )


def listed_keys(plan: EntryPlan, op: Op, encoded: bytes, entry: Entry) -> Iterator[KeyHash]:
    """The keys that the commit lists for an entry. One of the primary index conflicts as such; a secondary one through
    its row, and by its unique key. One of the primary index to come does both: a writer that comes after it knows the
    row by it alone."""
    if plan.holds_rows:
        yield entry_hash(plan.index.id, encoded)
        if op is not Op.PUT:
            yield unique_hash(plan.index.id, encoded)
    elif op is not Op.PUT and (key := plan.unique_key(entry.key)) is not None:
        yield unique_hash(plan.index.id, plan.unique_codec.encode(key))


def _arrow(rows: list[Row], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.Table.from_arrays([array_of(v, f.type) for v, f in zip(columns, schema, strict=True)], schema=schema)


_Step = tuple[IndexBuffer, bytes, Entry | None] | tuple[StagedFile, int] | Staging | Replaced | Rebased


class WriteBuffer:
    """The buffers of all indexes that a transaction wrote, with an undo journal for statements and savepoints."""

    def __init__(self) -> None:
        self.indexes: dict[IndexId, IndexBuffer] = {}
        self.fits: dict[DescriptorId, RowsFit] = {}
        # The keys of entries that a rebase has left to indexes which are gone: others may have written them since.
        self.listed: list[tuple[Hashes, Seq]] = []
        self._journal: list[_Step] = []
        # Whether a commit has put it into another form than the statements left it in.
        self.is_adapted = False

    def note_adapted(self) -> None:
        self.is_adapted = True

    def of(self, plan: EntryPlan) -> IndexBuffer:
        buffer = self.indexes.get(plan.index.id)
        if buffer is None:
            buffer = self.indexes[plan.index.id] = IndexBuffer(plan)
        elif buffer.plan is not plan and buffer.is_empty:
            # The entries that were undone may have been of another version.
            buffer.plan = plan
        return buffer

    def put(self, buffer: IndexBuffer, encoded: bytes, entry: Entry) -> None:
        self._journal.append((buffer, encoded, buffer.set(encoded, entry)))

    def delete_staged(self, file: StagedFile, position: int) -> None:
        file.deleted.add(position)
        self._journal.append((file, position))

    def stage(self, buffer: IndexBuffer, file: StagedFile) -> None:
        files = buffer.files_of(file.segment.kind)
        files.append(file)
        self._journal.append(Staging(files, file))

    # Versions.

    def writes_to(self, table_id: DescriptorId) -> bool:
        return any(b.plan.table_id == table_id and not b.is_empty for b in self.indexes.values())

    def begin(self, table: Table, snapshot: Seq) -> None:
        """Called before rows are written with a version to which the buffered rows conform already."""
        fit = self.fits.get(table.id)
        if fit is None or (fit.table is not table and not self.writes_to(table.id)):
            self.fits[table.id] = RowsFit(table, snapshot)

    def relabel(self, table: Table, seq: Seq) -> None:
        """The rows conform to another version without conversion."""
        self.fits[table.id] = RowsFit(table, seq)

    def rebase(self, after: WritePlan, kept: Collection[IndexId], seq: Seq, soft: Collection[IndexId] = ()) -> None:
        """Replaces the buffers of a table by buffers of another version, which is current at `seq`: with the entries of
        the `kept` indexes, and none of the others. The keys of `soft` ones are unique in this transaction alone."""
        table = after.table
        buffers = {
            plan.index.id: self.indexes[plan.index.id].projected(plan, table)
            for plan in after.entries
            if plan.index.id in kept and plan.index.id in self.indexes
        }
        before = [b for i, b in self.indexes.items() if b.plan.table_id == table.id and i not in buffers]
        self.replace(table.id, buffers)
        # Keys of an index that was never committed conflict with no other commit.
        committed = [b for b in before if not b.plan.index.uncommitted and b.plan.index.id not in soft]
        self.listed += [keys for buffer in committed for keys in buffer.listed()]
        self.fits[table.id] = RowsFit(table, seq)

    def expect(self, table: Table, seq: Seq) -> None:
        """As `rebase`, of a table that has no buffers."""
        self.replace(table.id, {})
        self.fits[table.id] = RowsFit(table, seq)

    def replace(self, table_id: DescriptorId, buffers: Mapping[IndexId, IndexBuffer]) -> None:
        """Replaces all buffers of a table."""
        before: dict[IndexId, IndexBuffer | None] = dict.fromkeys(buffers)
        before |= {index_id: buffer for index_id, buffer in self.indexes.items() if buffer.plan.table_id == table_id}
        self._journal.append(Replaced(table_id, before, self.fits.get(table_id), len(self.listed)))
        for index_id in before:
            self.indexes.pop(index_id, None)
        self.indexes |= buffers

    def note_rebased(self, begin: int) -> None:
        """All that was done since `begin` has put rows into another form."""
        if begin < self.mark():
            self._journal.append(Rebased(begin))

    def before_rebase(self, table_id: DescriptorId, version: int) -> Replaced | None:
        """The rows of a table in the last form that conformed to this version or an older one; None if a statement has
        written to the table since."""
        place = len(self._journal)
        while place:
            place -= 1
            match self._journal[place]:
                case Rebased(begin):
                    steps = [
                        s for s in self._journal[begin:place] if isinstance(s, Replaced) and s.table_id == table_id
                    ]
                    if steps and steps[0].fit is not None and steps[0].fit.table.version <= version:
                        return steps[0]
                    place = begin
                case (IndexBuffer() as buffer, _, _) if buffer.plan.table_id == table_id:
                    return None
                case (StagedFile() as file, _) if file.plan.table_id == table_id:
                    return None
                case Staging(_, file) if file.plan.table_id == table_id:
                    return None
                case Replaced() as replaced if replaced.table_id == table_id:
                    return None
        return None

    def put_back(self, replaced: Replaced) -> None:
        """Rows of a table in an earlier form, which the journal undoes like any other."""
        begin = self.mark()
        self.replace(replaced.table_id, {i: buffer for i, buffer in replaced.buffers.items() if buffer is not None})
        if replaced.fit is not None:
            self.fits[replaced.table_id] = replaced.fit
        self.note_rebased(begin)

    def has_files(self, replaced: Replaced) -> bool:
        """Whether a part of the table's rows, then or now, is in files."""
        now = [buffer for buffer in self.indexes.values() if buffer.plan.table_id == replaced.table_id]
        return any(True for b in (*now, *replaced.buffers.values()) if b is not None for _ in b.segments())

    def mark(self) -> int:
        return len(self._journal)

    def reset(self, mark: int) -> list[Segment]:
        """Undoes everything after `mark`; returns the segments that are no longer needed."""
        unwanted: list[Segment] = []
        while len(self._journal) > mark:
            match self._journal.pop():
                case (IndexBuffer() as buffer, encoded, before):
                    buffer.set(encoded, before)
                case (StagedFile() as file, position):
                    file.deleted.discard(position)
                case Staging(files):
                    unwanted.append(files.pop().segment)
                case Replaced() as replaced:
                    unwanted += self._put_back(replaced)
                case Rebased():
                    pass
        return unwanted

    def _put_back(self, replaced: Replaced) -> list[Segment]:
        """Returns the segments that only the later buffers had. What was written to those has been undone already."""
        of_table = [i for i, buffer in self.indexes.items() if buffer.plan.table_id == replaced.table_id]
        later = [self.indexes.pop(index_id) for index_id in of_table]
        self.indexes |= {index_id: buffer for index_id, buffer in replaced.buffers.items() if buffer is not None}
        del self.listed[replaced.listed :]
        self.fits.pop(replaced.table_id, None)
        if replaced.fit is not None:
            self.fits[replaced.table_id] = replaced.fit
        known = {segment.id for buffer in replaced.buffers.values() if buffer for segment in buffer.segments()}
        return [segment for buffer in later for segment in buffer.segments() if segment.id not in known]

    def forget_empty(self) -> None:
        """The next write may be planned with another version of its table."""
        self.indexes = {index_id: buffer for index_id, buffer in self.indexes.items() if not buffer.is_empty}
        self.is_adapted = False

    def rows_since(self, mark: int) -> dict[DescriptorId, dict[tuple[IndexId, bytes], Row | None] | None]:
        """The writes after a mark by table: the rows, or None if they are in files."""
        found: dict[DescriptorId, dict[tuple[IndexId, bytes], Row | None] | None] = {}
        for item in self._journal[mark:]:
            match item:
                case (IndexBuffer() as buffer, encoded, _):
                    rows = found.setdefault(buffer.plan.table_id, {})
                    entry = buffer.entries.get(encoded)
                    if rows is not None:
                        rows[buffer.plan.index.id, encoded] = None if entry is None else entry.row
                case (StagedFile() as file, _):
                    found[file.plan.table_id] = None
                case Staging(_, file):
                    found[file.plan.table_id] = None
                case _:
                    pass
        return found

    def written_since(self, mark: int) -> Iterator[tuple[int, IndexBuffer, bytes] | tuple[int, StagedFile, None]]:
        """The entries and files that were written after a mark, each with its position in the journal."""
        for place, item in enumerate(self._journal[mark:], mark):
            match item:
                case (IndexBuffer() as buffer, encoded, _):
                    yield place, buffer, encoded
                case Staging(_, file):
                    yield place, file, None
                case _:
                    pass

    @property
    def is_empty(self) -> bool:
        return all(buffer.is_empty for buffer in self.indexes.values())

    def staged_segments(self) -> list[Segment]:
        """All segments that were written and not undone, including those of buffers that were replaced."""
        return [*self._attached(), *self.useless_segments()]

    def _attached(self) -> list[Segment]:
        return [segment for buffer in self.indexes.values() for segment in buffer.segments()]

    def useless_segments(self) -> list[Segment]:
        """The segments that only replaced buffers have."""
        replaced = [b for step in self._journal if isinstance(step, Replaced) for b in step.buffers.values() if b]
        if not replaced:
            return []
        attached = {segment.id for segment in self._attached()}
        found = {segment.id: segment for buffer in replaced for segment in buffer.segments()}
        return [segment for id_, segment in found.items() if id_ not in attached]
