"""CREATE and TRUNCATE TABLE; CREATE and REFRESH MATERIALIZED VIEW, without the rows of its query."""

from __future__ import annotations

from dataclasses import replace

from seachange import errors
from seachange.model.change import elements
from seachange.model.change.elements import descriptor_of
from seachange.model.change.targets import Goal
from seachange.model.ids import DescriptorId, IndexId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.temporary import is_temporary
from seachange.model.statements import CreateMaterializedView, CreateTable, KeyDefinition, RefreshView, TruncateTables
from seachange.planner.builders.column import check_case, define_column, define_generated
from seachange.planner.builders.constraint import add_rule
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.expression import check_generated
from seachange.planner.builders.index import build_key, key_columns, name_key
from seachange.planner.builders.lookup import existing, refuse_taken
from seachange.planner.builders.primary_key import require_not_null
from seachange.planner.builders.rebuild import add_index, swap_index
from seachange.planner.builders.row_id import define_row_id
from seachange.planner.builders.sequence import restart_sequence
from seachange.planner.builders.view import resolve_query


def create_table(draft: Draft, statement: CreateTable) -> None:
    _add_table(draft, statement, ObjectKind.TABLE)


def _add_table(draft: Draft, statement: CreateTable, kind: ObjectKind) -> TableId | None:
    """None if there is one already, and may be."""
    schema = draft.schema_of(statement.table)
    name = statement.table.name
    if statement.if_not_exists and name in draft.relations_in(schema):
        draft.notices.append(f'relation "{name}" already exists, skipping')
        return None
    refuse_taken(draft, kind, schema, name)
    if not statement.columns:
        raise errors.FeatureNotSupported(feature="a table without columns", instead="Give it at least one.")
    table_id = TableId(DescriptorId(next(draft.ids)))
    draft.add(elements.TableElement(table_id))
    draft.add(elements.NamespaceElement(table_id, kind, draft.database, schema, name))
    for parameter, value in statement.parameters:
        draft.add(elements.TableParameter(table_id, parameter, value))
    for definition in statement.columns:
        if draft.select(elements.ColumnName, table_id=table_id, name=definition.name):
            raise errors.DuplicateColumn(name=definition.name)
        check_case(draft, table_id, definition.name)
        define_column(draft, table_id, definition, has_all=False)
    generated = [(column.name, column.generated) for column in statement.columns if column.generated is not None]
    for column, expression in generated:
        define_generated(draft, table_id, draft.column(table_id, column), expression)
    for _, expression in generated:
        check_generated(draft, table_id, [draft.column(table_id, name) for name in expression.columns])
    _add_primary(draft, table_id, statement.primary_key)
    for key in statement.unique:
        build_key(draft, table_id, key)
    for rule in statement.rules:
        add_rule(draft, table_id, rule)
    return table_id


def _add_primary(draft: Draft, table_id: TableId, definition: KeyDefinition | None) -> None:
    if definition is not None:
        key = key_columns(draft, table_id, definition.columns)
        for column_id in key:
            require_not_null(draft, table_id, column_id)
    else:
        key = (define_row_id(draft, table_id),)
    label = name_key(draft, table_id, definition or KeyDefinition(()), "pkey")
    index = elements.PrimaryIndex(table_id, IndexId(next(draft.ids)), key)
    add_index(draft, index, label, constraint=definition is not None)


def truncate_tables(draft: Draft, statement: TruncateTables) -> None:
    """Every index gives way to an empty one."""
    tables = list(dict.fromkeys(draft.table(name) for name in statement.tables))
    draft.load_connected(*tables)
    for table_id in tables:
        for key in draft.select(elements.ForeignKeyElement, parent_id=table_id):
            if key.table_id in tables:
                continue
            if not statement.cascade:
                child = draft.name_of(key.table_id)
                raise errors.FeatureNotSupported(
                    feature=f"truncating {draft.name_of(table_id)}, to which table {child} refers,",
                    instead="TRUNCATE both in one statement, or use CASCADE.",
                )
            tables.append(key.table_id)
    for table_id in tables:
        _empty_table(draft, table_id)
        for owner in draft.select(elements.SequenceOwnerElement, table_id=table_id):
            if statement.restart_identity:
                restart_sequence(draft, owner.sequence_id)


_PROOFS = (
    elements.UniqueIndex,
    elements.IndexName,
    elements.IndexData,
    elements.CheckConstraint,
    elements.ConstraintName,
)


def _empty_table(draft: Draft, table_id: TableId) -> None:
    draft.refuse_unseen_rows(table_id)
    if draft.is_new(table_id):
        return
    draft.emptied.add(table_id)
    for element, target in list(draft.targets.items()):
        # What was to be proven of the rows is true of none.
        is_proof = target.goal is Goal.TRANSIENT and isinstance(element, _PROOFS)
        if is_proof and descriptor_of(element) == table_id:
            draft.cancel(element)
    for index in draft.indexes(table_id):
        # One that this transaction adds begins without entries.
        if index in draft.targets:
            continue
        changes: dict[str, object] = {"index_id": IndexId(next(draft.ids)), "built": True}
        if isinstance(index, elements.PrimaryIndex):
            changes["replaces_id"] = index.index_id
        successor = replace(index, **changes)  # type: ignore[arg-type]
        swap_index(draft, index, successor)


def create_materialized_view(draft: Draft, statement: CreateMaterializedView) -> None:
    view = statement.view
    table = CreateTable(view.name, statement.columns, if_not_exists=statement.if_not_exists)
    if is_temporary(draft.schema_of(view.name)):
        detail = "a materialized view cannot be temporary"
        raise errors.InvalidTableDefinition(name=view.name, detail=detail)
    table_id = _add_table(draft, table, ObjectKind.MATERIALIZED_VIEW)
    if table_id is None:
        return
    columns = tuple(column.name for column in statement.columns)
    draft.add(replace(resolve_query(draft, view), view_id=table_id, columns=columns))
    draft.add(elements.ViewRows(table_id, statement.with_data))


def refresh_view(draft: Draft, statement: RefreshView) -> None:
    found = existing(draft, ObjectKind.MATERIALIZED_VIEW, statement.name, frozenset({ObjectKind.TABLE}))
    if found.kind is not ObjectKind.MATERIALIZED_VIEW:
        raise errors.FeatureNotSupported(
            feature=f"REFRESH of {found.kind} {statement.name}", instead="Only materialized views have rows of a query."
        )
    rows = draft.only(elements.ViewRows, view_id=found.id)
    assert rows is not None
    if statement.concurrently:
        _check_concurrent(draft, statement, rows)
    _empty_table(draft, found.id)
    draft.replace(rows, replace(rows, populated=statement.with_data))


def _check_concurrent(draft: Draft, statement: RefreshView, rows: elements.ViewRows) -> None:
    if not rows.populated:
        raise errors.FeatureNotSupported(
            feature=f"CONCURRENTLY for materialized view {statement.name}, which has not been populated,",
            instead="Omit CONCURRENTLY.",
        )
    for index in draft.select(elements.UniqueIndex, table_id=rows.view_id):
        if index.where is None:
            return
    raise errors.NotInPrerequisiteState(
        detail=f'cannot refresh materialized view "{statement.name}" concurrently: '
        "create a unique index with no WHERE clause on one or more columns of it"
    )
