"""The schema as it will be when the statements so far are done, and the targets that lead there.

Builders look things up here and say what comes and what goes. What a transaction adds and takes away again leaves no
target at all.

**Invariant:** the targets are the difference between the catalog and the draft, nothing more.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from seachange import errors
from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.change.targets import Goal, Status, Target
from seachange.model.ids import ColumnId, ConstraintId, DescriptorId, IndexId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.model.schema.constraint import Check, ForeignKey
from seachange.model.schema.descriptor import Column, Table
from seachange.model.schema.objects import DEFAULT_SCHEMA, Descriptor
from seachange.model.schema.temporary import is_temporary
from seachange.model.states import State
from seachange.planner.builders.directory import Directory
from seachange.planner.graph import field_values
from seachange.planner.known_schema import KnownSchema
from seachange.planner.object_names import FoundObject
from seachange.planner.object_parts import decompose

E = TypeVar("E")

# What a descriptor at rest says of how far an element has come.
_STATUS_AT_REST: dict[State, Status] = {State.PUBLIC: Status.PUBLIC, State.ENFORCED: Status.ENFORCED}
_IN_DIRECTORY = frozenset({elements.NamespaceElement, elements.IndexName})


class Draft:
    def __init__(
        self,
        catalog: KnownSchema,
        ids: Iterator[int],
        evaluated: Mapping[str, str | None] | None = None,
    ) -> None:
        self.catalog = catalog
        self.ids = ids
        self.database = catalog.database
        # The values of stable defaults, by their text: they are evaluated once, when the column is added.
        self.evaluated = evaluated or {}
        self.statement = 0
        self.targets: dict[Element, Target] = {}
        self.notices: list[str] = []
        # What depends on what the statement drops, with that, and whether it says CASCADE.
        self.dependents: dict[tuple[str, str], bool] = {}
        # Tables that the plan takes to have no rows.
        self.empty: set[TableId] = set()
        # Tables that the change leaves without rows.
        self.emptied: set[TableId] = set()
        # Tables whose rows as of a sequence are written again.
        self.refilled: dict[TableId, int] = {}
        # Tables that come back with rows, which no session can read before the change is published.
        self.undropped: set[TableId] = set()
        # Tables whose foreign keys look their parents up in another index than before.
        self.repointed: set[TableId] = set()
        # Tables whose rows get values of their own: what a writer has drawn for one that was there must not be seen.
        self.drawn: set[TableId] = set()
        # Tables whose primary key goes, and is replaced by another of the same statement.
        self.key_goes: set[TableId] = set()
        # Elements that are met by all rows already, and why.
        self.implied: dict[Element, str] = {}
        self._states: dict[Element, State] = {}
        # Of the kinds and fields by which elements have been looked up.
        self._indexes: dict[type[Element], dict[str, dict[object, dict[Element, None]]]] = {}
        self._loaded: set[DescriptorId] = set()
        self._next: dict[tuple[DescriptorId, str], int] = {}
        self.directory = Directory(catalog.object_names())

    def again(self, catalog: KnownSchema) -> Draft:
        """Another one, of another catalog."""
        return Draft(catalog, self.ids, self.evaluated)

    # What comes and goes.

    def add(self, element: Element, goal: Goal = Goal.PUBLIC) -> None:
        earlier = self.targets.get(element)
        if earlier is not None and not earlier.adds:
            del self.targets[element]
            self._put(element, self._states_of_catalog(element))
            return
        self.targets[element] = Target(element, goal, Status.ABSENT, self.statement)
        # What is there for the duration of the change only is not there when it is done.
        if goal is not Goal.TRANSIENT:
            self._put(element, State.ENFORCED if goal is Goal.ENFORCED else State.PUBLIC)

    def drop(self, element: Element) -> None:
        earlier = self.targets.pop(element, None)
        state = self._states[element]
        if earlier is None or earlier.start is not Status.ABSENT:
            start = earlier.start if earlier is not None else _STATUS_AT_REST[state]
            self.targets[element] = Target(element, Goal.ABSENT, start, self.statement)
        self._remove(element)

    def replace(self, old: Element | None, new: Element) -> None:
        if old == new:
            return
        if old is not None:
            self.drop(old)
        self.add(new)

    def cancel(self, element: Element) -> None:
        """An element that was to come, or to be validated, is as it was before."""
        target = self.targets.pop(element)
        if target.start is not Status.ABSENT:
            self._states[element] = self._states_of_catalog(element)
        elif element in self._states:
            self._remove(element)

    def outlive(self, element: Element) -> None:
        """Takes away what this transaction adds, but only once the change is done: it is needed meanwhile."""
        self.targets[element] = replace(self.targets[element], goal=Goal.TRANSIENT)
        self._remove(element)

    def promote(self, element: Element) -> None:
        """A constraint that was not valid is validated."""
        earlier = self.targets.get(element)
        start = earlier.start if earlier is not None else _STATUS_AT_REST[self._states[element]]
        self.targets[element] = Target(element, Goal.PUBLIC, start, self.statement)
        self._states[element] = State.PUBLIC

    def amend(self, old: Element, new: Element) -> None:
        """Says more of an element that this transaction adds, of which comparisons know nothing."""
        assert old == new
        target = self.targets.pop(old)
        self.targets[new] = Target(new, target.goal, target.start, target.statement)
        self._remove(old)
        self._put(new, State.PUBLIC)

    def finish(self) -> tuple[Target, ...]:
        """All targets; indexes of tables whose rows are rewritten are built from the new rows."""
        sources = {
            target.element.table_id: target.element.index_id
            for target in self.targets.values()
            if isinstance(target.element, elements.PrimaryIndex) and target.adds
        }
        found: list[Target] = []
        for target in self.targets.values():
            element = target.element
            if (
                not isinstance(element, elements.SecondaryIndex | elements.UniqueIndex)
                or target.goal is not Goal.PUBLIC
            ):
                pass
            elif element.table_id in sources:
                target = replace(target, element=replace(element, source_id=sources[element.table_id]))
            found.append(target)
        return tuple(found)

    def _states_of_catalog(self, element: Element) -> State:
        descriptor = self.catalog.descriptors[elements.descriptor_of(element)]
        return decompose(descriptor)[element]

    # What there is.

    def state(self, element: Element) -> State:
        return self._states[element]

    def goal(self, element: Element) -> Goal:
        """Where an element that takes the place of this one shall go: a constraint that is not valid stays so."""
        return Goal.ENFORCED if self._states[element] is State.ENFORCED else Goal.PUBLIC

    def is_new(self, table_id: TableId) -> bool:
        """Whether this transaction creates the table."""
        return table_id not in self.catalog.descriptors

    def parts(self) -> dict[Element, State]:
        """Everything that there is in the database."""
        self.load_all()
        return dict(self._states)

    def has_no_rows(self, table_id: TableId) -> bool:
        """Whether nothing has to be built or validated; the plan then relies on it."""
        self.refuse_unseen_rows(table_id)
        if self.is_new(table_id) or table_id in self.emptied:
            return True
        if self.catalog.is_empty(table_id):
            self.empty.add(table_id)
            return True
        return False

    def refuse_unseen_rows(self, table_id: TableId) -> None:
        if table_id in self.undropped:
            raise errors.FeatureNotSupported(
                feature=f"changing table {self.name_of(table_id)} in the transaction that brings it back",
                instead="Commit UNDROP TABLE first.",
            )

    def select(self, kind: type[E], **fields: Any) -> list[E]:
        """The elements of a kind that agree in all of these fields, in the order in which they came."""
        buckets = [self._index_of(kind, name).get(value, {}) for name, value in fields.items()]  # type: ignore[arg-type]
        smallest = min(buckets, key=len)
        return [e for e in smallest if all(e in bucket for bucket in buckets)]  # type: ignore[misc]

    def _index_of(self, kind: type[Element], name: str) -> dict[object, dict[Element, None]]:
        indexes = self._indexes.setdefault(kind, {})
        if name not in indexes:
            index = indexes[name] = {}
            for element in [each for each in self._states if type(each) is kind]:
                for value in field_values(element, name):
                    index.setdefault(value, {})[element] = None
        return indexes[name]

    def only(self, kind: type[E], **fields: Any) -> E | None:
        found = self.select(kind, **fields)
        return found[0] if found else None

    def load(self, id_: DescriptorId) -> None:
        if id_ in self._loaded or id_ not in self.catalog.descriptors:
            return
        self._loaded.add(id_)
        descriptor = at_rest(self.catalog.descriptors[id_])
        parts = decompose(descriptor)
        self._states.update(parts)
        for element, state in parts.items():
            # The others are in no book yet.
            if type(element) in _IN_DIRECTORY or type(element) in self._indexes:
                self._put(element, state)
        if isinstance(descriptor, Table):
            for key in descriptor.foreign_keys:
                self._put(elements.ForeignKeyParent(key.parent, id_, key.id), key.state)

    def load_connected(self, *ids: DescriptorId) -> None:
        """For questions about who refers to these, and to those."""
        known = self.catalog.descriptors
        for id_ in sorted(self.catalog.connected(ids), key=lambda id_: (not isinstance(known.get(id_), Table), id_)):
            self.load(id_)

    def load_all(self) -> None:
        """For questions about who refers to what."""
        for id_ in self.catalog.descriptors:
            self.load(id_)

    def find(self, name: RelationName) -> FoundObject | None:
        for schema in self.schemas_of(name):
            found = self.directory.find(schema, name.name)
            if found is not None:
                self.load(found.id)
                return found
        return None

    def has_schema(self, schema: str) -> bool:
        always = schema == DEFAULT_SCHEMA or is_temporary(schema)
        return always or self.directory.find_space(ObjectKind.SCHEMA, schema) is not None

    def schemas_of(self, name: RelationName) -> list[str]:
        """Where a name is looked for."""
        if name.schema is not None:
            return [self.schema_of(name)]
        return [schema for schema in self.catalog.search_path if self.has_schema(schema)]

    def schema_of(self, name: RelationName) -> str:
        """Where an object of that name is created."""
        if name.schema is None:
            schemas = [schema for schema in self.schemas_of(name) if not is_temporary(schema)]
            if not schemas:
                raise errors.NoSchemaSelected()
            return schemas[0]
        if not self.has_schema(name.schema):
            raise errors.InvalidSchemaName(name=name.schema)
        return name.schema

    def table(self, name: RelationName) -> TableId:
        found = self.find(name)
        if found is None:
            raise errors.UndefinedTable(name=name)
        if found.kind is not ObjectKind.TABLE:
            raise errors.WrongObjectType(name=name, kind="table")
        return found.id

    def entry(self, id_: DescriptorId) -> elements.NamespaceElement:
        self.load(id_)
        found = self.only(elements.NamespaceElement, descriptor_id=id_)
        assert found is not None
        return found

    def name_of(self, id_: DescriptorId) -> str:
        return self.entry(id_).name

    def schema_named(self, id_: DescriptorId) -> str:
        return self.entry(id_).schema

    def relations_in(self, schema: str) -> Container[str]:
        return self.directory.names_in(schema)

    # Columns.

    def column(self, table_id: TableId, name: str) -> ColumnId:
        for found in self.select(elements.ColumnName, table_id=table_id, name=name):
            host = self.column_element(table_id, found.column_id)
            if not (isinstance(host, elements.ColumnElement) and host.hidden):
                return found.column_id
        raise errors.UndefinedColumn(name=name, relation=self.name_of(table_id))

    def column_element(self, table_id: TableId, column_id: ColumnId) -> elements.AnyColumn:
        place = {"table_id": table_id, "column_id": column_id}
        found = self.only(elements.ColumnElement, **place) or self.only(elements.ConvertedColumn, **place)
        if found is not None:
            return found
        restored = self.only(elements.RestoredColumn, **place)
        assert restored is not None
        return restored

    def column_name(self, table_id: TableId, column_id: ColumnId) -> str:
        found = self.only(elements.ColumnName, table_id=table_id, column_id=column_id)
        assert found is not None
        return found.name

    def column_type(self, table_id: TableId, column_id: ColumnId) -> elements.ColumnType:
        found = self.only(elements.ColumnType, table_id=table_id, column_id=column_id)
        assert found is not None
        return found

    def take_column_id(self, table_id: TableId) -> ColumnId:
        return ColumnId(self._take(table_id, "next_column_id"))

    def take_constraint_id(self, table_id: TableId) -> ConstraintId:
        return ConstraintId(self._take(table_id, "next_constraint_id"))

    def take_value_id(self, type_id: DescriptorId) -> int:
        return self._take(type_id, "next_value_id")

    def _take(self, id_: DescriptorId, field: str) -> int:
        """The next id that a descriptor has to give, under that field of it."""
        kept = (table for table in reversed(self.catalog.dropped) if table.id == id_)
        descriptor = self.catalog.descriptors.get(id_) or next(kept, None)
        following = getattr(descriptor, field) if descriptor is not None else 1
        taken = self._next.get((id_, field), following)
        self._next[id_, field] = taken + 1
        return int(taken)

    # Indexes.

    def primary(self, table_id: TableId) -> elements.PrimaryIndex:
        (found,) = self.select(elements.PrimaryIndex, table_id=table_id)
        return found

    def indexes(self, table_id: TableId) -> list[elements.AnyIndex]:
        return [
            *self.select(elements.PrimaryIndex, table_id=table_id),
            *self.select(elements.UniqueIndex, table_id=table_id),
            *self.select(elements.SecondaryIndex, table_id=table_id),
        ]

    def index_by_id(self, table_id: TableId, index_id: IndexId) -> elements.AnyIndex:
        self.load(table_id)
        (found,) = [index for index in self.indexes(table_id) if index.index_id == index_id]
        return found

    def index_name(self, index: elements.AnyIndex) -> elements.IndexName:
        found = self.only(elements.IndexName, table_id=index.table_id, index_id=index.index_id)
        assert found is not None
        return found

    # The books.

    def _put(self, element: Element, state: State) -> None:
        self._states[element] = state
        for name, index in self._indexes.get(type(element), {}).items():
            for value in field_values(element, name):
                index.setdefault(value, {})[element] = None
        match element:
            case elements.NamespaceElement(descriptor_id=id_):
                self._loaded.add(id_)
                self.directory.put(element)
                # A table takes its indexes with it into another schema.
                indexes = self.select(elements.IndexName, table_id=id_)
                self.directory.put_indexes(element, ((i.index_id, i.name) for i in indexes))
            case elements.IndexName():
                entry = self.only(elements.NamespaceElement, descriptor_id=element.table_id)
                if entry is not None:
                    self.directory.put_indexes(entry, [(element.index_id, element.name)])
            case _:
                pass

    def _remove(self, element: Element) -> None:
        del self._states[element]
        for name, index in self._indexes.get(type(element), {}).items():
            # A foreign key may name a column twice.
            for value in set(field_values(element, name)):
                del index[value][element]
        match element:
            case elements.NamespaceElement():
                self.directory.remove(element)
            case elements.IndexName():
                self.directory.remove_index(element)
            case _:
                pass


def at_rest(descriptor: Descriptor) -> Descriptor:
    """The descriptor without what another change is still adding."""
    if not isinstance(descriptor, Table) or _is_at_rest(descriptor):
        return descriptor
    return replace(
        descriptor,
        columns=tuple(_without_coming(c) for c in descriptor.columns if c.state is State.PUBLIC),
        secondary=tuple(i for i in descriptor.secondary if i.state is State.PUBLIC),
        next_primary=None,
        later_primaries=(),
        checks=tuple(c for c in descriptor.checks if not _is_coming(c)),
        foreign_keys=tuple(k for k in descriptor.foreign_keys if not _is_coming(k)),
    )


def _is_coming(constraint: Check | ForeignKey) -> bool:
    """Whether a change adds the constraint now, which may still fail."""
    is_late = constraint.state is State.ENFORCED and constraint.not_valid
    return not (constraint.state is State.PUBLIC or is_late)


def _is_at_rest(table: Table) -> bool:
    return (
        table.next_primary is None
        and all(c.state is State.PUBLIC and c.not_null is State.PUBLIC for c in table.columns)
        and all(i.state is State.PUBLIC for i in table.secondary)
        and not any(map(_is_coming, table.checks))
        and not any(map(_is_coming, table.foreign_keys))
    )


def _without_coming(column: Column) -> Column:
    """The column without a NOT NULL that a change adds now."""
    return column if column.not_null is State.PUBLIC else replace(column, nullable=True, not_null=State.PUBLIC)
