"""Time zone dependence of expressions: which part depends on the session's zone, and how to fix it to a named zone.

**Invariant:** an expression that is not known to be zone-independent counts as dependent: a new function is rejected
rather than wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from sqlglot import exp

from seachange.sql.bind.names import function_name
from seachange.storage.duck_functions import PREFIX
from seachange.values.canonical import format_canonical
from seachange.values.coercion import coerce
from seachange.values.types import Kind, SqlType

ZONED: Final = "TIMESTAMP WITH TIME ZONE"
_MOMENT: Final = SqlType(Kind.TIMESTAMPTZ)
# Types that a time zone converts timestamptz from or to; the length of an interval of days depends on the zone.
_LOCAL: Final = frozenset({"TIMESTAMP", "DATE", "TIME", "VARCHAR"})
_VALUES: Final = (exp.Condition, exp.AtTimeZone)

# Operations among timestamptz values: their order and distance are the same in every zone.
_ALIKE: Final = (
    *(exp.Paren, exp.Is, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Between, exp.In, exp.Coalesce, exp.Case, exp.Greatest, exp.Least, exp.Nullif, exp.Sub, exp.Array),
)
_ALIKE_CALLS: Final = frozenset({"age", "date_bin", "isfinite"})
# These name a zone, or count from a fixed instant.
_PLACED_CALLS: Final = frozenset({"timezone", "to_timestamp", "unix_to_time"})
# Hours (unlike days) and seconds since 1970 are the same in every zone; PostgreSQL calls neither immutable.
_OF_HOURS: Final = "0 months 0 days "
_SINCE_1970: Final = frozenset({"EPOCH", "epoch"})

# Of a timestamptz they return a field of its local time.
_READERS: Final = frozenset({PREFIX + "time", PREFIX + "to_char"})
_TRUNCATED: Final = PREFIX + "truncated"
_READ_AS: Final = frozenset({"TIMESTAMP", "DATE", "TIME"})
_SHOWS_ZONE: Final = ("tz", "of")

TypesOf = Callable[[Sequence[exp.Expr]], Sequence[str]]


class Typed:
    """A tree with the types of its values, as DuckDB infers them: it may cast implicitly."""

    def __init__(self, tree: exp.Expr, types_of: TypesOf) -> None:
        self.tree = tree
        nodes = [n for n in tree.walk() if isinstance(n, _VALUES) and not isinstance(n, exp.Literal | exp.If)]
        self._types = {id(node): type_ for node, type_ in zip(nodes, types_of(nodes), strict=True)}

    def type(self, node: exp.Expr) -> str:
        return self._types.get(id(node), "")

    def is_zoned(self, node: exp.Expr) -> bool:
        return ZONED in self.type(node)


def find_dependent(typed: Typed, strict: bool) -> exp.Expr | None:
    """A part whose value depends on the zone; `strict`: also one that PostgreSQL would not call immutable."""
    for node in typed.tree.walk():
        operands = [operand for group in _groups(node) for operand in group]
        if not typed.is_zoned(node) and not any(map(typed.is_zoned, operands)):
            continue
        if not _is_same(typed, node, operands, strict):
            return node
    return None


def _groups(node: exp.Expr) -> Iterator[list[exp.Expr]]:
    """The operands of a node, grouped by those that must have one type."""
    if isinstance(node, exp.If):
        return
    if isinstance(node, exp.Case):
        ifs = node.args["ifs"]
        compared = [node.this, *(branch.this for branch in ifs)] if node.this is not None else []
        results = [*(branch.args["true"] for branch in ifs), node.args.get("default")]
        yield compared
        yield [result for result in results if result is not None]
        return
    yield [child for child in node.iter_expressions() if isinstance(child, _VALUES)]


def _is_same(typed: Typed, node: exp.Expr, operands: Sequence[exp.Expr], strict: bool) -> bool:
    if not operands or isinstance(node, exp.AtTimeZone):
        return True
    if isinstance(node, exp.Cast):
        return isinstance(node.this, exp.Literal | exp.Null) or typed.type(node.this) == typed.type(node)
    if isinstance(node, exp.Extract) and node.this.name in _SINCE_1970:
        return not strict
    lengths = [operand for operand in operands if typed.type(operand) == "INTERVAL"]
    if isinstance(node, exp.Add | exp.Sub) and lengths:
        return not strict and all(map(_is_of_hours, lengths))
    if isinstance(node, exp.Func):
        name = function_name(node)
        if name in _PLACED_CALLS or (name == "make_timestamptz" and len(operands) == 1):
            return True
        if name in _ALIKE_CALLS:
            return not _mixes(typed, operands)
    return isinstance(node, _ALIKE) and not any(_mixes(typed, group) for group in _groups(node))


def _mixes(typed: Typed, group: Sequence[exp.Expr]) -> bool:
    """Whether a group mixes timestamptz with local times. Literals are resolved when the statement is run."""
    types = {typed.type(operand) for operand in group}
    return any(ZONED in type_ for type_ in types) and not _LOCAL.isdisjoint(types)


def _is_of_hours(length: exp.Expr) -> bool:
    literals = list(length.find_all(exp.Literal))
    columns = length.find(exp.Column)
    return columns is None and any(literal.name.startswith(_OF_HOURS) for literal in literals if literal.is_string)


def resolve_literals(typed: Typed) -> bool:
    """Replaces string literals that are read as timestamptz by their instants in the session's zone; returns whether
    there were any."""
    found = []
    for node in typed.tree.walk():
        if isinstance(node, exp.Cast):
            found += [node.this] if node.to.is_type(exp.DType.TIMESTAMPTZ) else []
        elif isinstance(node, _ALIKE):
            found += [one for group in _groups(node) if any(map(typed.is_zoned, group)) for one in group]
    literals = [node for node in found if isinstance(node, exp.Literal) and node.is_string]
    for literal in literals:
        moment = format_canonical(_MOMENT, coerce(_MOMENT, literal.name))
        literal.replace(exp.cast(exp.Literal.string(moment), exp.DType.TIMESTAMPTZ))
    return bool(literals)


def localize(typed: Typed, zone: str) -> bool:
    """Fixes local times to a zone, where an expression can say so; returns whether there were any."""
    changed = False
    # From the top and in place: types are recorded by node.
    for node in list(typed.tree.walk()):
        match node:
            case exp.Cast() if typed.is_zoned(node) and typed.type(node.this) in ("TIMESTAMP", "DATE"):
                node.set("to", exp.DataType.build("TIMESTAMP", dialect="duckdb"))
                _put_in_zone(node, zone)
            case exp.TimestampTrunc() | exp.Anonymous() if (moment := _truncated(typed, node)) is not None:
                _put_in_zone(node, zone)
                _put_in_zone(moment, zone)
            case _:
                operand = _read_locally(typed, node)
                if operand is None:
                    continue
                _put_in_zone(operand, zone)
        changed = True
    return changed


def _truncated(typed: Typed, node: exp.Expr) -> exp.Expr | None:
    """The timestamptz that is truncated to a unit of local time; the result is a timestamptz again."""
    called = isinstance(node, exp.Anonymous) and node.name.lower() == _TRUNCATED
    moment = node.expressions[1] if called else node.this if isinstance(node, exp.TimestampTrunc) else None
    return moment if isinstance(moment, exp.Expr) and typed.type(moment) == ZONED else None


def _read_locally(typed: Typed, node: exp.Expr) -> exp.Expr | None:
    """The timestamptz whose local time a node reads."""
    match node:
        case exp.Cast():
            operand = node.this if typed.type(node) in _READ_AS else None
        case exp.Extract():
            operand = node.expression if node.this.name not in _SINCE_1970 else None
        case exp.Anonymous() if node.name.lower() in _READERS:
            shown = " ".join(one.name.lower() for one in node.expressions[1:])
            operand = node.expressions[0] if not any(words in shown for words in _SHOWS_ZONE) else None
        case _:
            operand = None
    return operand if operand is not None and typed.type(operand) == ZONED else None


def _put_in_zone(value: exp.Expr, zone: str) -> None:
    call = exp.Anonymous(this="TIMEZONE", expressions=[exp.Literal.string(zone)])
    value.replace(call)
    call.append("expressions", value)
