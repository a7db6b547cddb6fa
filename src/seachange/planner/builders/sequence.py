"""CREATE and ALTER SEQUENCE."""

from __future__ import annotations

from dataclasses import fields, replace

from seachange import errors
from seachange.model.change import elements
from seachange.model.ids import DescriptorId
from seachange.model.object_kind import ObjectKind
from seachange.model.statements import AlterSequence, CreateSequence, OwnedBy, SequenceOptions
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.lookup import find_object, refuse_taken
from seachange.values.types import BIGINT, Kind, SqlType

_BOUNDS: dict[Kind, int] = {Kind.SMALLINT: 2**15, Kind.INTEGER: 2**31, Kind.BIGINT: 2**63}


def create_sequence(draft: Draft, statement: CreateSequence) -> None:
    schema = draft.schema_of(statement.name)
    if statement.if_not_exists and statement.name.name in draft.relations_in(schema):
        draft.notices.append(f'relation "{statement.name}" already exists, skipping')
        return
    # As a table, it must not be created beside a type of its name, though it may be renamed to it.
    refuse_taken(draft, ObjectKind.TABLE, schema, statement.name.name)
    id_ = DescriptorId(next(draft.ids))
    draft.add(elements.SequenceElement(id_))
    draft.add(elements.NamespaceElement(id_, ObjectKind.SEQUENCE, draft.database, schema, statement.name.name))
    draft.add(sequence_settings(id_, statement.options))
    if statement.owner is not None:
        _set_owner(draft, id_, statement.owner)


def alter_sequence(draft: Draft, statement: AlterSequence) -> None:
    found = find_object(draft, ObjectKind.SEQUENCE, statement.name, statement.if_exists)
    if found is None:
        return
    amend_settings(draft, found.id, statement.options)
    if statement.owner is not None:
        _set_owner(draft, found.id, statement.owner)


def _set_owner(draft: Draft, id_: DescriptorId, owner: OwnedBy) -> None:
    old = draft.only(elements.SequenceOwnerElement, sequence_id=id_)
    draft.load_connected(id_)
    if draft.select(elements.ColumnIdentity, sequence_id=id_):
        raise errors.FeatureNotSupported(
            feature=f"another owner for sequence {draft.name_of(id_)} of an identity column",
            instead="ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY drops it.",
        )
    if owner.table is None or owner.column is None:
        if old is not None:
            draft.drop(old)
        return
    table_id = draft.table(owner.table)
    if draft.schema_named(table_id) != draft.schema_named(id_):
        raise errors.NotInPrerequisiteState(detail="a sequence must be in the schema of the table that owns it")
    draft.replace(old, elements.SequenceOwnerElement(id_, table_id, draft.column(table_id, owner.column)))


def sequence_settings(id_: DescriptorId, options: SequenceOptions) -> elements.SequenceSettings:
    """The options with PostgreSQL's defaults for what was not said."""
    type_ = options.type or BIGINT
    increment = 1 if options.increment is None else options.increment
    lowest, highest = _limits(type_, increment)
    minimum = lowest if options.minimum is None else options.minimum
    maximum = highest if options.maximum is None else options.maximum
    start = (minimum if increment > 0 else maximum) if options.start is None else options.start
    settings = elements.SequenceSettings(
        id_,
        type_,
        increment,
        minimum,
        maximum,
        start,
        1 if options.cache is None else options.cache,
        bool(options.cycle),
    )
    _check(settings)
    return settings


def _limits(type_: SqlType, increment: int) -> tuple[int, int]:
    """MINVALUE and MAXVALUE of a sequence for which neither was said."""
    bound = _bound(type_)
    return (1, bound - 1) if increment > 0 else (-bound, -1)


def _bound(type_: SqlType) -> int:
    bound = _BOUNDS.get(type_.kind)
    if bound is None:
        raise errors.InvalidParameterValue(detail="sequence type must be smallint, integer, or bigint")
    return bound


def _check(settings: elements.SequenceSettings) -> None:
    bound = _bound(settings.type)
    problems = (
        (settings.increment == 0, "INCREMENT must not be zero"),
        (settings.minimum >= settings.maximum, "MINVALUE must be less than MAXVALUE"),
        (settings.minimum < -bound, f"MINVALUE is out of range for type {settings.type}"),
        (settings.maximum >= bound, f"MAXVALUE is out of range for type {settings.type}"),
        (settings.start < settings.minimum, "START value cannot be less than MINVALUE"),
        (settings.start > settings.maximum, "START value cannot be greater than MAXVALUE"),
        (settings.cache < 1, "CACHE must be greater than zero"),
    )
    for wrong, detail in problems:
        if wrong:
            raise errors.InvalidParameterValue(detail=detail)


def amend_settings(draft: Draft, id_: DescriptorId, options: SequenceOptions) -> None:
    old = draft.only(elements.SequenceSettings, sequence_id=id_)
    assert old is not None
    known = {field.name for field in fields(elements.SequenceSettings)}
    said = {f.name: getattr(options, f.name) for f in fields(options) if getattr(options, f.name) is not None}
    new = replace(old, **{name: value for name, value in said.items() if name in known})
    new = _reset_limits(old, new, options)
    _check(new)
    draft.replace(old, new)
    if options.restart is not None or options.restart_at_start:
        start = new.start if options.restart is None else options.restart
        if not new.minimum <= start <= new.maximum:
            raise errors.InvalidParameterValue(detail=f"RESTART value ({start}) is not between MINVALUE and MAXVALUE")
        restart_sequence(draft, id_, start)


def _reset_limits(
    old: elements.SequenceSettings, new: elements.SequenceSettings, options: SequenceOptions
) -> elements.SequenceSettings:
    """To those of the type: where that is asked for, and where they were those of another type."""
    lowest, highest = _limits(new.type, new.increment)
    retyped = old.type != new.type
    was = _bound(old.type)
    if options.no_minimum or (options.minimum is None and retyped and old.minimum == -was):
        new = replace(new, minimum=lowest)
    if options.no_maximum or (options.maximum is None and retyped and old.maximum == was - 1):
        new = replace(new, maximum=highest)
    return new


def restart_sequence(draft: Draft, id_: DescriptorId, start: int | None = None) -> None:
    settings = draft.only(elements.SequenceSettings, sequence_id=id_)
    assert settings is not None
    old = draft.only(elements.SequenceStart, sequence_id=id_)
    run = old.run + 1 if old is not None else 1
    draft.replace(old, elements.SequenceStart(id_, settings.start if start is None else start, run))
