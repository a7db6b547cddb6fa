"""DDL that takes effect in the transaction that runs it: what moves no bytes and waits for nobody.

The plan is made for one statement at a time, over the tables as the transaction sees them; the versions are published
when it commits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from seachange import errors
from seachange.model import elements
from seachange.model.defaults import is_constant
from seachange.model.descriptor import Table
from seachange.model.elements import Element
from seachange.model.ids import TableId
from seachange.model.ops import OpType
from seachange.model.statements import DdlStatement
from seachange.planner.catalog import Catalog, TableSize, apply_ops
from seachange.planner.plan import Plan, plan_statements
from seachange.planner.stages import Phase
from seachange.sql.ddl.check import verify_checks
from seachange.sql.ddl.index_types import settle_indexes
from seachange.sql.ddl.tags import command_tag
from seachange.sql.duck import DuckSession
from seachange.sql.port import TransactionPort
from seachange.sql.result import Result

# Ids are taken in blocks: how many a statement needs is known only when it has been planned.
_ID_BLOCK = 8

# What can be planned and not yet be executed.
_NOT_EXECUTED: dict[type[Element], str] = {
    elements.Sequence: "a sequence",
    elements.SequenceSettings: "a sequence",
    elements.EnumType: "an enum type",
    elements.View: "a view",
    elements.ViewQuery: "a view",
    elements.Schema: "a schema",
    elements.Database: "a database",
    elements.ColumnIdentity: "an identity column",
}


class _Sizes(Mapping[TableId, TableSize]):
    """Which tables have rows, asked for only where a plan depends on it."""

    def __init__(self, port: TransactionPort, tables: Mapping[TableId, Table]) -> None:
        self._port = port
        self._tables = tables

    def __getitem__(self, table_id: TableId) -> TableSize:
        return TableSize(rows=0 if self._port.is_empty(self._tables[table_id].primary.id) else 1)

    def __iter__(self) -> Iterator[TableId]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


def run_ddl(statement: DdlStatement, port: TransactionPort, duck: DuckSession, notices: list[str]) -> Result:
    tables = {table.id: table for table in port.tables()}
    catalog = Catalog(tables, _Sizes(port, tables))
    plan = plan_statements(catalog, [statement], _fresh_ids(port))
    _refuse_unfit(plan)
    after = catalog
    for stage in plan.stages:
        after = apply_ops(after, plan.ops(stage))
    for table_id in plan.change.empty:
        port.rely_on_empty(tables[table_id].primary.id)
    changed = {id_ for stage in plan.stages for id_ in stage.publishes}
    for id_ in sorted(changed):
        _publish(tables.get(id_), after.descriptors.get(id_), port, duck)
    port.fence(plan.change.fenced)
    notices.extend(plan.notices)
    return Result(command_tag(statement))


def _fresh_ids(port: TransactionPort) -> Iterator[int]:
    while True:
        yield from port.allocate_ids(_ID_BLOCK)


def _publish(before: Table | None, after: object, port: TransactionPort, duck: DuckSession) -> None:
    assert after is None or isinstance(after, Table)
    if after is not None:
        verify_checks(before, after, duck)
        after = settle_indexes(before, after, duck)
    port.publish(before, after)


def _refuse_unfit(plan: Plan) -> None:
    for target in plan.change.targets:
        what = _NOT_EXECUTED.get(type(target.element))
        match target.element:
            case elements.ColumnDefault(expression=text) if target.adds and not is_constant(text):
                what = "a default that is an expression"
            case elements.ColumnGenerated(virtual=False) if target.adds:
                what = "a generated column"
            case _:
                pass
        if what is not None:
            raise errors.FeatureNotSupported(feature=f"executing DDL about {what}", instead="EXPLAIN (DDL) plans it.")
    for stage in plan.stages:
        if stage.phase is not Phase.PRE_COMMIT and stage.type is not OpType.COLLECTION:
            raise errors.FeatureNotSupported(
                feature="this change of a table that has rows",
                instead="It works while the table is empty. EXPLAIN (DDL) shows what it takes.",
            )
