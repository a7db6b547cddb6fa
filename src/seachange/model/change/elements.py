"""Elements: the smallest facts that a schema is made of, and the unit of every change.

An element never changes; what looks like a change (a rename, a new default) is one element that goes and another that
comes. It names what it belongs to and what it uses by id, under field names that are the same in every class, so that
rules can join on them. Fields that only a plan knows take no part in comparisons: an element read back from a
descriptor equals the one that was planned.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from seachange.model.ids import ColumnId, ConstraintId, DescriptorId, IndexId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.constraint import Action
from seachange.model.schema.expression import Expression
from seachange.values.types import SqlType

# Any object.


@dataclass(frozen=True, slots=True)
class NamespaceElement:
    """The entry under which an object is found."""

    descriptor_id: DescriptorId
    kind: ObjectKind
    database: str
    schema: str
    name: str

    @property
    def schema_named(self) -> tuple[str, str] | None:
        """The schema that this entry names; None: it names something else."""
        return (self.database, self.name) if self.kind is ObjectKind.SCHEMA else None

    @property
    def schema_used(self) -> tuple[str, str] | None:
        """The schema in which this entry stands."""
        return None if self.schema_named or self.database_named else (self.database, self.schema)

    @property
    def database_named(self) -> str | None:
        return self.name if self.kind is ObjectKind.DATABASE else None

    @property
    def database_used(self) -> str | None:
        return None if self.database_named else self.database


@dataclass(frozen=True, slots=True)
class Owner:
    descriptor_id: DescriptorId
    role: str


@dataclass(frozen=True, slots=True)
class Privileges:
    """What one role may do; `grantable` is what it may pass on."""

    descriptor_id: DescriptorId
    role: str
    privileges: tuple[str, ...]
    grantable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comment:
    """On the object itself, or on the part of it with that kind and id."""

    descriptor_id: DescriptorId
    text: str
    part: tuple[ObjectKind, int] | None = None


# Objects.


@dataclass(frozen=True, slots=True)
class DatabaseElement:
    descriptor_id: DescriptorId


@dataclass(frozen=True, slots=True)
class SchemaElement:
    descriptor_id: DescriptorId


@dataclass(frozen=True, slots=True)
class TableElement:
    table_id: TableId


@dataclass(frozen=True, slots=True)
class SequenceElement:
    sequence_id: DescriptorId


@dataclass(frozen=True, slots=True)
class SequenceSettings:
    sequence_id: DescriptorId
    type: SqlType
    increment: int
    minimum: int
    maximum: int
    start: int
    cache: int
    cycle: bool


@dataclass(frozen=True, slots=True)
class SequenceOwnerElement:
    """The column with which the sequence is dropped."""

    sequence_id: DescriptorId
    table_id: TableId
    column_id: ColumnId


@dataclass(frozen=True, slots=True)
class SequenceStart:
    """The next value is `start` again: RESTART, and TRUNCATE ... RESTART IDENTITY."""

    sequence_id: DescriptorId
    start: int
    run: int


@dataclass(frozen=True, slots=True)
class EnumTypeElement:
    type_id: DescriptorId


@dataclass(frozen=True, slots=True)
class EnumValue:
    """`rank` orders the values of one type; `stored` is how rows hold it, which never changes."""

    type_id: DescriptorId
    value_id: int
    rank: float
    stored: str = ""


@dataclass(frozen=True, slots=True)
class EnumLabel:
    type_id: DescriptorId
    value_id: int
    label: str


@dataclass(frozen=True, slots=True)
class ViewElement:
    view_id: DescriptorId


@dataclass(frozen=True, slots=True)
class ViewQuery:
    """`relation_ids` are those that it reads, `column_uses` the columns (table, column) among them. The text knows them
    by the names that they had: `names` are those of relations (schema, name, id), the schema empty where the text has
    none; `column_names` those of the columns. `types` are those of the view's own columns."""

    view_id: DescriptorId
    query: str
    columns: tuple[str, ...]
    relation_ids: tuple[DescriptorId, ...]
    column_uses: tuple[tuple[TableId, ColumnId], ...]
    names: tuple[tuple[str, str, DescriptorId], ...] = ()
    column_names: tuple[str, ...] = ()
    types: tuple[SqlType, ...] = ()


