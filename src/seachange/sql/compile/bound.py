"""Expressions in normal form: as text over a table's columns, to be compared with those of indexes."""

from __future__ import annotations

import re
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from seachange.model.schema.constraint import column_reference
from seachange.model.schema.descriptor import Column, Table

# Encloses the number of a column in generated text.
_GAP = "\x01"
_GAPS = re.compile(f'"{_GAP}([0-9]+){_GAP}"')
# They have no value for a single row.
_OTHERS = (exp.Query, exp.Parameter, exp.Placeholder, exp.AggFunc, exp.Window, exp.Star)


@dataclass(frozen=True, slots=True)
class BoundText:
    """DuckDB text with a gap for each use of a column: `pieces[0] columns[0] pieces[1] ...`."""

    pieces: tuple[str, ...]
    columns: tuple[str, ...]

    def bind(self, table: Table) -> str | None:
        """The text over the columns' ids; None if the table lacks one of them."""
        parts = [self.pieces[0]]
        for name, piece in zip(self.columns, self.pieces[1:], strict=True):
            column = table.column_by_name.get(name)
            if column is None:
                return None
            parts += (column_reference(column.id), piece)
        return "".join(parts)


def read_form(node: exp.Expr, is_condition: bool = False) -> tuple[str, BoundText] | None:
    """The normal form of an expression over columns of one table, and their common qualifier. Names are already folded
    and functions translated. A condition is compared with parts of predicates, which are stored as DuckDB text."""
    columns = list(node.find_all(exp.Column))
    qualifiers = {column.table.lower() for column in columns}
    if len(qualifiers) != 1 or node.find(*_OTHERS) or not all(isinstance(c.this, exp.Identifier) for c in columns):
        return None
    # A parent, so that the root is replaced like any other node.
    holder = exp.Paren(this=node.copy())
    names: list[str] = []
    for column in list(holder.find_all(exp.Column)):
        names.append(column.name)
        column.replace(exp.column(f"{_GAP}{len(names) - 1}{_GAP}", quoted=True))
    text = holder.this.sql("duckdb", identify=True, comments=False)
    if is_condition:
        text = sqlglot.parse_one(text, dialect="duckdb").sql("duckdb", identify=True)
    parts = _GAPS.split(text)
    if len(parts) // 2 != len(names):
        # A literal contains a string that looks like a gap.
        return None
    return qualifiers.pop(), BoundText(tuple(parts[0::2]), tuple(names[int(number)] for number in parts[1::2]))


def virtual_column(form: BoundText, table: Table) -> Column | None:
    """The virtual column of an index on this expression."""
    text = form.bind(table) if table.virtual_columns else None
    return None if text is None else find_virtual(text, table)


def find_virtual(text: str, table: Table) -> Column | None:
    """Expressions are stored in parentheses."""
    for column in table.virtual_columns:
        if column.generated is not None and column.generated.text in (text, f"({text})"):
            return column
    return None
