"""What a SERIALIZABLE transaction has read: rows by key, rows that meet conditions, tables by scan, and names.

At commit nothing of it may have been written since the transaction's snapshot. The transaction then stands for one that
ran alone at its own sequence number, and the log is the serial order: so a transaction that writes nothing needs no
check at all, it stands where its snapshot is, between two commits that each are as if alone.

**Invariant:** a scan stands for every row that meets its conditions, and so for rows that are not there yet, and for
rows that met them at the snapshot; without conditions for its whole table.

**Invariant:** a name that a statement has resolved, or found not to be there, means the same when the transaction
commits. A change of what it means by others since the snapshot is a conflict.

**Invariant:** a transaction that writes is equivalent to one run serially at its commit sequence; a read-only one to
one run at its snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from seachange.engine.buffer.predicate import Predicate, compile_predicate
from seachange.engine.replica.conflicts import ConflictMap
from seachange.model.condition import Condition
from seachange.model.ids import IndexId, KeyHash, Seq
from seachange.model.schema.descriptor import Table

# A table that is read under more conditions than this counts as read in whole: each is asked of every row written.
_PREDICATES_MAX = 256


@dataclass(slots=True)
class TableReads:
    """The conditions under which a table was read, in the version in which it was."""

    table: Table
    predicates: dict[tuple[Condition, ...], Predicate] = field(default_factory=dict)


@dataclass(slots=True)
class ReadSet:
    """By primary index. `keyed`: tables of which rows were read by key; `scanned`: those that were read in whole.
    `names`: the hashes of names, and of views, whose text is part of what their name means."""

    names: set[KeyHash] = field(default_factory=set)
    keys: set[KeyHash] = field(default_factory=set)
    keyed: set[IndexId] = field(default_factory=set)
    scanned: set[IndexId] = field(default_factory=set)
    conditional: dict[IndexId, TableReads] = field(default_factory=dict)

    @property
    def indexes(self) -> set[IndexId]:
        """The primary index of every table that was read."""
        return self.keyed | self.scanned | self.conditional.keys()

    def add_keys(self, index_id: IndexId, keys: Iterable[KeyHash]) -> None:
        self.keyed.add(index_id)
        self.keys.update(keys)

    def add_scan(self, table: Table, conditions: Sequence[Condition] = ()) -> None:
        index_id = table.primary.id
        if index_id in self.scanned:
            return
        reads = self.conditional.setdefault(index_id, TableReads(table))
        wanted = tuple(conditions)
        if wanted and wanted not in reads.predicates:
            reads.predicates[wanted] = compile_predicate(table.columns, wanted)
        # A transaction that changes a table's shape asks in two versions of it: not worth telling apart.
        if not wanted or reads.table is not table or len(reads.predicates) > _PREDICATES_MAX:
            del self.conditional[index_id]
            self.scanned.add(index_id)

    def find_conflict(self, conflicts: ConflictMap, snapshot: Seq) -> Seq | None:
        """The sequence of a commit above `snapshot` that wrote something of it, as far as keys and whole tables go."""
        scanned = conflicts.newest_touching(self.scanned)
        if scanned > snapshot:
            return scanned
        # A bulk commit lists no keys: it is taken to have written what was read, or looked for.
        for seq, segments in conflicts.bulk_since(snapshot, self.keyed):
            if any(segment.index_id in self.keyed for segment in segments):
                return seq
        return conflicts.find({}, dict.fromkeys(self.keys | self.names, snapshot))
