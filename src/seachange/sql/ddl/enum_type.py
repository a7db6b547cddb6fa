"""CREATE TYPE ... AS ENUM and ALTER TYPE."""

from __future__ import annotations

from collections.abc import Callable

from seachange import errors
from seachange.model import statements
from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.sql.ddl.object import take_change
from seachange.sql.text.names import read_list, read_relation
from seachange.sql.text.tokens import Reader

ValueChange = statements.AddEnumValue | statements.RenameEnumValue | statements.DropEnumValue


def read_create_type(reader: Reader) -> statements.CreateEnum:
    name = read_relation(reader)
    if not reader.take("as", "enum"):
        raise _refuse(reader, "CREATE TYPE", ("as", "("), "CREATE TYPE ... AS ENUM is supported.")
    reader.expect_symbol("(")
    if reader.take_symbol(")"):
        return statements.CreateEnum(name, ())
    values = read_list(reader, Reader.string)
    reader.expect_symbol(")")
    return statements.CreateEnum(name, values)


def read_alter_type(
    reader: Reader,
) -> ValueChange | statements.RenameObject | statements.MoveObject | statements.ChangeOwner:
    name = read_relation(reader)
    change = take_change(reader, ObjectKind.TYPE, name)
    if change is not None:
        return change
    for words, read in _VALUES:
        if reader.take(*words):
            return read(reader, name)
    instead = "ADD, RENAME and DROP VALUE, RENAME TO, SET SCHEMA and OWNER TO are supported."
    raise _refuse(reader, "ALTER TYPE", ("add", "alter", "drop", "rename", "set"), instead)


def _refuse(reader: Reader, statement: str, known: tuple[str, ...], instead: str) -> errors.Error:
    """`known` are the keywords with which PostgreSQL's grammar continues; at the end of the text it would be a base
    type."""
    if not reader.at_end and reader.plain() not in known:
        return reader.problem()
    return errors.FeatureNotSupported(feature=f"this form of {statement}", instead=instead)


def _add_value(reader: Reader, name: RelationName) -> ValueChange:
    if_not_exists = reader.take("if", "not", "exists")
    value = reader.string()
    before = reader.string() if reader.take("before") else None
    after = reader.string() if before is None and reader.take("after") else None
    return statements.AddEnumValue(name, value, before, after, if_not_exists)


def _rename_value(reader: Reader, name: RelationName) -> ValueChange:
    value = reader.string()
    reader.expect("to")
    return statements.RenameEnumValue(name, value, reader.string())


def _drop_value(reader: Reader, name: RelationName) -> ValueChange:
    return statements.DropEnumValue(name, reader.string())


_VALUES: tuple[tuple[tuple[str, ...], Callable[[Reader, RelationName], ValueChange]], ...] = (
    (("add", "value"), _add_value),
    (("rename", "value"), _rename_value),
    (("drop", "value"), _drop_value),
)
