"""The kinds of objects that a statement can name."""

from __future__ import annotations

from enum import StrEnum


class ObjectKind(StrEnum):
    """The kinds of objects that a statement can name. A part (column, constraint) is named together with its table."""

    DATABASE = "database"
    SCHEMA = "schema"
    TABLE = "table"
    COLUMN = "column"
    INDEX = "index"
    CONSTRAINT = "constraint"
    SEQUENCE = "sequence"
    TYPE = "type"
    VIEW = "view"
    MATERIALIZED_VIEW = "materialized view"


VIEWS = frozenset({ObjectKind.VIEW, ObjectKind.MATERIALIZED_VIEW})
