"""Command tags of DDL statements, as PostgreSQL returns them."""

from __future__ import annotations

from seachange.model import statements

_TAGS: dict[type, str] = {
    statements.CreateTable: "CREATE TABLE",
    statements.DropTable: "DROP TABLE",
    statements.AlterTable: "ALTER TABLE",
    statements.TruncateTables: "TRUNCATE TABLE",
    statements.UndropTable: "UNDROP TABLE",
    statements.RevertChange: "REVERT CHANGE",
    statements.CreateIndex: "CREATE INDEX",
    statements.DropIndex: "DROP INDEX",
    statements.CreateDatabase: "CREATE DATABASE",
    statements.CreateSchema: "CREATE SCHEMA",
    statements.CreateSequence: "CREATE SEQUENCE",
    statements.AlterSequence: "ALTER SEQUENCE",
    statements.CreateEnum: "CREATE TYPE",
    statements.AddEnumValue: "ALTER TYPE",
    statements.RenameEnumValue: "ALTER TYPE",
    statements.DropEnumValue: "ALTER TYPE",
    statements.CreateView: "CREATE VIEW",
    statements.CreateMaterializedView: "CREATE MATERIALIZED VIEW",
    statements.RefreshView: "REFRESH MATERIALIZED VIEW",
    statements.CommentOn: "COMMENT",
}
_ROLE_TAGS: dict[type, str] = {
    statements.CreateRole: "CREATE ROLE",
    statements.AlterRole: "ALTER ROLE",
    statements.RenameRole: "ALTER ROLE",
    statements.DropRoles: "DROP ROLE",
    statements.ChangeDefaultPrivileges: "ALTER DEFAULT PRIVILEGES",
    statements.ReassignOwned: "REASSIGN OWNED",
    statements.CommentOnRole: "COMMENT",
    statements.DropOwned: "DROP OWNED",
}


def role_tag(statement: statements.RoleStatement) -> str:
    if isinstance(statement, statements.GrantRoles):
        return "REVOKE ROLE" if statement.revoke else "GRANT ROLE"
    if isinstance(statement, statements.ChangeSettings):
        return "ALTER DATABASE" if statement.role is None else "ALTER ROLE"
    return _ROLE_TAGS[type(statement)]


def command_tag(statement: statements.DdlStatement) -> str:
    match statement:
        case statements.DropObjects(kind=kind):
            return f"DROP {kind.upper()}"
        case statements.RenameObject(kind=kind) | statements.MoveObject(kind=kind) | statements.ChangeOwner(kind=kind):
            return f"ALTER {kind.upper()}"
        case statements.Grant(revoke=revoke):
            return "REVOKE" if revoke else "GRANT"
        case _:
            return _TAGS[type(statement)]
