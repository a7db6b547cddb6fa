"""format(): PostgreSQL's templates as DuckDB's. A width could make a large value of a small one: there is none."""

from __future__ import annotations

import re

from sqlglot import exp

from seachange import errors

_SPECIFIER = re.compile(r"%(.?)", re.DOTALL)
_BRACE = re.compile(r"[{}]")


def translate_formats(tree: exp.Expr) -> exp.Expr:
    for node in list(tree.find_all(exp.Format)):
        template = node.this
        if not isinstance(template, exp.Literal) or not template.is_string:
            raise errors.FeatureNotSupported(feature="format of a text that is computed", instead="Use concat.")
        text = _BRACE.sub(lambda brace: brace.group() * 2, template.name)
        wanted = [m.group(1) for m in _SPECIFIER.finditer(text) if m.group(1) != "%"]
        if len(wanted) > len(node.expressions):
            raise errors.InvalidParameterValue(detail="too few arguments for format()")
        node.set("this", exp.Literal.string(_SPECIFIER.sub(_placeholder, text)))
        # NULL is shown as nothing.
        shown = [exp.cast(argument.copy(), exp.DataType.build("TEXT")) for argument in node.expressions]
        node.set("expressions", [exp.Coalesce(this=s, expressions=[exp.Literal.string("")]) for s in shown])
    return tree


def _placeholder(match: re.Match[str]) -> str:
    match match.group(1):
        case "%":
            return "%"
        case "s":
            return "{}"
        case other:
            raise errors.FeatureNotSupported(feature=f"%{other} in format()", instead="%s and %% work.")
