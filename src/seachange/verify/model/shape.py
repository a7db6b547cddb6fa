"""The model of rows' view of a program: the indexes and constraints over one column, by number, and what each version
allows a writer and a reader to do with them, all from the table of states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

from seachange.model.change import elements
from seachange.model.change.elements import AnyIndex, Element
from seachange.model.ids import ColumnId, IndexId, TableId
from seachange.model.states import BEHAVIOUR, Behaviour, Checking, State
from seachange.verify.model.program import Program

# Replaces the number of a primary index that exists in every version: the rows themselves.
ROWS = -2


class IndexKind(IntEnum):
    """What identifies the entries of an index: the row, its value, or both."""

    PRIMARY = 0
    PRIMARY_BY_VALUE = 1
    PLAIN = 2
    UNIQUE = 3


RowRule = elements.CheckConstraint | elements.ColumnNotNull | elements.ConvertedColumn


@dataclass(frozen=True, slots=True)
class RowsVersion:
    """One version. `primary` is the index through which rows are found; a row that breaks a rule is rejected, or
    recorded. The others are numbers of indexes."""

    reads: tuple[int, ...]
    removes: tuple[int, ...]
    writes: tuple[int, ...]
    checks: tuple[int, ...]
    primary: int
    refuses: bool
    records: bool
    # Whether readers may assume that no row breaks a rule.
    promises: bool


@dataclass(frozen=True, slots=True)
class ModelShape:
    table_id: TableId
    indexes: tuple[AnyIndex, ...]
    kinds: tuple[IndexKind, ...]
    rules: tuple[RowRule, ...]
    views: tuple[RowsVersion, ...]
    # The indexes over values that a conversion may not have for a row.
    converted: frozenset[int] = frozenset()

    def number(self, index_id: IndexId) -> int | None:
        return next((n for n, index in enumerate(self.indexes) if index.index_id == index_id), None)

    @property
    def unique(self) -> tuple[int, ...]:
        return tuple(n for n, kind in enumerate(self.kinds) if kind is IndexKind.UNIQUE)


def shape_of(program: Program, table: str | TableId, column: str | frozenset[ColumnId]) -> ModelShape:
    """Table and column by name or by id; the values of several columns are one value of the model."""
    everything = program.elements
    table_id = _table_named(everything, table) if isinstance(table, str) else table
    names = [e for e in everything if isinstance(e, elements.ColumnName) and e.table_id == table_id]
    columns = {e.column_id for e in names if e.name == column} if isinstance(column, str) else set(column)
    # Rows are identified by their old values, not by the converted ones.
    replaced = {e.in_place_of for e in everything if isinstance(e, elements.ConvertedColumn) and e.table_id == table_id}
    indexes: list[AnyIndex] = []
    kinds: list[IndexKind] = []
    rules: list[RowRule] = []
    for element in everything:
        if getattr(element, "table_id", None) != table_id:
            continue
        match element:
            case elements.PrimaryIndex():
                if all(program.state(n, element) is State.PUBLIC for n in range(len(program.versions))):
                    continue
                indexes.append(element)
                kinds.append(
                    IndexKind.PRIMARY_BY_VALUE if set(element.key) <= columns - replaced else IndexKind.PRIMARY
                )
            case elements.SecondaryIndex() | elements.UniqueIndex() if set(element.key) <= columns:
                indexes.append(element)
                kinds.append(IndexKind.UNIQUE if isinstance(element, elements.UniqueIndex) else IndexKind.PLAIN)
            case elements.CheckConstraint() if set(element.column_ids) & columns:
                rules.append(element)
            case elements.ColumnNotNull() | elements.ConvertedColumn() if element.column_id in columns - replaced:
                rules.append(element)
    made = {e.column_id for e in everything if isinstance(e, elements.ConvertedColumn) and e.table_id == table_id}
    converted = frozenset(number for number, index in enumerate(indexes) if made & set(index.key))
    shape = ModelShape(table_id, tuple(indexes), tuple(kinds), tuple(rules), (), converted)
    views = tuple(_view(shape, program, number) for number in range(len(program.versions)))
    return replace(shape, views=views)


def _table_named(everything: list[Element], name: str) -> TableId:
    return next(
        TableId(e.descriptor_id) for e in everything if isinstance(e, elements.NamespaceElement) and e.name == name
    )


def _view(shape: ModelShape, program: Program, version: int) -> RowsVersion:
    def numbers(field: str) -> tuple[int, ...]:
        return tuple(
            n for n, index in enumerate(shape.indexes) if getattr(BEHAVIOUR[program.state(version, index)], field)
        )

    states = [BEHAVIOUR[program.state(version, index)] for index in shape.indexes]
    rules = [BEHAVIOUR[program.state(version, rule)] for rule in shape.rules]
    return RowsVersion(
        reads=numbers("reads"),
        removes=numbers("removes"),
        writes=numbers("writes"),
        checks=tuple(
            n for n, b in enumerate(states) if b.checks is Checking.REFUSED and shape.kinds[n] is not IndexKind.PLAIN
        ),
        primary=_primary(shape, states),
        refuses=any(b.checks is Checking.REFUSED for b in rules),
        records=any(b.checks is Checking.RECORDED for b in rules),
        promises=any(b.reads for b in rules),
    )


def _primary(shape: ModelShape, states: list[Behaviour]) -> int:
    numbers = [n for n, kind in enumerate(shape.kinds) if kind <= IndexKind.PRIMARY_BY_VALUE]
    if not numbers:
        return ROWS
    return next((n for n in numbers if states[n].reads), -1)
