"""Identity and serial columns: the sequence that belongs to a column."""

from __future__ import annotations

from dataclasses import replace

from seachange import errors
from seachange.model.change import elements
from seachange.model.ids import ColumnId, DescriptorId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.model.statements import AddIdentity, DropIdentity, IdentityDefinition, SequenceOptions, SetIdentity
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.drops import drop_object
from seachange.planner.builders.expression import draw_from
from seachange.planner.builders.lookup import refuse_taken
from seachange.planner.builders.sequence import amend_settings, sequence_settings
from seachange.planner.names import choose_name
from seachange.values.types import Kind, SqlType

_INTEGERS = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)


def add_identity_parts(draft: Draft, table_id: TableId, column_id: ColumnId, identity: IdentityDefinition) -> None:
    sequence_id = _own_sequence(draft, table_id, column_id, identity.options, identity.sequence)
    draft.add(elements.ColumnIdentity(table_id, column_id, sequence_id, identity.always))


def add_serial(draft: Draft, table_id: TableId, column_id: ColumnId) -> None:
    sequence_id = _own_sequence(draft, table_id, column_id, SequenceOptions())
    draft.add(elements.ColumnDefault(table_id, column_id, draw_from(sequence_id), (sequence_id,)))


def _own_sequence(
    draft: Draft, table_id: TableId, column_id: ColumnId, options: SequenceOptions, given: RelationName | None = None
) -> DescriptorId:
    type_ = draft.column_type(table_id, column_id).type
    column = draft.column_name(table_id, column_id)
    check_identity_type(type_, column)
    id_ = DescriptorId(next(draft.ids))
    schema = draft.schema_named(table_id)
    if given is None:
        name = choose_name(draft.name_of(table_id), [column], "seq", draft.relations_in(schema))
    else:
        name = given.name
        _check_name(draft, schema, given)
    draft.add(elements.SequenceElement(id_))
    draft.add(elements.NamespaceElement(id_, ObjectKind.SEQUENCE, draft.database, schema, name))
    draft.add(sequence_settings(id_, replace(options, type=options.type or SqlType(type_.kind))))
    draft.add(elements.SequenceOwnerElement(id_, table_id, column_id))
    return id_


def _check_name(draft: Draft, schema: str, given: RelationName) -> None:
    if given.schema is not None and given.schema != schema:
        raise errors.NotInPrerequisiteState(detail="sequence must be in same schema as table it is linked to")
    refuse_taken(draft, ObjectKind.TABLE, schema, given.name)


def check_identity_type(type_: SqlType, column: str) -> None:
    if type_.kind not in _INTEGERS:
        detail = f'identity column "{column}" must be smallint, integer, or bigint'
        raise errors.InvalidParameterValue(detail=detail)


def add_identity(draft: Draft, table_id: TableId, action: AddIdentity) -> None:
    """To a column that is there: rows keep their values, new ones draw from the sequence."""
    column_id = draft.column(table_id, action.name)
    place = {"table_id": table_id, "column_id": column_id}
    name = draft.name_of(table_id)
    check_identity_type(draft.column_type(table_id, column_id).type, action.name)
    if draft.select(elements.ColumnIdentity, **place):
        raise _unfit(name, action.name, "is already an identity column")
    has_default = bool(draft.select(elements.ColumnDefault, **place))
    if has_default or bool(draft.select(elements.ColumnGenerated, **place)):
        raise _unfit(name, action.name, "already has a default value: DROP DEFAULT first")
    if not draft.select(elements.ColumnNotNull, **place):
        raise _unfit(name, action.name, "can be null: SET NOT NULL first")
    add_identity_parts(draft, table_id, column_id, action.identity)


def retype_identity(draft: Draft, table_id: TableId, column_id: ColumnId, type_: SqlType) -> None:
    """The sequence of an identity column gives what the column can hold, and no less."""
    identity = draft.only(elements.ColumnIdentity, table_id=table_id, column_id=column_id)
    if identity is not None:
        draft.load(identity.sequence_id)
        amend_settings(draft, identity.sequence_id, SequenceOptions(type=SqlType(type_.kind)))


_NO_IDENTITY = "is not an identity column"


def _unfit(relation: str, column: str, detail: str) -> errors.Error:
    return errors.NotInPrerequisiteState(detail=f'column "{column}" of relation "{relation}" {detail}')


def _existing(draft: Draft, table_id: TableId, name: str) -> elements.ColumnIdentity | None:
    column_id = draft.column(table_id, name)
    return draft.only(elements.ColumnIdentity, table_id=table_id, column_id=column_id)


def set_identity(draft: Draft, table_id: TableId, action: SetIdentity) -> None:
    identity = _existing(draft, table_id, action.name)
    if identity is None:
        raise _unfit(draft.name_of(table_id), action.name, _NO_IDENTITY)
    if action.always is not None:
        draft.replace(identity, replace(identity, always=action.always))
    draft.load(identity.sequence_id)
    amend_settings(draft, identity.sequence_id, action.options)


def drop_identity(draft: Draft, table_id: TableId, action: DropIdentity) -> None:
    identity = _existing(draft, table_id, action.name)
    if identity is None:
        if not action.if_exists:
            raise _unfit(draft.name_of(table_id), action.name, _NO_IDENTITY)
        draft.notices.append(f'column "{action.name}" {_NO_IDENTITY}, skipping')
        return
    draft.drop(identity)
    drop_object(draft, identity.sequence_id)
