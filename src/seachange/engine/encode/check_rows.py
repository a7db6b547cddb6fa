"""CHECK constraints: evaluated row by row in Python where that gives the exact result, otherwise by one DuckDB query.

**Invariant:** an expression passes unless it is false: NULL passes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from seachange import errors
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.model.scan import Scan
from seachange.model.schema.constraint import Check, column_reference
from seachange.model.schema.descriptor import Column, Table
from seachange.model.states import REFUSING, State
from seachange.sql.duck.check_closure import Evaluate, Undecided, compile_check_expression
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.storage.arrow import schema_of
from seachange.storage.duck import Duck
from seachange.storage.plan import quote
from seachange.storage.small_arrays import array_of
from seachange.values.output_format import show_held

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RowChecks:
    """The checks of one version of a table, each with its compiled Python form if it has one."""

    table: Table
    rules: tuple[tuple[Check, Evaluate | None], ...]

    def verify(self, rows: Sequence[Row], duck: Duck, interrupts: SessionInterrupts) -> None:
        for check, row in self.broken(rows, duck, interrupts):
            raise violation(self.table, check, row)

    def broken(self, rows: Sequence[Row], duck: Duck, interrupts: SessionInterrupts) -> Iterator[tuple[Check, Row]]:
        for check, evaluate in self.rules:
            left: Sequence[Row] = rows
            if evaluate is not None:
                left = []
                for row in interrupts.each(rows):
                    try:
                        if evaluate(row) is False:
                            yield check, row
                    except Undecided:
                        left.append(row)
            if left:
                yield from ((check, row) for row in self._broken_in_duckdb(check, left, duck, interrupts))

    def _broken_in_duckdb(
        self, check: Check, rows: Sequence[Row], duck: Duck, interrupts: SessionInterrupts
    ) -> list[Row]:
        columns = [self.table.column_by_id[c] for c in check.columns]
        schema = schema_of((c.id, c.type) for c in columns)
        positions = [self.table.columns.index(column) for column in columns]
        arrays = [array_of([row[p] for row in rows], f.type) for p, f in zip(positions, schema, strict=True)]
        given = pa.Table.from_arrays([*arrays, array_of(range(len(rows)), pa.int64())], [*schema.names, "position"])
        sql = f"SELECT position FROM checked WHERE NOT ({check.expression})"  # noqa: S608 - columns are named by id
        with closing(DuckSession(duck.cursor(), {})) as session, interrupts.reaching(session):
            found = session.rows(DuckQuery(sql, {}, {"checked": given})).rows
        return [rows[position] for (position,) in sorted(found)]

    def verify_scan(self, scan: Scan, duck: Duck, interrupts: SessionInterrupts) -> None:
        for check, row in self.broken_in_scan(scan, duck, interrupts):
            raise violation(self.table, check, row)

    def broken_in_scan(self, scan: Scan, duck: Duck, interrupts: SessionInterrupts) -> Iterator[tuple[Check, Row]]:
        """One row, if there is any, of a scan of all columns, named by their labels: found by one query."""
        named = ", ".join(f"{quote(self.table.label(c))} AS {column_reference(c.id)}" for c in self.table.columns)
        sql = self.find_broken(f"SELECT {named} FROM ({scan.sql})")  # noqa: S608 - quoted names
        with closing(DuckSession(duck.cursor(), {})) as session, interrupts.reaching(session):
            found = session.rows(DuckQuery(sql, scan.parameters, scan.relations)).rows
        yield from self.name_broken(found)

    def find_broken(self, rows: str) -> str:
        """A query for a row that breaks a constraint; `rows` is a query for all columns, named by id."""
        failed = [f"({check.expression}) IS FALSE" for check, _ in self.rules]
        shown = ", ".join(column_reference(c.id) for c in self.table.columns)
        return f"SELECT {shown}, {', '.join(failed)} FROM ({rows}) WHERE {' OR '.join(failed)} LIMIT 1"  # noqa: S608

    def name_broken(self, found: Sequence[Row]) -> Iterator[tuple[Check, Row]]:
        """What `find_broken` has found: the constraint, and the row."""
        width = len(self.table.columns)
        for row in found:
            yield self.rules[row[width:].index(True)][0], row[:width]


def compile_checks(table: Table, states: Collection[State] = REFUSING) -> RowChecks | None:
    """The checks that are in one of these states."""
    chosen = [check for check in table.checks if check.state in states]
    if not chosen:
        return None
    columns = {f"c{c.id}": (position, c.type) for position, c in enumerate(table.columns)}
    rules = [(c, compile_check_expression(c.expression, columns)) for c in chosen]
    return RowChecks(table, tuple(rules))


def violation(table: Table, check: Check, row: Row) -> errors.CheckViolation:
    return errors.CheckViolation(relation=table.name, constraint=check.name, row=_show(table, row))


def null_in_row(table: Table, column: Column, row: Row) -> errors.NullInRow:
    return errors.NullInRow(column=column.name, relation=table.name, row=_show(table, row))


def _show(table: Table, row: Row) -> str:
    shown = [
        show_held(c.type, value) for value, c in zip(row, table.columns, strict=False) if c in table.visible_columns
    ]
    return ", ".join("null" if value is None else value for value in shown)
