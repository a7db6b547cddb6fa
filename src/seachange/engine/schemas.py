"""The descriptors that a node knows, at every sequence that one of its snapshots may have.

**Invariant:** `at(S)` is the schema as of S: a transaction plans with what its snapshot sees, never with a newer cache.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from seachange.model.descriptor import PublishedDescriptor, Table
from seachange.model.ids import DescriptorId, Seq
from seachange.model.references import Reference, references_to


@dataclass(frozen=True, slots=True)
class Schema:
    """All live tables as of one sequence."""

    seq: Seq
    by_id: dict[DescriptorId, Table]
    by_name: dict[tuple[str, str], Table]
    # By the table referred to: the foreign keys that do, with their tables.
    references: dict[DescriptorId, tuple[Reference, ...]]


def schema_of(seq: Seq, tables: Iterable[Table]) -> Schema:
    by_id = {table.id: table for table in tables}
    by_name = {(table.schema, table.name): table for table in by_id.values()}
    parents = {key.parent for table in by_id.values() for key in table.foreign_keys}
    return Schema(seq, by_id, by_name, {parent: references_to(by_id.values(), parent) for parent in parents})


class SchemaHistory:
    """The schemas since the node's oldest snapshot, oldest first. Replaced as a whole, so that readers need no lock."""

    def __init__(self, first: Schema) -> None:
        self._history: tuple[Schema, ...] = (first,)

    @property
    def newest(self) -> Schema:
        return self._history[-1]

    @property
    def oldest_seq(self) -> Seq:
        return self._history[0].seq

    def at(self, snapshot: Seq) -> Schema:
        history = self._history
        return history[bisect_right(history, snapshot, key=attrgetter("seq")) - 1]

    def versions(self, table_id: DescriptorId, after: int) -> list[Table]:
        """The versions of a table above one that some snapshot knows, oldest first."""
        found = [schema.by_id[table_id] for schema in self._history if table_id in schema.by_id]
        return list({table.version: table for table in found if table.version > after}.values())

    def apply(self, seq: Seq, changes: Iterable[PublishedDescriptor]) -> None:
        tables = dict(self.newest.by_id)
        for change in changes:
            if change.body is None:
                tables.pop(change.id, None)
            else:
                tables[change.id] = change.body
        self._history = (*self._history, schema_of(seq, tables.values()))

    def forget_below(self, mark: Seq) -> None:
        keep = bisect_right(self._history, mark, key=attrgetter("seq")) - 1
        if keep > 0:
            self._history = self._history[keep:]
