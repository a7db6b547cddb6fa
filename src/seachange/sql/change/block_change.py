"""A change in several stages inside a transaction block: what is published first, and what the block goes on with.

**Invariant:** nothing is published before the whole change was checked: what cannot be done in a block is refused
(0A000) and leaves nothing.
"""

from __future__ import annotations

from seachange import errors
from seachange.model.change import elements
from seachange.model.change.elements import descriptor_of
from seachange.model.change.ops import FALLIBLE, OpType, SetState
from seachange.model.change.targets import Status, Target
from seachange.model.ids import DescriptorId
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor
from seachange.model.schema.synthetic import align_layouts
from seachange.planner.block_plan import first_stages, merge_plan, touched_by
from seachange.planner.known_schema import KnownSchema, apply_ops, change_descriptor
from seachange.planner.plan import ChangePlan
from seachange.sql.change.type_checks import resolve_index_types, verify_checks, verify_computed
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.port.port import TransactionPort

# What can be added while a block is open; and what can be validated: constraints that were there before, and reject
# rows of other sessions already.
_ADDED = (elements.SecondaryIndex, elements.CheckConstraint, elements.ColumnNotNull)
_VALIDATED = (elements.CheckConstraint, elements.ForeignKeyElement, elements.ForeignKeyParent)


def run_in_block(text: str, plan: ChangePlan, catalog: KnownSchema, port: TransactionPort, duck: DuckSession) -> None:
    """`catalog` is what the block sees."""
    changed = touched_by(plan.change)
    taken = port.blocks.earlier(changed)
    merged = merge_plan(taken, plan)
    check_supported(merged, catalog, port)
    after = catalog
    for stage in plan.stages:
        if stage.type is OpType.MUTATION:
            after = apply_ops(after, plan.ops(stage))
    outcome = [_outcome(catalog.descriptors[id_], after.descriptors[id_], duck) for id_ in sorted(changed)]
    port.blocks.run(text, merged, taken, _first_versions(merged, catalog, port, duck), outcome)


def _outcome(before: Descriptor, after: Descriptor, duck: DuckSession) -> tuple[Descriptor, Descriptor]:
    if isinstance(before, Table) and isinstance(after, Table):
        verify_checks(before, after, duck)
        verify_computed(before, after, duck)
        after = resolve_index_types(before, after, duck)
    return before, after


def _first_versions(
    plan: ChangePlan, catalog: KnownSchema, port: TransactionPort, duck: DuckSession
) -> list[tuple[Descriptor, Descriptor]]:
    """The versions that are published with the job: made of what others know, with the layouts that the block knows."""
    mutations: dict[DescriptorId, list[SetState]] = {}
    for op in (op for stage in first_stages(plan) for op in plan.ops(stage)):
        if isinstance(op, SetState):
            mutations.setdefault(descriptor_of(op.element), []).append(op)
    first: list[tuple[Descriptor, Descriptor]] = []
    for id_, changes in mutations.items():
        published, seen = port.blocks.published(id_), catalog.descriptors[id_]
        after = change_descriptor(published, changes)
        if isinstance(published, Table) and isinstance(after, Table) and isinstance(seen, Table):
            first.append((published, align_layouts(resolve_index_types(published, after, duck), seen)))
    return first


def check_supported(plan: ChangePlan, catalog: KnownSchema, port: TransactionPort) -> None:
    ids = touched_by(plan.change)
    are_known = all(isinstance(port.blocks.published(id_), Table) and id_ in catalog.descriptors for id_ in ids)
    work = {node.target for node in plan.graph.nodes if node.step.op in FALLIBLE}
    if plan.then is None and are_known and all(_is_supported(plan.graph.targets[number]) for number in work):
        return
    raise errors.FeatureNotSupported(
        feature="this change of a table that has rows in a transaction block",
        instead="Send the statement alone, outside of a block. EXPLAIN (DDL) shows what it takes.",
    )


def _is_supported(target: Target) -> bool:
    is_enforced = target.start is Status.ENFORCED and isinstance(target.element, _VALIDATED)
    return is_enforced or isinstance(target.element, _ADDED)
