"""Function mappings: text functions that have another meaning for bytea, where the argument is known to be one."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from seachange.sql.translate.mapped.trees import call, number
from seachange.storage.duck_functions import PREFIX

# Longer than any.
_WHOLE: Final = 2**31 - 1
_TRIMS: Final = {"": "trim", "BOTH": "trim", "LEADING": "trim_start", "TRAILING": "trim_end"}


def translate_bytes(node: exp.Func) -> exp.Expr | None:
    """None if it is a function of texts."""
    match node:
        case exp.Substring() if is_bytes(node.this):
            length = node.args.get("length") or number(_WHOLE)
            return _call("substring", node.this, node.args.get("start") or number(1), length)
        case exp.StrPosition() if is_bytes(node.this):
            return exp.cast(_call("position", _as_bytes(node.args["substr"]), node.this), exp.DType.INT)
        case exp.Trim() if is_bytes(node.this) and node.expression is not None:
            return _call(_TRIMS[str(node.args.get("position") or "")], node.this, _as_bytes(node.expression))
        case exp.Overlay() if is_bytes(node.this):
            return _overlay(node.this, _as_bytes(node.expression), node.args["from_"], node.args.get("for_"))
        case exp.BitLength() if is_bytes(node.this):
            return exp.paren(exp.Mul(this=call("octet_length", node.this), expression=number(8)))
        case _:
            return None


def _overlay(data: exp.Expr, put: exp.Expr, start: exp.Expr, length: exp.Expr | None) -> exp.Expr:
    taken = length if length is not None else call("octet_length", put)
    before = _call("substring", data, number(1), exp.Sub(this=exp.paren(start.copy()), expression=number(1)))
    following = exp.Add(this=exp.paren(start.copy()), expression=exp.paren(taken.copy()))
    behind = _call("substring", data, following, number(_WHOLE))
    return exp.DPipe(this=exp.DPipe(this=before, expression=put.copy()), expression=behind)


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return call(f"{PREFIX}bytes_{name}", *arguments)


def _as_bytes(node: exp.Expr) -> exp.Expr:
    return node.copy() if is_bytes(node) else exp.cast(node.copy(), exp.DType.VARBINARY)


def is_bytes(node: exp.Expr) -> bool:
    inner = node.unnest()
    if isinstance(inner, exp.Anonymous):
        return inner.name.startswith(f"{PREFIX}bytes_") and not inner.name.endswith("position")
    return isinstance(inner, exp.Cast) and bool(inner.to.is_type(exp.DType.VARBINARY))
