"""INSERT ... ON CONFLICT: the proposed rows, the existing rows that they conflict with, and the outcome.

Few rows look up conflicts one by one, many by one join; new values that need an engine are computed for all conflicts
by one query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from seachange import errors
from seachange.model.schema.descriptor import Column, Table
from seachange.sql.compile.keys import plain_column
from seachange.sql.compile.target import DmlTarget, DrawnPlace, draw_defaults, is_required
from seachange.sql.compile.template import Template, compile_template
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.duck.operands import argument_count, read_operand
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Row
from seachange.sql.query.query import bind_query, check_readable
from seachange.sql.text.scope import WITH_HIDDEN
from seachange.sql.translate.assignment_casts import check_assignments
from seachange.sql.write.on_conflict import Arbiter, does_update, read_arbiters
from seachange.sql.write.returning import ORDINAL, given_table, rows_as_arrow
from seachange.sql.write.setters import Setter, compile_computed, compile_setter, drawn_columns, read_assignments
from seachange.values.coercion import coercer

# Up to this many rows, conflicts are looked up one by one.
LOOKUPS_MAX = 200
_EXCLUDED = "excluded"
_PROPOSED = DmlTarget(None, _EXCLUDED, _EXCLUDED)


@dataclass(slots=True)
class UpsertOutcome:
    """The changes to make; `changed` are the rows in the order of the proposed ones."""

    inserted: list[Row] = field(default_factory=list)
    old: list[Row] = field(default_factory=list)
    new: list[Row] = field(default_factory=list)
    changed: list[Row] = field(default_factory=list)


class Upsert:
    def __init__(self, node: exp.OnConflict, table: Table, target: DmlTarget) -> None:
        self._table = table
        self.updates = does_update(node)
        self.arbiters = read_arbiters(node, table)
        self._names_keys = bool(node.args.get("constraint") or node.args.get("conflict_keys"))
        plain = [arbiter for arbiter in self.arbiters if arbiter.is_plain]
        self._joins = {arbiter.index.id: _compile_join(arbiter, table, target) for arbiter in plain}
        self._setters: list[tuple[int, Setter]] = []
        self._drawn: list[DrawnPlace] = []
        # The columns whose new values DuckDB computes.
        self._computed: list[Column] = []
        self._template: Template | None = None
        self._has_where = node.args.get("where") is not None
        self.parameters: tuple[int, ...] = ()
        if self.updates:
            self._compile_update(node, target)

    def _compile_update(self, node: exp.OnConflict, target: DmlTarget) -> None:
        # First the proposed row, which needs no computation, then expressions.
        asked: list[exp.Expr] = [
            exp.column(self._table.label(c), table=_EXCLUDED, quoted=True) for c in self._table.columns
        ]
        width = len(asked)
        assignments = read_assignments(node.expressions, self._table)
        self._drawn = drawn_columns(assignments, self._table)
        for column, value in assignments:
            setter = _compile_value(column, value, self._table, target, asked)
            self._setters.append((self._table.columns.index(column), setter))
            self._computed += [column] * (len(asked) - width - len(self._computed))
        computed = asked[width:]
        where = node.args.get("where")
        if where is not None:
            computed.append(where.this.copy())
        if computed:
            self._template = _compile_pairs(target, computed)
        given = [o for _, value in assignments for p in value.find_all(exp.Parameter) if (o := read_operand(p))]
        in_template = max(self._template.parameters, default=0) if self._template is not None else 0
        self.parameters = (max(argument_count(given), in_template),)

    def check_access(self, port: TransactionPort) -> None:
        """Checked whether a row conflicts or not."""
        if self._names_keys:
            port.rights.check_access(self._table, "SELECT")
        if self.updates:
            port.rights.check_access(self._table, "UPDATE")
        for reference in self._template.tables if self._template is not None else ():
            check_readable(reference, port)

    def run(
        self, port: TransactionPort, duck: DuckSession, rows: Sequence[Row], values: Sequence[Any]
    ) -> UpsertOutcome:
        # As in PostgreSQL, for rows with and without a conflict.
        self._check_required(rows)
        port.writes.check(self._table, rows)
        keyed = self._keyed(port, rows)
        existing = self._existing(port, duck, rows, keyed)
        outcome = UpsertOutcome()
        if self.updates:
            computed = self._compute(port, duck, rows, existing, values)
            updated = {
                place: self._update(rows[place], old, computed.get(place, ()), values)
                for place, old in existing.items()
            }
            self._complete(port, updated)
            self._decide_updates(port, outcome, rows, keyed, existing, updated)
        else:
            self._decide_inserts(outcome, rows, keyed, existing)
        if outcome.inserted:
            port.writes.insert(self._table, outcome.inserted)
        if outcome.old:
            port.writes.update(self._table, outcome.old, outcome.new)
        return outcome

    def _check_required(self, rows: Sequence[Row]) -> None:
        for position, column in enumerate(self._table.columns):
            if is_required(column) and any(row[position] is None for row in rows):
                raise errors.NotNullViolation(column=column.name, relation=self._table.name)

    # Finding conflicts.

    def _keyed(self, port: TransactionPort, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows with all values that the arbiters' keys are made from."""
        return rows if all(arbiter.is_plain for arbiter in self.arbiters) else port.writes.derive(self._table, rows)

    def _existing(
        self, port: TransactionPort, duck: DuckSession, rows: Sequence[Row], keyed: Sequence[Row]
    ) -> dict[int, Row]:
        """By the position of a proposed row, a row that it conflicts with."""
        found: dict[int, Row] = {}
        for arbiter in self.arbiters:
            if len(rows) > LOOKUPS_MAX and arbiter.is_plain:
                template = self._joins[arbiter.index.id]
                given = {_EXCLUDED: rows_as_arrow(self._table, rows, port)}
                answer = duck.rows(bind_query(template, port, (), given))
                found.update((row[0], row[1:]) for row in answer.rows)
                continue
            for place, row in enumerate(keyed):
                key = arbiter.key(row)
                other = port.reads.find_unique(self._table, arbiter.index, key) if key is not None else None
                if other is not None:
                    found[place] = other
        return found

    # Deciding.

    def _decide_inserts(
        self, outcome: UpsertOutcome, rows: Sequence[Row], keyed: Sequence[Row], existing: dict[int, Row]
    ) -> None:
        taken: list[set[Any]] = [set() for _ in self.arbiters]
        for place, row in enumerate(rows):
            keys = [arbiter.key(keyed[place]) for arbiter in self.arbiters]
            if place in existing or any(key in seen for key, seen in zip(keys, taken, strict=True)):
                continue
            for key, seen in zip(keys, taken, strict=True):
                if key is not None:
                    seen.add(key)
            outcome.inserted.append(row)
        outcome.changed = outcome.inserted

    def _decide_updates(
        self,
        port: TransactionPort,
        outcome: UpsertOutcome,
        rows: Sequence[Row],
        keyed: Sequence[Row],
        existing: dict[int, Row],
        updated: dict[int, Row | None],
    ) -> None:
        """`updated`: the new versions of the conflicting rows; None where nothing is changed."""
        (arbiter, *_) = self.arbiters
        touched: set[Any] = set()
        for place, row in enumerate(rows):
            key = arbiter.key(keyed[place])
            if key is not None and key in touched:
                detail = "ON CONFLICT DO UPDATE command cannot affect row a second time"
                raise errors.CardinalityViolation(detail=detail)
            if place not in existing:
                outcome.inserted.append(row)
                outcome.changed.append(row)
                touched |= {key} - {None}
            elif (new := updated[place]) is not None:
                outcome.old.append(existing[place])
                outcome.new.append(new)
                outcome.changed.append(new)
                touched |= {key, arbiter.key(self._keyed(port, [new])[0])} - {None}

    def _update(self, row: Row, old: Row, known: Row, values: Sequence[Any]) -> Row | None:
        if self._has_where and not known[-1]:
            return None
        return self._new_row(old, values, (*row, *known))

    def _complete(self, port: TransactionPort, updated: dict[int, Row | None]) -> None:
        """Fills drawn and generated values into the new rows."""
        if not self._drawn and not self._table.has_generated:
            return
        changed = {place: row for place, row in updated.items() if row is not None}
        rows = list(changed.values())
        draw_defaults(port, dict.fromkeys(self._drawn, range(len(rows))), rows)
        filled = port.writes.fill(self._table, rows) if rows else ()
        updated.update(zip(changed, filled, strict=True))

    def _new_row(self, old: Row, values: Sequence[Any], known: Row) -> Row:
        new = list(old)
        for position, setter in self._setters:
            new[position] = setter(old, values, known)
        return tuple(new)

    def _compute(
        self,
        port: TransactionPort,
        duck: DuckSession,
        rows: Sequence[Row],
        existing: dict[int, Row],
        values: Sequence[Any],
    ) -> dict[int, Row]:
        if self._template is None or not existing:
            return {}
        places = list(existing)
        given = {
            "old": rows_as_arrow(self._table, [existing[place] for place in places], port),
            _EXCLUDED: rows_as_arrow(self._table, [rows[place] for place in places], port),
        }
        answer = duck.rows(bind_query(self._template, port, values, given))
        check_assignments(self._computed, answer.types[1 : 1 + len(self._computed)])
        return {places[row[0]]: row[1:] for row in answer.rows}


