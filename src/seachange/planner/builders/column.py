"""ADD, DROP and RENAME COLUMN; defaults and NOT NULL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from seachange import errors
from seachange.model import statements
from seachange.model.change import elements
from seachange.model.change.targets import Goal
from seachange.model.ids import ColumnId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.defaults import constant_value
from seachange.model.schema.expression import Expression
from seachange.model.states import State
from seachange.planner.builders import drops
from seachange.planner.builders.constraint import add_key, add_rule
from seachange.planner.builders.counterpart import bind_up
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.expression import bind_default, bind_generated, refuse_computed_enum
from seachange.planner.builders.foreign_key import keys_on, refuse_unseen_key
from seachange.planner.builders.identity import add_identity_parts, add_serial
from seachange.planner.builders.lookup import find_type
from seachange.planner.builders.primary_key import drop_primary_key, refuse_second_key
from seachange.planner.builders.rebuild import rebuild_primary
from seachange.planner.elements.registry import COLUMN_SETTINGS
from seachange.values.canonical import format_canonical
from seachange.values.types import TEXT, SqlType, array_of


def add_column(draft: Draft, table_id: TableId, action: statements.AddColumn) -> None:
    definition = action.column
    if draft.select(elements.ColumnName, table_id=table_id, name=definition.name):
        if not action.if_not_exists:
            raise errors.DuplicateColumn(name=definition.name)
        relation = draft.name_of(table_id)
        draft.notices.append(f'column "{definition.name}" of relation "{relation}" already exists, skipping')
        return
    check_case(draft, table_id, definition.name)
    if any(key.primary for key in action.keys):
        refuse_second_key(draft, table_id)
    column_id = define_column(draft, table_id, definition)
    for key in action.keys:
        add_key(draft, table_id, key)
    for rule in action.rules:
        add_rule(draft, table_id, rule)
    column = draft.column_element(table_id, column_id)
    if isinstance(column, elements.ColumnElement) and column.frozen is None and not is_computed(definition):
        for reference in keys_on(draft, table_id, [column_id]):
            draft.implied[reference] = "rows without the column refer to nothing"


# Columns that every table has in PostgreSQL.
_SYSTEM_COLUMNS: Final = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"})


def check_case(draft: Draft, table_id: TableId, name: str) -> None:
    """Names are told apart without regard to case, since that is how DuckDB reads them."""
    if name in _SYSTEM_COLUMNS:
        raise errors.SystemColumnName(name=name)
    for other in draft.select(elements.ColumnName, table_id=table_id, folded=name.lower()):
        if other.name != name:
            raise errors.FeatureNotSupported(
                feature=f'columns "{other.name}" and "{name}", which differ only in case,',
                instead="Names of columns are compared without regard to case: choose another.",
            )


def define_column(
    draft: Draft, table_id: TableId, definition: statements.ColumnDefinition, has_all: bool = True
) -> ColumnId:
    """Adds a column with all its parts; where its values are in no file, the rows are rewritten. Unless the table
    `has_all` columns that its expression may use, `define_generated` adds the expression later."""
    column_id = draft.take_column_id(table_id)
    type_ = resolve_type(draft, definition.type)
    text, sequences = bind_default(draft, type_, definition.default)
    frozen = _frozen(draft, type_, definition, text) if not draft.is_new(table_id) else None
    computed = is_computed(definition)
    if definition.up is not None:
        draft.add(computed_column(draft, table_id, column_id, bind_up(draft, table_id, definition)))
    else:
        draft.add(elements.ColumnElement(table_id, column_id, frozen=frozen))
    draft.add(elements.ColumnName(table_id, column_id, definition.name))
    draft.add(elements.ColumnType(table_id, column_id, type_))
    if text is not None:
        draft.add(elements.ColumnDefault(table_id, column_id, text, sequences))
    if not definition.nullable or definition.identity is not None or definition.serial:
        required = elements.ColumnNotNull(table_id, column_id)
        if frozen is not None:
            draft.implied[required] = "rows without the column read as its default"
        elif not computed and not draft.has_no_rows(table_id):
            raise errors.NotNullViolation(column=definition.name, relation=draft.name_of(table_id))
        draft.add(required)
    if definition.generated is not None and has_all:
        define_generated(draft, table_id, column_id, definition.generated)
    for setting, value in definition.settings:
        draft.add(COLUMN_SETTINGS[setting](table_id, column_id, value))
    if definition.identity is not None:
        add_identity_parts(draft, table_id, column_id, definition.identity)
    if definition.serial:
        add_serial(draft, table_id, column_id)
    if computed:
        rebuild_primary(draft, table_id, column_id)
        if definition.generated is None and definition.up is None and not draft.has_no_rows(table_id):
            draft.drawn.add(table_id)
    return column_id


def define_generated(
    draft: Draft, table_id: TableId, column_id: ColumnId, expression: statements.ExpressionDefinition
) -> None:
    refuse_computed_enum(draft.column_type(table_id, column_id).type, "a generated value")
    bound = bind_generated(draft, table_id, column_id, expression)
    draft.add(elements.ColumnGenerated(table_id, column_id, bound))


def is_computed(definition: statements.ColumnDefinition) -> bool:
    """Whether each row gets a value of its own."""
    volatile = (
        isinstance(definition.default, statements.ExpressionDefinition)
        and definition.default.volatility is statements.Volatility.VOLATILE
    )
    has_own = definition.serial or definition.identity is not None
    return volatile or has_own or definition.generated is not None or definition.up is not None


def computed_column(draft: Draft, table_id: TableId, column_id: ColumnId, expression: Expression) -> elements.AnyColumn:
    """A column that rows with values of other columns have values of."""
    if draft.has_no_rows(table_id):
        return elements.ColumnElement(table_id, column_id, origin=expression)
    return elements.ConvertedColumn(table_id, column_id, expression)


def _frozen(draft: Draft, type_: SqlType, definition: statements.ColumnDefinition, text: str | None) -> str | None:
    """What rows read that were written before the column: its default as it is now."""
    if definition.up is not None:
        return None
    match definition.default:
        case statements.ConstantDefault():
            return format_canonical(type_, constant_value(type_, text))
        case statements.ExpressionDefinition() if not is_computed(definition) and text is not None:
            return draft.evaluated.get(text, text)
        case _:
            return None


def resolve_type(draft: Draft, type_: statements.ColumnType) -> SqlType:
    match type_:
        case SqlType():
            return type_
        case statements.UserType():
            found = find_type(draft, type_.name)
            if found is None:
                raise errors.UndefinedObject(kind="type", name=type_.name)
            if found.kind is not ObjectKind.TYPE:
                raise errors.FeatureNotSupported(
                    feature=f"a column of the type of the rows of {type_.name}", instead="Make columns of its columns."
                )
            enum = SqlType(TEXT.kind, enum=found.id)
            return array_of(enum) if type_.is_array else enum


def drop_column(draft: Draft, table_id: TableId, action: statements.DropColumn) -> None:
    if action.if_exists and not draft.select(elements.ColumnName, table_id=table_id, name=action.name):
        relation = draft.name_of(table_id)
        draft.notices.append(f'column "{action.name}" of relation "{relation}" does not exist, skipping')
        return
    column_id = draft.column(table_id, action.name)
    what = f"column {action.name} of table {draft.name_of(table_id)}"
    if column_id in draft.primary(table_id).key:
        drop_primary_key(draft, table_id, action.cascade, what)
    release_column(draft, table_id, column_id, action.cascade, what)
    drops.drop_column_parts(draft, table_id, column_id)
    if not draft.select(elements.ColumnName, table_id=table_id):
        raise errors.FeatureNotSupported(feature="a table without columns", instead="DROP TABLE drops it.")


def release_column(draft: Draft, table_id: TableId, column_id: ColumnId, cascade: bool, what: str) -> None:
    """As in PostgreSQL, indexes and constraints of the table go with any of their columns; what lies outside, and
    columns that are generated from it, only with CASCADE."""
    draft.load_connected(table_id)
    drops.drop_views(draft, draft.select(elements.ViewQuery, column_uses=(table_id, column_id)), cascade, what)
    for generated in draft.select(elements.ColumnGenerated, table_id=table_id, column_ids=column_id):
        if generated.virtual:
            continue
        name = draft.column_name(table_id, generated.column_id)
        drops.need_cascade(draft, cascade, what, f"column {name} of {drops.label_of(draft, table_id)}")
        drop_column(draft, table_id, statements.DropColumn(name, cascade=True))
    for owned in draft.select(elements.SequenceOwnerElement, table_id=table_id, column_id=column_id):
        _release_sequence(draft, owned, cascade, what)
    # First: one that refers to the same table does not depend on the index.
    for key in keys_on(draft, table_id, [column_id]):
        drops.drop_foreign_key(draft, key)
    for index in indexes_on(draft, table_id, column_id):
        drops.drop_index(draft, index, cascade, what)
    for check in draft.select(elements.CheckConstraint, table_id=table_id, column_ids=column_id):
        drops.drop_check(draft, check)


def _release_sequence(draft: Draft, owned: elements.SequenceOwnerElement, cascade: bool, what: str) -> None:
    """The sequence goes with the column; other columns may draw from it."""
    for default in draft.select(elements.ColumnDefault, sequence_ids=owned.sequence_id):
        if (default.table_id, default.column_id) != (owned.table_id, owned.column_id):
            other = draft.column_name(default.table_id, default.column_id)
            dependent = f"default value for column {other} of {drops.label_of(draft, default.table_id)}"
            drops.need_cascade(draft, cascade, what, dependent)
            draft.drop(default)


def indexes_on(draft: Draft, table_id: TableId, column_id: ColumnId) -> list[elements.AnyIndex]:
    """Those that store the column, directly or as a part of a key that is an expression."""
    columns = {column_id}
    for generated in draft.select(elements.ColumnGenerated, table_id=table_id, column_ids=column_id):
        columns |= {generated.column_id} if generated.virtual else set()
    found: list[tuple[elements.AnyIndex, ...]] = [
        (
            *draft.select(elements.UniqueIndex, table_id=table_id, column_ids=column),
            *draft.select(elements.SecondaryIndex, table_id=table_id, column_ids=column),
        )
        for column in sorted(columns)
    ]
    return list(dict.fromkeys(index for indexes in found for index in indexes))


def keep_as_it_is(draft: Draft, table_id: TableId, action: statements.KeepAsItIs) -> None:
    """Only whether the column is there is anybody's business."""
    if action.column is not None:
        draft.column(table_id, action.column)


