"""Calls of `seachange.feed` in FROM: a relation of the system whose rows depend on arguments, which are constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.bind.names import function_name
from seachange.sql.duck.operands import Argument, Given, read_operand
from seachange.sql.port.system_columns import SYSTEM_SCHEMA

FEED: Final = "feed"
# Key of `meta` of a reference to the feed for the call that it stands for.
CALL: Final = "feed_call"
_ARGUMENTS: Final = "feed_arguments"
_NAMES: Final = ("tables", "since", "until")
Value = Given | Argument


@dataclass(frozen=True, slots=True)
class FeedCall:
    """`tables` is one array, or its elements."""

    tables: Value | tuple[Value, ...]
    since: Value
    until: Value


def mark_feeds(tree: exp.Expr) -> exp.Expr:
    """A call becomes a reference to a relation. Its arguments stay in the tree, so that their parameters count."""
    for node in list(tree.find_all(exp.Table)):
        source = node.this
        if isinstance(source, exp.Anonymous) and node.db.lower() == SYSTEM_SCHEMA and source.name.lower() == FEED:
            node.meta[CALL] = _read_call(source.expressions)
            node.set("this", exp.to_identifier(FEED, quoted=True))
            node.set(_ARGUMENTS, exp.Tuple(expressions=[each.copy() for each in source.expressions]))
    return tree


def _read_call(arguments: Sequence[exp.Expr]) -> FeedCall:
    found: dict[str, exp.Expr] = {}
    for place, argument in enumerate(arguments):
        is_named = isinstance(argument, exp.Kwarg | exp.PropertyEQ)
        name = argument.this.name.lower() if is_named else _NAMES[place] if place < len(_NAMES) else ""
        if name not in _NAMES or name in found:
            raise errors.UndefinedFunction(
                detail=f"function {SYSTEM_SCHEMA}.{FEED} has no argument {name or place + 1}"
            )
        found[name] = argument.expression if is_named else argument
    if "tables" not in found:
        raise errors.UndefinedFunction(detail=f"function {SYSTEM_SCHEMA}.{FEED}() does not exist")
    since, until = (_read(found.get(name, exp.Null())) for name in _NAMES[1:])
    return FeedCall(_read_tables(found["tables"]), since, until)


def _read_tables(node: exp.Expr) -> Value | tuple[Value, ...]:
    inner = _bare(node)
    if isinstance(inner, exp.Array):
        return tuple(map(_read, inner.expressions))
    if isinstance(inner, exp.Func) and function_name(inner) == "array":
        return tuple(map(_read, inner.expressions))
    return _read(inner)


def _read(node: exp.Expr) -> Value:
    found = read_operand(_bare(node))
    if not isinstance(found, Given | Argument):
        raise errors.FeatureNotSupported(
            feature=f"an argument of {SYSTEM_SCHEMA}.{FEED} that is no constant",
            instead="Use a constant or a parameter.",
        )
    return found


def _bare(node: exp.Expr) -> exp.Expr:
    """Without parentheses and casts: the value is converted to the type of the argument in any case."""
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    return node
