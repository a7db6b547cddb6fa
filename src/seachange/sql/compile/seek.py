"""Seek conditions: which rows of its tables a statement can be about, by the constants in its conditions.

**Invariant:** a row that does not meet a condition found here contributes to no result and may be left out of the scan.
The statement is fully evaluated on the rest, so a missed condition only costs time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Any

from sqlglot import exp

from seachange import errors
from seachange.model.condition import Above, Among, Below, Condition, IsNull, MeetsCondition, StartsWith
from seachange.model.schema.descriptor import Column, Table
from seachange.sql.compile.bound import BoundText, read_form, virtual_column
from seachange.sql.compile.keys import NOTHING, NotByKey, key_converter, plain_column
from seachange.sql.compile.target import DmlTarget, folded
from seachange.sql.duck.operands import Argument, Given, ListArgument, Operand, read_operand
from seachange.sql.text.list_places import LONG_LIST
from seachange.values.types import Kind

# Key of a table's `meta`: its conditions.
DEMANDS = "demands"

_TABLE_ARGS = frozenset({"this", "db", "catalog", "alias"})
_TEXTS = frozenset({Kind.TEXT, Kind.VARCHAR})
# Kinds of columns with which a string compares as the one value that it denotes, on any node.
_READ_ALIKE = _TEXTS | {Kind.CHAR, Kind.NAME, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT}
_PREFIX_PATTERN = re.compile(r"([^%_\\]+)[%_].*", re.DOTALL)


class SeekOperator(StrEnum):
    AMONG = "in"
    ABOVE = ">"
    ABOVE_OR_EQUAL = ">="
    BELOW = "<"
    BELOW_OR_EQUAL = "<="
    LIKE = "like"
    IS_NULL = "is null"
    HOLDS = "holds"


@dataclass(frozen=True, slots=True)
class SeekCondition:
    """A comparison of a column, by name, or of an expression with constants; or any other condition."""

    column: str
    comparison: SeekOperator
    operands: tuple[Given | Argument | ListArgument, ...]
    form: BoundText | None = None


_COMPARISONS: dict[type[exp.Expr], tuple[SeekOperator, SeekOperator]] = {
    # As written, and with the operands exchanged.
    exp.EQ: (SeekOperator.AMONG, SeekOperator.AMONG),
    exp.GT: (SeekOperator.ABOVE, SeekOperator.BELOW),
    exp.GTE: (SeekOperator.ABOVE_OR_EQUAL, SeekOperator.BELOW_OR_EQUAL),
    exp.LT: (SeekOperator.BELOW, SeekOperator.ABOVE),
    exp.LTE: (SeekOperator.BELOW_OR_EQUAL, SeekOperator.ABOVE_OR_EQUAL),
}


def note_demands(tree: exp.Expr) -> exp.Expr:
    """Records, for each table in the FROM clause of a SELECT, the conditions of that SELECT on it."""
    for select in tree.find_all(exp.Select):
        _note(select)
    return tree


def _note(select: exp.Select) -> None:
    from_ = select.args.get("from_")
    joins = select.args.get("joins") or []
    if from_ is None or any(join.method or join.kind in ("SEMI", "ANTI") for join in joins):
        return
    sources = [from_.this, *(join.this for join in joins)]
    names = [source.alias_or_name.lower() for source in sources]
    alone = len(sources) == 1 and not select.args.get("laterals")
    found = list(_where_demands(select, joins))
    for source, name in zip(sources, names, strict=True):
        if isinstance(source, exp.Table) and names.count(name) == 1 and not has_more(source):
            qualifiers = (name, "") if alone else (name,)
            demands = tuple(
                demand for qualifier, demand, only in found if qualifier in qualifiers and only in ("", name)
            )
            if demands:
                source.meta[DEMANDS] = demands


def has_more(source: exp.Table) -> bool:
    """Whether the reference has a sample, joins in parentheses or renamed columns: anything that changes its rows or
    names."""
    alias = source.args.get("alias")
    return any(value and key not in _TABLE_ARGS for key, value in source.args.items()) or bool(alias and alias.columns)


def _where_demands(select: exp.Select, joins: Iterable[exp.Join]) -> Iterator[tuple[str, SeekCondition, str]]:
    """Conditions with the qualifier of their column, and the one table that they apply to where they do not apply to
    all.

    All comparisons but IS NULL reject NULL, and so the rows that an outer join adds for lack of a match.
    """
    where = select.args.get("where")
    outer = any(join.side for join in joins)
    for term in conjuncts(where.this) if where is not None else ():
        if not (outer and isinstance(term, exp.Is)):
            yield from ((qualifier, demand, "") for qualifier, demand in _read_term(term))
        # Rows that an outer join adds for lack of a match may meet these.
        if not outer:
            yield from ((qualifier, demand, "") for qualifier, demand in _read_forms(term))
    for join in joins:
        inner = not join.side and join.kind in ("", "INNER")
        condition = join.args.get("on")
        if condition is not None and (inner or join.side == "LEFT"):
            # A left join keeps the rows of its left side, whatever its condition says.
            only = "" if inner else join.this.alias_or_name.lower()
            for term in conjuncts(condition):
                if outer and isinstance(term, exp.Is):
                    continue
                yield from ((qualifier, demand, only) for qualifier, demand in _read_term(term))


def conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        yield from conjuncts(condition.this)
        yield from conjuncts(condition.expression)
    else:
        yield condition


def _read_term(term: exp.Expr, of_expressions: bool = False) -> Iterator[tuple[str, SeekCondition]]:
    match term:
        case exp.In() if not any(value for key, value in term.args.items() if key not in ("this", "expressions")):
            yield from _demand(term.this, SeekOperator.AMONG, term.expressions, of_expressions)
        case exp.Between() if not term.args.get("symmetric"):
            yield from _demand(term.this, SeekOperator.ABOVE_OR_EQUAL, [term.args["low"]], of_expressions)
            yield from _demand(term.this, SeekOperator.BELOW_OR_EQUAL, [term.args["high"]], of_expressions)
        case exp.Column(this=exp.Identifier()):
            yield from _demand(term, SeekOperator.AMONG, [exp.true()], of_expressions)
        case exp.Not(this=exp.Column(this=exp.Identifier())):
            yield from _demand(term.this, SeekOperator.AMONG, [exp.false()], of_expressions)
        case exp.Is() if isinstance(term.expression, exp.Null) and not term.args.get("negate"):
            column = term.this.unnest()
            if not of_expressions and isinstance(column, exp.Column) and isinstance(column.this, exp.Identifier):
                yield column.table.lower(), SeekCondition(folded(column.this), SeekOperator.IS_NULL, ())
        case exp.Like() if not term.args.get("negate"):
            yield from _demand(term.this, SeekOperator.LIKE, [term.expression], of_expressions)
        case exp.EQ(expression=exp.Any(this=listed)) if listed.unnest().meta_get(LONG_LIST):
            yield from _demand(term.this, SeekOperator.AMONG, [listed.unnest()], of_expressions)
        case exp.EQ() | exp.GT() | exp.GTE() | exp.LT() | exp.LTE():
            as_written, exchanged = _COMPARISONS[type(term)]
            yield from _demand(term.this, as_written, [term.expression], of_expressions)
            yield from _demand(term.expression, exchanged, [term.this], of_expressions)
        case _:
            return


def _read_forms(term: exp.Expr) -> Iterator[tuple[str, SeekCondition]]:
    """A condition as a whole, and its comparisons of expressions."""
    whole = read_form(term, is_condition=True)
    if whole is not None:
        yield whole[0], SeekCondition("", SeekOperator.HOLDS, (), whole[1])
    yield from _read_term(term, of_expressions=True)


def _read_operand(node: exp.Expr) -> Operand | ListArgument | None:
    operand = read_operand(node)
    is_list = isinstance(operand, Argument) and node.meta_get(LONG_LIST)
    return ListArgument(operand.number) if isinstance(operand, Argument) and is_list else operand


def _demand(
    compared: exp.Expr, comparison: SeekOperator, values: Sequence[exp.Expr], of_expressions: bool
) -> Iterator[tuple[str, SeekCondition]]:
    compared = compared.unnest()
    operands = [_read_operand(value) for value in values]
    given = tuple(operand for operand in operands if isinstance(operand, Given | Argument | ListArgument))
    if not given or len(given) != len(values):
        return
    if isinstance(compared, exp.Column) and isinstance(compared.this, exp.Identifier):
        if not of_expressions:
            yield compared.table.lower(), SeekCondition(folded(compared.this), comparison, given)
    elif of_expressions and (found := read_form(compared)) is not None:
        yield found[0], SeekCondition("", comparison, given, found[1])


def read_whole_condition(where: exp.Expr, target: DmlTarget) -> tuple[SeekCondition, ...] | None:
    """The seek conditions of a WHERE clause, if they are all that it says."""
    if any(plain_column(column, target) is None for column in where.find_all(exp.Column)):
        return None
    found: list[SeekCondition] = []
    for term in conjuncts(where):
        demands = [demand for _, demand in _read_term(term)]
        # A pattern says more than how the text starts.
        if isinstance(term, exp.Like) or len(demands) != (2 if isinstance(term, exp.Between) else 1):
            return None
        found += demands
    return tuple(found)


def bind_demands(demands: Iterable[SeekCondition], table: Table, values: Sequence[Any]) -> tuple[Condition, ...]:
    """Seek conditions with their constants and parameters converted to the types of the table's columns."""
    bound = (_bind_demand(demand, table, values) for demand in demands)
    return tuple(condition for condition in bound if condition is not None)


