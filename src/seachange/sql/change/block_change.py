"""A change in several stages inside a transaction block: what is published first, and what the block goes on with.

**Invariant:** nothing is published before the whole change was checked: what cannot be done in a block is refused
(0A000) and leaves nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from seachange import errors
from seachange.model.change import elements
from seachange.model.change.elements import descriptor_of
from seachange.model.change.ops import FALLIBLE, OpType, SetState
from seachange.model.change.targets import Status
from seachange.model.ids import ConstraintId, DescriptorId, IndexId
from seachange.model.schema.constraint import Check, ForeignKey
from seachange.model.schema.descriptor import Column, Table
from seachange.model.schema.objects import Descriptor, EnumType, hide_sequence
from seachange.model.schema.objects import Sequence as SequenceObject
from seachange.model.schema.synthetic import align_layouts
from seachange.model.states import State
from seachange.planner.block_plan import (
    build_from,
    first_stages,
    merge_plan,
    start_from,
    touched_by,
    without_parents,
)
from seachange.planner.known_schema import KnownSchema, apply_ops, change_descriptor
from seachange.planner.plan import ChangePlan
from seachange.planner.rewrite_first import rewrite_first
from seachange.sql.change.object_access import give_to_creator
from seachange.sql.change.type_checks import resolve_index_types, verify_checks, verify_computed
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.duck.default_text import is_drawn
from seachange.sql.port.port import TransactionPort
from seachange.values.types import SqlType

# What can be added while a block is open; what depends on values of columns; and what can be added NOT VALID, to be
# validated later.
_ADDED = (
    elements.PrimaryIndex,
    elements.SecondaryIndex,
    elements.UniqueIndex,
    elements.CheckConstraint,
    elements.ColumnNotNull,
    elements.ForeignKeyElement,
    elements.ForeignKeyParent,
)
# What has versions that other sessions know. The values of a type, and sequences, change with COMMIT alone.
_CHANGED = (Table, EnumType, SequenceObject)
_KEYED = (elements.PrimaryIndex, elements.SecondaryIndex, elements.UniqueIndex, elements.ColumnGenerated)
_NOT_VALID = (elements.CheckConstraint, elements.ForeignKeyElement)


def run_in_block(text: str, plan: ChangePlan, catalog: KnownSchema, port: TransactionPort, duck: DuckSession) -> None:
    """`catalog` is what the block sees."""
    plan = _known_part(plan, port)
    outcome = _versions(plan, catalog, port, duck)
    rewriting = rewrite_first(plan) if port.blocks.can_rewrite(touched_by(plan.change)) else None
    if rewriting is not None:
        first = [*_first_versions(rewriting, catalog, port, duck), *_hidden_sequences(outcome)]
        port.blocks.run(text, rewriting, first, outcome)
        return
    merged = _merged(plan, catalog, port)
    check_supported(merged, catalog, port)
    first = [*_first_versions(merged, catalog, port, duck), *_hidden_sequences(outcome)]
    port.blocks.run(text, merged, first, outcome)


def _known_part(plan: ChangePlan, port: TransactionPort) -> ChangePlan:
    """Of a foreign key to a table that only the block knows, other sessions know the end with the child. No row of
    theirs has a parent before the COMMIT: it is recorded, and looked at again by the COMMIT."""
    return without_parents(plan, _unseen_parents(plan, port))


def _unseen_parents(plan: ChangePlan, port: TransactionPort) -> set[DescriptorId]:
    keys = (t.element for t in plan.change.targets if isinstance(t.element, elements.ForeignKeyElement))
    return {key.parent_id for key in keys if port.blocks.is_unseen(key.parent_id)}


def can_run_in_block(plan: ChangePlan, catalog: KnownSchema, port: TransactionPort) -> bool:
    try:
        check_supported(plan, catalog, port)
        check_supported(_merged(_known_part(plan, port), catalog, port), catalog, port)
    except errors.FeatureNotSupported:
        return False
    return True


def _merged(plan: ChangePlan, catalog: KnownSchema, port: TransactionPort) -> ChangePlan:
    """The plan together with what earlier changes of the block do to the same tables."""
    changed = touched_by(plan.change)
    started = start_from(plan, _known_to_others(plan, catalog, port))
    return build_from(merge_plan(port.blocks.earlier(changed), started), _coming_primaries(changed, port))


def _known_to_others(
    plan: ChangePlan, catalog: KnownSchema, port: TransactionPort
) -> dict[elements.ConstraintName, Status]:
    """How far other sessions know the constraints that the block validates, and may have added itself, as NOT VALID."""
    known: dict[elements.ConstraintName, Status] = {}
    for target in plan.change.targets:
        element = target.element
        if target.start is Status.ENFORCED and target.adds and isinstance(element, _NOT_VALID):
            table_id, id_ = element.table_id, element.constraint_id
            ((name, _),) = _rules(catalog.descriptors[table_id], id_)
            found = [Status(state) for _, state in _rules(port.blocks.published(table_id), id_)]
            known[elements.ConstraintName(table_id, id_, name)] = found[0] if found else Status.ABSENT
    return known


def _rules(table: Descriptor | None, constraint_id: ConstraintId) -> list[tuple[str, State]]:
    rules: tuple[Check | ForeignKey, ...] = ()
    if isinstance(table, Table):
        rules = (*table.checks, *table.foreign_keys)
    return [(rule.name, rule.state) for rule in rules if rule.id == constraint_id]


def _coming_primaries(ids: Collection[DescriptorId], port: TransactionPort) -> dict[DescriptorId, IndexId]:
    published = ((id_, port.blocks.published(id_)) for id_ in ids)
    return {id_: table.coming[-1].id for id_, table in published if isinstance(table, Table) and table.coming}


def _versions(
    plan: ChangePlan, catalog: KnownSchema, port: TransactionPort, duck: DuckSession
) -> list[list[Descriptor | None]]:
    """The versions of each descriptor that the plan changes, from the one that the block sees."""
    versions = {id_: [catalog.descriptors.get(id_)] for id_ in sorted(touched_by(plan.change))}
    for stage in plan.stages:
        if stage.type is OpType.MUTATION:
            after = apply_ops(catalog, plan.ops(stage)).descriptors
            made = {id_: _verified(versions[id_][-1], after.get(id_), port, duck) for id_ in stage.publishes}
            for id_, version in made.items():
                versions[id_].append(version)
            left = {id_: version for id_, version in {**after, **made}.items() if version is not None}
            catalog = catalog.with_descriptors(left)
    return list(versions.values())


def _verified(
    before: Descriptor | None, after: Descriptor | None, port: TransactionPort, duck: DuckSession
) -> Descriptor | None:
    if before is None and after is not None:
        return give_to_creator(after, port)
    if isinstance(before, Table) and isinstance(after, Table):
        verify_checks(before, after, duck)
        verify_computed(before, after, duck)
        return resolve_index_types(before, after, duck)
    return after


def _first_versions(
    plan: ChangePlan, catalog: KnownSchema, port: TransactionPort, duck: DuckSession
) -> list[tuple[Descriptor | None, Descriptor]]:
    """The versions that are published with the job: made of what others know, with the layouts that the block knows."""
    mutations: dict[DescriptorId, list[SetState]] = {}
    for op in (op for stage in first_stages(plan) for op in plan.ops(stage)):
        if isinstance(op, SetState):
            mutations.setdefault(descriptor_of(op.element), []).append(op)
    first: list[tuple[Descriptor | None, Descriptor]] = []
    for id_ in sorted(touched_by(plan.change)):
        published, seen, changes = port.blocks.published(id_), catalog.descriptors.get(id_), mutations.get(id_)
        if not isinstance(published, Table) or not isinstance(seen, Table):
            continue
        after = change_descriptor(published, changes) if changes else replace(published, version=published.version + 1)
        assert isinstance(after, Table)
        after = _with_known_types(align_layouts(resolve_index_types(published, after, duck), seen), port)
        # The rows of the block may have layouts of its own, which jobs have to know.
        if changes or after.layouts != published.layouts:
            first.append((published, after))
    return first


def _hidden_sequences(outcome: Iterable[Sequence[Descriptor | None]]) -> Iterator[tuple[None, Descriptor]]:
    """The new sequences of hidden columns: writers draw from them by their ids, and no session has a name for them."""
    for before, *_, after in outcome:
        if before is None and isinstance(after, SequenceObject):
            yield None, hide_sequence(after)


def _with_known_types(table: Table, port: TransactionPort) -> Table:
    """Other sessions do not know the enum types and values of the block. Of a hidden column they write the text that
    its rows hold, which is what expressions are bound to: these say themselves which labels the texts stand for."""
    unknown = {column.id for column in table.columns if _is_unknown(column, port)}
    columns = tuple(replace(c, type=_held(c.type)) if c.id in unknown else c for c in table.columns)
    return replace(table, columns=columns)


def _is_unknown(column: Column, port: TransactionPort) -> bool:
    if not column.type.enum or column.state is State.PUBLIC:
        return False
    type_id = DescriptorId(column.type.enum)
    return port.schema.object_by_id(type_id) != port.blocks.published(type_id)


def _held(type_: SqlType) -> SqlType:
    return replace(type_, enum=0, element=_held(type_.element) if type_.element is not None else None)


def check_supported(plan: ChangePlan, catalog: KnownSchema, port: TransactionPort) -> None:
    plan = _known_part(plan, port)
    ids = touched_by(plan.change)
    known = {id_ for id_ in ids if isinstance(port.blocks.published(id_), _CHANGED) and id_ in catalog.descriptors}
    known -= _unseen_parents(plan, port)
    owned = {t.element.sequence_id for t in plan.change.targets if isinstance(t.element, elements.SequenceOwnerElement)}
    are_known = ids - known <= owned - catalog.descriptors.keys()
    work = [plan.graph.targets[n] for n in {node.target for node in plan.graph.nodes if node.step.op in FALLIBLE}]
    if plan.then is None and are_known and all(isinstance(target.element, _ADDED) for target in work):
        _refuse_drawn_keys(plan, port)
        return
    # It may be refused only because others have dropped or changed the table since.
    port.definitions.check_newest(ids)
    raise errors.FeatureNotSupported(
        feature="this change of a table that has rows in a transaction block",
        instead="Send the statement alone, outside of a block. EXPLAIN (DDL) shows what it takes.",
    )


def _refuse_drawn_keys(plan: ChangePlan, port: TransactionPort) -> None:
    """A writer that does not see a column, and draws a value for it, cannot tell which index entry to remove."""
    for target in plan.change.targets:
        element = target.element
        table = port.blocks.published(descriptor_of(element))
        if not target.adds or not isinstance(element, _KEYED) or not isinstance(table, Table):
            continue
        for column in (table.column_by_id[c] for c in element.column_ids if c in table.column_by_id):
            is_hidden = column.state is not State.PUBLIC and not port.blocks.is_stored(table.id, column.id)
            if is_hidden and column.frozen is None and (is_drawn(column) or column.is_row_id):
                raise errors.FeatureNotSupported(
                    feature=f'an index on column "{column.name}", which the same transaction has added with another '
                    "value for each row,",
                    instead="Commit first, then add the index.",
                )
