"""Expressions in DDL: what each use may contain, and their DuckDB text with gaps for the columns.

**Invariant:** an expression is checked and translated once, when it is parsed. What a CHECK, a DEFAULT, a generated
column or USING may contain, and how volatile a function is, is data. Columns are gaps in the text until they are bound;
a sequence is the `sequence_call` of its name, which cannot occur in a literal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.model.relation import RelationName
from seachange.model.statements import (
    ColumnType,
    ExpressionDefinition,
    UserType,
    Volatility,
    WrittenExpression,
    sequence_call,
    typed_label,
)
from seachange.sql.bind.names import function_name
from seachange.sql.bind.query import bind_tree
from seachange.sql.bind.scope import BindCatalog, BoundColumn, Columns
from seachange.sql.bind.types import BoundType
from seachange.sql.compile.target import folded
from seachange.sql.compile.template import compile_template
from seachange.sql.compile.type_holes import UserCast
from seachange.sql.text.names import read_relation
from seachange.sql.text.tokens import Reader, split_script
from seachange.sql.text.tree import fold_names, parse_tree
from seachange.sql.translate.functions import TABLE_FUNCTIONS
from seachange.sql.translate.guard import text_of, user_type
from seachange.sql.translate.time_functions import spell_now
from seachange.sql.translate.typed import note_types

# Encloses the number of a column or sequence in generated text; no expression may contain it.
_GAP = "\x01"
_COLUMN_GAPS = re.compile(f'"{_GAP}c([0-9]+){_GAP}"')
_SEQUENCE_GAPS = re.compile(f'"{_GAP}s([0-9]+){_GAP}"')
_LABEL_GAPS = re.compile(f'"{_GAP}l([0-9]+){_GAP}"')
_INSTEAD = "Write an expression that depends on the row's own values only."
_CONTROL = re.compile("[\x00\x01]")
_STABLE: Final = """
    age current_catalog current_database current_date current_schema current_time current_timestamp current_user
    current_version localtime localtimestamp now session_user statement_timestamp transaction_timestamp
"""
_VOLATILE: Final = """
    clock_timestamp currval gen_random_uuid lastval nextval rand setval uuid
"""
VOLATILITIES: Final[dict[str, Volatility]] = {
    **dict.fromkeys(_STABLE.split(), Volatility.STABLE),
    **dict.fromkeys(_VOLATILE.split(), Volatility.VOLATILE),
}
# From the strictest to the least strict.
ORDER: Final = tuple(Volatility)


@dataclass(frozen=True, slots=True)
class Use:
    """The context of an expression: `name` as in PostgreSQL's messages, and what is allowed there."""

    name: str
    columns: bool
    volatility: Volatility
    # Whether a function that is too volatile makes the definition invalid, rather than unsupported.
    invalid: bool = False


CHECK = Use("check constraints", columns=True, volatility=Volatility.IMMUTABLE)
DEFAULT = Use("DEFAULT expressions", columns=False, volatility=Volatility.VOLATILE)
GENERATED = Use("column generation expressions", columns=True, volatility=Volatility.IMMUTABLE, invalid=True)
INDEX = Use("index expressions", columns=True, volatility=Volatility.IMMUTABLE, invalid=True)
PREDICATE = Use("index predicates", columns=True, volatility=Volatility.IMMUTABLE, invalid=True)
TRANSFORM = Use("transform expressions", columns=True, volatility=Volatility.VOLATILE)
UP = Use("UP expressions", columns=True, volatility=Volatility.IMMUTABLE, invalid=True)
DOWN = Use("DOWN expressions", columns=True, volatility=Volatility.IMMUTABLE, invalid=True)
SINCE = Use("SET expressions", columns=True, volatility=Volatility.IMMUTABLE, invalid=True)

USES: Final = {use.name: use for use in (CHECK, DEFAULT, GENERATED, INDEX, PREDICATE, TRANSFORM, UP, DOWN, SINCE)}
# What an expression is parsed behind.
_BEFORE: Final = "SELECT (\n"


@dataclass(frozen=True, slots=True)
class RowCatalog:
    """The columns that an expression sees, and the types that it may name."""

    known: Sequence[BoundColumn]
    types: BindCatalog
    table: str = "row"

    def columns(self, schema: str | None, name: str) -> Columns:
        return self.known

    def user_type(self, schema: str | None, name: str) -> BoundType | None:
        return self.types.user_type(schema, name)

    def enum_name(self, number: int) -> str:
        return self.types.enum_name(number)


