"""Descriptors as a transaction sees them: those of its snapshot, with its own changes.

**Invariant:** every statement plans with the schema of its snapshot, overlaid with the transaction's own changes. At
READ COMMITTED a table that the transaction has used before is shown in the shape of then (`shapes.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from seachange import errors
from seachange.engine.buffer.current_statement import CurrentStatement
from seachange.engine.buffer.moments import read_moment
from seachange.engine.buffer.pending_schema import PendingSchema
from seachange.engine.buffer.read_set import ReadSet
from seachange.engine.buffer.shapes import Shapes
from seachange.engine.buffer.snapshot import TransactionSnapshot
from seachange.engine.replica.contents import Contents, Relation
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.schema_history import SchemaVersion
from seachange.model.change_history import PublishedChange
from seachange.model.ids import DescriptorId, Seq, TableId
from seachange.model.isolation import Isolation
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import DEFAULT_SCHEMA, UNPLANNED, Descriptor, Schema, View
from seachange.model.schema.references import Reference, references_to
from seachange.model.schema.temporary import OWN_SCHEMA
from seachange.planner.known_schema import PastChange
from seachange.planner.object_names import ObjectNames
from seachange.planner.object_users import ObjectUsers
from seachange.storage.keys import change_hash, name_hash


@dataclass(frozen=True, slots=True)
class SchemaView:
    """`NamePort` and `SchemaPort`."""

    epoch: EpochState
    isolation: Isolation
    snapshot: TransactionSnapshot
    pending: PendingSchema
    statement: CurrentStatement
    shapes: Shapes
    read_set: ReadSet

    @property
    def _whole(self) -> SchemaVersion:
        return self.epoch.schema(self.snapshot.seq)

    @property
    def _seen(self) -> Contents:
        """What there is in the database that the statement is about."""
        return self.pending.overlay(self._whole.within(self.statement.session.database))

    # By name.

    def relation(self, schema: str | None, name: str) -> Relation:
        seen = self._seen
        if schema == OWN_SCHEMA:
            schema = self.statement.temporary_schema or OWN_SCHEMA
        for each in self.statement.search_path if schema is None else (schema,):
            found = seen.relations.get((each, name))
            self.note_name(each, name)
            if isinstance(found, View):
                self._note_view(found)
            if found is not None:
                if isinstance(found, Table):
                    self._note_table(found)
                return found
        raise errors.UndefinedTable(name=f"{schema}.{name}" if schema else name)

    def _note_table(self, found: Table) -> None:
        if self.pending.changes(found):
            self.shapes.check(found.id, self.snapshot.seq)
        else:
            self.shapes.name(found, self.snapshot.seq)

    def table(self, schema: str | None, name: str) -> Table:
        found = self.relation(schema, name)
        if not isinstance(found, Table):
            raise errors.WrongObjectType(name=name, kind="table")
        return found

    def note_name(self, schema: str, name: str) -> None:
        """What the name of a relation or type means is something read, also that it means nothing."""
        if self.isolation is Isolation.SERIALIZABLE:
            self.read_set.names.add(name_hash(self.statement.session.database, schema, name))

    def _note_view(self, view: View) -> None:
        if self.isolation is Isolation.SERIALIZABLE:
            self.read_set.names.add(change_hash(view.id))

    @property
    def current_schema(self) -> str | None:
        return next((n for n in self.statement.search_path if n == DEFAULT_SCHEMA or self.find_schema(n)), None)

    def find_schema(self, name: str) -> Schema | None:
        return self._seen.schemas.get(name)

    # All of them.

    def tables(self) -> tuple[Table, ...]:
        return tuple(self._seen.by_id.values())

    def objects(self) -> tuple[Descriptor, ...]:
        return tuple(self._seen.objects.values())

    def every_table(self) -> tuple[Table, ...]:
        return self.pending.tables(self._whole)

    def every_object(self) -> tuple[Descriptor, ...]:
        return self.pending.objects(self._whole)

    @property
    def planned(self) -> tuple[Mapping[DescriptorId, Descriptor], ObjectNames, ObjectUsers]:
        seen = self._seen
        return (seen.planned, *seen.links)

    def dropped_objects(self) -> tuple[Descriptor, ...]:
        bodies = ((d.body, d.version) for d in self.epoch.catalog.dropped() if not isinstance(d.body, UNPLANNED))
        kept = [replace(body, version=version) for body, version in bodies]
        return (*kept, *self.pending.dropped())

    def past_changes(self, first: int) -> tuple[PastChange, ...]:
        database = self.statement.session.database
        changes = [c for c in self.epoch.catalog.changes() if c.id >= first]
        if not changes or changes[0].id != first:
            return ()
        return tuple(self._past(c) for c in changes if c.record.planned[0].database == database)

    def _past(self, change: PublishedChange) -> PastChange:
        first, record = change.record.after or change.id - 1, change.record
        before, after = self.epoch.schema(Seq(first)), self.epoch.schema(change.id)
        versions = tuple(
            (before.find(o.id) if o.before else None, after.find(o.id) if o.after else None) for o in record.objects
        )
        is_unknown = record.is_double and not record.after
        refills = any(planned.refills for planned in record.planned)
        emptied = frozenset(table.id for pair in versions if (table := self._emptied(change, *pair)) is not None)
        return PastChange(change.id, record.statement, versions, record.is_double, is_unknown, emptied, refills)

    def _emptied(self, change: PublishedChange, before: Descriptor | None, after: Descriptor | None) -> Table | None:
        """The table, if its rows went with the change. A change that has rewritten them is that of a job."""
        if not isinstance(before, Table) or not isinstance(after, Table) or before.primary.id == after.primary.id:
            return None
        if not self._has_rows(before, change.id - 1) or (change.record.jobs and self._has_rows(after, change.id)):
            return None
        return after

    def _has_rows(self, table: Table, at: int) -> bool:
        contents = self.epoch.catalog.index_contents(self.epoch.epoch, table.primary.id, Seq(at))
        return bool(contents.deltas) or bool(contents.generation is not None and contents.generation.members)

    def schema_as_of(self, moment: str | None) -> tuple[Seq, tuple[Table, ...]]:
        if moment is None:
            return self.snapshot.seq, self.tables()
        found = read_moment(moment, self.epoch)
        try:
            tables = self.epoch.schema(found).within(self.statement.session.database).by_id
        except errors.SnapshotTooOld as lost:
            raise errors.LayoutTooOld(value=moment) from lost
        return found, tuple(tables.values())

    @property
    def has_enums(self) -> bool:
        return bool(self._seen.enums)

    # By id.

    def table_by_id(self, table_id: TableId) -> Table | None:
        return self.pending.find_by_id(table_id, self._whole)

    def object_by_id(self, id_: DescriptorId) -> Descriptor | None:
        return self.pending.find_object(id_, self._whole)

    def references_to(self, table: Table) -> tuple[Reference, ...]:
        if not self.pending:
            return self._whole.references.get(table.id, ())
        children = sorted({*self._whole.children.get(table.id, ()), *self.pending.ids})
        tables = (self.pending.find_by_id(id_, self._whole) for id_ in children)
        return references_to((child for child in tables if child is not None), table)
