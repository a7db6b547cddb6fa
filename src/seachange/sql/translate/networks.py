"""Operators, functions and casts of inet and cidr, translated to calls of our functions in DuckDB, where addresses are
bit strings.

The binder decides what is an address; its decisions are noted on the tree, whose nodes later passes copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from seachange.sql.bind.names import function_name
from seachange.sql.bind.types import BoundType
from seachange.sql.text.list_places import LONG_LIST
from seachange.storage.duck_functions import PREFIX
from seachange.values.array_text import parse_array
from seachange.values.network import CIDR, INET, read_address
from seachange.values.types import Kind

# The meta entry of a cast that the user has not written.
IMPLIED: Final = "implied"
# The meta entry of an expression that is an address: `inet` or `cidr`.
_NETWORK: Final = "network"
_TYPES: Final = {"inet": exp.DType.INET, "cidr": exp.DType.IPPREFIX}
_KINDS: Final = {exp.DType.INET: INET, exp.DType.IPPREFIX: CIDR}
_TEXTS: Final = (exp.DType.TEXT, exp.DType.VARCHAR)
_TYPEOF: Final = "pg_typeof"
# Values that have a type only by their place.
_CONSTANTS: Final = (exp.Literal, exp.Parameter)
# What shows values of any type.
_SHOWING: Final = frozenset(
    [
        "concat",
        "concat_ws",
        "format",
        "quote_literal",
        "quote_nullable",
        "to_json",
        "to_jsonb",
        "json_build_array",
        "json_build_object",
        "jsonb_build_array",
        "jsonb_build_object",
        "j_s_o_n_array_agg",
        "jsonb_agg",
        "j_s_o_n_object_agg",
        "j_s_o_n_b_object_agg",
    ]
)


@dataclass(frozen=True, slots=True)
class _Function:
    """`name` is that of our function in DuckDB; the first `addresses` arguments are addresses."""

    name: str
    returns_address: bool = False
    addresses: int = 1


_CALLS: Final[Mapping[str, _Function]] = {
    "abbrev": _Function("network_text"),
    "broadcast": _Function("network_broadcast", returns_address=True),
    "family": _Function("network_family"),
    "host": _Function("network_host"),
    "hostmask": _Function("network_host_mask", returns_address=True),
    "inet_merge": _Function("network_merge", returns_address=True, addresses=2),
    "inet_same_family": _Function("network_same_family", addresses=2),
    "masklen": _Function("network_mask_length"),
    "netmask": _Function("network_net_mask", returns_address=True),
    "network": _Function("network_network", returns_address=True),
    "set_masklen": _Function("network_set_length", returns_address=True),
    "text": _Function("network_full_text"),
}
# What means something else for a cidr.
_OF_CIDR: Final[Mapping[str, _Function]] = {
    "abbrev": _Function("network_abbreviated"),
    "set_masklen": _Function("network_set_network_length", returns_address=True),
}
_WITHIN: Final = _Function("network_within", addresses=2)
_WITHIN_OR_EQUAL: Final = _Function("network_within_equal", addresses=2)
_OPERATORS: Final[Mapping[type[exp.Expr], _Function]] = {
    exp.BitwiseLeftShift: _WITHIN,
    exp.ExtendsLeft: _WITHIN_OR_EQUAL,
    exp.ArrayOverlaps: _Function("network_overlaps", addresses=2),
    exp.BitwiseAnd: _Function("network_both", returns_address=True, addresses=2),
    exp.BitwiseOr: _Function("network_either", returns_address=True, addresses=2),
}
# The same with their operands exchanged.
_REVERSED: Final[Mapping[type[exp.Expr], _Function]] = {
    exp.BitwiseRightShift: _WITHIN,
    exp.ExtendsRight: _WITHIN_OR_EQUAL,
}


def is_network(type_: BoundType | None) -> bool:
    """Of addresses, or arrays of them."""
    return type_ is not None and type_.name.lstrip("_") in _TYPES


def note_networks(tree: exp.Expr, types: Mapping[int, BoundType]) -> None:
    """Notes what is an address, by the binder's types. A constant that is one becomes a cast."""
    if not any(map(is_network, types.values())):
        return
    for node in list(tree.walk()):
        name = types[id(node)].name if id(node) in types else ""
        if name.lstrip("_") not in _TYPES or (name in _TYPES and node.meta_get(LONG_LIST)):
            # The values of a column of an INSERT, which converts them itself.
            continue
        if not isinstance(node, _CONSTANTS):
            node.meta[_NETWORK] = name
        elif not isinstance(node.parent, exp.Cast):
            type_ = exp.DataType(this=_TYPES[name.lstrip("_")])
            wanted = exp.DataType(this=exp.DType.ARRAY, expressions=[type_], nested=True) if "_" in name else type_
            made = exp.cast(node.copy(), wanted)
            made.meta[_NETWORK] = name
            made.meta[IMPLIED] = True
            node.replace(made)


def translate_networks(tree: exp.Expr) -> exp.Expr:
    """From the inside out."""
    for node in reversed(list(tree.find_all(exp.Cast, exp.BitwiseNot, exp.Binary, exp.Func))):
        made = _translate(node)
        if made is None:
            continue
        if node.meta_get(_NETWORK) is not None:
            made.meta[_NETWORK] = node.meta[_NETWORK]
        if node is tree:
            tree = made
        else:
            node.replace(made)
    return tree


