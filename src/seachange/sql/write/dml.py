"""Statement planning: chooses the plan for a query or DML statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from seachange import errors
from seachange.sql.bind.output_names import output_names
from seachange.sql.bind.query import bind_tree
from seachange.sql.bind.types import bound
from seachange.sql.compile.bound_catalog import PortCatalog
from seachange.sql.compile.target import RESOLVED, DmlTarget, read_target, refuse_clauses
from seachange.sql.compile.template import Template, compile_template
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.duck.operands import check_argument_count
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result, RowSink
from seachange.sql.query import fast_select
from seachange.sql.query.plan import StatementPlan
from seachange.sql.query.query import run_query
from seachange.sql.text.tree import fold_names
from seachange.sql.translate.networks import note_networks
from seachange.sql.translate.typed import note_types
from seachange.sql.write.advisory_calls import AdvisorySelect, calls_advisory
from seachange.sql.write.insert import InsertRows
from seachange.sql.write.insert_select import InsertSelect
from seachange.sql.write.job_calls import JobSelect, calls_job
from seachange.sql.write.merge import Merge
from seachange.sql.write.select_for_update import LockingSelect
from seachange.sql.write.update import Delete, Update
from seachange.sql.write.with_changes import WithChanges, changing_queries
from seachange.values.types import SqlType

_INSERT_CLAUSES = {
    "overwrite": "INSERT OVERWRITE",
    "by_name": "INSERT BY NAME",
    "ignore": "INSERT OR IGNORE",
    "alternative": "INSERT OR REPLACE",
    "where": "INSERT ... WHERE",
    "partition": "PARTITION",
    "settings": "SETTINGS",
}
_UPDATE_CLAUSES = {
    "order": "UPDATE ... ORDER BY",
    "limit": "UPDATE ... LIMIT",
}
_DELETE_CLAUSES = {
    "tables": "DELETE from several tables",
    "order": "DELETE ... ORDER BY",
    "limit": "DELETE ... LIMIT",
}


def compile_plan(tree: exp.Expr, port: TransactionPort, declared: Sequence[SqlType | None] = ()) -> StatementPlan:
    """`declared` are the types of parameters that the client has declared."""
    if not isinstance(tree, exp.Query | exp.Values) or changing_queries(tree):
        tree = _bind_change(tree, port, declared)
    if changing_queries(tree):
        return WithChanges(tree, port, compile_plan)
    match tree:
        case exp.Insert():
            return _compile_insert(tree, port)
        case exp.Update():
            refuse_clauses(tree, _UPDATE_CLAUSES)
            target = read_target(tree.this)
            return Update(tree, target, target.resolve(port))
        case exp.Delete():
            refuse_clauses(tree, _DELETE_CLAUSES)
            target = read_target(tree.this)
            return Delete(tree, target, target.resolve(port))
        case exp.Merge():
            return Merge(tree, port, compile_plan)
        case exp.Query() if tree.args.get("locks"):
            return LockingSelect(tree, port)
        case exp.Query() if calls_advisory(tree):
            return AdvisorySelect(tree)
        case exp.Query() if calls_job(tree):
            return JobSelect(tree)
        case exp.Query():
            return Select(tree, port, declared)
        case exp.Values():
            return Select(_select_values(tree), port, declared)
        case _:
            raise errors.FeatureNotSupported(feature=type(tree).__name__.upper(), instead="")


def _bind_change(tree: exp.Expr, port: TransactionPort, declared: Sequence[SqlType | None]) -> exp.Expr:
    """A copy with the types of its parts noted: several queries are made of them."""
    bound_tree, catalog = fold_names(tree.copy()), PortCatalog(port)
    given = [bound(type_) if type_ is not None else None for type_ in declared]
    found = bind_tree(bound_tree, catalog, given).found
    note_types(found)
    note_networks(bound_tree, found.types)
    target = bound_tree.this.this if isinstance(bound_tree.this, exp.Schema) else bound_tree.this
    if isinstance(target, exp.Table):
        target.meta[RESOLVED] = catalog.resolved
    return bound_tree


def takes_constants(plan: StatementPlan, values: Sequence[Any]) -> bool:
    """Whether the plan does with these parameters what it would do with constants in their places: it converts them
    to the types of columns, and asks DuckDB nothing."""
    return isinstance(plan, InsertRows | Update | Delete | Select) and plan.takes_constants(values)


def compile_select(tree: exp.Expr, port: TransactionPort, declared: Sequence[SqlType | None] = ()) -> Template:
    """The general plan of a query: checked, whatever its tables are."""
    query = _select_values(tree) if isinstance(tree, exp.Values) else tree.copy()
    return compile_template(query, catalog=PortCatalog(port), declared=declared)


def select_key_table(tree: exp.Expr, port: TransactionPort) -> str | None:
    """The table in which a query looks up one row, if it does nothing else."""
    target = fast_select.simple_target(tree)
    table = target.find_table(port) if target is not None else None
    if target is None or table is None or fast_select.compile_key_select(tree, target, table) is None:
        return None
    return target.name


def selects_by_index(tree: exp.Expr, port: TransactionPort, values: Sequence[Any]) -> bool:
    """Whether a query is answered from few rows found through an index, without DuckDB."""
    target = fast_select.simple_target(tree)
    table = target.find_table(port) if target is not None else None
    fast = fast_select.compile_fast_select(tree, target, table) if target is not None and table is not None else None
    return isinstance(fast, fast_select.IndexSelect) and fast.run(port, values) is not None


def _select_values(tree: exp.Values) -> exp.Select:
    """A VALUES statement as a query over itself, with PostgreSQL's column names."""
    values = tree.copy()
    clauses = {key: values.args[key].pop() for key in ("order", "limit", "offset") if values.args.get(key)}
    names = [exp.to_identifier(str(name)) for name in output_names(tree) or ()]
    values.set("alias", exp.TableAlias(this=exp.to_identifier("values", quoted=True), columns=names))
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=values), **clauses)