def bind_expression(written: WrittenExpression, row: RowCatalog) -> ExpressionDefinition:
    """The expression for columns of these types. Raises what PostgreSQL does where they do not fit."""
    return compile_expression(written.text, USES[written.use], written.target, row)


def compile_expression(
    text: str, use: Use, target: ColumnType | None = None, row: RowCatalog | None = None
) -> ExpressionDefinition:
    """`target` is the type of the column that gets the value. The value is cast to it in any case, so a final cast of
    the expression is removed: DuckDB cannot cast to user-defined types."""
    try:
        # A parent, so that the root is replaced like any other node.
        select = exp.Select(expressions=[_without_cast(_parse(text, use), target)])
        if row is not None:
            _note_types(select, use, row)
        spell_now(select)
        # Searched in the tree, since an escape may denote such a character.
        if any(_CONTROL.search(text_of(node)) for node in select.walk()):
            raise errors.SyntaxProblem(detail=f"control characters are not allowed in {use.name}")
        _refuse_constructs(select.expressions[0], use)
        volatility = _check_volatility(select.expressions[0], use)
        sequences = _cut_sequences(select)
        labels = _cut_labels(select)
        columns = _cut_columns(select, use)
        template = compile_template(select, timed=False)
    except RecursionError:
        raise errors.StatementTooComplex() from None
    except errors.Error as error:
        if error.place is not None and error.place.part is None:
            error.place = replace(error.place, offset=error.place.offset - len(_BEFORE), part=text)
        raise
    if any(isinstance(hole, UserCast) for hole in template.types):
        raise errors.FeatureNotSupported(
            feature=f"a cast to a user-defined type in {use.name}", instead="Cast a label, or omit the cast."
        )
    if template.session_values:
        raise errors.FeatureNotSupported(
            feature=f"the user or database of the session in {use.name}", instead="Write the value in the statement."
        )
    # DuckDB's text may use the columns in another order than the user's, or repeat one.
    parts = _COLUMN_GAPS.split(template.pieces[0].removeprefix("SELECT "))
    pieces = [_SEQUENCE_GAPS.sub(lambda gap: sequence_call(sequences[int(gap[1])]), part) for part in parts[0::2]]
    pieces = [_LABEL_GAPS.sub(lambda gap: labels[int(gap[1])], piece) for piece in pieces]
    used = tuple(columns[int(number)] for number in parts[1::2])
    written = WrittenExpression(text, use.name, target)
    return ExpressionDefinition(tuple(pieces), used, volatility, tuple(dict.fromkeys(sequences)), written)


def _note_types(select: exp.Select, use: Use, row: RowCatalog) -> None:
    """Binds the expression as one over the columns of a row."""
    table = exp.Table(this=exp.to_identifier(row.table, quoted=True))
    select.set("from_", exp.From(this=table))
    bound_tree = fold_names(select)
    for column in select.find_all(exp.Column):
        if column.table not in ("", row.table):
            raise errors.UnresolvedTable(detail=f'missing FROM-clause entry for table "{column.table}"')
    found = bind_tree(bound_tree, row).found
    if use in (CHECK, PREDICATE):
        condition = select.expressions[0]
        found.check_condition(condition, found.types.get(id(condition)), use.name)
    note_types(found, labels=False)
    select.set("from_", None)


def _parse(text: str, use: Use) -> exp.Expr:
    """The expression in exactly one pair of parentheses, so that it can be used anywhere."""
    statements = split_script(f"{_BEFORE}{text}\n)")
    tree = parse_tree(statements[0])
    if len(statements) != 1 or not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
        raise errors.SyntaxProblem(detail=f"in {use.name}: one expression is expected")
    found: exp.Expr = tree.expressions[0]
    while isinstance(found, exp.Paren) and isinstance(found.this, exp.Paren):
        found = found.this
    if not isinstance(found, exp.Paren | exp.Query):
        raise errors.SyntaxProblem(detail=f"in {use.name}: one expression is expected")
    return found.pop()


def _without_cast(tree: exp.Expr, target: ColumnType | None) -> exp.Expr:
    value = tree.this
    while isinstance(target, UserType) and isinstance(value, exp.Cast) and user_type(_element(value.to)) == target.name:
        value = value.this.unnest()
        tree.set("this", value)
    return tree


def _element(type_: exp.DataType) -> exp.DataType:
    is_list = type_.is_type(exp.DType.ARRAY) and len(type_.expressions) == 1
    return type_.expressions[0] if is_list else type_