def _translate(node: exp.Expr) -> exp.Expr | None:
    match node:
        case exp.Cast():
            return _cast(node)
        case exp.BitwiseNot() if _is_address(node.this):
            return _call(_Function("network_inverted", returns_address=True), node.this)
        case exp.Add() | exp.Sub():
            return _shift(node)
        case exp.Binary() if type(node) in _OPERATORS and (_concerns(node) or isinstance(node, exp.ExtendsLeft)):
            return _call(_OPERATORS[type(node)], node.this, node.expression)
        case exp.Binary() if type(node) in _REVERSED and (_concerns(node) or isinstance(node, exp.ExtendsRight)):
            return _call(_REVERSED[type(node)], node.expression, node.this)
        case exp.DPipe() if _concerns(node):
            return _concatenate(node)
        case exp.Func():
            return _translate_call(node)
        case _:
            return None


def _is_address(node: exp.Expr) -> bool:
    return node.meta_get(_NETWORK) in _TYPES or (isinstance(node, exp.Paren) and _is_address(node.this))


def _is_cidr(node: exp.Expr) -> bool:
    return node.meta_get(_NETWORK) == "cidr" or (isinstance(node, exp.Paren) and _is_cidr(node.this))


def _concerns(node: exp.Expr) -> bool:
    return _is_address(node.this) or _is_address(node.expression)


def _call(function: _Function, *arguments: exp.Expr) -> exp.Expr:
    """Our functions take and return the bytes of addresses."""
    given = [_bytes_of(a) if place < function.addresses else a.copy() for place, a in enumerate(arguments)]
    made = exp.Anonymous(this=PREFIX + function.name, expressions=given)
    return exp.cast(made, exp.DType.BIT) if function.returns_address else made


def _bytes_of(value: exp.Expr) -> exp.Expr:
    return exp.cast(_address(value), exp.DType.BLOB)


def _address(value: exp.Expr) -> exp.Expr:
    """What is not known to be an address may be the text of one."""
    return value.copy() if _is_address(value) else exp.Anonymous(this=f"{PREFIX}inet", expressions=[value.copy()])


def _shift(node: exp.Add | exp.Sub) -> exp.Expr | None:
    left, right = node.this, node.expression
    if not _concerns(node):
        return None
    if isinstance(node, exp.Sub):
        if _is_address(right):
            return _call(_Function("network_distance", addresses=2), left, right)
        right = exp.Neg(this=exp.paren(right.copy()))
    elif _is_address(right):
        left, right = right, left
    return _call(_Function("network_shifted", returns_address=True), left, right)


def _concatenate(node: exp.DPipe) -> exp.Expr | None:
    """With a text; not with an array of addresses."""
    if any(str(operand.meta_get(_NETWORK, "")).startswith("_") for operand in (node.this, node.expression)):
        return None
    shown = node.copy()
    for key in ("this", "expression"):
        if _is_address(node.args[key]):
            shown.set(key, _call(_CALLS["text"], node.args[key]))
    return shown


def _translate_call(node: exp.Func) -> exp.Expr | None:
    name = function_name(node)
    if name == _TYPEOF and len(node.expressions) == 1 and _is_cidr(node.expressions[0]):
        return exp.Literal.string("cidr")
    if name not in _CALLS:
        if name in _SHOWING:
            _show_networks(node)
        return None
    given = list(node.expressions) if isinstance(node, exp.Anonymous) else [node.this]
    found = _OF_CIDR.get(name) if given and _is_cidr(given[0]) else None
    return _call(found or _CALLS[name], *given)


def _show_networks(node: exp.Func) -> None:
    """A cidr is shown with its mask: DuckDB does not know that it is one."""
    for argument in list(node.iter_expressions()):
        if _is_cidr(argument):
            argument.replace(_call(_CALLS["text"], argument))


def _cast(node: exp.Cast) -> exp.Expr | None:
    if node.to.is_type(*_TEXTS) and _is_address(node.this):
        shown = node.copy()
        shown.set("this", _call(_CALLS["text"], node.this))
        return shown
    if node.to.is_type(exp.DType.ARRAY) and node.to.expressions and node.to.expressions[0].is_type(*_KINDS):
        return _cast_array(node, node.to.expressions[0])
    return _cast_address(node.this, node.to) if node.to.is_type(*_KINDS) else None


def _cast_address(value: exp.Expr, to: exp.Expr) -> exp.Expr:
    type_ = _KINDS[to.this]
    literal = value.unnest()
    if isinstance(literal, exp.Literal) and literal.is_string:
        held = read_address(literal.name, type_)
        made: exp.Expr = exp.cast(exp.func("unhex", exp.Literal.string(held.hex())), exp.DType.BIT)
    else:
        made = exp.Anonymous(this=PREFIX + type_.kind.value, expressions=[value.copy()])
    made.meta[_NETWORK] = "cidr" if type_.kind is Kind.CIDR else "inet"
    return made


def _cast_array(node: exp.Cast, element: exp.Expr) -> exp.Expr:
    literal = node.this.unnest()
    if isinstance(literal, exp.Literal) and literal.is_string:
        texts = [exp.null() if text is None else exp.Literal.string(text) for text in parse_array(literal.name)]
        listed = exp.Array(
            expressions=[text if isinstance(text, exp.Null) else _cast_address(text, element) for text in texts]
        )
        return exp.cast(listed, exp.DataType.build("BIT[]", dialect="duckdb"))
    return exp.Anonymous(this=f"{PREFIX}{_KINDS[element.this].kind.value}_list", expressions=[node.this.copy()])
