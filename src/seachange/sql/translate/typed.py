"""Translation by type: operators, calls and constants whose DuckDB form depends on the types that the binder has
determined. What it found is noted at the nodes, so that it stays with the copies of which a statement's queries are
made.

**Invariant:** where a type is not known, nothing is changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.bind.calls import arguments
from seachange.sql.bind.expressions import Expressions, Operation
from seachange.sql.bind.sorting import ORDER_BY
from seachange.sql.bind.types import BoundType
from seachange.sql.translate.mapped.trees import IS_BYTES, IS_JSON, IS_MOMENT, call, number
from seachange.storage.duck import AS_SPAN
from seachange.storage.duck_functions import PREFIX
from seachange.values.types import SqlType

# Keys of `meta`: of an operator or call; of a constant or parameter that has got its type from its place; of a source
# that is used as a value, with the names of its columns.
OPERATION: Final = "operation"
BECOMES: Final = "becomes"
ROW: Final = "row"
_SPECIAL: Final = frozenset({"jsonb", "json", "bpchar", "interval", "bytea", "int2"})
_ALWAYS: Final = frozenset({"||", "<<", ">>", "timezone", "round", "substring", "to_char", "date_trunc"})
# What to_char is of, by the categories of types.
_WRITTEN: Final = {"D": "moment", "T": "interval", "N": "number"}
_BINARY: Final = frozenset({"float4", "float8"})
_BITS: Final = {"int2": 16, "int4": 32, "int8": 64}
_INTERVAL: Final = exp.DataType.build("INTERVAL", dialect="duckdb")
_UTC: Final = "UTC"
# Categories of types that `||` shows by itself: strings, constants, and addresses.
_TEXTUAL: Final = frozenset({"S", "X", "I"})
# A zone with a fixed offset, which is west of Greenwich if it is positive.
_OFFSET: Final = re.compile(r"(?:[A-Za-z]{3,}|<[^>]*>)?([+-])(\d{1,2})(?::?(\d\d))?(?::(\d\d))?")
_ORDERED: Final = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)


def note_types(found: Expressions, labels: bool = True) -> None:
    """What is noted already is kept: parts of a statement are bound again without what surrounds them. `labels`:
    whether constants become values of enum types; definitions keep their texts."""
    for node, operation in found.operations:
        if node.meta_get(OPERATION) is None and (operation.name in _ALWAYS or any(map(_is_special, _types(operation)))):
            node.meta[OPERATION] = operation
    for node, type_ in found.converted:
        if node.meta_get(BECOMES) is None and _is_special(type_) and (labels or not _has_labels(type_)):
            node.meta[BECOMES] = type_
    for node, columns in found.rows:
        if node.meta_get(ROW) is None and columns is not None:
            node.meta[ROW] = [column.name for column in columns]


def _types(operation: Operation) -> tuple[BoundType | None, ...]:
    return (*operation.given, *operation.taken)


def _is_special(type_: BoundType | None) -> bool:
    return type_ is not None and (type_.name in _SPECIAL or type_.is_array or type_.is_enum)


def _has_labels(type_: BoundType) -> bool:
    return "enum:" in type_.name


def translate_by_type(tree: exp.Expr) -> exp.Expr:
    """From the inside out. The root is a statement, which has no type."""
    for node in reversed(list(tree.walk(bfs=True))):
        if not node._meta:
            continue
        operation, type_, row = node.meta_get(OPERATION), node.meta_get(BECOMES), node.meta_get(ROW)
        made: exp.Expr | None = None
        if operation is not None:
            made = _translate(node, operation)
        elif type_ is not None:
            made = _convert(node, type_)
        elif row is not None and _is_result(node):
            made = exp.Tuple(expressions=[exp.column(name, table=node.name, quoted=True) for name in row])
        if made is not None and made is not node:
            node.replace(made)
    return tree


def _is_result(node: exp.Expr) -> bool:
    """Whether it is a column of the statement's result."""
    query = node.parent.parent if isinstance(node.parent, exp.Alias) else node.parent
    return isinstance(query, exp.Select) and (query.parent is None or isinstance(query.parent, exp.SetOperation))


