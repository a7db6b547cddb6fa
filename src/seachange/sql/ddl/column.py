"""Column definitions and the ALTER TABLE actions on columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seachange import errors
from seachange.model.statements import (
    AddColumn,
    AlterAction,
    AlterColumnType,
    ColumnDefinition,
    Constant,
    DropColumn,
    DropNotNull,
    RenameColumn,
    RenameTable,
    SetDefault,
    SetNotNull,
)
from seachange.sql.ddl.names import read_constant, read_type
from seachange.sql.tokens import Reader

# Column constraints that exist in PostgreSQL and not here yet.
_UNSUPPORTED: dict[str, str] = {
    "check": "a CHECK constraint",
    "references": "a FOREIGN KEY constraint",
    "generated": "a generated column",
    "collate": "COLLATE",
    "constraint": "a named column constraint",
}


@dataclass(frozen=True, slots=True)
class InlineColumn:
    """A column definition with the keys that were declared on it."""

    definition: ColumnDefinition
    primary_key: bool
    unique: bool


def read_column(reader: Reader) -> InlineColumn:
    name = reader.name()
    type_ = read_type(reader)
    nullable: bool | None = None
    default: Constant | None = None
    primary_key = unique = False
    while True:
        if reader.take("not", "null"):
            nullable = _agree(nullable, False, name)
        elif reader.take("null"):
            nullable = _agree(nullable, True, name)
        elif reader.take("default"):
            default = read_constant(reader)
        elif reader.take("primary", "key"):
            primary_key = True
        elif reader.take("unique"):
            unique = True
        else:
            break
    refuse_unsupported(reader)
    definition = ColumnDefinition(name, type_, nullable is not False and not primary_key, default)
    return InlineColumn(definition, primary_key, unique)


def _agree(before: bool | None, now: bool, name: str) -> bool:
    if before is not None and before != now:
        raise errors.SyntaxProblem(detail=f'conflicting NULL and NOT NULL for column "{name}"')
    return now


def refuse_unsupported(reader: Reader) -> None:
    for word, feature in _UNSUPPORTED.items():
        if reader.at(word):
            raise errors.FeatureNotSupported(feature=feature, instead="")


def read_action(reader: Reader) -> AlterAction:
    for words, read in _ACTIONS:
        if reader.take(*words):
            return read(reader)
    word = reader.peek()
    feature = f"ALTER TABLE ... {word.text.upper()}" if word is not None else "an empty ALTER TABLE"
    raise errors.FeatureNotSupported(
        feature=feature, instead="ADD, DROP, RENAME and ALTER COLUMN, and RENAME TO, work."
    )


def _add(reader: Reader) -> AlterAction:
    if reader.at("constraint") or reader.at("primary") or reader.at("unique"):
        raise errors.FeatureNotSupported(
            feature="ALTER TABLE ... ADD of a constraint", instead="Declare it in CREATE TABLE."
        )
    refuse_unsupported(reader)
    reader.take("column")
    if_not_exists = reader.take("if", "not", "exists")
    column = read_column(reader)
    if column.primary_key or column.unique:
        raise errors.FeatureNotSupported(feature="ADD COLUMN with a key", instead="Add the column without one.")
    return AddColumn(column.definition, if_not_exists)


def _drop(reader: Reader) -> AlterAction:
    if reader.at("constraint"):
        raise errors.FeatureNotSupported(feature="ALTER TABLE ... DROP CONSTRAINT", instead="")
    reader.take("column")
    if_exists = reader.take("if", "exists")
    name = reader.name()
    if reader.take("cascade"):
        raise errors.FeatureNotSupported(feature="DROP COLUMN ... CASCADE", instead="")
    reader.take("restrict")
    return DropColumn(name, if_exists)


def _rename_to(reader: Reader) -> AlterAction:
    return RenameTable(reader.name())


def _rename(reader: Reader) -> AlterAction:
    if reader.at("constraint"):
        raise errors.FeatureNotSupported(feature="ALTER TABLE ... RENAME CONSTRAINT", instead="")
    reader.take("column")
    name = reader.name()
    reader.expect("to")
    return RenameColumn(name, reader.name())


def _alter(reader: Reader) -> AlterAction:
    reader.take("column")
    name = reader.name()
    if reader.take("set", "data", "type") or reader.take("type"):
        type_ = read_type(reader)
        if reader.at("using") or reader.at("collate"):
            raise errors.FeatureNotSupported(feature="ALTER COLUMN TYPE ... USING", instead="")
        return AlterColumnType(name, type_)
    if reader.take("set", "default"):
        return SetDefault(name, read_constant(reader))
    if reader.take("drop", "default"):
        return SetDefault(name, None)
    if reader.take("set", "not", "null"):
        return SetNotNull(name)
    if reader.take("drop", "not", "null"):
        return DropNotNull(name)
    raise errors.FeatureNotSupported(
        feature="this form of ALTER COLUMN",
        instead="TYPE, SET / DROP DEFAULT and SET / DROP NOT NULL work.",
    )


_ACTIONS: tuple[tuple[tuple[str, ...], Callable[[Reader], AlterAction]], ...] = (
    (("add",), _add),
    (("drop",), _drop),
    (("rename", "to"), _rename_to),
    (("rename",), _rename),
    (("alter",), _alter),
)
