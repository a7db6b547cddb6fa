"""Statements that run in autocommit only, as in PostgreSQL: what they do, or wait for, is not part of a transaction."""

from __future__ import annotations

from seachange import errors
from seachange.model import statements
from seachange.model.object_kind import ObjectKind
from seachange.sql.parsing.parse import Parsed

# The kinds of statements of which some, or all, cannot run in a transaction block.
_SOMETIMES_OUTSIDE = frozenset(
    {
        *(statements.CreateIndex, statements.DropIndex, statements.AlterTable, statements.CreateDatabase),
        *(statements.DropObjects, statements.NeedlessStatement, statements.ExportTable, statements.CreateFeed),
        *(statements.DropFeed, statements.AdvanceFeed, statements.Vacuum, statements.Discard),
    }
)


def check_inside_block(statement: Parsed) -> None:
    """25001 for a statement that cannot run in a transaction block."""
    command = _command_outside(statement) if type(statement) in _SOMETIMES_OUTSIDE else None
    if command is not None:
        raise errors.InsideBlock(command=command)


def _command_outside(statement: Parsed) -> str | None:
    match statement:
        case statements.CreateIndex(concurrently=True):
            return "CREATE INDEX CONCURRENTLY"
        case statements.DropIndex(concurrently=True):
            return "DROP INDEX CONCURRENTLY"
        case statements.AlterTable(concurrently=True):
            return "ALTER TABLE CONCURRENTLY"
        case statements.CreateDatabase():
            return "CREATE DATABASE"
        case statements.DropObjects(kind=ObjectKind.DATABASE):
            return "DROP DATABASE"
        case statements.NeedlessStatement(outside_blocks=command):
            return command
        case statements.ExportTable():
            return "CALL seachange.export_iceberg"
        case statements.CreateFeed():
            return "CREATE FEED"
        case statements.DropFeed():
            return "DROP FEED"
        case statements.AdvanceFeed():
            return "CALL seachange.advance_feed"
        case statements.Vacuum():
            return "VACUUM"
        case statements.Discard(what="all"):
            return "DISCARD ALL"
        case _:
            return None