def _convert(node: exp.Expr, type_: BoundType) -> exp.Expr | None:
    """Labels of enum types are converted when the types are known (`compile/type_holes.py`)."""
    if isinstance(node, exp.Parameter):
        return exp.cast(node.copy(), _data_type(type_)) if type_.name in ("interval", "jsonb") else None
    if not isinstance(node, exp.Literal) or not node.is_string:
        return None
    if type_.name == "bpchar":
        node.set("this", node.name.rstrip(" "))
        return None
    if _has_labels(type_) or type_.declared is None or type_.name in ("int2", "json"):
        return None
    return exp.cast(node.copy(), _data_type(type_))


def _data_type(type_: BoundType) -> exp.DataType:
    return _INTERVAL.copy() if type_.name == "interval" else _written(type_.declared)


def _written(type_: SqlType | None) -> exp.DataType:
    return exp.DataType.build(str(type_.unmodified if type_ is not None else "text"), dialect="postgres")


def _translate(node: exp.Expr, operation: Operation) -> exp.Expr | None:
    translate = _BY_OPERATOR.get(operation.name)
    made = translate(node, operation) if translate is not None else None
    if made is None:
        _mark_documents(node, operation)
        _mark_bytes(node, operation)
    return made


def _mark_bytes(node: exp.Expr, operation: Operation) -> None:
    """Functions of bytes are told by their arguments."""
    if isinstance(node, exp.Func):
        for argument, given in zip(list(arguments(node)), operation.given, strict=False):
            if given is not None and given.name == "bytea":
                argument.meta[IS_BYTES] = True


def _concatenate(node: exp.Expr, operation: Operation) -> exp.Expr | None:
    """Of arrays, documents, bytes or texts."""
    if not isinstance(node, exp.DPipe):
        return None
    sides = [node.this, node.expression]
    result = operation.result
    if result is None:
        return None
    if result.is_array:
        lists = [
            side if taken is not None and taken.is_array else call("list_value", side)
            for side, taken in zip(sides, operation.taken, strict=True)
        ]
        return call(PREFIX + "joined", *lists)
    if result.name == "text":
        for key, given in zip(("this", "expression"), operation.given, strict=True):
            if given is not None and given.category not in _TEXTUAL:
                node.set(key, call(PREFIX + "text", node.args[key]))
    return None


def _shift(node: exp.Expr, operation: Operation) -> exp.Expr | None:
    """Bits that leave the number are lost, and the distance is one within it."""
    bits = _BITS.get(operation.result.name) if operation.result is not None else None
    if bits is None or not isinstance(node, exp.BitwiseLeftShift | exp.BitwiseRightShift):
        return None
    name = "shifted_left" if isinstance(node, exp.BitwiseLeftShift) else "shifted_right"
    made = call(PREFIX + name, node.this, node.expression, number(bits))
    return exp.cast(made, _written(operation.result.declared if operation.result is not None else None))


def _calculate(node: exp.Expr, operation: Operation) -> exp.Expr | None:
    """DuckDB gives a number that is written out the type of the other operand, where PostgreSQL has an integer."""
    if isinstance(node, exp.Div) and operation.result is not None and operation.result.name == "interval":
        return _divide_interval(node)
    if operation.result is None or operation.result.name != "int4" or not isinstance(node, exp.Binary):
        return None
    for other, given in zip(("expression", "this"), operation.given, strict=True):
        if given is not None and given.name == "int2" and isinstance(_bare(node.args[other]), exp.Literal):
            node.set(other, exp.cast(node.args[other].copy(), exp.DType.INT))
    return None


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    return node


def _divide_interval(node: exp.Expr) -> exp.Expr:
    made = call(PREFIX + "divided_interval", exp.cast(node.this.copy(), exp.DType.TEXT), _double(node.expression))
    return exp.cast(made, _INTERVAL.copy())


def _double(node: exp.Expr) -> exp.Expr:
    return exp.cast(node.copy(), exp.DType.DOUBLE)


