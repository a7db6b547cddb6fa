"""The versions that a schema change gives to descriptors, as the transaction publishes them.

**Invariant:** what a published version refers to is relied on by the commit: it is still there when the version is
published.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from seachange.model.change.ops import OpType
from seachange.model.ids import DescriptorId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor, EnumType, View, is_relabelled
from seachange.model.schema.objects import Schema as SchemaObject
from seachange.model.schema.objects import Sequence as SequenceObject
from seachange.planner.known_schema import KnownSchema, apply_ops
from seachange.planner.plan import ChangePlan
from seachange.planner.stages import Phase
from seachange.sql.change.object_access import give_to_creator
from seachange.sql.change.running_changes import check_relied
from seachange.sql.change.type_checks import resolve_index_types, verify_checks, verify_computed
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.port.port import TransactionPort
from seachange.sql.query.views import check_grouping, resolve_view

_IN_SCHEMAS = (Table, SequenceObject, View, EnumType)
_IN_DATABASES = (*_IN_SCHEMAS, SchemaObject)


def verify_outcome(
    plan: ChangePlan, after: KnownSchema, known: Mapping[DescriptorId, Descriptor], duck: DuckSession
) -> None:
    """Validates the outcome of all stages: an invalid CHECK of a later stage would fail every writer from then on."""
    rest = [(plan, stage) for stage in plan.stages if stage.phase is not Phase.PRE_COMMIT]
    rest += [(plan.then, stage) for stage in plan.then.stages] if plan.then is not None else []
    for part, stage in rest:
        if stage.type is OpType.MUTATION:
            after = apply_ops(after, part.ops(stage))
    parts = (plan,) if plan.then is None else (plan, plan.then)
    for id_ in sorted({id_ for part in parts for stage in part.stages for id_ in stage.publishes}):
        before, outcome = known.get(id_), after.descriptors.get(id_)
        if isinstance(outcome, Table) and isinstance(before, Table) and outcome is not before:
            verify_checks(before, outcome, duck)
            check_grouping(before, outcome, (view for view in after.descriptors.values() if isinstance(view, View)))


def rely(changed: Iterable[DescriptorId], catalog: KnownSchema, after: KnownSchema, port: TransactionPort) -> None:
    """Whatever a new version refers to must still exist when the version is published."""
    used: set[DescriptorId | None] = set()
    names = catalog.object_names()
    for id_ in changed:
        descriptor = after.descriptors.get(id_)
        before = catalog.descriptors.get(id_)
        if before is not None and descriptor is not None and is_relabelled(before, descriptor):
            continue
        if isinstance(descriptor, _IN_DATABASES):
            used.add(names.find_space(ObjectKind.DATABASE, descriptor.database))
        if isinstance(descriptor, _IN_SCHEMAS):
            used.add(names.find_space(ObjectKind.SCHEMA, descriptor.schema))
        match descriptor:
            case Table(columns=columns):
                used.update(s for column in columns for s in column.default_sequences)
                used.update(DescriptorId(column.type.enum) for column in columns if column.type.enum)
            case View(relation_ids=ids):
                used.update(ids)
            case _:
                pass
    relied = {id_ for id_ in used - set(changed) if id_ is not None and id_ in after.descriptors}
    check_relied(relied, port)
    port.definitions.rely_on(after.descriptors[id_] for id_ in relied)


def publish_version(
    before: Descriptor | None,
    after: Descriptor | None,
    kept: Sequence[Descriptor],
    port: TransactionPort,
    duck: DuckSession,
) -> Descriptor | None:
    """Gives the version as it is published: what only DuckDB knows of it has been filled in."""
    dropped = next((found for found in reversed(kept) if after is not None and found.id == after.id), None)
    if before is None and after is not None and dropped is not None:
        port.definitions.revive(dropped, after)
        return after
    if isinstance(after, Table):
        assert before is None or isinstance(before, Table)
        verify_checks(before, after, duck)
        verify_computed(before, after, duck)
        after = resolve_index_types(before, after, duck)
    if isinstance(after, View):
        after = resolve_view(before if isinstance(before, View) else None, after, port, duck)
    if before is None and after is not None:
        after = give_to_creator(after, port)
    port.definitions.publish(before, after)
    return after