def bind_term(term: exp.Expr, columns: Mapping[str, Column]) -> tuple[Condition, ...]:
    """A condition without parameters on columns of these names; empty if it says more than conditions can."""
    demands = [demand for _, demand in _read_term(term)]
    if isinstance(term, exp.Like) or len(demands) != (2 if isinstance(term, exp.Between) else 1):
        return ()
    bound = [_bind(demand, columns[demand.column], ()) for demand in demands if demand.column in columns]
    found = tuple(condition for condition in bound if condition is not None)
    return found if len(found) == len(demands) else ()


def _bind_demand(demand: SeekCondition, table: Table, values: Sequence[Any]) -> Condition | None:
    if demand.comparison is SeekOperator.HOLDS:
        return _bind_form(demand, table)
    column = table.column_by_name.get(demand.column)
    if demand.form is not None:
        column = virtual_column(demand.form, table)
    return None if column is None else _bind(demand, column, values)


def _bind_form(demand: SeekCondition, table: Table) -> Condition | None:
    """Only compared with predicates of partial indexes."""
    if demand.form is None or all(index.where is None for index in table.secondary):
        return None
    text = demand.form.bind(table)
    return None if text is None else MeetsCondition(text)


def _values_of(operand: Given | Argument | ListArgument, values: Sequence[Any]) -> Sequence[Any]:
    match operand:
        case Given(value):
            return (value,)
        case Argument(number):
            return (values[number - 1],)
        case ListArgument(number):
            listed: Sequence[Any] = values[number - 1]
            return listed


