"""Schema changes of tables that the transaction has created or emptied: no other transaction sees their rows, so all
stages of the plan run inside the statement, without a wait between them.

**Invariant:** nothing is waited for that another transaction could do: a step that needs all writers to know the step
before it is only taken here if the transaction is the only writer. Writers that planned before the table was emptied
are fenced by the commit, and rebased on its last version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from seachange.model.change.elements import descriptor_of
from seachange.model.change.ops import FALLIBLE, BackfillIndexes, Op, OpType, Validate
from seachange.model.change.targets import Goal
from seachange.model.ids import ColumnId, DescriptorId, TableId
from seachange.model.schema.descriptor import Column, Table
from seachange.model.schema.expression import Expression
from seachange.model.schema.objects import Descriptor
from seachange.planner.block_plan import part_of, planned
from seachange.planner.known_schema import KnownSchema, apply_ops
from seachange.planner.plan import ChangePlan
from seachange.planner.stages import Phase, Stage
from seachange.sql.change.published_versions import publish_version, rely, verify_outcome
from seachange.sql.change.running_changes import check_change
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.port.port import TransactionPort


def is_own_work(plan: ChangePlan, port: TransactionPort) -> bool:
    """Whether the plan waits for writers of such tables only, and reads rows of no others. A foreign key may refer to
    any table: the commit relies on the keys that its rows refer to, which a writer that does not know the foreign key
    yet lists when it removes them."""
    return all(table_id is not None and port.own_rows.is_own(table_id) for table_id in _tables_waited_for(plan))


def needs_own_work(plan: ChangePlan, port: TransactionPort) -> bool:
    """Whether the plan would need a job, if such tables were not the transaction's own."""
    return any(True for _ in _tables_waited_for(plan)) and is_own_work(plan, port)


def split_proofs(plan: ChangePlan, port: TransactionPort) -> tuple[ChangePlan, ChangePlan | None]:
    """The plan without what it only has to prove of rows of tables that the transaction has created, and a plan of
    that."""
    proven: dict[DescriptorId, bool] = {}
    for target in plan.change.targets:
        id_, is_proof = descriptor_of(target.element), target.goal is Goal.TRANSIENT
        proven[id_] = proven.get(id_, True) and is_proof and port.blocks.published(id_) is None
    own = [id_ for id_, is_proven in proven.items() if is_proven]
    if not own:
        return plan, None
    rest, proofs = (part_of(plan.change, own, inside) for inside in (False, True))
    return planned(rest, plan), planned(proofs, plan)


def _tables_waited_for(plan: ChangePlan) -> Iterator[TableId | None]:
    for part, stage in _stages(plan):
        for transition in stage.transitions:
            steps = [part.graph.nodes[node].step for node in transition.nodes]
            if any(step.fenced or step.op in FALLIBLE for step in steps):
                yield getattr(part.graph.targets[transition.target].element, "table_id", None)


def _stages(plan: ChangePlan) -> Iterator[tuple[ChangePlan, Stage]]:
    """What is collected later belongs to no transaction: files of its own are abandoned at its end."""
    for part in (plan, plan.then) if plan.then is not None else (plan,):
        yield from ((part, stage) for stage in part.stages if stage.type is not OpType.COLLECTION)


def run_own_change(plan: ChangePlan, catalog: KnownSchema, port: TransactionPort, duck: DuckSession) -> None:
    check_change(plan.change, port)
    first = [op for stage in plan.stages if stage.phase is Phase.PRE_COMMIT for op in plan.ops(stage)]
    verify_outcome(plan, apply_ops(catalog, first), catalog.descriptors, duck)
    now, changed = catalog, set[DescriptorId]()
    for part, stage in _stages(plan):
        if stage.type is OpType.MUTATION:
            now = _publish_stage(now, part.ops(stage), stage.publishes, port, duck)
            changed |= set(stage.publishes)
            continue
        for op in part.ops(stage):
            assert isinstance(op, BackfillIndexes | Validate)
            port.own_rows.run_own(op)
    rely(changed, catalog, now, port)
    port.definitions.fence(plan.change.fenced | (plan.then.change.fenced if plan.then is not None else frozenset()))


def _publish_stage(
    before: KnownSchema, ops: Iterable[Op], ids: Iterable[DescriptorId], port: TransactionPort, duck: DuckSession
) -> KnownSchema:
    after = apply_ops(before, ops)
    published = dict(after.descriptors)
    for id_ in ids:
        version = _with_origins(before.descriptors.get(id_), after.descriptors.get(id_))
        version = publish_version(before.descriptors.get(id_), version, (), port, duck)
        if version is not None:
            published[id_] = version
    return after.with_descriptors(published)


def _with_origins(before: Descriptor | None, after: Descriptor | None) -> Descriptor | None:
    """Others see no version in between, by which they could compute a converted column: the column says how."""
    if not isinstance(before, Table) or not isinstance(after, Table):
        return after
    made = {c.id: c.conversion for c in before.columns if c.conversion is not None}
    return replace(after, columns=tuple(_with_origin(c, made) for c in after.columns))


def _with_origin(column: Column, made: dict[ColumnId, Expression]) -> Column:
    is_done = column.id in made and column.conversion is None
    return replace(column, origin=made[column.id]) if is_done else column
