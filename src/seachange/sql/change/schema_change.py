"""DDL execution: one statement is planned at a time, on the descriptors that the transaction sees.

A change that moves no data and waits for no reader takes effect in the transaction, whose commit publishes the new
versions. Of any other change the first stage does, in autocommit mode only; the rest becomes a job.

**Invariant:** a change is planned only from descriptors that no conflicting change is altering; a conflicting change
that starts later publishes a version, and so the commit fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from seachange import errors
from seachange.model.change import elements
from seachange.model.change.ops import OpType
from seachange.model.ids import DescriptorId, TableId
from seachange.model.schema.defaults import is_constant
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Database, Descriptor, EnumType, View, is_relabelled
from seachange.model.schema.objects import Schema as SchemaObject
from seachange.model.schema.objects import Sequence as SequenceObject
from seachange.model.statements import DdlStatement, DropIndex, UndropTable
from seachange.planner.advice import advise
from seachange.planner.known_schema import KnownSchema, TableSize, apply_ops
from seachange.planner.plan import ChangePlan, plan_statements
from seachange.planner.rules.release import release_of
from seachange.planner.stages import Phase, progress_after
from seachange.sql.change.check_types import verify_checks
from seachange.sql.change.command_tags import command_tag
from seachange.sql.change.computed_columns import evaluate_stable, verify_computed
from seachange.sql.change.index_types import resolve_index_types
from seachange.sql.change.local_times import resolve_local_times
from seachange.sql.change.object_access import check_named_roles, check_plan, give_to_creator, without_lost_roles
from seachange.sql.change.privilege_checks import check_needs
from seachange.sql.change.running_changes import check_change, check_named, check_relied
from seachange.sql.change.time_constants import resolve_time_functions
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result
from seachange.sql.query.databases import descriptors_of, hold_database, tables_of
from seachange.sql.query.views import check_grouping, resolve_view

# Ids are allocated in blocks: how many a statement needs is known only after planning.
_ID_BLOCK = 8

_IN_SCHEMAS = (Table, SequenceObject, View, EnumType)
_IN_DATABASES = (*_IN_SCHEMAS, SchemaObject)


class _Sizes(Mapping[TableId, TableSize]):
    """Which tables have rows, read only where a plan depends on it."""

    def __init__(self, port: TransactionPort, tables: Mapping[TableId, Table]) -> None:
        self._port = port
        self._tables = tables

    def __getitem__(self, table_id: TableId) -> TableSize:
        return TableSize(rows=0 if self._port.is_empty(self._tables[table_id].primary.id) else 1)

    def __iter__(self) -> Iterator[TableId]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


def run_ddl(statement: DdlStatement, text: str, port: TransactionPort, duck: DuckSession, notices: list[str]) -> Result:
    statement = resolve_local_times(resolve_time_functions(statement, port), port, duck, notices)
    tables = {table.id: table for table in tables_of([statement], port)}
    known = descriptors_of([statement], port)
    # Only UNDROP needs them.
    dropped = port.dropped_tables() if isinstance(statement, UndropTable) else ()
    kept = tuple(without_lost_roles(table, port) for table in dropped)
    catalog = KnownSchema(known, _Sizes(port, tables), kept, port.search_path, port.session.database)
    check_named_roles(statement, port)
    check_needs(statement, port)
    plan = _plan(statement, catalog, port)
    check_plan(statement, plan, known, port)
    if plan.then is not None:
        check_plan(statement, plan.then, known, port)
    at_once = [stage for stage in plan.stages if stage.phase is Phase.PRE_COMMIT]
    needs_job = any(s.type is not OpType.COLLECTION for s in plan.stages if s.phase is not Phase.PRE_COMMIT)
    _refuse_unfit(plan)
    if needs_job and plan.change.empty:
        # Rows may be inserted before the job is finished.
        evaluated = evaluate_stable(statement, port)
        release = release_of(plan.change.release)
        plan = plan_statements(replace(catalog, sizes={}), [statement], _fresh_ids(port), evaluated, release)
        at_once = [stage for stage in plan.stages if stage.phase is Phase.PRE_COMMIT]
    if needs_job and not port.is_autocommit:
        raise errors.FeatureNotSupported(
            feature="this change of a table that has rows in a transaction block",
            instead="Send the statement alone, outside of a block. EXPLAIN (DDL) shows what it takes.",
        )
    hold_database(statement, known.values(), port)
    check_change(plan.change, port)
    after = catalog
    for stage in at_once:
        after = apply_ops(after, plan.ops(stage))
    _verify_outcome(plan, after, known, duck)
    for table_id in plan.change.empty:
        port.rely_on_empty(tables[table_id].primary.id)
    changed = {id_ for stage in at_once for id_ in stage.publishes}
    for id_ in sorted(changed):
        _publish(known.get(id_), after.descriptors.get(id_), kept, port, duck)
    # Bump the version of tables assumed empty, so that inserts in flight are fenced.
    for table_id in plan.change.empty - changed:
        port.publish(tables[table_id], replace(tables[table_id], version=tables[table_id].version + 1))
    _rely(changed, known, after, port)
    if needs_job or port.asks_for_job:
        rest = [stage.phase for stage in plan.stages if stage.phase is not Phase.PRE_COMMIT]
        progress = progress_after(plan.graph, at_once)
        passed = any(stage.is_publication for stage in at_once)
        port.launch(text, plan, progress, rest[0] if rest else Phase.NON_REVERTIBLE, passed)
    if not needs_job:
        port.fence(plan.change.fenced)
    notices.extend(plan.notices)
    if needs_job:
        sizes = {id_: port.size(tables[id_]) for id_ in plan.change.sources if id_ in tables}
        notices.extend(advise(plan, replace(catalog, sizes=sizes)))
    return Result(command_tag(statement))


def _plan(statement: DdlStatement, catalog: KnownSchema, port: TransactionPort) -> ChangePlan:
    if isinstance(statement, DropIndex):
        # It may name an object that a running change is about to add.
        check_named(statement, port)
    release = release_of(port.release)
    try:
        return plan_statements(catalog, [statement], _fresh_ids(port), evaluate_stable(statement, port), release)
    except errors.Error:
        # The error may be due to what a running change has not done yet.
        check_named(statement, port)
        raise


def _verify_outcome(
    plan: ChangePlan, after: KnownSchema, known: Mapping[DescriptorId, Descriptor], duck: DuckSession
) -> None:
    """Validates the outcome of all stages: an invalid CHECK of a later stage would fail every writer from then on."""
    rest = [(plan, stage) for stage in plan.stages if stage.phase is not Phase.PRE_COMMIT]
    rest += [(plan.then, stage) for stage in plan.then.stages] if plan.then is not None else []
    for part, stage in rest:
        if stage.type is OpType.MUTATION:
            after = apply_ops(after, part.ops(stage))
    for id_, outcome in after.descriptors.items():
        before = known.get(id_)
        if isinstance(outcome, Table) and isinstance(before, Table) and outcome is not before:
            verify_checks(before, outcome, duck)
            check_grouping(before, outcome, (view for view in after.descriptors.values() if isinstance(view, View)))


def _fresh_ids(port: TransactionPort) -> Iterator[int]:
    while True:
        yield from port.allocate_ids(_ID_BLOCK)


def _rely(
    changed: Iterable[DescriptorId], known: Mapping[DescriptorId, Descriptor], after: KnownSchema, port: TransactionPort
) -> None:
    """Whatever a new version refers to must still exist when the version is published."""
    used: set[DescriptorId] = set()
    databases = {other.name: other.id for other in after.descriptors.values() if isinstance(other, Database)}
    schemas = {other.name: other.id for other in after.descriptors.values() if isinstance(other, SchemaObject)}
    for id_ in changed:
        descriptor = after.descriptors.get(id_)
        before = known.get(id_)
        if before is not None and descriptor is not None and is_relabelled(before, descriptor):
            continue
        if isinstance(descriptor, _IN_DATABASES) and descriptor.database in databases:
            used.add(databases[descriptor.database])
        if isinstance(descriptor, _IN_SCHEMAS) and descriptor.schema in schemas:
            used.add(schemas[descriptor.schema])
        match descriptor:
            case Table(columns=columns):
                used.update(s for column in columns for s in column.default_sequences)
                used.update(DescriptorId(column.type.enum) for column in columns if column.type.enum)
            case View(relation_ids=ids):
                used.update(ids)
            case _:
                pass
    relied = {id_ for id_ in used - set(changed) if id_ in after.descriptors}
    check_relied(relied, port)
    port.rely_on(after.descriptors[id_] for id_ in relied)


def _publish(
    before: Descriptor | None,
    after: Descriptor | None,
    kept: Sequence[Table],
    port: TransactionPort,
    duck: DuckSession,
) -> None:
    dropped = next((table for table in reversed(kept) if after is not None and table.id == after.id), None)
    if before is None and isinstance(after, Table) and dropped is not None:
        port.revive(dropped, after)
        return
    if isinstance(after, Table):
        assert before is None or isinstance(before, Table)
        verify_checks(before, after, duck)
        verify_computed(before, after, duck)
        after = resolve_index_types(before, after, duck)
    if isinstance(after, View):
        after = resolve_view(before if isinstance(before, View) else None, after, port, duck)
    if before is None and after is not None:
        after = give_to_creator(after, port)
    port.publish(before, after)


def _refuse_unfit(plan: ChangePlan) -> None:
    added = [target.element for target in plan.change.targets if target.adds]
    rebuilt = {c for e in added if isinstance(e, elements.PrimaryIndex) for c in e.rebuilt_ids}
    rebuilt -= {e.column_id for e in added if isinstance(e, elements.ConvertedColumn)}
    drawn = {e.column_id for e in added if isinstance(e, elements.ColumnDefault) and not is_constant(e.expression)}
    drawn |= {e.column_id for e in added if isinstance(e, elements.ColumnIdentity)}
    for index in added:
        # A writer that changes a row before its value is stored could not tell which index entry to remove.
        if isinstance(index, elements.SecondaryIndex | elements.UniqueIndex) and rebuilt & drawn & {*index.column_ids}:
            raise errors.FeatureNotSupported(
                feature="an index on a column that is added with another value for each row",
                instead="Add the column first, then the index.",
            )