def _compare(node: exp.Expr, operation: Operation) -> exp.Expr | None:
    """Documents are ordered by their values; a label is compared by its place."""
    if "jsonb" not in {type_.name for type_ in operation.taken if type_ is not None}:
        return None
    if isinstance(node, _ORDERED):
        _order_all(node, ("this", "expression", "low", "high"))
    elif isinstance(node, exp.In):
        _order_all(node, ("this",))
        node.set("expressions", [_ordering(item) for item in node.expressions])
    return None


def _order_all(node: exp.Expr, keys: tuple[str, ...]) -> None:
    for key in keys:
        if isinstance(node.args.get(key), exp.Expr):
            node.set(key, _ordering(node.args[key]))


def _ordering(node: exp.Expr) -> exp.Expr:
    """What orders documents, and distinguishes those that are not equal."""
    is_ordered = isinstance(node, exp.Anonymous) and node.name == PREFIX + "json_order"
    return node if is_ordered else call(PREFIX + "json_order", exp.cast(node.copy(), exp.DType.TEXT))


def _sort(node: exp.Expr, operation: Operation) -> exp.Expr | None:
    if operation.given[0] is None or operation.given[0].name != "jsonb" or not isinstance(node, exp.Ordered):
        return None
    value = node.this
    if isinstance(value, exp.Literal):
        query = node.find_ancestor(exp.Select, exp.SetOperation)
        place = int(value.name) - 1 if value.name.isdigit() else -1
        if not isinstance(query, exp.Select) or query.is_star or not 0 <= place < len(query.expressions):
            return None
        value = query.expressions[place].unalias()
    node.set("this", _ordering(value))
    return None


def _mark_documents(node: exp.Expr, operation: Operation) -> None:
    """Operators of documents are told by their operands."""
    if not isinstance(node, exp.Binary):
        return
    operands = [node.args.get("this"), node.args.get("expression")]
    for key, operand, taken in zip(("this", "expression"), operands, operation.taken, strict=False):
        if taken is None or taken.name != "jsonb" or not isinstance(operand, exp.Expr):
            continue
        if isinstance(operand, exp.Column | exp.Paren):
            operand.meta[IS_JSON] = True
        elif not isinstance(operand, exp.Literal | exp.Cast | exp.Parameter):
            marked = exp.Paren(this=operand.copy())
            marked.meta[IS_JSON] = True
            node.set(key, marked)


def _match(node: exp.Expr, operation: Operation) -> exp.Expr | None:
    if operation.given and isinstance(node.this, exp.Expr):
        node.set("this", _padded(node.this, operation.given[0]))
    return None


def _pad_arguments(node: exp.Expr, operation: Operation) -> exp.Expr | None:
    for argument, given in zip(list(arguments(node)), operation.given, strict=False):
        padded = _padded(argument, given)
        if padded is not argument:
            argument.replace(padded)
    return None


def _padded(node: exp.Expr, type_: BoundType | None) -> exp.Expr:
    """Values of char are kept without the spaces at their ends."""
    if type_ is None or type_.name != "bpchar" or type_.declared is None or not type_.declared.length:
        return node
    return call("rpad", node, number(type_.declared.length), exp.Literal.string(" "))


def _at_zone(node: exp.Expr, operation: Operation) -> exp.Expr | None:
    """AT TIME ZONE with an interval, or with an offset as POSIX writes them."""
    zone, moment = (node.args["zone"], node.this) if isinstance(node, exp.AtTimeZone) else node.expressions
    offset: exp.Expr = zone
    if operation.given[0] is None or operation.given[0].name != "interval":
        found = _OFFSET.fullmatch(zone.name.strip()) if isinstance(zone, exp.Literal) else None
        if found is None:
            return None
        sign, hours, minutes, seconds = found.groups()
        count = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
        offset = exp.cast(exp.Literal.string(f"{count if sign == '-' else -count} seconds"), _INTERVAL.copy())
    utc = exp.Literal.string(_UTC)
    given = exp.paren(moment.copy())
    if operation.result is not None and operation.result.name == "timestamp":
        local = exp.AtTimeZone(this=given, zone=utc)
        return exp.paren(exp.Add(this=local, expression=exp.paren(offset.copy())))
    if operation.result is not None and operation.result.name == "timestamptz":
        return exp.AtTimeZone(this=exp.paren(exp.Sub(this=given, expression=exp.paren(offset.copy()))), zone=utc)
    return None


