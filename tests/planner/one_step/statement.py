"""DDL in one step: a pure function from a statement and the descriptors to new descriptors.

Only what moves no data is planned here. What would move data is planned for an empty table, and the plan says which
index it relies on to be empty and what to answer if it is not.

**Invariant:** column and layout ids are never reused, layouts are only ever appended, every change raises the version
by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from seachange import errors
from seachange.model.ids import IndexId, TableId
from seachange.model.relation import RelationName
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.statements.table_statements import (
    AddConstraint,
    AlterTable,
    CreateIndex,
    CreateTable,
    DdlStatement,
    DropIndex,
    DropTable,
    KeyDefinition,
)
from seachange.planner.builders.statement import order_clauses
from seachange.planner.names import choose_name
from tests.planner.one_step.alter_table import Draft, apply_action
from tests.planner.one_step.constraint import References, add_rules, new_parents
from tests.planner.one_step.create_table import build_table
from tests.planner.one_step.simple import refuse_complex

DEFAULT_SCHEMA = "public"
Tables = Mapping[tuple[str, str], Table]


@dataclass(frozen=True, slots=True)
class Change:
    """One descriptor before (None: it is created) and after (None: it is dropped)."""

    before: Table | None
    after: Table | None


@dataclass(frozen=True, slots=True)
class EmptyIndex:
    """The plan holds only while this index has no rows; otherwise `refusal` is the answer."""

    index_id: IndexId
    refusal: errors.Error


@dataclass(frozen=True, slots=True)
class Plan:
    changes: tuple[Change, ...] = ()
    relies_on: tuple[EmptyIndex, ...] = ()
    notices: tuple[str, ...] = ()


def ids_needed(statement: DdlStatement) -> int:
    """How many fresh descriptor and index ids `plan_statement` will take."""
    match refuse_complex(statement):
        case CreateTable() as statement:
            return 2 + len(statement.unique)
        case AlterTable() as statement:
            return sum(
                isinstance(a, AddConstraint) and isinstance(a.constraint, KeyDefinition) for a in statement.actions
            )
        case CreateIndex():
            return 1
        case DropTable() | DropIndex():
            return 0


def plan_statement(statement: DdlStatement, tables: Tables, ids: Iterator[int]) -> Plan:
    match refuse_complex(statement):
        case CreateTable() as statement:
            return _create_table(statement, tables, ids)
        case DropTable() as statement:
            return _drop_tables(statement, tables)
        case CreateIndex() as statement:
            return _create_index(statement, tables, ids)
        case DropIndex() as statement:
            return _drop_indexes(statement, tables)
        case AlterTable() as statement:
            return _alter_table(statement, tables, ids)


def _resolve(name: RelationName) -> tuple[str, str]:
    schema = name.schema or DEFAULT_SCHEMA
    if schema != DEFAULT_SCHEMA:
        raise errors.InvalidSchemaName(name=schema)
    return schema, name.name


def _relation_names(tables: Tables) -> set[str]:
    """Tables and indexes share one space of names."""
    return {t.name for t in tables.values()} | {i.name for t in tables.values() for i in t.indexes}


def _skipping(name: str) -> str:
    return f'relation "{name}" already exists, skipping'


def _absent(kind: str, name: object) -> str:
    return f'{kind} "{name}" does not exist, skipping'


def _create_table(statement: CreateTable, tables: Tables, ids: Iterator[int]) -> Plan:
    schema, name = _resolve(statement.table)
    taken = _relation_names(tables)
    if name in taken:
        if statement.if_not_exists:
            return Plan(notices=(_skipping(name),))
        raise errors.DuplicateTable(name=name)
    table = add_rules(build_table(statement, schema, taken, ids), statement.rules, tables)
    return Plan((Change(None, table), *_touched_parents(None, table, tables)))


def _touched_parents(before: Table | None, after: Table, tables: Tables) -> list[Change]:
    """A table that begins to be referred to gets a version of its own: a session that alters or drops it at the
    same time meets this change."""
    by_id = {table.id: table for table in tables.values()}
    parents = [by_id[parent] for parent in new_parents(before, after)]
    return [Change(parent, replace(parent, version=parent.version + 1)) for parent in parents]


def _drop_tables(statement: DropTable, tables: Tables) -> Plan:
    changes: dict[tuple[str, str], Change] = {}
    notices: list[str] = []
    for name in statement.tables:
        key = _resolve(name)
        table = tables.get(key)
        if table is not None:
            changes[key] = Change(table, None)
        elif statement.if_exists:
            notices.append(_absent("table", name))
        else:
            raise errors.UndefinedTable(name=name)
    gone = [change.before for change in changes.values() if change.before is not None]
    references = References(tables.values(), statement.cascade, except_for=[table.id for table in gone])
    for table in gone:
        references.release_table(table)
    return Plan((*changes.values(), *_released(references.changed, tables)), (), tuple(notices))


def _released(changed: Mapping[TableId, Table], tables: Tables) -> list[Change]:
    by_id = {table.id: table for table in tables.values()}
    return [Change(by_id[id_], after) for id_, after in changed.items()]


def _existing(name: RelationName, tables: Tables) -> Table:
    table = tables.get(_resolve(name))
    if table is None:
        raise errors.UndefinedTable(name=name)
    return table


def _create_index(statement: CreateIndex, tables: Tables, ids: Iterator[int]) -> Plan:
    table = _existing(statement.table, tables)
    taken = _relation_names(tables)
    if statement.name in taken:
        if statement.if_not_exists:
            return Plan(notices=(_skipping(str(statement.name)),))
        raise errors.DuplicateTable(name=statement.name)
    names = [column for column in statement.columns if isinstance(column, str)]
    columns = [_column(table, name) for name in names]
    include = [_column(table, name) for name in statement.include]
    name = statement.name or choose_name(table.name, [*names, *statement.include], "idx", taken)
    index = Index(
        IndexId(next(ids)),
        name,
        tuple(c.id for c in columns),
        statement.unique,
        tuple(c.id for c in include),
        nulls_distinct=statement.nulls_distinct,
    )
    after = replace(table, version=table.version + 1, secondary=(*table.secondary, index))
    return Plan((Change(table, after),), (_empty(table, "CREATE INDEX on a table that has rows"),))


def _column(table: Table, name: str) -> Column:
    column = table.column_by_name.get(name)
    if column is None:
        raise errors.UndefinedColumn(name=name, relation=table.name)
    return column


def _empty(table: Table, feature: str) -> EmptyIndex:
    refusal = errors.FeatureNotSupported(feature=feature, instead="It works while the table is empty.")
    return EmptyIndex(table.primary.id, refusal)


def _drop_indexes(statement: DropIndex, tables: Tables) -> Plan:
    drafts: dict[tuple[str, str], Table] = {}
    notices: list[str] = []
    for name in statement.indexes:
        _, index_name = _resolve(name)
        found = [(k, t) for k, t in tables.items() if any(i.name == index_name for i in t.indexes)]
        if not found:
            if not statement.if_exists:
                raise errors.UndefinedObject(kind="index", name=name)
            notices.append(_absent("index", name))
            continue
        key, table = found[0]
        if table.primary.name == index_name:
            raise errors.DependentObjectsExist(what=f"index {name}", dependents=f"the primary key of {table.name}")
        for index in table.secondary:
            if index.name == index_name:
                References(tables.values(), cascade=False).release_index(table, index, f"index {name}")
        rest = tuple(i for i in drafts.get(key, table).secondary if i.name != index_name)
        drafts[key] = replace(table, version=table.version + 1, secondary=rest)
    return Plan(
        tuple(Change(tables[key], after) for key, after in drafts.items()),
        tuple(_empty(tables[key], "DROP INDEX on a table that has rows") for key in drafts),
        tuple(notices),
    )


def _alter_table(statement: AlterTable, tables: Tables, ids: Iterator[int]) -> Plan:
    table = tables.get(_resolve(statement.table))
    if table is None:
        if statement.if_exists:
            return Plan(notices=(_absent("relation", statement.table),))
        raise errors.UndefinedTable(name=statement.table)
    draft = Draft(table, _relation_names(tables), tables, ids)
    for action in order_clauses(statement.actions):
        apply_action(draft, action)
    relies_on = tuple(EmptyIndex(table.primary.id, refusal) for refusal in draft.refusals)
    after = draft.finish()
    if after is None:
        return Plan((), relies_on, tuple(draft.notices))
    changes = [Change(table, after), *_touched_parents(table, after, tables), *_released(draft.others, tables)]
    return Plan(tuple(changes), relies_on, tuple(draft.notices))
