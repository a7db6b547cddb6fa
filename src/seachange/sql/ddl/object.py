"""Statements that all kinds of objects share: DROP, RENAME TO, SET SCHEMA, OWNER TO."""

from __future__ import annotations

from seachange import errors
from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.model.statements import ChangeOwner, DropObjects, MoveObject, RenameObject, RevertChange, SessionRole
from seachange.sql.text.names import read_list, read_relation, read_relations
from seachange.sql.text.tokens import Reader

# Kinds that are not in a schema.
_TOP = frozenset({ObjectKind.DATABASE, ObjectKind.SCHEMA})
SESSION_ROLES = tuple(SessionRole)


def read_object_name(reader: Reader, kind: ObjectKind) -> RelationName:
    return RelationName(None, reader.name()) if kind in _TOP else read_relation(reader)


def read_role(reader: Reader) -> str:
    word = reader.take_any(*SESSION_ROLES)
    return SessionRole(word) if word is not None else reader.name()


def take_cascade(reader: Reader) -> bool:
    return reader.take_any("cascade", "restrict") == "cascade"


def read_revert_change(reader: Reader) -> RevertChange:
    return RevertChange(reader.integer(), take_cascade(reader))


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
