"""Column definitions and the ALTER TABLE actions on columns."""

from __future__ import annotations

from collections.abc import Callable

from seachange import errors
from seachange.model.statements import (
    AddColumn,
    AddConstraint,
    AlterAction,
    AlterColumnType,
    ColumnDefinition,
    Constant,
    DropColumn,
    DropConstraint,
    DropNotNull,
    RenameColumn,
    RenameTable,
    SetDefault,
    SetNotNull,
)
from seachange.sql.ddl.constraint import (
    TABLE_CONSTRAINTS,
    Constraints,
    read_column_constraint,
    read_table_constraint,
)
from seachange.sql.ddl.names import read_constant, read_type
from seachange.sql.tokens import Reader

# Column constraints that exist in PostgreSQL and not here yet.
_UNSUPPORTED: dict[str, str] = {
    "generated": "a generated column",
    "collate": "COLLATE",
}


def read_column(reader: Reader, constraints: Constraints) -> ColumnDefinition:
    """A column definition; the constraints that were declared on it are added to those of the table."""
    name = reader.name()
    type_ = read_type(reader)
    nullable: bool | None = None
    default: Constant | None = None
    keys_before = len(constraints.primary)
    while True:
        label = reader.name() if reader.take("constraint") else None
        if reader.take("not", "null"):
            nullable = _agree(nullable, False, name)
        elif reader.take("null"):
            nullable = _agree(nullable, True, name)
        elif reader.take("default"):
            default = read_constant(reader)
        elif not read_column_constraint(reader, name, label, constraints):
            break
    refuse_unsupported(reader)
    is_key = len(constraints.primary) > keys_before
    return ColumnDefinition(name, type_, nullable is not False and not is_key, default)


def _agree(before: bool | None, now: bool, name: str) -> bool:
    if before is not None and before != now:
        raise errors.SyntaxProblem(detail=f'conflicting NULL and NOT NULL for column "{name}"')
    return now


def _take_cascade(reader: Reader) -> bool:
    return reader.take_any("cascade", "restrict") == "cascade"


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
        feature=feature, instead="ADD, DROP, RENAME and ALTER COLUMN, ADD and DROP CONSTRAINT, and RENAME TO, work."
    )


def _add(reader: Reader) -> AlterAction:
    constraints = Constraints()
    if any(reader.at(word) for word in TABLE_CONSTRAINTS):
        return _add_constraint(reader, constraints)
    reader.take("column")
    if_not_exists = reader.take("if", "not", "exists")
    column = read_column(reader, constraints)
    if constraints.primary or constraints.unique:
        raise errors.FeatureNotSupported(feature="ADD COLUMN with a key", instead="Add the column without one.")
    return AddColumn(column, if_not_exists, tuple(constraints.rules))


def _add_constraint(reader: Reader, constraints: Constraints) -> AlterAction:
    read_table_constraint(reader, constraints)
    if constraints.primary:
        raise errors.FeatureNotSupported(feature="ADD PRIMARY KEY", instead="Declare it in CREATE TABLE.")
    if reader.at("not", "valid") or reader.at("using", "index"):
        raise errors.FeatureNotSupported(feature="an option of ADD CONSTRAINT", instead="")
    return AddConstraint((*constraints.unique, *constraints.rules)[0])


def _drop(reader: Reader) -> AlterAction:
    if reader.take("constraint"):
        if_exists = reader.take("if", "exists")
        return DropConstraint(reader.name(), if_exists, _take_cascade(reader))
    reader.take("column")
    if_exists = reader.take("if", "exists")
    name = reader.name()
    if _take_cascade(reader):
        raise errors.FeatureNotSupported(feature="DROP COLUMN ... CASCADE", instead="")
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
