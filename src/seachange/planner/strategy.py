"""What a change costs: how each part of it is brought about, what is read and written, and how often others are waited
for.

Sizes are estimates: an index is taken to hold as large a share of its table's bytes as of its columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from seachange.model.change import elements
from seachange.model.change.elements import Element, descriptor_of
from seachange.model.change.ops import BackfillIndexes, CollectIndexes, Op, OpType, RestoreColumns, SetState, Validate
from seachange.model.change_history import ChangeWork
from seachange.model.ids import DescriptorId, IndexId, TableId
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor
from seachange.planner.graph import Graph
from seachange.planner.known_schema import KnownSchema, TableSize, apply_ops
from seachange.planner.plan import ChangePlan


class Strategy(StrEnum):
    """From the cheapest to the dearest."""

    METADATA_ONLY = "metadata only"
    VALIDATE_ONLY = "validate only"
    RESTORE_VALUES = "restore values"
    BUILD_INDEX = "build index"
    REBUILD_PRIMARY = "rebuild primary index"


RANK = {strategy: rank for rank, strategy in enumerate(Strategy)}

# Measured by the benchmarks, on two cores: rows per second of each kind of work, what it takes however few rows there
# are, and the time of a version with its job's step.
_BUILT_PER_S = 2_400_000
_REWRITTEN_PER_S = 1_900_000
_VALIDATED_PER_S = 15_000_000
_BUILD_US = 30_000
_VALIDATION_US = 5_000
_VERSION_US = 3_000
# Of fewer rows an index is built in less time than it takes to look at some of them.
SAMPLED_ROWS_MIN = 5_000
_US = 1_000_000


@dataclass(frozen=True, slots=True)
class OpWork:
    """What one op does with data. `read` are the rows, bytes and files that it scans, None if nothing is known of the
    table; `written` the bytes that it adds, and `deleted` those that go once they are not needed. `rows_per_s` is how
    fast it is."""

    op: Op
    table_id: TableId
    read: TableSize | None
    written: int = 0
    deleted: int = 0
    rows_per_s: int = _VALIDATED_PER_S
    # Rows of another table, which are looked up: what the work is done for are the others.
    looked_up: int = 0


@dataclass(frozen=True, slots=True)
class Cost:
    """`versions` are the commits that publish new versions of descriptors, `drains` those of them that everybody is
    waited for to know. After the change is done, `late_drains` come before data is deleted."""

    strategy: Strategy
    versions: int
    drains: int
    late_drains: int
    work: tuple[OpWork, ...]

    @property
    def bytes_moved(self) -> int | None:
        """None if a size that it depends on is not known."""
        if any(w.read is None for w in self.work if isinstance(w.op, BackfillIndexes)):
            return None
        return sum(work.written for work in self.work)

    @property
    def estimate(self) -> ChangeWork:
        """What it is expected to take, without the time that drains take."""
        counted = [work for work in self.work if not isinstance(work.op, CollectIndexes)]
        sizes = [work.read for work in counted if work.read is not None]
        is_known = len(sizes) == len(counted)
        read_us = sum(work.read.rows * _US // work.rows_per_s for work in counted if work.read is not None)
        begin_us = sum(_BUILD_US if isinstance(work.op, BackfillIndexes) else _VALIDATION_US for work in counted)
        return ChangeWork(
            rows=sum(size.rows for size in sizes) - sum(work.looked_up for work in counted) if is_known else None,
            written_bytes=self.bytes_moved,
            duration_us=self.versions * _VERSION_US + begin_us + read_us if is_known else None,
            drains=self.drains,
        )


def measure(plan: ChangePlan, catalog: KnownSchema) -> Cost:
    counted = [stage for stage in plan.stages if stage.type is not OpType.COLLECTION]
    work = list(_works(plan, catalog))
    return Cost(
        strategy=strategy_of_all(range(len(plan.graph.targets)), plan.graph),
        versions=sum(bool(stage.publishes) for stage in plan.stages),
        drains=sum(bool(stage.raises) for stage in counted),
        late_drains=sum(bool(stage.raises) for stage in plan.stages) - sum(bool(stage.raises) for stage in counted),
        work=tuple(w for w in work if w is not None),
    )


def _works(plan: ChangePlan, catalog: KnownSchema) -> Iterator[OpWork | None]:
    known = catalog
    for stage in plan.stages:
        ops = plan.ops(stage)
        for op in ops:
            work = _work(op, plan.graph, catalog)
            yield work if work is None else _sampled(work, known)
        if catalog.sampler is not None and stage.type is OpType.MUTATION:
            known = apply_ops(known, ops)


def _sampled(work: OpWork, known: KnownSchema) -> OpWork:
    """What a backfill writes, by a sample, where there are enough rows; `known` is the schema when it is run."""
    op, table = work.op, known.descriptors.get(work.table_id)
    if known.sampler is None or work.read is None or work.read.rows < SAMPLED_ROWS_MIN:
        return work
    if not isinstance(op, BackfillIndexes) or not isinstance(table, Table):
        return work
    found = known.sampler.entry_bytes(table, op)
    return replace(work, written=sum(found.values())) if found.keys() >= set(op.index_ids) else work


def measure_whole(plan: ChangePlan, catalog: KnownSchema) -> Cost:
    """With the change that follows, if there is one. Its sizes are those given here: the ones that the plan was made
    with are looked up when they are needed, and once a block has run the change, its tables have other indexes."""
    cost = measure(plan, catalog)
    if plan.then is None or plan.between is None:
        return cost
    then = measure_whole(plan.then, replace(plan.between, sizes=catalog.sizes, sampler=catalog.sampler))
    return Cost(
        strategy=max(cost.strategy, then.strategy, key=RANK.__getitem__),
        versions=cost.versions + then.versions,
        drains=cost.drains + then.drains,
        late_drains=cost.late_drains + then.late_drains,
        work=(*cost.work, *then.work),
    )


def strategy_of_all(numbers: Iterable[int], graph: Graph) -> Strategy:
    """The dearest way in which one of these targets is brought about."""
    found = [strategy_of(number, graph) for number in numbers]
    return max(found, key=RANK.__getitem__, default=Strategy.METADATA_ONLY)


def strategy_of(number: int, graph: Graph) -> Strategy:
    """How the target with this number is brought about."""
    ops = {graph.nodes[node].step.op for node in graph.paths[number]}
    element = graph.targets[number].element
    if OpType.BACKFILL in ops:
        return Strategy.REBUILD_PRIMARY if isinstance(element, elements.PrimaryIndex) else Strategy.BUILD_INDEX
    if OpType.RESTORATION in ops:
        return Strategy.RESTORE_VALUES
    if OpType.VALIDATION in ops:
        return Strategy.VALIDATE_ONLY
    if isinstance(element, elements.AnyColumn) and _is_rebuilt(element, graph):
        return Strategy.REBUILD_PRIMARY
    return Strategy.METADATA_ONLY


def _is_rebuilt(column: elements.AnyColumn, graph: Graph) -> bool:
    return any(
        isinstance(t.element, elements.PrimaryIndex)
        and t.element.table_id == column.table_id
        and column.column_id in t.element.rebuilt_ids
        for t in graph.targets
    )


def _work(op: Op, graph: Graph, catalog: KnownSchema) -> OpWork | None:
    match op:
        case SetState():
            return None
        case BackfillIndexes():
            size = catalog.sizes.get(op.table_id)
            written = sum(_index_bytes(op.table_id, id_, graph, catalog) for id_ in op.index_ids)
            is_rewrite = any(_is_primary(op.table_id, id_, graph) for id_ in op.index_ids)
            return OpWork(op, op.table_id, size, written, 0, _REWRITTEN_PER_S if is_rewrite else _BUILT_PER_S)
        case Validate():
            table_id = TableId(descriptor_of(op.element))
            parent = (
                catalog.sizes.get(op.element.parent_id) if isinstance(op.element, elements.ForeignKeyElement) else None
            )
            looked_up = 0 if parent is None else parent.rows
            return OpWork(op, table_id, _validated(op.element, graph, catalog), looked_up=looked_up)
        case RestoreColumns():
            return OpWork(op, op.table_id, catalog.sizes.get(op.table_id))
        case CollectIndexes():
            deleted = sum(_index_bytes(op.table_id, id_, graph, catalog) for id_ in op.index_ids)
            known = TableSize() if op.table_id in catalog.sizes else None
            return OpWork(op, op.table_id, known, deleted=deleted)


def _is_primary(table_id: TableId, index_id: IndexId, graph: Graph) -> bool:
    indexes = (t.element for t in graph.targets if isinstance(t.element, elements.PrimaryIndex))
    return any((index.table_id, index.index_id) == (table_id, index_id) for index in indexes)


def _validated(element: Element, graph: Graph, catalog: KnownSchema) -> TableSize | None:
    """What a validation reads: of a unique index its entries, else the rows, and for a foreign key the parent's too."""
    table_id = TableId(descriptor_of(element))
    size = catalog.sizes.get(table_id)
    if size is None:
        return None
    match element:
        case elements.UniqueIndex():
            return TableSize(size.rows, _index_bytes(table_id, element.index_id, graph, catalog), size.files)
        case elements.ForeignKeyElement():
            parent = catalog.sizes.get(element.parent_id)
            if parent is None:
                return None
            key = _index_bytes(element.parent_id, element.parent_index_id, graph, catalog)
            return TableSize(size.rows + parent.rows, size.bytes + key, size.files + parent.files)
        case _:
            return size


def _index_bytes(table_id: TableId, index_id: IndexId, graph: Graph, catalog: KnownSchema) -> int:
    size = catalog.sizes.get(table_id)
    if size is None:
        return 0
    stored, all_ = _share(table_id, index_id, graph, catalog.descriptors)
    return size.bytes * min(stored, all_) // all_


def _share(
    table_id: TableId, index_id: IndexId, graph: Graph, descriptors: Mapping[DescriptorId, Descriptor]
) -> tuple[int, int]:
    """How many columns the index stores, and the table."""
    table = descriptors.get(table_id)
    if not isinstance(table, Table):
        return 1, 1
    for target in graph.targets:
        element = target.element
        same = getattr(element, "table_id", None) == table_id and getattr(element, "index_id", None) == index_id
        if same and isinstance(element, elements.SecondaryIndex | elements.UniqueIndex):
            return len({*element.key, *element.include, *table.primary.key}), len(table.columns)
    known = table.index_by_id.get(index_id)
    if known is None or known.id == table.primary.id:
        return 1, 1
    return len({*known.key, *known.include, *table.primary.key}), len(table.columns)