def rename_column(draft: Draft, table_id: TableId, action: statements.RenameColumn) -> None:
    column_id = draft.column(table_id, action.name)
    if draft.select(elements.ColumnName, table_id=table_id, name=action.new_name):
        raise errors.DuplicateColumn(name=action.new_name)
    old = elements.ColumnName(table_id, column_id, action.name)
    if action.name.lower() != action.new_name.lower():
        check_case(draft, table_id, action.new_name)
    draft.replace(old, elements.ColumnName(table_id, column_id, action.new_name))


def set_default(draft: Draft, table_id: TableId, action: statements.SetDefault) -> None:
    column_id = draft.column(table_id, action.name)
    for kind, what in (
        (elements.ColumnGenerated, "a generated column"),
        (elements.ColumnIdentity, "an identity column"),
    ):
        if draft.select(kind, table_id=table_id, column_id=column_id):
            detail = f"is {what}, which has no default"
            raise errors.InvalidColumnChange(name=action.name, relation=draft.name_of(table_id), detail=detail)
    old = draft.only(elements.ColumnDefault, table_id=table_id, column_id=column_id)
    text, sequences = bind_default(draft, draft.column_type(table_id, column_id).type, action.default)
    is_added = draft.column_element(table_id, column_id) in draft.targets
    if text is not None:
        if is_added:
            _forget_transient_defaults(draft, table_id, column_id)
            _forget_implied(draft, table_id, column_id, action.default)
        draft.replace(old, elements.ColumnDefault(table_id, column_id, text, sequences))
    elif old is not None and old in draft.targets and is_added and not draft.is_new(table_id):
        # A writer cannot name the column while it is hidden: without a default the row would have no value.
        draft.outlive(old)
    elif old is not None:
        draft.drop(old)


