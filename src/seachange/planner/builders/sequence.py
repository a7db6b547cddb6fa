"""CREATE and ALTER SEQUENCE."""

from __future__ import annotations

from dataclasses import fields, replace

from seachange import errors
from seachange.model import elements
from seachange.model.ids import DescriptorId
from seachange.model.object_statements import (
    AlterSequence,
    CreateSequence,
    ObjectKind,
    SequenceOptions,
    SequenceOwner,
)
from seachange.model.types import BIGINT, Kind, SqlType
from seachange.planner.builders.draft import Draft

_BOUNDS: dict[Kind, int] = {Kind.SMALLINT: 2**15, Kind.INTEGER: 2**31, Kind.BIGINT: 2**63}


def create_sequence(draft: Draft, statement: CreateSequence) -> None:
    schema = draft.schema_of(statement.name)
    if statement.name.name in draft.relations_in(schema):
        if not statement.if_not_exists:
            raise errors.DuplicateTable(name=statement.name)
        draft.notices.append(f'relation "{statement.name}" already exists, skipping')
        return
    id_ = DescriptorId(next(draft.ids))
    draft.add(elements.Sequence(id_))
    draft.add(elements.Namespace(id_, ObjectKind.SEQUENCE, draft.database, schema, statement.name.name))
    draft.add(sequence_settings(id_, statement.options))
    if statement.owner is not None:
        _set_owner(draft, id_, statement.owner)


def alter_sequence(draft: Draft, statement: AlterSequence) -> None:
    found = draft.find(statement.name)
    if found is None:
        if not statement.if_exists:
            raise errors.UndefinedTable(name=statement.name)
        draft.notices.append(f'relation "{statement.name}" does not exist, skipping')
        return
    if found.kind is not ObjectKind.SEQUENCE:
        raise errors.WrongObjectType(name=statement.name, kind="sequence")
    amend_settings(draft, found.id, statement.options)
    if statement.owner is not None:
        _set_owner(draft, found.id, statement.owner)


def _set_owner(draft: Draft, id_: DescriptorId, owner: SequenceOwner) -> None:
    old = draft.only(elements.SequenceOwner, sequence_id=id_)
    if owner.table is None or owner.column is None:
        if old is not None:
            draft.drop(old)
        return
    table_id = draft.table(owner.table)
    draft.replace(old, elements.SequenceOwner(id_, table_id, draft.column(table_id, owner.column)))


def sequence_settings(id_: DescriptorId, options: SequenceOptions) -> elements.SequenceSettings:
    """The options with PostgreSQL's defaults for what was not said."""
    type_ = options.type or BIGINT
    bound = _bound(type_)
    increment = 1 if options.increment is None else options.increment
    up = increment > 0
    minimum = (1 if up else -bound) if options.minimum is None else options.minimum
    maximum = (bound - 1 if up else -1) if options.maximum is None else options.maximum
    start = (minimum if up else maximum) if options.start is None else options.start
    settings = elements.SequenceSettings(
        id_, type_, increment, minimum, maximum, start, options.cache or 1, bool(options.cycle)
    )
    _check(settings)
    return settings


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
    _check(new)
    draft.replace(old, new)
    if options.restart is not None:
        restart_sequence(draft, id_, options.restart)


def restart_sequence(draft: Draft, id_: DescriptorId, start: int | None = None) -> None:
    settings = draft.only(elements.SequenceSettings, sequence_id=id_)
    assert settings is not None
    old = draft.only(elements.SequenceStart, sequence_id=id_)
    run = old.run + 1 if old is not None else 1
    draft.replace(old, elements.SequenceStart(id_, settings.start if start is None else start, run))
