"""Result columns of queries: their types as the binder determines them, and the table columns that they are.

DuckDB has one type for several of ours, and other types for the results of some functions. **Invariant:** a type fits
the values that DuckDB returns; where the bound type does not, that of the values is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from seachange.model.schema.descriptor import Column, Table
from seachange.sql.bind.output_names import apply_names
from seachange.sql.bind.types import BoundType
from seachange.sql.compile.template import Template
from seachange.sql.pgcatalog.facts import object_oid
from seachange.sql.port.result import Origin, ResultColumn, duck_column
from seachange.values.types import INTEGERS, TEXT, Kind, SqlType, computed_type

# Kinds with the same values in Python.
_ALIKE: Final = (
    frozenset({*INTEGERS, Kind.OID}),
    frozenset({Kind.REAL, Kind.DOUBLE}),
    frozenset({Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.NAME, Kind.JSON, Kind.JSONB}),
)
# The beginning of the names of types whose values are names of objects.
_REGISTERED: Final = "reg"
# The beginning of DuckDB's name of an enum type, and of arrays of one.
_LABELS: Final = "ENUM("
# DuckDB's integers that no column has.
_WIDE: Final = frozenset({"HUGEINT", "UBIGINT", "UINTEGER"})


def result_columns(template: Template, names: Sequence[str], duck_types: Sequence[str]) -> tuple[ResultColumn, ...]:
    types = column_types(template, duck_types)
    found = template.columns if template.columns is not None and len(template.columns) == len(types) else None
    origins = [c.origin and find_origin(*c.origin) for c in found] if found is not None else [None] * len(types)
    named = result_names(template, names)
    columns = [duck_column(*each) for each in zip(named, duck_types, types, origins, strict=True)]
    if found is None:
        return tuple(columns)
    return tuple(_registered(column, bound.type) for column, bound in zip(columns, found, strict=True))


def _registered(column: ResultColumn, type_: BoundType | None) -> ResultColumn:
    """A name of an object, which is a text here, has a type of its own."""
    is_registered = type_ is not None and type_.name.startswith(_REGISTERED) and column.oid == TEXT.oid
    return ResultColumn(column.name, type_.oid or column.oid) if type_ is not None and is_registered else column


def result_names(template: Template, found: Sequence[str]) -> list[str]:
    """`found` are DuckDB's names."""
    if template.columns is not None and len(template.columns) == len(found):
        return [column.name for column in template.columns]
    return apply_names(template.names, found)


def column_types(template: Template, duck_types: Sequence[str]) -> list[SqlType | None]:
    """None where a column has none of our types."""
    if template.columns is None or len(template.columns) != len(duck_types):
        return [computed_type(type_) for type_ in duck_types]
    return [
        fitting_type(column.type, type_, computed_type(type_))
        for column, type_ in zip(template.columns, duck_types, strict=True)
    ]


def find_origin(table: Table, column: Column) -> Origin | None:
    """None for a column that clients do not see."""
    for number, each in enumerate(table.visible_columns, 1):
        if each.id == column.id:
            return Origin(object_oid(table.id), number)
    return None


def fitting_type(bound: BoundType | None, duck_type: str, found: SqlType | None) -> SqlType | None:
    """The bound type if DuckDB's values are values of it, else `found`."""
    declared = bound.declared if bound is not None else None
    if declared is None or declared.duckdb == duck_type:
        return declared or found
    if declared.enum and duck_type.startswith(_LABELS) and duck_type.endswith("[]") is (declared.element is not None):
        return declared
    if declared.kind in INTEGERS and duck_type in _WIDE:
        return declared
    if found is None or (declared.element is None) is not (found.element is None):
        return found
    kinds = {(type_.element or type_).kind for type_ in (declared, found)}
    return declared if len(kinds) > 1 and any(kinds <= alike for alike in _ALIKE) else found