def _refuse_constructs(tree: exp.Expr, use: Use) -> None:
    """Rejects constructs that have no value for a single row, with PostgreSQL's errors."""
    if tree.find(exp.Query):
        raise errors.FeatureNotSupported(feature=f"a subquery in {use.name}", instead=_INSTEAD)
    if tree.find(exp.Window):
        raise errors.WindowingProblem(detail=f"window functions are not allowed in {use.name}")
    if tree.find(exp.AggFunc):
        raise errors.GroupingProblem(detail=f"aggregate functions are not allowed in {use.name}")
    if tree.find(exp.Parameter, exp.Placeholder):
        raise errors.SyntaxProblem(detail=f"parameters are not allowed in {use.name}")
    if tree.find(exp.Alias, exp.Star):
        raise errors.SyntaxProblem(detail=f"in {use.name}: one expression is expected")
    for call in tree.find_all(exp.Func):
        if function_name(call) in TABLE_FUNCTIONS:
            raise errors.FeatureNotSupported(feature=f"a set-returning function in {use.name}", instead=_INSTEAD)


def _check_volatility(tree: exp.Expr, use: Use) -> Volatility:
    found, function = most_volatile(tree)
    if ORDER.index(found) <= ORDER.index(use.volatility):
        return found
    if use.invalid:
        detail = f"functions in {use.name} must be immutable, and {function} is {found}"
        raise errors.InvalidObjectDefinition(detail=detail)
    raise errors.FeatureNotSupported(
        feature=f"function {function} in {use.name}", instead="Use functions of the row's values only."
    )


def _cut_columns(select: exp.Expr, use: Use) -> list[str]:
    columns: list[str] = []
    for column in list(select.find_all(exp.Column)):
        if column.name.startswith(_GAP):
            continue
        if not use.columns:
            raise errors.FeatureNotSupported(
                feature=f'column "{column.name}" in {use.name}', instead="Use a generated column."
            )
        # That the name before it is that of the table is found out when the expression is bound.
        columns.append(folded(column.this))
        column.replace(exp.column(f"{_GAP}c{len(columns) - 1}{_GAP}", quoted=True))
    return columns


def _cut_labels(select: exp.Expr) -> list[str]:
    """Labels that are cast to an enum type: the catalog resolves the type and checks the label."""
    labels: list[str] = []
    for cast in list(select.find_all(exp.Cast)):
        value, type_ = cast.this.unnest(), user_type(cast.to)
        if type_ is not None and isinstance(value, exp.Literal) and value.is_string:
            labels.append(typed_label(type_, value.name))
            cast.replace(exp.column(f"{_GAP}l{len(labels) - 1}{_GAP}", quoted=True))
    return labels


def _cut_sequences(select: exp.Expr) -> list[RelationName]:
    """DuckDB has a function of this name for its own sequences: ours is inserted after the text has been checked."""
    sequences: list[RelationName] = []
    for call in [c for c in select.find_all(exp.Anonymous) if c.name.lower() == "nextval"]:
        sequences.append(_read_sequence(call))
        call.replace(exp.column(f"{_GAP}s{len(sequences) - 1}{_GAP}", quoted=True))
    return sequences


def _read_sequence(call: exp.Anonymous) -> RelationName:
    arguments = [a.this if isinstance(a, exp.Cast) else a for a in call.expressions]
    if len(arguments) != 1 or not isinstance(arguments[0], exp.Literal) or not arguments[0].is_string:
        raise errors.FeatureNotSupported(
            feature="nextval of anything but a name", instead="Write nextval('sequence_name')."
        )
    statements = split_script(arguments[0].name)
    if len(statements) != 1:
        raise errors.SyntaxProblem(detail="nextval requires the name of a sequence")
    reader = Reader(statements[0].words, statements[0].text)
    name = read_relation(reader)
    reader.expect_end()
    return name


# Volatility of functions, by the names that sqlglot gives them.
#
# A function that is not listed is immutable. Functions of time zones are, since stored expressions are evaluated in
# UTC.
def most_volatile(tree: exp.Expr) -> tuple[Volatility, str | None]:
    """The volatility of an expression, and a function that causes it."""
    worst, due_to = Volatility.IMMUTABLE, None
    for node in tree.find_all(exp.Func):
        name = function_name(node)
        found = VOLATILITIES.get(name, Volatility.IMMUTABLE)
        if ORDER.index(found) > ORDER.index(worst):
            worst, due_to = found, name
    return worst, due_to
