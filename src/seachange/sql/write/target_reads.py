"""Whether an UPDATE or DELETE reads its table, which requires SELECT: in conditions, new values or RETURNING."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from seachange import errors
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import View
from seachange.sql.compile.target import DmlTarget, folded
from seachange.sql.port.port import TransactionPort

# The schema and name of a relation.
Source = tuple[str | None, str]


class TargetReads:
    """An unqualified name inside subqueries is a column of their tables, or else of the target."""

    def __init__(self, tree: exp.Expr, table: Table, target: DmlTarget) -> None:
        self._table = table
        self._is_certain = False
        self._names: list[tuple[str, tuple[Source, ...]]] = []
        known = {*table.column_by_name, target.alias}
        assigned = {id(column) for node in tree.expressions for column in _assigned(node)}
        for column in tree.find_all(exp.Column):
            name = folded(column.this) if isinstance(column.this, exp.Identifier) else ""
            if id(column) in assigned or (column.table and folded(column.args["table"]) != target.alias):
                continue
            if column.table or (name in known and not (sources := tuple(_sources(column, tree)))):
                self._is_certain = True
            elif name in known:
                self._names.append((name, sources))

    def check_access(self, port: TransactionPort) -> None:
        if self._is_certain or any(not _have(port, sources, name) for name, sources in self._names):
            port.check_access(self._table, "SELECT")


def _assigned(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.EQ):
        yield from node.this.find_all(exp.Column)


def _sources(column: exp.Expr, tree: exp.Expr) -> Iterator[Source]:
    """The tables of the enclosing subqueries."""
    select = column.find_ancestor(exp.Select)
    while select is not None and select is not tree:
        named = [select.args.get("from_"), *select.args.get("joins", ())]
        for source in (clause.this for clause in named if clause is not None):
            if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
                schema = source.args.get("db")
                yield (folded(schema) if schema is not None else None), folded(source.this)
        select = select.find_ancestor(exp.Select)


def _have(port: TransactionPort, sources: tuple[Source, ...], name: str) -> bool:
    for schema, relation in sources:
        try:
            found = port.relation(schema, relation)
        except errors.UndefinedTable:
            continue
        columns = found.columns if isinstance(found, View) else ()
        if name in columns or (isinstance(found, Table) and name in found.column_by_name):
            return True
    return False
