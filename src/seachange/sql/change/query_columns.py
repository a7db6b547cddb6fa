"""The columns of a table for the rows of a query: of CREATE TABLE AS and of materialized views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from seachange import errors
from seachange.model.statements import ColumnDefinition
from seachange.sql.compile.template import Template
from seachange.values.types import TEXT, SqlType, from_duckdb

# The type of an untyped NULL.
_UNTYPED: Final = '"NULL"'


def result_columns(
    template: Template, names: Sequence[str], types: Sequence[str], given: Sequence[str]
) -> tuple[ColumnDefinition, ...]:
    """The columns of a table for the rows of a query. `given` are names for the first of them."""
    if len(given) > len(names):
        raise errors.SyntaxProblem(detail="too many column names were specified")
    # Where the binder could not determine a type, that of the values is used.
    bound = template.columns if template.columns is not None else [None] * len(types)
    known = [column.type.declared if column is not None and column.type is not None else None for column in bound]
    chosen = [*given, *names[len(given) :]]
    found = zip(chosen, types, known, strict=True)
    return tuple(ColumnDefinition(name, type_ or _type(name, duck_type)) for name, duck_type, type_ in found)


def _type(name: str, duck_type: str) -> SqlType:
    found = TEXT if duck_type == _UNTYPED else from_duckdb(duck_type)
    if found is None:
        raise errors.FeatureNotSupported(
            feature=f'a column "{name}" of type {duck_type.lower()}', instead="Cast it to a type that columns can have."
        )
    return found