# Columns.


@dataclass(frozen=True, slots=True)
class ColumnElement:
    """`in_place_of` is the column after which it stands; without one it is the last. `origin` is what it would be
    computed from, if there were rows."""

    table_id: TableId
    column_id: ColumnId
    hidden: bool = False
    frozen: str | None = None
    in_place_of: ColumnId | None = field(default=None, compare=False)
    origin: Expression | None = field(default=None, compare=False)

    @property
    def column_place(self) -> tuple[TableId, ColumnId]:
        return (self.table_id, self.column_id)


@dataclass(frozen=True, slots=True)
class ConvertedColumn:
    """A column whose values are computed from the old ones until it takes the place of column `in_place_of`."""

    table_id: TableId
    column_id: ColumnId
    conversion: Expression
    in_place_of: ColumnId | None = field(default=None, compare=False)

    @property
    def column_place(self) -> tuple[TableId, ColumnId]:
        return (self.table_id, self.column_id)


@dataclass(frozen=True, slots=True)
class ColumnName:
    table_id: TableId
    column_id: ColumnId
    name: str

    @property
    def folded(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class ColumnType:
    table_id: TableId
    column_id: ColumnId
    type: SqlType

    @property
    def type_id(self) -> DescriptorId | None:
        return DescriptorId(self.type.enum) if self.type.enum else None


@dataclass(frozen=True, slots=True)
class ColumnDefault:
    table_id: TableId
    column_id: ColumnId
    expression: str
    sequence_ids: tuple[DescriptorId, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnNotNull:
    table_id: TableId
    column_id: ColumnId


@dataclass(frozen=True, slots=True)
class ColumnGenerated:
    table_id: TableId
    column_id: ColumnId
    expression: Expression
    virtual: bool = False

    @property
    def column_ids(self) -> tuple[ColumnId, ...]:
        return self.expression.columns


@dataclass(frozen=True, slots=True)
class ColumnIdentity:
    table_id: TableId
    column_id: ColumnId
    sequence_id: DescriptorId
    always: bool


# Indexes. `built`: the entries need no building, because there are none or because they were kept. `source_id` is the
# new primary index that the entries are made from; without one, the one that there is.


@dataclass(frozen=True, slots=True)
class PrimaryIndex:
    """`rebuilt_ids` are the columns whose values come into being with it, `replaces_id` the index that it takes over
    from, and `proof_id` the unique index that shows its key to be one."""

    table_id: TableId
    index_id: IndexId
    key: tuple[ColumnId, ...]
    descending: tuple[ColumnId, ...] = ()
    rebuilt_ids: tuple[ColumnId, ...] = field(default=(), compare=False)
    replaces_id: IndexId | None = field(default=None, compare=False)
    proof_id: IndexId | None = field(default=None, compare=False)
    built: bool = field(default=False, compare=False)

    @property
    def column_ids(self) -> tuple[ColumnId, ...]:
        return self.key


@dataclass(frozen=True, slots=True)
class SecondaryIndex:
    table_id: TableId
    index_id: IndexId
    key: tuple[ColumnId, ...]
    include: tuple[ColumnId, ...] = ()
    descending: tuple[ColumnId, ...] = ()
    where: Expression | None = None
    nulls_swapped: tuple[ColumnId, ...] = ()
    built: bool = field(default=False, compare=False)
    source_id: IndexId | None = field(default=None, compare=False)

    @property
    def column_ids(self) -> tuple[ColumnId, ...]:
        return _indexed(self)


@dataclass(frozen=True, slots=True)
class UniqueIndex:
    table_id: TableId
    index_id: IndexId
    key: tuple[ColumnId, ...]
    include: tuple[ColumnId, ...] = ()
    descending: tuple[ColumnId, ...] = ()
    where: Expression | None = None
    nulls_distinct: bool = True
    nulls_swapped: tuple[ColumnId, ...] = ()
    built: bool = field(default=False, compare=False)
    source_id: IndexId | None = field(default=None, compare=False)

    @property
    def column_ids(self) -> tuple[ColumnId, ...]:
        return _indexed(self)


def _indexed(index: SecondaryIndex | UniqueIndex) -> tuple[ColumnId, ...]:
    condition = index.where.columns if index.where is not None else ()
    return tuple(dict.fromkeys((*index.key, *index.include, *condition)))


@dataclass(frozen=True, slots=True)
class IndexName:
    table_id: TableId
    index_id: IndexId
    name: str


@dataclass(frozen=True, slots=True)
class KeyConstraint:
    """Makes a unique index a UNIQUE or PRIMARY KEY constraint, which bears the index's name."""

    table_id: TableId
    index_id: IndexId


@dataclass(frozen=True, slots=True)
class IndexData:
    """The files and batches of an index, from its first write until they are collected."""

    table_id: TableId
    index_id: IndexId


# Constraints.


@dataclass(frozen=True, slots=True)
class CheckConstraint:
    table_id: TableId
    constraint_id: ConstraintId
    expression: str
    column_ids: tuple[ColumnId, ...]
    not_valid: bool = False


@dataclass(frozen=True, slots=True)
class ForeignKeyElement:
    table_id: TableId
    constraint_id: ConstraintId
    column_ids: tuple[ColumnId, ...]
    parent_id: TableId
    parent_index_id: IndexId
    on_delete: Action = Action.NO_ACTION
    on_update: Action = Action.NO_ACTION
    deferrable: bool = False
    initially_deferred: bool = False
    match_full: bool = False
    not_valid: bool = False


@dataclass(frozen=True, slots=True)
class ForeignKeyParent:
    """The other end of a foreign key: what the table referred to has to know of it."""

    parent_id: TableId
    table_id: TableId
    constraint_id: ConstraintId


@dataclass(frozen=True, slots=True)
class ConstraintName:
    table_id: TableId
    constraint_id: ConstraintId
    name: str


Element = (
    NamespaceElement
    | Owner
    | Privileges
    | Comment
    | DatabaseElement
    | SchemaElement
    | TableElement
    | SequenceElement
    | SequenceSettings
    | SequenceOwnerElement
    | SequenceStart
    | EnumTypeElement
    | EnumValue
    | EnumLabel
    | ViewElement
    | ViewQuery
    | ColumnElement
    | ConvertedColumn
    | ColumnName
    | ColumnType
    | ColumnDefault
    | ColumnNotNull
    | ColumnGenerated
    | ColumnIdentity
    | PrimaryIndex
    | SecondaryIndex
    | UniqueIndex
    | IndexName
    | KeyConstraint
    | IndexData
    | CheckConstraint
    | ForeignKeyElement
    | ForeignKeyParent
    | ConstraintName
)

AnyIndex = PrimaryIndex | SecondaryIndex | UniqueIndex
Constraint = CheckConstraint | ForeignKeyElement


def descriptor_of(element: Element) -> DescriptorId:
    """The descriptor that the element is a part of, whose version rises with its states."""
    match element:
        case NamespaceElement() | Owner() | Privileges() | Comment() | DatabaseElement() | SchemaElement():
            return element.descriptor_id
        case SequenceElement() | SequenceSettings() | SequenceOwnerElement() | SequenceStart():
            return element.sequence_id
        case EnumTypeElement() | EnumValue() | EnumLabel():
            return element.type_id
        case ViewElement() | ViewQuery():
            return element.view_id
        case ForeignKeyParent():
            return element.parent_id
        case _:
            return element.table_id


def element_name(kind: type) -> str:
    """The name of an element in explanations.

    >>> element_name(TableElement), element_name(ColumnDefault)
    ('Table', 'ColumnDefault')
    """
    return kind.__name__.removesuffix("Element")
