"""The types of a statement's parameters: declared by the client, or required by their places."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seachange.sql.bind.query import bind_tree
from seachange.sql.bind.types import bound
from seachange.sql.compile.bound_catalog import PortCatalog
from seachange.sql.port.port import TransactionPort
from seachange.sql.query.query import count_parameters
from seachange.sql.text.tree import fold_names
from seachange.values.types import SqlType


def parameter_types(
    tree: exp.Expr, port: TransactionPort, given: Sequence[SqlType | None]
) -> tuple[SqlType | None, ...]:
    """One for each parameter, from $1: the declared one, or the one that its place requires. None: any. A type has no
    modifiers: a text longer than the column, or a number with more digits, is neither a value of the column nor made
    one."""
    count = count_parameters(tree)
    if not count:
        return ()
    declared = [bound(type_) if type_ is not None else None for type_ in given]
    found = bind_tree(fold_names(tree.copy()), PortCatalog(port), declared).parameters
    types = [found[number].declared if number in found else None for number in range(1, count + 1)]
    return tuple(type_.unmodified if type_ is not None else None for type_ in types)