def _compile_value(column: Column, value: exp.Expr, table: Table, target: DmlTarget, asked: list[exp.Expr]) -> Setter:
    proposed = plain_column(value, _PROPOSED) if isinstance(value, exp.Column) and value.table else None
    source = table.column_by_name.get(proposed) if proposed is not None else None
    if source is not None:
        position, coerce = table.columns.index(source), coercer(column.type)
        return lambda _old, _values, known: coerce(known[position])
    if all(node.table for node in value.find_all(exp.Column)):
        return compile_setter(column, value, table, target, asked)
    # An unqualified column is ambiguous here; DuckDB reports it.
    return compile_computed(column, value, asked)


def _compile_join(arbiter: Arbiter, table: Table, target: DmlTarget) -> Template:
    """All columns of the rows of the table that have the key of a proposed row."""
    source = exp.table_(
        exp.to_identifier(target.name, quoted=True),
        db=exp.to_identifier(target.schema, quoted=True) if target.schema else None,
        alias=exp.to_identifier("present", quoted=True),
    )
    source.meta[WITH_HIDDEN] = True
    columns = [exp.column(table.label(c), table="present", quoted=True) for c in table.columns]
    names = [table.columns[position].name for position in arbiter.positions]
    same = exp.and_(
        *(
            arbiter.equality(
                this=exp.column(name, table="present", quoted=True),
                expression=exp.column(name, table=_EXCLUDED, quoted=True),
            )
            for name in names
        )
    )
    ordinal = exp.column(ORDINAL, table=_EXCLUDED, quoted=True)
    join = exp.Join(this=given_table(_EXCLUDED, _EXCLUDED), on=same, kind="INNER")
    return compile_template(exp.Select(expressions=[ordinal, *columns], from_=exp.From(this=source), joins=[join]))


def _compile_pairs(target: DmlTarget, computed: list[exp.Expr]) -> Template:
    """Values over pairs of an existing row and the proposed one."""
    ordinal = exp.column(ORDINAL, table=_EXCLUDED, quoted=True)
    same = exp.EQ(this=exp.column(ORDINAL, table=target.alias, quoted=True), expression=ordinal.copy())
    join = exp.Join(this=given_table(_EXCLUDED, _EXCLUDED), on=same, kind="INNER")
    source = given_table("old", target.alias)
    return compile_template(exp.Select(expressions=[ordinal, *computed], from_=exp.From(this=source), joins=[join]))