def _truncate(node: exp.Expr, operation: Operation) -> exp.Expr | None:
    """A time of day is truncated as an interval."""
    given = operation.given[1] if len(operation.given) > 1 else None
    if given is None or not isinstance(node, exp.TimestampTrunc):
        return None
    if given.name == "time":
        node.set("this", call(AS_SPAN, node.this))
    elif given.category == "D" and node.find_ancestor(exp.Lateral) is not None:
        moment = exp.cast(node.this.copy(), _written(given.declared) if given.name != "date" else exp.DType.TIMESTAMPTZ)
        moment.meta[IS_MOMENT] = True
        node.set("this", moment)
    return None


def _round(node: exp.Expr, operation: Operation) -> exp.Expr | None:
    """Halves of numbers in binary are rounded to even ones."""
    given = operation.given[0]
    if len(operation.given) > 1 or given is None or given.name not in _BINARY:
        return None
    return call("round_even", node.this, number(0))


def _write(node: exp.Expr, operation: Operation) -> exp.Expr | None:
    """In a lateral query DuckDB finds no macro by the types of its arguments."""
    given = operation.given[0]
    if given is None or node.find_ancestor(exp.Lateral) is None:
        return None
    kind = _WRITTEN.get(given.category)
    return call(f"{PREFIX}to_char_of_{kind}", *arguments(node)) if kind is not None else None


def _search(node: exp.Expr, operation: Operation) -> exp.Expr | None:
    given = operation.given[1] if len(operation.given) > 1 else None
    pattern = node.args.get("start")
    is_computed = isinstance(pattern, exp.Column | exp.Func) and not isinstance(pattern, exp.Cast)
    if is_computed and given is not None and given.category == "S":
        raise errors.FeatureNotSupported(feature="substring by a computed pattern", instead="Write the pattern.")
    return None


def _step(node: exp.Expr, operation: Operation) -> exp.Expr | None:
    """Whether a series is one of moments follows from its step."""
    step, given = node.args.get("step"), operation.given[-1]
    if isinstance(step, exp.Column | exp.Func) and given is not None and given.name == "interval":
        node.set("step", exp.cast(step.copy(), _INTERVAL.copy()))
    return None


def _join(node: exp.Expr, operation: Operation) -> exp.Expr | None:
    if operation.result is not None and operation.result.name == "bytea":
        raise errors.FeatureNotSupported(feature="string_agg of bytea", instead="Aggregate encode(..., 'hex').")
    return None


def _enumerate(node: exp.Expr, operation: Operation) -> exp.Expr | None:
    """DuckDB has the functions, which give texts."""
    if operation.result is None or not _has_labels(operation.result):
        return None
    if len(node.expressions) > 1:
        node.set("this", "enum_range_boundary")
    node.meta[BECOMES] = operation.result
    return None


_Translate = Callable[[exp.Expr, Operation], exp.Expr | None]
_BY_OPERATOR: Final[Mapping[str, _Translate]] = {
    "||": _concatenate,
    **dict.fromkeys(("<<", ">>"), _shift),
    **dict.fromkeys(("+", "-", "*", "/", "%"), _calculate),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _compare),
    **dict.fromkeys(("~~", "~~*", "~", "~*"), _match),
    **dict.fromkeys(("octet_length", "concat", "concat_ws", "format"), _pad_arguments),
    "timezone": _at_zone,
    "date_trunc": _truncate,
    "generate_series": _step,
    "round": _round,
    "substring": _search,
    "to_char": _write,
    "string_agg": _join,
    **dict.fromkeys(("enum_first", "enum_last", "enum_range"), _enumerate),
    ORDER_BY: _sort,
}
