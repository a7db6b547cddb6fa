"""DDL execution: one statement is planned at a time, on the descriptors that the transaction sees.

A change that moves no data and waits for no reader takes effect in the transaction, whose commit publishes the new
versions. Of any other change the first stage does, in autocommit mode only; the rest becomes a job. In a transaction
block such a change runs to its end over tables that the block has created or emptied (`own_changes.py`).

**Invariant:** a change is planned only from descriptors that no conflicting change is altering; a conflicting change
that starts later publishes a version, and so the commit fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from seachange import errors
from seachange.model.change import elements
from seachange.model.change.ops import OpType
from seachange.model.ids import DescriptorId, Seq, TableId
from seachange.model.schema.defaults import is_constant
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor
from seachange.model.statements import DdlStatement, DropIndex
from seachange.planner.advice import advise
from seachange.planner.block_plan import touched_by
from seachange.planner.known_schema import KnownSchema, TableSize, apply_ops
from seachange.planner.plan import ChangePlan, parts_of, plan_statements
from seachange.planner.rules.release import release_of
from seachange.planner.stages import Phase, Stage, progress_after
from seachange.planner.strategy import measure_whole
from seachange.sql.change.block_change import can_run_in_block, check_supported, run_in_block
from seachange.sql.change.bound_expressions import bind_definitions
from seachange.sql.change.build_samples import BuildSamples
from seachange.sql.change.command_tags import command_tag
from seachange.sql.change.local_times import resolve_local_times
from seachange.sql.change.materialized import define_columns
from seachange.sql.change.object_access import check_named_roles, check_plan
from seachange.sql.change.own_changes import is_own_work, run_own_change, split_proofs
from seachange.sql.change.past_schema import with_past
from seachange.sql.change.privilege_checks import check_needs
from seachange.sql.change.published_versions import publish_version, rely, verify_outcome
from seachange.sql.change.running_changes import check_change, check_named
from seachange.sql.change.time_constants import resolve_time_functions
from seachange.sql.change.type_checks import evaluate_stable
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result
from seachange.sql.query.databases import hold_database, known_schema, table_of
from seachange.sql.settings.settings import PUBLISH

# Ids are allocated in blocks: how many a statement needs is known only after planning.
_ID_BLOCK = 8


class TableSizes(Mapping[TableId, TableSize]):
    """Which tables have rows, read only where a plan depends on it."""

    def __init__(self, port: TransactionPort, descriptors: Mapping[DescriptorId, Descriptor]) -> None:
        self._port = port
        self._descriptors = descriptors

    def __getitem__(self, table_id: TableId) -> TableSize:
        return TableSize(rows=0 if self._port.definitions.is_empty(table_of(self._descriptors, table_id)) else 1)

    def __iter__(self) -> Iterator[TableId]:
        return (id_ for id_, found in self._descriptors.items() if isinstance(found, Table))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def run_ddl(statement: DdlStatement, text: str, port: TransactionPort, duck: DuckSession, notices: list[str]) -> Result:
    statement = _bind(define_columns(statement, port, duck), port)
    statement = resolve_local_times(resolve_time_functions(statement, port), port, duck, notices)
    catalog = with_past([statement], known_schema([statement], port, partial(TableSizes, port)), port)
    known = catalog.descriptors
    check_named_roles(statement, port)
    check_needs(statement, port)
    plan = _plan(statement, catalog, port)
    check_plan(statement, plan, known, port)
    if plan.then is not None:
        check_plan(statement, plan.then, known, port)
    at_once = [stage for stage in plan.stages if stage.phase is Phase.PRE_COMMIT]
    needs_job = takes_job(plan) or plan.then is not None
    refuse_unfit(plan)
    in_block = not port.statement.is_autocommit
    if plan.then is not None and not in_block and port.statement.session.setting(PUBLISH) != "auto":
        raise errors.FeatureNotSupported(
            feature="a statement that takes two changes, one after the other, with seachange.publish = manual",
            instead="Write it as two statements.",
        )
    if needs_job and in_block and is_own_work(plan, port):
        hold_database(statement, known.values(), port)
        run_own_change(plan, catalog, port, duck)
        notices.extend(plan.notices)
        _record(text, plan, catalog, port)
        return Result(command_tag(statement))
    may_be_filled = in_block and port.blocks.may_be_filled(plan.change.empty)
    parts = parts_of(replace(catalog, sizes={}), statement) if in_block and (needs_job or may_be_filled) else None
    if parts is not None and _can_run_parts(plan, port):
        # The second is planned with what the first has made of the table, which only the block sees.
        for part in parts:
            run_ddl(part, text, port, duck, notices)
        return Result(command_tag(statement))
    may_be_filled = may_be_filled and parts is None
    if (needs_job and (plan.change.empty or in_block)) or may_be_filled:
        # Rows may be inserted before the change is committed. In a block, none of its states may reject rows of others.
        over_rows = _plan_over_rows(statement, plan, catalog, port)
        if needs_job or can_run_in_block(over_rows, catalog, port):
            plan, needs_job = over_rows, True
            at_once = [stage for stage in plan.stages if stage.phase is Phase.PRE_COMMIT]
    if needs_job and in_block:
        _run_stages(statement, text, plan, catalog, port, duck)
        notices.extend(plan.notices)
        return Result(command_tag(statement))
    hold_database(statement, known.values(), port)
    check_change(plan.change, port)
    _publish_at_once(plan, at_once, catalog, port, duck)
    notices.extend(plan.notices)
    if needs_job or port.jobs.asks_for_job:
        measured = _with_sizes(plan, catalog, port)
        _launch_job(text, plan, at_once, measured, port)
        notices.extend(advise(plan, measured) if needs_job else ())
    if plan.refilled:
        notices.extend(_refill(plan, port))
    if not needs_job:
        port.definitions.fence(plan.change.fenced)
        port.blocks.note(text, plan.change)
        _record(text, plan, catalog, port)
    return Result(command_tag(statement))


def _refill(plan: ChangePlan, port: TransactionPort) -> list[str]:
    """Parents before children."""
    found = [port.schema.table_by_id(id_) for id_ in plan.refilled]
    left, notices = [table for table in found if table is not None], []
    while left:
        ids = {table.id for table in left}
        table = next((t for t in left if not any(k.parent in ids - {t.id} for k in t.foreign_keys)), left[0])
        left.remove(table)
        # A version of its own, so that the revert is a change of the table.
        port.definitions.publish(table, replace(table, version=table.version + 1))
        count = port.lost_rows.write_again(replace(table, version=table.version + 1), Seq(plan.refilled[table.id]))
        notices.append(f'{count} rows of "{table.name}" came back')
    return notices


def _run_stages(
    statement: DdlStatement, text: str, plan: ChangePlan, catalog: KnownSchema, port: TransactionPort, duck: DuckSession
) -> None:
    """A change of a block that takes longer than its COMMIT."""
    plan, proofs = split_proofs(plan, port)
    check_supported(plan, catalog, port)
    hold_database(statement, catalog.descriptors.values(), port)
    check_change(plan.change, port)
    if proofs is not None:
        run_own_change(proofs, catalog, port, duck)
    run_in_block(text, plan, catalog, port, duck)
    _record(text, plan, catalog, port)


def _record(text: str, plan: ChangePlan, catalog: KnownSchema, port: TransactionPort) -> None:
    if plan.change.targets or plan.refilled:
        port.blocks.record(text, measure_whole(plan, _with_sizes(plan, catalog, port)), bool(plan.refilled))


def _with_sizes(plan: ChangePlan, catalog: KnownSchema, port: TransactionPort) -> KnownSchema:
    """The sizes of the tables that the plan reads."""
    parts = (plan,) if plan.then is None else (plan, plan.then)
    known = {id_: catalog.descriptors.get(id_) for part in parts if takes_job(part) for id_ in part.change.sources}
    sizes = {id_: port.reads.size(table) for id_, table in known.items() if isinstance(table, Table)}
    return replace(catalog, sizes=sizes, sampler=BuildSamples(port.estimates))


def _publish_at_once(
    plan: ChangePlan,
    stages: Sequence[Stage],
    catalog: KnownSchema,
    port: TransactionPort,
    duck: DuckSession,
) -> None:
    """What the COMMIT of the transaction publishes."""
    known, after = catalog.descriptors, catalog
    for stage in stages:
        after = apply_ops(after, plan.ops(stage))
    verify_outcome(plan, after, known, duck)
    for table_id in plan.change.empty:
        port.definitions.rely_on_empty(table_of(known, table_id))
    changed = {id_ for stage in stages for id_ in stage.publishes}
    for id_ in sorted(changed):
        publish_version(known.get(id_), after.descriptors.get(id_), catalog.dropped, port, duck)
    # Bump the version of tables assumed empty, so that inserts in flight are fenced.
    for table_id in plan.change.empty - changed:
        table = table_of(known, table_id)
        port.definitions.publish(table, replace(table, version=table.version + 1))
    rely(changed, catalog, after, port)


def _launch_job(
    text: str, plan: ChangePlan, published: Sequence[Stage], catalog: KnownSchema, port: TransactionPort
) -> None:
    """The job of the stages that the COMMIT does not publish."""
    rest = [stage.phase for stage in plan.stages if stage.phase is not Phase.PRE_COMMIT]
    passed = any(stage.is_publication for stage in published)
    progress = progress_after(plan.graph, published)
    cost = measure_whole(plan, catalog)
    port.jobs.launch(text, plan, progress, rest[0] if rest else Phase.NON_REVERTIBLE, passed, cost)


def _can_run_parts(plan: ChangePlan, port: TransactionPort) -> bool:
    if port.blocks.can_rewrite(touched_by(plan.change)):
        return True
    if plan.then is not None:
        raise errors.FeatureNotSupported(
            feature="a key on new values, or the loss of a key, after other changes of the same table in a block",
            instead="Make it the first change of the table, or send it outside of a block.",
        )
    return False


def _bind(statement: DdlStatement, port: TransactionPort) -> DdlStatement:
    try:
        return bind_definitions(statement, port)
    except errors.Error:
        # As in `_plan`.
        check_named(statement, port)
        raise


def _plan(statement: DdlStatement, catalog: KnownSchema, port: TransactionPort) -> ChangePlan:
    if isinstance(statement, DropIndex):
        # It may name an object that a running change is about to add.
        check_named(statement, port)
    release = release_of(port.definitions.release)
    try:
        plan = plan_statements(catalog, [statement], fresh_ids(port), evaluate_stable(statement, port), release)
    except errors.Error as problem:
        # The error may be due to what a running change has not done yet.
        taken = str(problem.fields["name"]) if isinstance(problem, errors.DuplicateTable) else None
        check_named(statement, port, taken)
        raise
    if not plan.change.targets:
        # So may be that there is nothing to do: IF NOT EXISTS is about what is committed.
        check_named(statement, port)
    return plan


def _plan_over_rows(
    statement: DdlStatement, plan: ChangePlan, catalog: KnownSchema, port: TransactionPort
) -> ChangePlan:
    """The plan of a change as if its tables had rows."""
    evaluated, release = evaluate_stable(statement, port), release_of(plan.change.release)
    in_block = not port.statement.is_autocommit
    return plan_statements(replace(catalog, sizes={}), [statement], fresh_ids(port), evaluated, release, in_block)


def takes_job(plan: ChangePlan) -> bool:
    """Whether the change takes longer than a COMMIT."""
    return any(s.type is not OpType.COLLECTION for s in plan.stages if s.phase is not Phase.PRE_COMMIT)


def fresh_ids(port: TransactionPort) -> Iterator[int]:
    while True:
        yield from port.definitions.allocate_ids(_ID_BLOCK)


def refuse_unfit(plan: ChangePlan) -> None:
    if plan.refilled and (takes_job(plan) or plan.then is not None):
        raise errors.FeatureNotSupported(
            feature="reverting TRUNCATE together with a change that takes longer than its COMMIT",
            instead="Revert the changes one by one.",
        )
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
