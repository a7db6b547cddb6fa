"""What one step can do, and the refusal of everything else."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, Never

from seachange import errors
from seachange.model.statements.table_statements import (
    AddIdentity,
    AlterPrimaryKey,
    AlterTable,
    CreateIndex,
    CreateTable,
    DdlStatement,
    DropColumn,
    DropExpression,
    DropIdentity,
    DropIndex,
    DropTable,
    ExpressionDefinition,
    IdentityDefinition,
    RenameConstraint,
    SetExpression,
    SetIdentity,
    TableStatement,
    UserType,
    ValidateConstraint,
)

_UNKNOWN = (
    ExpressionDefinition,
    IdentityDefinition,
    SetExpression,
    DropExpression,
    AddIdentity,
    SetIdentity,
    DropIdentity,
    RenameConstraint,
    ValidateConstraint,
    AlterPrimaryKey,
)
# Fields whose being set asks for more than one step.
_UNKNOWN_FIELDS = ("serial", "not_valid", "using_index", "primary", "keys", "concurrently")


def refuse_complex(statement: DdlStatement) -> TableStatement:
    """The statement, if one step can do it."""
    if not isinstance(statement, CreateTable | DropTable | CreateIndex | DropIndex | AlterTable):
        _refuse(type(statement).__name__)
    _look_into(statement)
    return statement


def _look_into(value: Any) -> None:
    if isinstance(value, UserType):
        raise errors.UndefinedObject(kind="type", name=value.name)
    if isinstance(value, DropColumn) and value.cascade:
        _refuse("cascade")
    if isinstance(value, _UNKNOWN):
        _refuse(type(value).__name__)
    if isinstance(value, tuple):
        for item in value:
            _look_into(item)
    if is_dataclass(value):
        for field in fields(value):
            held = getattr(value, field.name)
            if field.name in _UNKNOWN_FIELDS and held:
                _refuse(field.name)
            _look_into(held)


def _refuse(what: str) -> Never:
    raise errors.FeatureNotSupported(feature=f"executing this form of DDL ({what})", instead="EXPLAIN (DDL) plans it.")
