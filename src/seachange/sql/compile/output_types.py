"""Origins of result columns: the table columns that they are. DuckDB has one type for several of ours, and clients ask
for the origin.

**Invariant:** a column found here is the only one that the name can mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from seachange.model.schema.descriptor import Column, Table
from seachange.sql.pgcatalog.facts import object_oid
from seachange.sql.port.result import Origin
from seachange.sql.text.scope import is_cte_reference
from seachange.values.types import SqlType, computed_type

TableColumn = tuple[Table, Column]

# Key of a table's `meta`: the number of its source.
SOURCE = "output_source"


@dataclass(frozen=True, slots=True)
class Output:
    """An item of the select list: a column of the source with that number (-1: of any source), or all its columns
    (`name` None)."""

    source: int
    name: str | None


# One entry for each item of the select list, None for an expression.
Outputs = tuple[Output | None, ...]


def note_outputs(tree: exp.Expr) -> Outputs | None:
    """Numbers the tables of the outermost query, and returns which of their columns its select list names; None if
    there may be others, or no list."""
    if not isinstance(tree, exp.Select):
        return None
    from_, joins = tree.args.get("from_"), tree.args.get("joins") or []
    if from_ is None or tree.args.get("laterals") or any(join.method or join.args.get("using") for join in joins):
        return None
    names: list[str] = []
    for number, source in enumerate([from_.this, *(join.this for join in joins)]):
        if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
            return None
        alias = source.args.get("alias")
        if is_cte_reference(source) or source.args.get("joins") or (alias is not None and alias.columns):
            return None
        source.meta[SOURCE] = number
        names.append(source.alias_or_name)
    return tuple(_output(node, names) for node in tree.expressions)


def _output(node: exp.Expr, names: Sequence[str]) -> Output | None:
    if isinstance(node, exp.Star):
        return None if any(node.args.values()) else Output(-1, None)
    column = node.unalias()
    if not isinstance(column, exp.Column):
        return None
    if column.table and names.count(column.table) != 1:
        return None
    source = names.index(column.table) if column.table else -1
    return Output(source, None if isinstance(column.this, exp.Star) else column.name)


def output_columns(outputs: Outputs, tables: Mapping[int, Table], count: int) -> list[TableColumn | None]:
    """One for each of `count` result columns, None where the origin is not certain."""
    named: list[TableColumn | None] = []
    for output in outputs:
        named += _columns(output, tables)
    return named if len(named) == count else [None] * count


def output_types(columns: Sequence[TableColumn | None], duck_types: Sequence[str]) -> list[SqlType | None]:
    """Types by DuckDB's types, refined by those of the columns where the two agree."""
    return [
        found[1].type if found is not None and found[1].type.duckdb == type_ else computed_type(type_)
        for found, type_ in zip(columns, duck_types, strict=True)
    ]


def find_origin(table: Table, column: Column) -> Origin | None:
    """None for a column that clients do not see."""
    for number, each in enumerate(table.visible_columns, 1):
        if each.id == column.id:
            return Origin(object_oid(table.id), number)
    return None


def _columns(output: Output | None, tables: Mapping[int, Table]) -> list[TableColumn | None]:
    if output is None:
        return [None]
    among = [tables[number] for number in sorted(tables) if output.source in (-1, number)]
    if output.name is None:
        return [(table, column) for table in among for column in table.visible_columns]
    having = [(table, column) for table in among if (column := table.column_by_name.get(output.name)) is not None]
    return [having[0] if len(having) == 1 else None]
