"""The types of a result's columns, where those are columns of tables: DuckDB has one type for several of ours.

**Invariant:** a column that is found here is the only one that the name can mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from seachange.model.descriptor import Table
from seachange.model.types import SqlType, from_duckdb
from seachange.sql.scope import is_cte_reference

# The meta entry of a table with the number of its source.
SOURCE = "output_source"


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the list: of the source of that number (-1: of whichever has it), or all of them (`name` None)."""

    source: int
    name: str | None


# One entry for each item of the list, None for an expression.
Outputs = tuple[Output | None, ...]


def note_outputs(tree: exp.Expr) -> Outputs | None:
    """Numbers the tables of the outermost query, and says which of their columns its list names; None if there may be
    others, or no list."""
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


def output_types(outputs: Outputs, tables: Mapping[int, Table], duck_types: Sequence[str]) -> list[SqlType | None]:
    """By DuckDB's types, and those of the columns where the two agree."""
    found = [from_duckdb(type_) for type_ in duck_types]
    named: list[SqlType | None] = []
    for output in outputs:
        named += _types(output, tables)
    if len(named) != len(found):
        return found
    return [
        column if column is not None and column.duckdb == type_ else other
        for column, type_, other in zip(named, duck_types, found, strict=True)
    ]


def _types(output: Output | None, tables: Mapping[int, Table]) -> list[SqlType | None]:
    if output is None:
        return [None]
    among = [tables[number] for number in sorted(tables) if output.source in (-1, number)]
    if output.name is None:
        return [column.type for table in among for column in table.visible_columns]
    having = [column.type for table in among if (column := table.column_by_name.get(output.name)) is not None]
    return [having[0] if len(having) == 1 else None]
