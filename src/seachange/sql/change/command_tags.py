"""Command tags of DDL statements, as PostgreSQL returns them."""

from __future__ import annotations

from seachange.model.statements.object_statements import (
    AddEnumValue,
    AlterRole,
    AlterSequence,
    ChangeDefaultPrivileges,
    ChangeOwner,
    ChangeSettings,
    CommentOn,
    CommentOnRole,
    CreateDatabase,
    CreateEnum,
    CreateRole,
    CreateSchema,
    CreateSequence,
    CreateView,
    DropEnumValue,
    DropObjects,
    DropOwned,
    DropRoles,
    Grant,
    GrantRoles,
    MoveObject,
    ReassignOwned,
    RenameEnumValue,
    RenameObject,
    RenameRole,
    RoleStatement,
    TruncateTables,
    UndropTable,
)
from seachange.model.statements.table_statements import (
    AlterTable,
    CreateIndex,
    CreateTable,
    DdlStatement,
    DropIndex,
    DropTable,
)

_TAGS: dict[type, str] = {
    CreateTable: "CREATE TABLE",
    DropTable: "DROP TABLE",
    AlterTable: "ALTER TABLE",
    TruncateTables: "TRUNCATE TABLE",
    UndropTable: "UNDROP TABLE",
    CreateIndex: "CREATE INDEX",
    DropIndex: "DROP INDEX",
    CreateDatabase: "CREATE DATABASE",
    CreateSchema: "CREATE SCHEMA",
    CreateSequence: "CREATE SEQUENCE",
    AlterSequence: "ALTER SEQUENCE",
    CreateEnum: "CREATE TYPE",
    AddEnumValue: "ALTER TYPE",
    RenameEnumValue: "ALTER TYPE",
    DropEnumValue: "ALTER TYPE",
    CreateView: "CREATE VIEW",
    CommentOn: "COMMENT",
}
_ROLE_TAGS: dict[type, str] = {
    CreateRole: "CREATE ROLE",
    AlterRole: "ALTER ROLE",
    RenameRole: "ALTER ROLE",
    DropRoles: "DROP ROLE",
    ChangeDefaultPrivileges: "ALTER DEFAULT PRIVILEGES",
    ReassignOwned: "REASSIGN OWNED",
    CommentOnRole: "COMMENT",
    DropOwned: "DROP OWNED",
}


def role_tag(statement: RoleStatement) -> str:
    if isinstance(statement, GrantRoles):
        return "REVOKE ROLE" if statement.revoke else "GRANT ROLE"
    if isinstance(statement, ChangeSettings):
        return "ALTER DATABASE" if statement.role is None else "ALTER ROLE"
    return _ROLE_TAGS[type(statement)]


def command_tag(statement: DdlStatement) -> str:
    match statement:
        case DropObjects(kind=kind):
            return f"DROP {kind.upper()}"
        case RenameObject(kind=kind) | MoveObject(kind=kind) | ChangeOwner(kind=kind):
            return f"ALTER {kind.upper()}"
        case Grant(revoke=revoke):
            return "REVOKE" if revoke else "GRANT"
        case _:
            return _TAGS[type(statement)]
