"""ALTER COLUMN TYPE, and the expression of a generated column."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from seachange import errors
from seachange.model.change import elements
from seachange.model.ids import ColumnId, DescriptorId, IndexId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.defaults import constant_default, constant_value
from seachange.model.schema.enums import quote_text, relabel
from seachange.model.schema.expression import Expression
from seachange.model.statements import AlterColumnType, DropExpression, ExpressionDefinition, SetExpression, Volatility
from seachange.planner.builders.column import indexes_on, resolve_type
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.drops import drop_column_attributes, drop_column_parts, drop_virtual_keys
from seachange.planner.builders.expression import bind_expression, bind_generated, rebind, stored_values
from seachange.planner.builders.foreign_key import keys_on, renew_foreign_key
from seachange.planner.builders.identity import check_identity_type, retype_identity
from seachange.planner.builders.primary_key import forget_proof, prove_key, rebuild_secondary
from seachange.planner.builders.rebuild import move_comment, move_constraint, rebuild_primary, swap_index
from seachange.planner.builders.view import refuse_if_read
from seachange.planner.elements.registry import COLUMN_DROP_ORDER
from seachange.values.coercion import coerce
from seachange.values.network import full_text
from seachange.values.output_format import show_held
from seachange.values.types import INTEGERS, MOMENTS, TEXT, Kind, SqlType, assignable, widens


def alter_column_type(draft: Draft, table_id: TableId, action: AlterColumnType) -> None:
    column_id = draft.column(table_id, action.name)
    old = draft.column_type(table_id, column_id)
    new = resolve_type(draft, action.type)
    if action.using in _plain_casts(action.name, new) and widens(old.type, new):
        action = replace(action, using=None)
    if old.type == new and action.using is None and action.down is None:
        return
    _check_change(draft, table_id, column_id, action, new)
    retype_identity(draft, table_id, column_id, new)
    computed = any(_computes_with(draft, index, column_id) for index in indexes_on(draft, table_id, column_id))
    generated = _generated_from(draft, table_id, column_id)
    if action.using is None and action.down is None and widens(old.type, new) and not computed and not generated:
        draft.replace(old, elements.ColumnType(table_id, column_id, new))
        _recast_default(draft, table_id, column_id, old.type, new)
        return
    if draft.column_element(table_id, column_id) in draft.targets:
        _retype_added(draft, table_id, column_id, new)
        return
    assigned = _assigned(action)
    if assigned is not None and _is_shown_otherwise(given := _type_named(draft, table_id, assigned), new):
        conversion = bind_expression(draft, table_id, _as_text(given), (assigned,))
    elif action.using is None and new.kind in _NETWORKS:
        own = bind_expression(draft, table_id, (f"SEACHANGE_{new.kind.upper()}(", ")"), (action.name,))
        conversion = Expression(own.text, (column_id,))
    elif action.using is not None:
        _refuse_changing(draft, table_id, action)
        conversion = bind_expression(draft, table_id, action.using.pieces, action.using.columns)
        if new.kind in _TEXTS and not new.enum:
            # Of whichever type its values are, they become texts as a cast shows them.
            conversion = Expression(f"SEACHANGE_TEXT({conversion.text})", conversion.columns)
    else:
        own = bind_expression(draft, table_id, ("CAST(", f" AS {new.duckdb})"), (action.name,))
        conversion = Expression(own.text, (column_id,))
    if new.enum:
        conversion = _as_stored(draft, new, conversion)
    _refuse_added(draft, table_id, conversion)
    is_cast = action.using is None or (action.using.pieces in _AS_TEXT and action.using.columns == (action.name,))
    is_wider = action.using is None and widens(old.type, new)
    distinct = is_wider or (is_cast and old.type.kind in _DISTINCT_AS_TEXT and new == TEXT)
    # An integer of another width is the same number, or none.
    keeps = is_wider or (action.using is None and {old.type.kind, new.kind} <= INTEGERS)
    new_id = replace_column(draft, table_id, column_id, new, conversion, distinct, keeps)
    for dependent in generated:
        recompute_column(draft, dependent, column_id, new_id)


def _plain_casts(name: str, new: SqlType) -> list[ExpressionDefinition]:
    """What says no more than the type does: `USING id::bigint`, as tools write it."""
    names = (new.duckdb.replace(",", ", "), *_SHORT_NAMES.get(new.kind, ()))
    casts = [("(CAST(", f" AS {each}))") for each in names]
    return [ExpressionDefinition(pieces, (name,)) for pieces in (*casts, *(_AS_TEXT if new == TEXT else ()))]


# As casts have them in expressions.
_SHORT_NAMES = {Kind.INTEGER: ("INT",)}

_NETWORKS = frozenset({Kind.INET, Kind.CIDR})
# What DuckDB's own cast to text shows in another form than PostgreSQL.
_SHOWN_OTHERWISE = frozenset({Kind.REAL, Kind.DOUBLE, Kind.NUMERIC, Kind.BYTEA, *_NETWORKS})
_TEXTS = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.NAME})


def _assigned(action: AlterColumnType) -> str | None:
    """The column that is assigned as it is; None where values are computed."""
    if action.using is None:
        return action.name
    return action.using.columns[0] if action.using.pieces == _AS_TEXT[0] else None


def _type_named(draft: Draft, table_id: TableId, name: str) -> SqlType:
    return draft.column_type(table_id, draft.column(table_id, name)).type


def _as_text(given: SqlType) -> tuple[str, str]:
    if given.kind in _NETWORKS:
        # With the mask in any case.
        return "SEACHANGE_NETWORK_FULL_TEXT(CAST(", " AS BLOB))"
    return "SEACHANGE_TEXT(", ")"


def _is_shown_otherwise(given: SqlType, new: SqlType) -> bool:
    return given.kind in _SHOWN_OTHERWISE and new.kind in _TEXTS and not new.enum


# Every value of these has one text, and no other has the same: keys stay distinct, and none is lost.
_AS_TEXT = (("(", ")"), ("(SEACHANGE_TEXT(", "))"))
_DISTINCT_AS_TEXT = frozenset({Kind.BOOLEAN, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DATE, Kind.UUID})
# Arrays of these are made value by value, which the rewriting of a table does not.
_REWRITTEN_ELEMENTS = frozenset({Kind.JSON, Kind.JSONB, Kind.CHAR, Kind.NAME, Kind.VARCHAR, *MOMENTS})


def _holds(type_: SqlType, kinds: frozenset[Kind]) -> bool:
    return type_.element is not None and type_.element.kind in kinds


def _as_stored(draft: Draft, type_: SqlType, conversion: Expression) -> Expression:
    """Labels as rows hold them; what is none has no counterpart, like any text that cannot be converted."""
    stored = stored_values(draft, DescriptorId(type_.enum))
    labels = ", ".join(quote_text(label) for label in stored)
    known = f"CAST(CAST({conversion.text} AS ENUM({labels})) AS VARCHAR)" if stored else "CAST(NULL AS VARCHAR)"
    return Expression(relabel(known, stored), conversion.columns)


def _retype_added(draft: Draft, table_id: TableId, column_id: ColumnId, new: SqlType) -> None:
    """A column that this transaction adds has no values of its own yet, unless rows are to get some."""
    if not draft.has_no_rows(table_id):
        raise errors.FeatureNotSupported(
            feature=f"changing the type of column {draft.column_name(table_id, column_id)}, which comes into being by "
            "the same transaction,",
            instead="Give it that type at once, or commit first.",
        )
    old = draft.column_type(table_id, column_id)
    draft.replace(old, elements.ColumnType(table_id, column_id, new))
    _recast_default(draft, table_id, column_id, old.type, new)


def _refuse_changing(draft: Draft, table_id: TableId, action: AlterColumnType) -> None:
    """A writer computes the value when it writes a row, and again when it deletes it: it must be the same."""
    assert action.using is not None
    volatility = action.using.volatility
    if volatility is not Volatility.IMMUTABLE and not draft.has_no_rows(table_id):
        raise errors.FeatureNotSupported(
            feature=f"converting column {action.name} of a table with rows by a function that is {volatility}",
            instead="ADD COLUMN with that as its default, DROP this column and RENAME: each row gets one value.",
        )


def _refuse_added(draft: Draft, table_id: TableId, conversion: Expression) -> None:
    """Old rows, which the new values are computed from, know nothing of what this transaction adds."""
    added = [c for c in conversion.columns if draft.column_element(table_id, c) in draft.targets]
    if added and not draft.has_no_rows(table_id):
        raise errors.FeatureNotSupported(
            feature=f"USING column {draft.column_name(table_id, added[0])}, which comes into being by the same "
            "transaction,",
            instead="Compute the value from columns that rows have, or commit first.",
        )


def _check_change(draft: Draft, table_id: TableId, column_id: ColumnId, action: AlterColumnType, new: SqlType) -> None:
    """Whether the type can be converted, and dependents of the column can follow."""
    old = draft.column_type(table_id, column_id).type
    place = {"table_id": table_id, "column_id": column_id}
    name = draft.column_name(table_id, column_id)
    if action.using is None and not assignable(old, new):
        detail = f'column "{name}" cannot be cast automatically to type {new}: say how with USING'
        raise errors.DatatypeMismatch(detail=detail)
    shown_otherwise = old.kind in (Kind.INTERVAL, Kind.ARRAY) and new.kind is not old.kind
    labelled = old != new and any(type_.enum and type_.element is not None for type_ in (old, new))
    if labelled or _holds(new, _REWRITTEN_ELEMENTS) or (action.using is None and shown_otherwise):
        raise errors.FeatureNotSupported(
            feature=f'changing column "{name}" to type {new}', instead="Add a column and fill it by UPDATE."
        )
    if action.using is not None and draft.select(elements.ColumnGenerated, **place):
        detail = "it is generated, USING cannot say what its values are: SET EXPRESSION, or DROP EXPRESSION first"
        raise errors.InvalidColumnDefinition(name=name, detail=detail)
    if draft.select(elements.ColumnDefault, **place) and not assignable(old, new):
        detail = f'default for column "{name}" cannot be cast automatically to type {new}: DROP DEFAULT first'
        raise errors.DatatypeMismatch(detail=detail)
    if draft.select(elements.ColumnIdentity, **place):
        check_identity_type(new, name)
    for index in (draft.primary(table_id), *indexes_on(draft, table_id, column_id)) if not new.is_key else ():
        if column_id in index.key:
            raise errors.FeatureNotSupported(
                feature=f"changing column {name}, the key of index {draft.index_name(index).name}, to type {new}",
                instead="Drop the index first.",
            )
    doing = f"changing the type of column {name}"
    refuse_if_read(draft, table_id, doing, column_id)
    _refuse_other_form(draft, table_id, column_id, doing, new)


def _refuse_other_form(draft: Draft, table_id: TableId, column_id: ColumnId, doing: str, new: SqlType) -> None:
    """An expression says of a column how rows hold its values, where they hold them in a form of their own."""
    types = (draft.column_type(table_id, column_id).type, new)
    if all(type_.stored == type_.duckdb and not type_.enum for type_ in types):
        return
    for generated in _generated_from(draft, table_id, column_id):
        user = f"column {draft.column_name(table_id, generated.column_id)}"
        raise errors.FeatureNotSupported(
            feature=f"{doing}, from which {user} is computed,",
            instead=f"Drop {user}, and add it again after the change.",
        )


def _generated_from(draft: Draft, table_id: TableId, column_id: ColumnId) -> list[elements.ColumnGenerated]:
    """The columns that rows are stored with; an index over an expression is rebuilt as an index."""
    found = draft.select(elements.ColumnGenerated, table_id=table_id, column_ids=column_id)
    return [generated for generated in found if not generated.virtual]


def recompute_column(draft: Draft, generated: elements.ColumnGenerated, old_id: ColumnId, new_id: ColumnId) -> None:
    """A column that was generated from another is generated from the one that has taken its place."""
    table_id, column_id = generated.table_id, generated.column_id
    if draft.column_element(table_id, column_id) not in draft.targets:
        column_id = replace_column(draft, table_id, column_id, draft.column_type(table_id, column_id).type, None)
    (moved,) = draft.select(elements.ColumnGenerated, table_id=table_id, column_id=column_id)
    draft.replace(moved, replace(moved, expression=rebind(moved.expression, old_id, new_id)))


def _computes_with(draft: Draft, index: elements.AnyIndex, column_id: ColumnId) -> bool:
    """Whether an index has keys, or leaves out rows, by expressions of a column."""
    where = None if isinstance(index, elements.PrimaryIndex) else index.where
    keys = [draft.only(elements.ColumnGenerated, table_id=index.table_id, column_id=c) for c in index.key]
    found = [where, *(key.expression for key in keys if key is not None and key.virtual)]
    return any(column_id in expression.columns for expression in found if expression is not None)


def _recast_default(draft: Draft, table_id: TableId, column_id: ColumnId, old: SqlType, new: SqlType) -> None:
    default = draft.only(elements.ColumnDefault, table_id=table_id, column_id=column_id)
    if default is not None and default.expression.startswith("'"):
        value = constant_value(old, default.expression)
        if old.enum and not new.enum:
            shown = {stored: label for label, stored in stored_values(draft, DescriptorId(old.enum)).items()}
            value = shown[value]
        elif _is_shown_otherwise(old, new):
            value = full_text(value) if old.kind in _NETWORKS else show_held(old, value)
        text = constant_default(new, coerce(new, value))
        assert text is not None
        draft.replace(default, replace(default, expression=text))


def replace_column(
    draft: Draft,
    table_id: TableId,
    old_id: ColumnId,
    type_: SqlType,
    conversion: Expression | None,
    distinct: bool = False,
    keeps: bool = False,
    up: Expression | None = None,
) -> ColumnId:
    """Another column in the place of one, its values computed from the old row; whatever used the old one uses it.
    Without a `conversion` it is generated from other columns. `distinct`: different values stay different, and each has
    one. `keeps`: keys that are made of the values stay what they are. `up` computes it for rows of the earlier shape,
    if that is not the conversion."""
    place = {"table_id": table_id, "column_id": old_id}
    name = draft.column_name(table_id, old_id)
    old_type = draft.column_type(table_id, old_id).type
    new_id = draft.take_column_id(table_id)
    moved = _parts_of(draft, table_id, old_id)
    # Before anything is changed.
    _refuse_generated_key(draft, table_id, old_id, conversion)
    if conversion is None or draft.has_no_rows(table_id):
        # No concurrent writer knows of it, or others are what it is made from.
        draft.add(elements.ColumnElement(table_id, new_id, in_place_of=old_id, origin=conversion))
    else:
        draft.add(elements.ConvertedColumn(table_id, new_id, conversion, in_place_of=old_id, up=up))
    drop_column_attributes(draft, table_id, old_id)
    draft.add(elements.ColumnName(table_id, new_id, name))
    draft.add(elements.ColumnType(table_id, new_id, type_))
    for part in moved:
        following = replace(part, column_id=new_id)
        draft.add(following)
        if isinstance(following, elements.ColumnNotNull):
            if distinct:
                draft.implied[following] = f"every value of column {name} has one of type {type_}"
            elif old_id in draft.primary(table_id).key:
                draft.implied[following] = f"index {draft.index_name(draft.primary(table_id)).name} has no row without"
    _recast_default(draft, table_id, new_id, old_type, type_)
    for owner in draft.select(elements.SequenceOwnerElement, **place):
        draft.replace(owner, replace(owner, column_id=new_id))
    rebuild_primary(draft, table_id, new_id)
    # Looked up again: foreign keys of the table to itself refer to the new primary index by now.
    for user in _users(draft, table_id, old_id):
        referring = [] if keeps else _keys_to(draft, user, old_id)
        _move_user(draft, user, old_id, new_id, distinct)
        for key in referring:
            # By now it refers to the index that has come for the new column.
            (current,) = draft.select(
                elements.ForeignKeyElement, table_id=key.table_id, constraint_id=key.constraint_id
            )
            renew_foreign_key(draft, current, current.column_ids)
    for view in draft.select(elements.ViewQuery, column_uses=(table_id, old_id)):
        uses = tuple((table_id, new_id) if use == (table_id, old_id) else use for use in view.column_uses)
        draft.replace(view, replace(view, column_uses=uses))
    move_comment(draft, table_id, (ObjectKind.COLUMN, old_id), (ObjectKind.COLUMN, new_id))
    drop_column_parts(draft, table_id, old_id)
    return new_id


def _parts_of(draft: Draft, table_id: TableId, column_id: ColumnId) -> list[Any]:
    """All but its name and type, which the new column has of its own."""
    kinds = [kind for kind in COLUMN_DROP_ORDER if kind not in (elements.ColumnType, elements.ColumnName)]
    return [part for kind in kinds for part in draft.select(kind, table_id=table_id, column_id=column_id)]


def _refuse_generated_key(draft: Draft, table_id: TableId, column_id: ColumnId, conversion: Expression | None) -> None:
    """Keys cannot be proven distinct before rows have them."""
    if conversion is None and column_id in draft.primary(table_id).key and not draft.has_no_rows(table_id):
        name = draft.column_name(table_id, column_id)
        raise errors.FeatureNotSupported(
            feature=f"recomputing primary key column {name} because a column that it is generated from changes",
            instead=f"DROP EXPRESSION of {name} first, or ALTER PRIMARY KEY USING COLUMNS.",
        )


def _users(draft: Draft, table_id: TableId, column_id: ColumnId) -> list[elements.AnyIndex | elements.Constraint]:
    draft.load_connected(table_id)
    primary = draft.primary(table_id)
    return [
        *keys_on(draft, table_id, [column_id]),
        *indexes_on(draft, table_id, column_id),
        *draft.select(elements.CheckConstraint, table_id=table_id, column_ids=column_id),
        # Last, since it looks at which of the others are new already.
        *([primary] if column_id in primary.key else []),
    ]


def _keys_to(
    draft: Draft, user: elements.AnyIndex | elements.Constraint, column_id: ColumnId
) -> list[elements.ForeignKeyElement]:
    """The foreign keys that refer to a key with the column in it."""
    if not isinstance(user, elements.UniqueIndex | elements.PrimaryIndex) or column_id not in user.key:
        return []
    return draft.select(elements.ForeignKeyElement, parent_id=user.table_id, parent_index_id=user.index_id)


def _move_user(
    draft: Draft,
    user: elements.AnyIndex | elements.Constraint,
    old: ColumnId,
    new: ColumnId,
    distinct: bool,
) -> None:
    """Elements of the old column are made for the new one, and proven again. `distinct`: its values are."""
    match user:
        case elements.UniqueIndex() | elements.SecondaryIndex():
            keys = {c: _moved_key(draft, user.table_id, c, old, new) for c in user.key}
            moved = replace(
                user,
                index_id=IndexId(next(draft.ids)),
                key=tuple(keys[c] for c in user.key),
                include=_swap(user.include, old, new),
                descending=tuple(keys[c] for c in user.descending),
                nulls_swapped=tuple(keys[c] for c in user.nulls_swapped),
                where=rebind(user.where, old, new) if user.where is not None else None,
            )
            swap_index(draft, user, moved)
            drop_virtual_keys(draft, user)
        case elements.CheckConstraint():
            bound = rebind(Expression(user.expression, user.column_ids), old, new)
            id_ = draft.take_constraint_id(user.table_id)
            moved_check = replace(user, constraint_id=id_, expression=bound.text, column_ids=bound.columns)
            move_constraint(draft, user, moved_check)
        case elements.ForeignKeyElement():
            renew_foreign_key(draft, user, _swap(user.column_ids, old, new))
        case elements.PrimaryIndex():
            replaced = user.replaces_id if user in draft.targets else user.index_id
            key = _swap(user.key, old, new)
            moved_primary = replace(
                user,
                index_id=IndexId(next(draft.ids)),
                key=key,
                descending=_swap(user.descending, old, new),
                replaces_id=replaced,
                proof_id=_proof_of(draft, user, key, distinct),
            )
            swap_index(draft, user, moved_primary)
            rebuild_secondary(draft, user.table_id)


def _proof_of(
    draft: Draft, primary: elements.PrimaryIndex, key: tuple[ColumnId, ...], distinct: bool
) -> IndexId | None:
    """What shows that a converted key is one, if its conversions do not say so themselves."""
    needs_proof = not distinct or primary.proof_id is not None
    forget_proof(draft, primary)
    return prove_key(draft, primary.table_id, key) if needs_proof else None


def _moved_key(draft: Draft, table_id: TableId, key: ColumnId, old: ColumnId, new: ColumnId) -> ColumnId:
    """A key of an index over the new column: the column itself, or another virtual one for the same expression."""
    if key == old:
        return new
    generated = draft.only(elements.ColumnGenerated, table_id=table_id, column_id=key)
    if generated is None or not generated.virtual or old not in generated.expression.columns:
        return key
    moved = replace(generated, expression=rebind(generated.expression, old, new))
    for known in draft.select(elements.ColumnGenerated, table_id=table_id):
        if known.virtual and known.expression == moved.expression:
            return known.column_id
    column_id = draft.take_column_id(table_id)
    draft.add(elements.ColumnElement(table_id, column_id, hidden=True))
    draft.add(elements.ColumnName(table_id, column_id, draft.column_name(table_id, key)))
    # Of which type its values are is for DuckDB to say, before anything is published.
    draft.add(elements.ColumnType(table_id, column_id, TEXT))
    draft.add(replace(moved, column_id=column_id))
    return column_id


def _swap(columns: tuple[ColumnId, ...], old: ColumnId, new: ColumnId) -> tuple[ColumnId, ...]:
    return tuple(new if column == old else column for column in columns)


# Generated columns.


def set_expression(draft: Draft, table_id: TableId, action: SetExpression) -> None:
    column_id = draft.column(table_id, action.name)
    old = draft.only(elements.ColumnGenerated, table_id=table_id, column_id=column_id)
    if old is None:
        raise _not_generated(draft, table_id, action.name)
    bound = bind_generated(draft, table_id, column_id, action.expression)
    if draft.column_element(table_id, column_id) in draft.targets:
        draft.replace(old, replace(old, expression=bound))
        return
    draft.load_connected(table_id)
    type_ = draft.column_type(table_id, column_id).type
    new_id = replace_column(draft, table_id, column_id, type_, bound)
    moved = draft.only(elements.ColumnGenerated, table_id=table_id, column_id=new_id)
    assert moved is not None
    draft.replace(moved, replace(moved, expression=bound))


def drop_expression(draft: Draft, table_id: TableId, action: DropExpression) -> None:
    column_id = draft.column(table_id, action.name)
    old = draft.only(elements.ColumnGenerated, table_id=table_id, column_id=column_id)
    if old is None:
        refusal = _not_generated(draft, table_id, action.name)
        if not action.if_exists:
            raise refusal
        draft.notices.append(f"{refusal}, skipping")
        return
    draft.drop(old)


def _not_generated(draft: Draft, table_id: TableId, name: str) -> errors.Error:
    relation = draft.name_of(table_id)
    return errors.NotInPrerequisiteState(detail=f'column "{name}" of relation "{relation}" is not a generated column')
