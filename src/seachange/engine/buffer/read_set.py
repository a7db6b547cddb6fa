"""The read set of a SERIALIZABLE transaction: rows by key, rows by condition, whole tables, and names.

At commit nothing in the read set may have been written since the transaction's snapshot. The transaction is then
equivalent to one that ran serially at its own sequence number, and the log is the serial order. A transaction that
writes nothing needs no check: it is serialized at its snapshot, between two commits.

**Invariant:** a scan covers every row that meets its conditions, including rows that do not exist yet and rows that met
them at the snapshot; without conditions it covers the whole table.

**Invariant:** a name that a statement has resolved, or found missing, means the same when the transaction commits. A
change of its meaning by others since the snapshot is a conflict.

**Invariant:** a transaction that writes is equivalent to one run serially at its commit sequence; a read-only one to
one run at its snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from seachange.engine.buffer.predicate import Predicate, compile_predicate
from seachange.engine.replica.conflicts import ConflictMap
from seachange.model.condition import Condition
from seachange.model.ids import IndexId, KeyHash, Seq
from seachange.model.schema.descriptor import Table

# A table that is read under more conditions than this counts as read in whole, since each written row is tested against
# each of them.
_PREDICATES_MAX = 256


@dataclass(slots=True)
class TableReads:
    """The conditions under which a table was read, and the version of the table at that time."""

    table: Table
    predicates: dict[tuple[Condition, ...], Predicate] = field(default_factory=dict)


@dataclass(slots=True)
class ReadSet:
    """Reads by primary index. `keyed`: tables of which rows were read by key; `scanned`: tables that were read in
    whole. `names`: hashes of names, and of views, whose text is part of the meaning of their name."""

    names: set[KeyHash] = field(default_factory=set)
    keys: set[KeyHash] = field(default_factory=set)
    keyed: set[IndexId] = field(default_factory=set)
    scanned: set[IndexId] = field(default_factory=set)
    conditional: dict[IndexId, TableReads] = field(default_factory=dict)
    _is_paused: bool = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What is read decides nothing that a client sees."""
        before, self._is_paused = self._is_paused, True
        try:
            yield
        finally:
            self._is_paused = before

    @property
    def indexes(self) -> set[IndexId]:
        """The primary index of every table that was read."""
        return self.keyed | self.scanned | self.conditional.keys()

    def add_keys(self, index_id: IndexId, keys: Iterable[KeyHash]) -> None:
        if self._is_paused:
            return
        self.keyed.add(index_id)
        self.keys.update(keys)

    def add_scan(self, table: Table, conditions: Sequence[Condition] = ()) -> None:
        index_id = table.primary.id
        if index_id in self.scanned or self._is_paused:
            return
        reads = self.conditional.setdefault(index_id, TableReads(table))
        wanted = tuple(conditions)
        if wanted and wanted not in reads.predicates:
            reads.predicates[wanted] = compile_predicate(table.columns, wanted)
        # A transaction that changes a table reads it in two versions; the whole table then counts as read.
        if not wanted or reads.table is not table or len(reads.predicates) > _PREDICATES_MAX:
            del self.conditional[index_id]
            self.scanned.add(index_id)

    def find_conflict(self, conflicts: ConflictMap, snapshot: Seq) -> Seq | None:
        """The sequence of a commit above `snapshot` that wrote to these keys or whole tables."""
        scanned = conflicts.newest_touching(self.scanned)
        if scanned > snapshot:
            return scanned
        # A bulk commit lists no keys, so it conflicts with every read by key of its tables.
        for seq, segments in conflicts.bulk_since(snapshot, self.keyed):
            if any(segment.index_id in self.keyed for segment in segments):
                return seq
        return conflicts.find({}, dict.fromkeys(self.keys | self.names, snapshot))