def _compile_insert(tree: exp.Insert, port: TransactionPort) -> StatementPlan:
    refuse_clauses(tree, _INSERT_CLAUSES)
    schema = tree.this
    target = read_target(schema.this if isinstance(schema, exp.Schema) else schema)
    table = target.resolve(port)
    if tree.args.get("default") or isinstance(tree.expression, exp.Values):
        return InsertRows(tree, target, table)
    return InsertSelect(tree, target, table)


class Select:
    def __init__(self, tree: exp.Query, port: TransactionPort, declared: Sequence[SqlType | None]) -> None:
        self._declared = declared
        self._target: DmlTarget | None = fast_select.simple_target(tree)
        self._by_key: fast_select.KeySelect | fast_select.IndexSelect | None = None
        table = self._target.find_table(port) if self._target is not None else None
        if self._target is not None and table is not None:
            self._by_key = fast_select.compile_fast_select(tree, self._target, table)
        # Compiled in any case, since this checks the tree; bound when it is first run.
        self._tree = tree if self._by_key is not None else None
        catalog = PortCatalog(port) if self._by_key is None else None
        self._template: Template = compile_template(tree.copy(), catalog=catalog, declared=declared)
        self._expected = max(self._template.parameters, default=0)

    @property
    def is_by_key(self) -> bool:
        """Whether it looks up one row."""
        return isinstance(self._by_key, fast_select.KeySelect)

    @property
    def key_select(self) -> fast_select.KeySelect | None:
        return self._by_key if isinstance(self._by_key, fast_select.KeySelect) else None

    def takes(self, values: Sequence[Any]) -> bool:
        """Whether these are as many values as it has parameters."""
        return len(values) == self._expected

    def takes_constants(self, values: Sequence[Any]) -> bool:
        return isinstance(self._by_key, fast_select.KeySelect) and self._by_key.has_key(values)

    def is_current(self, port: TransactionPort) -> bool:
        if self._target is None or self._by_key is None:
            return self._template.resolved.is_current(port)
        found = self._target.find_table(port)
        return found is self._by_key.table or found == self._by_key.table

    def run(
        self, port: TransactionPort, duck: DuckSession, values: Sequence[Any], sink: RowSink | None = None
    ) -> Result:
        if self._by_key is not None:
            check_argument_count(self._expected, values)
            found = self._by_key.run(port, values)
            if found is not None:
                return found
            if self._tree is not None:
                self._template, self._tree = compile_select(self._tree, port, self._declared), None
        return run_query(self._template, port, duck, values, sink)
