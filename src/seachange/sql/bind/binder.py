"""The binder: walks a statement once and determines the type of every expression, every parameter and every result
column, by PostgreSQL's rules.

It does no I/O and changes no node. **Invariant:** a type is the one that PostgreSQL determines, or None; what depends
on a type that is None is None, unless it has the same type in any case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.bind.calls import RESULTS, arguments, called
from seachange.sql.bind.cast_types import cast_type
from seachange.sql.bind.conversions import check_cast
from seachange.sql.bind.expressions import WRAPPERS, BindNode, Expressions, parameter_number
from seachange.sql.bind.names import is_call
from seachange.sql.bind.overloads import Chosen, NoMatch, choose_function, common_type
from seachange.sql.bind.scope import SYSTEM_COLUMNS, NameScope, NoCatalog
from seachange.sql.bind.sorting import bind_order
from seachange.sql.bind.types import (
    BIGINT,
    BOOLEAN,
    INTEGER,
    NUMERIC,
    RECORD,
    TEXT,
    UNKNOWN,
    BoundType,
    array_type,
    element_of,
    named,
)

_INTEGER_MAX: Final = 2**31 - 1
_BIGINT_MAX: Final = 2**63 - 1
_OPERATORS: Final[dict[type[exp.Expr], str]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.Pow: "^",
    exp.DPipe: "||",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "#",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "=",
    exp.NullSafeNEQ: "=",
    exp.Like: "~~",
    exp.ILike: "~~*",
    exp.RegexpLike: "~",
    exp.RegexpILike: "~*",
    exp.JSONExtract: "->",
    exp.JSONExtractScalar: "->>",
    exp.JSONBExtract: "#>",
    exp.JSONBExtractScalar: "#>>",
    exp.ArrayContainsAll: "@>",
    exp.ArrayContainedBy: "<@",
    exp.ArrayOverlaps: "&&",
    # Of networks, by the tokens that the parser has for those of ranges.
    exp.ExtendsLeft: "<<=",
    exp.ExtendsRight: ">>=",
    exp.JSONBContainsTopKey: "?",
    exp.JSONBContainsAnyTopKeys: "?|",
    exp.JSONBContainsAllTopKeys: "?&",
    exp.JSONBDeleteAtPath: "#-",
}
_PREFIXES: Final[dict[type[exp.Expr], str]] = {
    exp.Neg: "-",
    exp.BitwiseNot: "~",
    exp.Sqrt: "|/",
    exp.Cbrt: "||/",
    exp.Abs: "@",
}
# Values that become of one type, with the word for them in error messages.
_MEETINGS: Final[dict[type[exp.Expr], str]] = {
    exp.Coalesce: "COALESCE",
    exp.Greatest: "GREATEST",
    exp.Least: "LEAST",
    exp.Array: "ARRAY",
}
_QUANTIFIERS: Final = frozenset({"all", "any", "some"})
_STRINGS: Final = (exp.ByteString, exp.UnicodeString, exp.RawString, exp.National)


def bind_node(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType | None:
    bind = _BINDERS.get(type(node))
    if bind is not None:
        return bind(found, node, scope)
    if isinstance(node, exp.Query):
        return _scalar(found, node, scope)
    if isinstance(node, exp.Func):
        return _call(found, node, scope)
    for child in node.iter_expressions():
        found.bind(child, scope)
    return BOOLEAN if isinstance(node, exp.Predicate) else None


def _literal(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType:
    if not isinstance(node, exp.Literal) or node.is_string:
        return UNKNOWN
    text = node.name
    if not text.isdigit():
        return NUMERIC
    number = int(text) if len(text) < 20 else _BIGINT_MAX + 1
    return INTEGER if number <= _INTEGER_MAX else BIGINT if number <= _BIGINT_MAX else NUMERIC


def _column(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType | None:
    if not isinstance(node.this, exp.Identifier):
        return None
    source = node.args.get("table")
    qualifier = source.name if source is not None else ""
    column = scope.find_column(qualifier, node.this.name)
    if column is not None:
        return column.type
    if not isinstance(found.catalog, NoCatalog) and scope.lacks(qualifier, node.this.name):
        raise _undefined_column(qualifier, node.this.name, scope)
    if source is not None:
        return None
    whole = scope.find_source(node.this.name)
    if whole is not None and whole.row == RECORD:
        found.rows.append((node, whole.columns))
    return whole.row if whole is not None else None


def _undefined_column(source: str, name: str, scope: NameScope) -> errors.Error:
    if name in SYSTEM_COLUMNS and (not source or scope.has_source(source)):
        return errors.FeatureNotSupported(feature=f"system column {name}", instead="Name the row by its key.")
    if not source:
        return errors.UnresolvedColumn(detail=f'column "{name}" does not exist')
    if scope.has_source(source):
        return errors.UnresolvedColumn(detail=f"column {source}.{name} does not exist")
    return errors.UnresolvedTable(detail=f'missing FROM-clause entry for table "{source}"')


def _parameter(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType | None:
    number = parameter_number(node) if isinstance(node, exp.Parameter) else None
    if number is None:
        return None
    type_ = found.parameters.get(number)
    if type_ is not None:
        found.converted.append((node, type_))
    return type_ or UNKNOWN


def _cast(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType | None:
    source = found.bind(node.this, scope)
    type_ = cast_type(node.args["to"], found.catalog)
    check_cast(source, type_, node, found.shown)
    found.assign(node.this, type_)
    return type_


def _wrapped(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType | None:
    return found.bind(node.this, scope)


def _operator(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType | None:
    if is_call(node):
        return _call(found, node, scope)
    left, right = node.this, node.args["expression"]
    if isinstance(left, exp.Tuple) or isinstance(right, exp.Tuple):
        return _rows(found, node, scope)
    name = _OPERATORS[type(node)]
    listed = _quantified_operand(right)
    if listed is not None:
        return _quantified(found, node, name, listed, scope)
    types = [found.bind(left, scope), _json_key(right) or found.bind(right, scope)]
    if types[0] == RECORD or types[1] == RECORD:
        return BOOLEAN if isinstance(node, exp.Predicate) else None
    chosen = found.operate(name, (left, right), types, node)
    return chosen.result if chosen is not None else BOOLEAN if isinstance(node, exp.Predicate) else None


def _json_key(node: exp.Expr) -> BoundType | None:
    """The operand of -> as the parser leaves it: a path of one step."""
    if not isinstance(node, exp.JSONPath):
        return None
    last = node.expressions[-1] if node.expressions else None
    return INTEGER if isinstance(last, exp.JSONPathSubscript) else TEXT


def _rows(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType:
    """A comparison of rows, column by column."""
    left, right = node.this, node.args["expression"]
    if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple) and len(left.expressions) == len(right.expressions):
        for pair in zip(left.expressions, right.expressions, strict=True):
            found.operate("=", pair, [found.bind(each, scope) for each in pair])
    else:
        for each in (left, right):
            found.bind(each, scope)
    return BOOLEAN


def _quantified_operand(node: exp.Expr) -> exp.Expr | None:
    """That of ANY, ALL or SOME; the parser represents some of them as calls."""
    if isinstance(node, exp.Any | exp.All):
        operand: exp.Expr = node.this
        return operand
    if isinstance(node, exp.Anonymous) and node.name.lower() in _QUANTIFIERS and len(node.expressions) == 1:
        called: exp.Expr = node.expressions[0]
        return called
    return None


def _quantified(found: Expressions, node: exp.Expr, name: str, right: exp.Expr, scope: NameScope) -> BoundType:
    """left = ANY (array), or of a query."""
    left = node.this
    inner = right.unnest() if isinstance(right, exp.Paren) else right
    if isinstance(inner, exp.Query):
        types = [found.bind(left, scope), found.bind(inner, scope)]
        found.operate(name, (left, inner), types, node)
        return BOOLEAN
    type_, listed = found.bind(left, scope), found.bind(right, scope)
    element = UNKNOWN if listed == UNKNOWN else element_of(listed) if listed is not None else None
    chosen = found.operate(name, (left, exp.Null()), [type_, element], node)
    wanted = chosen.arguments[1] if chosen is not None else None
    found.convert(right, array_type(wanted) if wanted is not None else None)
    return BOOLEAN


def _prefixed(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType | None:
    if is_call(node):
        return _call(found, node, scope)
    type_ = found.bind(node.this, scope)
    chosen = found.operate(_PREFIXES[type(node)], (node.this,), [type_], node)
    return chosen.result if chosen is not None else None


def _connected(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType:
    word = "AND" if isinstance(node, exp.And) else "OR" if isinstance(node, exp.Or) else "NOT"
    for operand in node.flatten() if isinstance(node, exp.And | exp.Or) else (node.this,):
        found.bind_condition(operand, scope, word)
    return BOOLEAN


def _is(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType:
    if isinstance(node.args["expression"], exp.Boolean):
        found.bind_condition(node.this, scope, "IS TRUE")
    else:
        found.bind(node.this, scope)
    return BOOLEAN


def _between(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType:
    value = found.bind(node.this, scope)
    for name, key in ((">=", "low"), ("<=", "high")):
        bound = node.args[key]
        found.operate(name, (node.this, bound), [value, found.bind(bound, scope)], node)
        value = found.types.get(id(node.this), value)
    return BOOLEAN


def _in(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType:
    value = found.bind(node.this, scope)
    query = node.args.get("query")
    if query is not None:
        columns = found.bind_query(found, query, scope)
        if columns is not None and len(columns) == 1 and not isinstance(node.this, exp.Tuple):
            found.operate("=", (node.this, query), [value, columns[0].type], node)
        return BOOLEAN
    items = node.expressions
    types = [found.bind(item, scope) for item in items]
    if isinstance(node.this, exp.Tuple) or value == RECORD:
        return BOOLEAN
    known = [type_ for type_ in [value, *types] if type_ is not None]
    met = common_type(known) if len(known) == len(types) + 1 else None
    if met is not None:
        for item in (node.this, *items):
            found.convert(item, met)
        found.note(node, "=", (value, *types), Chosen((met,) * (len(types) + 1), BOOLEAN))
    else:
        for item, type_ in zip(items, types, strict=True):
            found.operate("=", (node.this, item), [value, type_], node)
    return BOOLEAN


def _tested(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType:
    for child in node.iter_expressions():
        found.bind(child, scope)
    return BOOLEAN


def _case(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType | None:
    subject = node.args.get("this")
    type_ = found.bind(subject, scope) if subject is not None else None
    results = []
    for branch in node.args["ifs"]:
        if subject is None:
            found.bind_condition(branch.this, scope, "CASE/WHEN")
        else:
            found.operate("=", (subject, branch.this), [type_, found.bind(branch.this, scope)])
        results.append(branch.args["true"])
    if node.args.get("default") is not None:
        # PostgreSQL looks at it first.
        results.insert(0, node.args["default"])
    return found.meet(results, [found.bind(result, scope) for result in results], "CASE")


def _meeting(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType | None:
    nodes = [item for item in (node.args.get("this"), *node.expressions) if isinstance(item, exp.Expr)]
    if isinstance(node, exp.Array) and len(nodes) == 1 and isinstance(nodes[0], exp.Query):
        columns = found.bind_query(found, nodes[0], scope)
        return array_type(columns[0].type) if columns and columns[0].type is not None else None
    types = [found.bind(item, scope) for item in nodes]
    if not nodes:
        return UNKNOWN
    met = found.meet(nodes, types, _MEETINGS[type(node)])
    return array_type(met) if met is not None and isinstance(node, exp.Array) and not met.is_array else met


def _nullif(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType | None:
    pair = (node.this, node.args["expression"])
    types = [found.bind(each, scope) for each in pair]
    chosen = found.operate("=", pair, types)
    left = types[0]
    return (chosen.arguments[0] if chosen is not None else None) if left == UNKNOWN else left


def _bracket(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType | None:
    inner = found.bind(node.this, scope)
    for item in node.expressions:
        found.bind(item, scope)
    if inner is None or inner.name == "jsonb" or any(isinstance(item, exp.Slice) for item in node.expressions):
        return inner
    # Of an array of several dimensions, all subscripts together give an element.
    return inner if isinstance(node.this, exp.Bracket) and not inner.is_array else element_of(inner)


def _at_zone(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType | None:
    """AT TIME ZONE is a call of timezone(zone, time)."""
    nodes = (node.args["zone"], node.this)
    return _choose_function(found, node, "timezone", nodes, [found.bind(each, scope) for each in nodes])


def _window(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType | None:
    for item in node.args.get("partition_by") or ():
        found.bind(item, scope)
    if node.args.get("order") is not None:
        bind_order(found, node.args["order"].expressions, scope)
    return found.bind(node.this, scope)


def _filter(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType | None:
    found.bind_condition(node.args["expression"].this, scope, "FILTER")
    return found.bind(node.this, scope)


def _within_group(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType | None:
    """An ordered-set aggregate: what it is ordered by is its last argument."""
    ordered = [item.this for item in node.args["expression"].expressions]
    nodes = [*arguments(node.this), *ordered]
    types = [found.bind(item, scope) for item in nodes]
    return _choose_function(found, node, called(node.this), nodes, types)


def _scalar(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType | None:
    columns = found.bind_query(found, node, scope)
    return columns[0].type if columns else None


def _exists(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType:
    found.bind_query(found, node.this, scope)
    return BOOLEAN


def _call(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType | None:
    nodes = list(arguments(node))
    types = [found.bind(item, scope) for item in nodes]
    for order in node.find_all(exp.Order) if any(isinstance(v, exp.Order) for v in node.args.values()) else ():
        bind_order(found, order.expressions, scope)
    name = called(node)
    if name in RESULTS:
        return RESULTS[name]
    if name == "count":
        return BIGINT
    if isinstance(node, exp.TimestampTrunc):
        nodes, types = [exp.Null(), *nodes[:1]], [TEXT, *types[:1]]
    return _choose_function(found, node, name, nodes, types)


def _choose_function(
    found: Expressions, node: exp.Expr, name: str, nodes: Sequence[exp.Expr], types: Sequence[BoundType | None]
) -> BoundType | None:
    try:
        chosen = choose_function(name, tuple(types))
    except KeyError:
        return None
    except NoMatch:
        # Other calls may have arguments in another order here.
        if isinstance(node, exp.AggFunc) and len(types) == 1 and types[0] is not None:
            detail = f"function {name}({found.shown(types[0])}) does not exist"
            raise errors.UndefinedFunction(detail=detail) from None
        return None
    for argument, type_ in zip(nodes, chosen.arguments, strict=True):
        found.convert(argument, type_)
    found.note(node, name, types, chosen)
    return chosen.result


def _constant(type_: BoundType) -> BindNode:
    return lambda found, node, scope: type_


_BINDERS: Final[Mapping[type[exp.Expr], BindNode]] = {
    exp.Literal: _literal,
    exp.Null: _constant(UNKNOWN),
    exp.Boolean: _constant(BOOLEAN),
    exp.Interval: _constant(named("interval")),
    **dict.fromkeys(_STRINGS, _literal),
    exp.Column: _column,
    exp.Parameter: _parameter,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    **dict.fromkeys(WRAPPERS, _wrapped),
    **dict.fromkeys(_OPERATORS, _operator),
    **dict.fromkeys(_PREFIXES, _prefixed),
    **dict.fromkeys((exp.And, exp.Or, exp.Not), _connected),
    **dict.fromkeys(_MEETINGS, _meeting),
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Case: _case,
    exp.Nullif: _nullif,
    exp.Bracket: _bracket,
    exp.AtTimeZone: _at_zone,
    exp.Window: _window,
    exp.Filter: _filter,
    exp.WithinGroup: _within_group,
    **dict.fromkeys((exp.Escape, exp.MatchAgainst, exp.JSONBPathExists, exp.StartsWith), _tested),
    exp.Subquery: _scalar,
    exp.Exists: _exists,
}
