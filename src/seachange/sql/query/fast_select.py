"""SELECT by full primary key, or of few rows through an index, without DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from seachange.model.schema.descriptor import Column, Table
from seachange.sql.compile.keys import KeyReader, NotByKey, match_key, plain_column
from seachange.sql.compile.seek import SeekCondition, bind_demands, read_whole_condition
from seachange.sql.compile.system_relations import is_virtual_relation
from seachange.sql.compile.target import DmlTarget, folded, read_target
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result, ResultColumn, Row, table_column
from seachange.sql.query.result_columns import find_origin
from seachange.sql.text.scope import GIVEN

_SELECT_ARGS = frozenset({"expressions", "from_", "where"})
_TABLE_ARGS = frozenset({"this", "db", "alias"})


def _result_columns(table: Table, columns: Sequence[tuple[Column, str]]) -> tuple[ResultColumn, ...]:
    return tuple(table_column(name, column.type, find_origin(table, column)) for column, name in columns)


class KeySelect:
    """`SELECT columns FROM t WHERE key = operand`: one lookup."""

    def __init__(self, table: Table, key: KeyReader, columns: Sequence[tuple[Column, str]]) -> None:
        self.table = table
        self._key = key
        self._positions = [table.columns.index(column) for column, _ in columns]
        self._columns = _result_columns(table, columns)
        self._nothing = Result("SELECT 0", self._columns, (), 0)
        # Whether clients may get other values than rows hold.
        self.shows_moments = any(column.is_shown for column in self._columns)

    def has_key(self, values: Sequence[Any]) -> bool:
        try:
            self._key.read(values)
        except NotByKey:
            return False
        return True

    def run(self, port: TransactionPort, values: Sequence[Any]) -> Result | None:
        """None if the general plan must be used."""
        try:
            key = self._key.read(values)
        except NotByKey:
            return None
        port.rights.check_access(self.table, "SELECT")
        return self.answer(port.reads.get(self.table, key) if key is not None else None)

    def read_key(self, values: Sequence[Any]) -> Row | None:
        """None if no row can have it, or the general plan must be used."""
        try:
            return self._key.read(values)
        except NotByKey:
            return None

    def answer(self, row: Row | None) -> Result:
        if row is None:
            return self._nothing
        return Result("SELECT 1", self._columns, [tuple([row[p] for p in self._positions])], 1)


class IndexSelect:
    """`SELECT columns FROM t WHERE column = operand AND ...`: few rows through an index."""

    def __init__(self, table: Table, demands: Sequence[SeekCondition], columns: Sequence[tuple[Column, str]]) -> None:
        self.table = table
        self._demands = demands
        self._stored = [column for column, _ in columns]
        self._columns = _result_columns(table, columns)

    def run(self, port: TransactionPort, values: Sequence[Any]) -> Result | None:
        """None if the general plan must be used."""
        conditions = bind_demands(self._demands, self.table, values)
        if len(conditions) != len(self._demands):
            return None
        port.rights.check_access(self.table, "SELECT")
        rows = port.reads.select(self.table, self._stored, conditions)
        return None if rows is None else Result(f"SELECT {len(rows)}", self._columns, rows, len(rows))


def simple_target(tree: exp.Expr) -> DmlTarget | None:
    """The one table of a SELECT that has only a select list, a table and a condition."""
    if not isinstance(tree, exp.Select) or _has_others(tree, _SELECT_ARGS):
        return None
    from_, where = tree.args.get("from_"), tree.args.get("where")
    source = from_.this if from_ is not None else None
    if where is None or not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
        return None
    alias = source.args.get("alias")
    if source.meta_get(GIVEN) or _has_others(source, _TABLE_ARGS) or (alias is not None and alias.columns):
        return None
    target = read_target(source)
    return None if is_virtual_relation(target.schema, target.name) else target


def _has_others(node: exp.Expr, allowed: frozenset[str]) -> bool:
    return any(value and key not in allowed for key, value in node.args.items())


def compile_fast_select(tree: exp.Expr, target: DmlTarget, table: Table) -> KeySelect | IndexSelect | None:
    return compile_key_select(tree, target, table) or compile_index_select(tree, target, table)


def compile_key_select(tree: exp.Expr, target: DmlTarget, table: Table) -> KeySelect | None:
    operands = match_key(tree.args.get("where"), table, target)
    columns = _read_columns(tree, target, table)
    if operands is None or columns is None:
        return None
    return KeySelect(table, KeyReader(table, operands), columns)


def compile_index_select(tree: exp.Expr, target: DmlTarget, table: Table) -> IndexSelect | None:
    demands = read_whole_condition(tree.args["where"].this, target)
    columns = _read_columns(tree, target, table)
    if not demands or not columns or any(demand.column not in table.column_by_name for demand in demands):
        return None
    return IndexSelect(table, demands, columns)


def _read_columns(tree: exp.Expr, target: DmlTarget, table: Table) -> list[tuple[Column, str]] | None:
    found: list[tuple[Column, str]] = []
    for node in tree.expressions:
        if isinstance(node, exp.Star) and not any(node.args.values()):
            found += [(column, column.name) for column in table.visible_columns]
            continue
        alias = node.args.get("alias") if isinstance(node, exp.Alias) else None
        name = plain_column(node.this if alias is not None else node, target)
        column = table.column_by_name.get(name) if name is not None else None
        if column is None:
            return None
        found.append((column, column.name if alias is None else folded(alias)))
    return found
