"""Statements that all kinds of objects share: DROP, RENAME TO, SET SCHEMA, OWNER TO."""

from __future__ import annotations

import re

from seachange import errors
from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.model.statements import (
    ChangeOwner,
    DropObjects,
    MoveObject,
    RenameObject,
    RevertChange,
    SessionRole,
    SinceValue,
)
from seachange.sql.ddl.expression import SINCE, compile_expression
from seachange.sql.text.names import read_list, read_relation, read_relations
from seachange.sql.text.tokens import Reader

# Kinds that are not in a schema.
_TOP = frozenset({ObjectKind.DATABASE, ObjectKind.SCHEMA})
_DATA = re.compile(r"\s+with\s+(no\s+)?data\s*$", re.IGNORECASE)
SESSION_ROLES = tuple(SessionRole)


def take_data_clause(query: str) -> tuple[str, bool]:
    """The text of a query without WITH [NO] DATA behind it, and whether its rows are wanted.

    >>> take_data_clause("select 1 with no data"), take_data_clause("select 1 WITH DATA"), take_data_clause("select 1")
    (('select 1', False), ('select 1', True), ('select 1', True))
    """
    found = _DATA.search(query)
    if found is None:
        return query, True
    return query[: found.start()], found[1] is None


def read_object_name(reader: Reader, kind: ObjectKind) -> RelationName:
    return RelationName(None, reader.name()) if kind in _TOP else read_relation(reader)


def read_role(reader: Reader) -> str:
    word = reader.take_any(*SESSION_ROLES)
    return SessionRole(word) if word is not None else reader.name()


def take_cascade(reader: Reader) -> bool:
    return reader.take_any("cascade", "restrict") == "cascade"


def read_revert_change(reader: Reader) -> RevertChange:
    change_id = reader.integer()
    values: tuple[SinceValue, ...] = ()
    if reader.take("set"):
        reader.expect_symbol("(")
        values = read_list(reader, _read_since_value)
        reader.expect_symbol(")")
    return RevertChange(change_id, take_cascade(reader), values)


def _read_since_value(reader: Reader) -> SinceValue:
    names = [reader.name()]
    while reader.take_symbol("."):
        names.append(reader.name())
    if len(names) not in (2, 3):
        raise errors.SyntaxProblem(detail="SET of REVERT CHANGE names a column with its table: SET (t.c = expression)")
    reader.expect_symbol("=")
    table = RelationName(names[0] if len(names) > 2 else None, names[-2])
    return SinceValue(table, names[-1], compile_expression(reader.phrase().source, SINCE))


def take_move_or_owner(
    reader: Reader, kind: ObjectKind, name: RelationName, if_exists: bool = False
) -> MoveObject | ChangeOwner | None:
    if kind not in _TOP and reader.take("set", "schema"):
        return MoveObject(kind, name, reader.name(), if_exists)
    if reader.take("owner", "to"):
        return ChangeOwner(kind, name, read_role(reader), if_exists)
    return None


def take_change(
    reader: Reader, kind: ObjectKind, name: RelationName, if_exists: bool = False
) -> RenameObject | MoveObject | ChangeOwner | None:
    if reader.take("rename", "to"):
        return RenameObject(kind, name, reader.name(), if_exists)
    return take_move_or_owner(reader, kind, name, if_exists)


def read_drop_objects(reader: Reader, kind: ObjectKind) -> DropObjects:
    if_exists = reader.take("if", "exists")
    if kind is ObjectKind.DATABASE:
        names: tuple[RelationName, ...] = (read_object_name(reader, kind),)
        if reader.at("with") or reader.at_symbol("("):
            raise errors.FeatureNotSupported(feature="DROP DATABASE ... WITH (FORCE)", instead="Use DROP DATABASE.")
        return DropObjects(kind, names, if_exists)
    if kind is ObjectKind.SCHEMA:
        names = tuple(RelationName(None, name) for name in read_list(reader, Reader.name))
    else:
        names = read_relations(reader)
    return DropObjects(kind, names, if_exists, take_cascade(reader))