def _forget_implied(draft: Draft, table_id: TableId, column_id: ColumnId, default: statements.Default | None) -> None:
    """What was known of the first default of a hidden column is not known of another, which is stored meanwhile."""
    if not isinstance(default, statements.ConstantDefault):
        draft.implied.pop(elements.ColumnNotNull(table_id, column_id), None)
    for key in keys_on(draft, table_id, [column_id]):
        if draft.implied.pop(key, None) is not None and draft.goal(key) is Goal.PUBLIC:
            refuse_unseen_key(draft, table_id, draft.index_by_id(key.parent_id, key.parent_index_id))


def _forget_transient_defaults(draft: Draft, table_id: TableId, column_id: ColumnId) -> None:
    for element, target in list(draft.targets.items()):
        match element:
            case elements.ColumnDefault(table_id=table, column_id=column) if (table, column) == (table_id, column_id):
                if target.goal is Goal.TRANSIENT:
                    del draft.targets[element]
            case _:
                pass


def set_column_setting(draft: Draft, table_id: TableId, action: statements.SetColumnSetting) -> None:
    column_id = draft.column(table_id, action.name)
    kind = COLUMN_SETTINGS[action.setting]
    old = draft.only(kind, table_id=table_id, column_id=column_id)
    if action.value is not None:
        draft.replace(old, kind(table_id, column_id, action.value))
    elif old is not None:
        draft.drop(old)


