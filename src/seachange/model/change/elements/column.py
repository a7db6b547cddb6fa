"""Elements of columns."""

from __future__ import annotations

from dataclasses import dataclass, field

from seachange.model.ids import ColumnId, DescriptorId, TableId
from seachange.model.schema.expression import Expression
from seachange.values.types import SqlType


@dataclass(frozen=True, slots=True)
class ColumnElement:
    """`in_place_of` is the column after which it stands; without one it is the last. `origin` is what it would be
    computed from, if there were rows; `up` what rows are computed from that are written in an earlier shape."""

    table_id: TableId
    column_id: ColumnId
    hidden: bool = False
    frozen: str | None = None
    in_place_of: ColumnId | None = field(default=None, compare=False)
    origin: Expression | None = field(default=None, compare=False)
    up: Expression | None = field(default=None, compare=False)

    @property
    def column_place(self) -> tuple[TableId, ColumnId]:
        return (self.table_id, self.column_id)


@dataclass(frozen=True, slots=True)
class ConvertedColumn:
    """A column whose values are computed from others until it is public, or takes the place of column `in_place_of`.
    `up` is what rows of an earlier shape are computed from after that, if it is not the conversion."""

    table_id: TableId
    column_id: ColumnId
    conversion: Expression
    in_place_of: ColumnId | None = field(default=None, compare=False)
    up: Expression | None = field(default=None, compare=False)

    @property
    def input_ids(self) -> tuple[ColumnId, ...]:
        return self.conversion.columns

    @property
    def column_place(self) -> tuple[TableId, ColumnId]:
        return (self.table_id, self.column_id)


@dataclass(frozen=True, slots=True)
class RestoredColumn:
    """A dropped column that comes back, under its id, with the values that rows had as of `as_of`. `up` computes it for
    rows that there were not then. It stands behind column `behind`, 0: first, None: last."""

    table_id: TableId
    column_id: ColumnId
    as_of: int
    up: Expression | None = field(default=None, compare=False)
    behind: ColumnId | None = field(default=None, compare=False)
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


@dataclass(frozen=True, slots=True)
class ColumnCompression:
    table_id: TableId
    column_id: ColumnId
    method: str


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    table_id: TableId
    column_id: ColumnId
    target: int


@dataclass(frozen=True, slots=True)
class ColumnDown:
    """What computes a column that is gone, for programs that still know it."""

    table_id: TableId
    column_id: ColumnId
    expression: Expression


AnyColumn = ColumnElement | ConvertedColumn | RestoredColumn
# What comes and goes with its column, and is hidden as long as the column is.
ColumnSetting = ColumnCompression | ColumnStatistics
ColumnPart = ColumnName | ColumnType | ColumnDefault | ColumnGenerated | ColumnIdentity | ColumnSetting
ColumnTopic = AnyColumn | ColumnPart | ColumnNotNull | ColumnDown
