"""Predicate implication: whether conditions imply the predicate of a partial index, which then has an entry for every
matching row.

**Invariant:** the answer yes is always right; the answer no may be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from seachange.model.condition import Above, Among, Below, Condition, IsNull, MeetsCondition, StartsWith
from seachange.model.ids import ColumnId
from seachange.model.schema.descriptor import Column, Table
from seachange.model.schema.expression import Expression
from seachange.sql.compile.seek import bind_term, conjuncts
from seachange.storage.keys import KeyCodec


@dataclass(frozen=True, slots=True)
class PredicateTerm:
    """One conjunct of a predicate: as text, and as one or two conditions on a column where possible, or as the column
    that it requires to be NOT NULL."""

    text: str
    conditions: tuple[Condition, ...] = ()
    present: ColumnId | None = None


def read_predicate(expression: Expression, table: Table) -> tuple[PredicateTerm, ...]:
    by_name = {f"c{column.id}": column for column in table.columns}
    tree = sqlglot.parse_one(expression.text, dialect="duckdb")
    return tuple(_read(term, by_name) for term in conjuncts(tree))


def _read(term: exp.Expr, columns: dict[str, Column]) -> PredicateTerm:
    text = term.sql("duckdb", identify=True)
    return PredicateTerm(text, bind_term(term, columns), _present(term, columns))


def _present(term: exp.Expr, columns: dict[str, Column]) -> ColumnId | None:
    """The column of `column IS NOT NULL`."""
    inner = term.this if isinstance(term, exp.Not) else term
    negated = isinstance(term, exp.Not) or bool(inner.args.get("negate"))
    if not negated or not isinstance(inner, exp.Is) or not isinstance(inner.expression, exp.Null):
        return None
    column = columns.get(inner.this.name) if isinstance(inner.this, exp.Column) else None
    return None if column is None else column.id


def as_conditions(terms: Sequence[PredicateTerm]) -> list[Condition]:
    """Conditions that all rows meet that meet the predicate."""
    return [condition for term in terms for condition in (MeetsCondition(term.text), *term.conditions)]


def implies(conditions: Sequence[Condition], terms: Sequence[PredicateTerm], table: Table) -> bool:
    return all(_implies_term(conditions, term, table) for term in terms)


def _implies_term(conditions: Sequence[Condition], term: PredicateTerm, table: Table) -> bool:
    if any(isinstance(c, MeetsCondition) and c.text == term.text for c in conditions):
        return True
    if term.present is not None:
        return any(c.column == term.present and not isinstance(c, IsNull) for c in conditions)
    wanted = term.conditions
    return bool(wanted) and all(any(_is_narrower(c, w, table) for c in conditions) for w in wanted)


def _is_narrower(one: Condition, wanted: Condition, table: Table) -> bool:
    """Whether every value that meets `one` meets `wanted`."""
    if one == wanted:
        return True
    if isinstance(one, MeetsCondition) or isinstance(wanted, MeetsCondition) or one.column != wanted.column:
        return False
    codec = KeyCodec([table.column_by_id[one.column].type])

    def encode(value: object) -> bytes:
        return codec.encode_at(0, value)

    match one, wanted:
        case Among(_, values), Among(_, allowed):
            return {encode(v) for v in values} <= {encode(v) for v in allowed}
        case Among(_, values), Above(_, bound, inclusive):
            return all(encode(v) > encode(bound) or (inclusive and encode(v) == encode(bound)) for v in values)
        case Among(_, values), Below(_, bound, inclusive):
            return all(encode(v) < encode(bound) or (inclusive and encode(v) == encode(bound)) for v in values)
        case Among(_, values), StartsWith(_, prefix):
            return all(str(v).startswith(prefix) for v in values)
        case Above(_, low, at_low), Above(_, bound, inclusive):
            return encode(low) > encode(bound) or (encode(low) == encode(bound) and (inclusive or not at_low))
        case Below(_, high, at_high), Below(_, bound, inclusive):
            return encode(high) < encode(bound) or (encode(high) == encode(bound) and (inclusive or not at_high))
        case StartsWith(_, longer), StartsWith(_, prefix):
            return longer.startswith(prefix)
        case _:
            return False