def set_parameters(draft: Draft, table_id: TableId, action: statements.SetParameters) -> None:
    for name, value in action.parameters:
        old = draft.only(elements.TableParameter, table_id=table_id, name=name)
        if value is not None:
            draft.replace(old, elements.TableParameter(table_id, name, value))
        elif old is not None:
            draft.drop(old)


def set_not_null(draft: Draft, table_id: TableId, action: statements.SetNotNull) -> None:
    column_id = draft.column(table_id, action.name)
    if draft.select(elements.ColumnNotNull, table_id=table_id, column_id=column_id):
        return
    required = elements.ColumnNotNull(table_id, column_id)
    for check in draft.select(elements.CheckConstraint, table_id=table_id, column_ids=column_id):
        # One that is not valid says nothing of the rows that are there.
        is_valid = check not in draft.targets and draft.state(check) is State.PUBLIC
        if is_valid and _says_not_null(check, column_id):
            name = draft.only(elements.ConstraintName, table_id=table_id, constraint_id=check.constraint_id)
            draft.implied[required] = f"constraint {name.name if name else ''} says so already"
    draft.add(required)


def _says_not_null(check: elements.CheckConstraint, column_id: ColumnId) -> bool:
    reference = f'"c{column_id}"'
    text = check.expression.strip().removeprefix("(").removesuffix(")")
    return text in (f"{reference} IS NOT NULL", f"NOT {reference} IS NULL")


def drop_not_null(draft: Draft, table_id: TableId, action: statements.DropNotNull) -> None:
    column_id = draft.column(table_id, action.name)
    if column_id in draft.primary(table_id).key:
        detail = f'column "{action.name}" is in a primary key'
        raise errors.InvalidTableDefinition(name=draft.name_of(table_id), detail=detail)
    if draft.select(elements.ColumnIdentity, table_id=table_id, column_id=column_id):
        detail = "is an identity column, which is never null"
        raise errors.InvalidColumnChange(name=action.name, relation=draft.name_of(table_id), detail=detail)
    for required in draft.select(elements.ColumnNotNull, table_id=table_id, column_id=column_id):
        draft.drop(required)


# The builders of what ALTER TABLE does with one column.
ACTIONS: dict[type, Callable[..., None]] = {
    statements.AddColumn: add_column,
    statements.DropColumn: drop_column,
    statements.RenameColumn: rename_column,
    statements.SetDefault: set_default,
    statements.SetColumnSetting: set_column_setting,
    statements.SetNotNull: set_not_null,
    statements.DropNotNull: drop_not_null,
    statements.KeepAsItIs: keep_as_it_is,
    statements.SetParameters: set_parameters,
}