def _bind(demand: SeekCondition, column: Column, values: Sequence[Any]) -> Condition | None:
    if demand.comparison is SeekOperator.IS_NULL:
        return IsNull(column.id)
    given = list(chain.from_iterable(_values_of(operand, values) for operand in demand.operands))
    if demand.comparison is SeekOperator.LIKE:
        pattern = _PREFIX_PATTERN.fullmatch(given[0]) if isinstance(given[0], str) else None
        return StartsWith(column.id, pattern[1]) if pattern and column.type.kind in _TEXTS else None
    if any(isinstance(value, str) and column.type.kind not in _READ_ALIKE for value in given):
        return None
    convert = key_converter(column.type)
    try:
        converted = [convert(value) for value in given]
    except (NotByKey, errors.Error):
        # Evaluation reports the error, if it is one.
        return None
    if demand.comparison is SeekOperator.AMONG:
        return Among(column.id, tuple(value for value in converted if value is not NOTHING))
    return None if converted[0] is NOTHING else _bind_range(demand.comparison, column, converted[0])


def _bind_range(comparison: SeekOperator, column: Column, value: Any) -> Condition:
    inclusive = comparison in (SeekOperator.ABOVE_OR_EQUAL, SeekOperator.BELOW_OR_EQUAL)
    above = comparison in (SeekOperator.ABOVE, SeekOperator.ABOVE_OR_EQUAL)
    return Above(column.id, value, inclusive) if above else Below(column.id, value, inclusive)
