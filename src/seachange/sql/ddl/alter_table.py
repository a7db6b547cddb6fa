"""ALTER TABLE: its actions on the table, its columns as a whole and its constraints."""

from __future__ import annotations

from collections.abc import Callable

from seachange import errors
from seachange.model import statements
from seachange.model.object_kind import ObjectKind
from seachange.sql.ddl.alter_column import read_alter_column, take_down
from seachange.sql.ddl.column import read_column
from seachange.sql.ddl.constraint import TABLE_CONSTRAINTS, Constraints, read_added_constraint
from seachange.sql.ddl.object import take_cascade, take_move_or_owner
from seachange.sql.ddl.storage_parameters import take_table_storage
from seachange.sql.text.names import read_list, read_relation
from seachange.sql.text.tokens import Reader

_ALONE = (statements.RenameTable, statements.RenameColumn, statements.RenameConstraint)
# Other forms of PostgreSQL's ALTER TABLE.
_UNSUPPORTED = frozenset(
    [
        "enable",
        "disable",
        "force",
        "no",
        "cluster",
        "set",
        "reset",
        "inherit",
        "of",
        "not",
        "replica",
        "attach",
        "detach",
    ]
)


def read_alter_table(reader: Reader) -> statements.AlterTable | statements.MoveObject | statements.ChangeOwner:
    concurrently = reader.take("concurrently")
    if_exists = reader.take("if", "exists")
    reader.take("only")
    table = read_relation(reader)
    whole = take_move_or_owner(reader, ObjectKind.TABLE, table, if_exists)
    if whole is not None:
        if concurrently or reader.at_symbol(","):
            raise errors.FeatureNotSupported(
                feature="SET SCHEMA or OWNER TO with CONCURRENTLY or another action",
                instead="Use a separate statement.",
            )
        return whole
    actions = read_list(reader, _read_action)
    reader.expect_end()
    if len(actions) > 1 and any(isinstance(action, _ALONE) for action in actions):
        raise errors.SyntaxProblem(detail="RENAME cannot be combined with other actions of ALTER TABLE")
    return statements.AlterTable(table, actions, if_exists, concurrently)


def _read_action(reader: Reader) -> statements.AlterAction:
    for words, read in _ACTIONS:
        if reader.take(*words):
            return read(reader)
    storage = take_table_storage(reader)
    if storage is not None:
        return storage
    word = reader.plain()
    if word in _UNSUPPORTED:
        raise errors.FeatureNotSupported(
            feature=f"ALTER TABLE ... {word.upper()}",
            instead="ADD, DROP, ALTER, RENAME, VALIDATE CONSTRAINT, SET SCHEMA and OWNER TO are supported.",
        )
    raise reader.problem()


def _add(reader: Reader) -> statements.AlterAction:
    if any(reader.at(word) for word in TABLE_CONSTRAINTS) or reader.at("not", "null"):
        return statements.AddConstraint(read_added_constraint(reader))
    reader.take("column")
    if_not_exists = reader.take("if", "not", "exists")
    constraints = Constraints()
    column = read_column(reader, constraints)
    keys = (*constraints.primary, *constraints.unique)
    return statements.AddColumn(column, if_not_exists, tuple(constraints.rules), keys)


def _drop(reader: Reader) -> statements.AlterAction:
    if reader.take("constraint"):
        if_exists = reader.take("if", "exists")
        return statements.DropConstraint(reader.name(), if_exists, take_cascade(reader))
    reader.take("column")
    if_exists = reader.take("if", "exists")
    return statements.DropColumn(reader.name(), if_exists, take_cascade(reader), take_down(reader))


def _rename_to(reader: Reader) -> statements.AlterAction:
    return statements.RenameTable(reader.name())


def _rename(reader: Reader) -> statements.AlterAction:
    made = statements.RenameConstraint if reader.take("constraint") else statements.RenameColumn
    if made is statements.RenameColumn:
        reader.take("column")
    name = reader.name()
    reader.expect("to")
    return made(name, reader.name())


def _validate(reader: Reader) -> statements.AlterAction:
    return statements.ValidateConstraint(reader.name())


def _alter_primary_key(reader: Reader) -> statements.AlterAction:
    reader.expect("using", "columns")
    return statements.AlterPrimaryKey(reader.names())


def _alter(reader: Reader) -> statements.AlterAction:
    if reader.at("constraint"):
        raise errors.FeatureNotSupported(
            feature="ALTER TABLE ... ALTER CONSTRAINT", instead="Drop the constraint and add it again."
        )
    reader.take("column")
    return read_alter_column(reader)


_ACTIONS: tuple[tuple[tuple[str, ...], Callable[[Reader], statements.AlterAction]], ...] = (
    (("add",), _add),
    (("drop",), _drop),
    (("rename", "to"), _rename_to),
    (("rename",), _rename),
    (("validate", "constraint"), _validate),
    (("alter", "primary", "key"), _alter_primary_key),
    (("alter",), _alter),
)
