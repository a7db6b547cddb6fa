"""The ops of a stage: what its transitions ask to be done."""

from __future__ import annotations

from collections.abc import Mapping

from seachange.model.change import elements
from seachange.model.change.ops import BackfillIndexes, CollectIndexes, Op, OpType, RestoreColumns, SetState, Validate
from seachange.model.change.targets import STATE_OF
from seachange.model.ids import ColumnId, IndexId, Seq, TableId
from seachange.planner.graph import Graph
from seachange.planner.stages import Stage


def stage_ops(graph: Graph, stage: Stage, sources: Mapping[TableId, IndexId]) -> tuple[Op, ...]:
    """`sources` are the primary indexes that tables had before the change."""
    moved = [(graph.targets[t.target].element, t) for t in stage.transitions]
    match stage.type:
        case OpType.MUTATION:
            return tuple(
                SetState(element, STATE_OF[t.status])
                for element, t in moved
                if STATE_OF[t.origin] is not STATE_OF[t.status]
            )
        case OpType.VALIDATION:
            # A foreign key is validated once, for both its ends.
            return tuple(Validate(e) for e, _ in moved if not isinstance(e, elements.ForeignKeyParent))
        case OpType.BACKFILL:
            return _backfills([element for element, _ in moved], sources)
        case OpType.RESTORATION:
            return _restorations([element for element, _ in moved])
        case OpType.COLLECTION:
            return _collections([element for element, _ in moved])


def _backfills(indexes: list[elements.Element], sources: Mapping[TableId, IndexId]) -> tuple[Op, ...]:
    """Indexes of a table that are made from the same rows share one scan; a new primary index comes first, since
    others may be made from it."""
    scans: dict[tuple[TableId, IndexId], list[IndexId]] = {}
    for index in sorted(indexes, key=lambda i: not isinstance(i, elements.PrimaryIndex)):
        match index:
            case elements.PrimaryIndex():
                source = index.replaces_id
            case elements.SecondaryIndex() | elements.UniqueIndex():
                source = index.source_id
            case _:
                raise AssertionError(index)
        place = (index.table_id, source if source is not None else sources[index.table_id])
        scans.setdefault(place, []).append(index.index_id)
    return tuple(BackfillIndexes(table, source, tuple(ids)) for (table, source), ids in scans.items())


def _restorations(columns: list[elements.Element]) -> tuple[Op, ...]:
    """Columns of a table that went at the same time come back together."""
    found: dict[tuple[TableId, int], list[ColumnId]] = {}
    for column in columns:
        assert isinstance(column, elements.RestoredColumn)
        found.setdefault((column.table_id, column.as_of), []).append(column.column_id)
    return tuple(RestoreColumns(table, tuple(ids), Seq(as_of)) for (table, as_of), ids in found.items())


def _collections(data: list[elements.Element]) -> tuple[Op, ...]:
    tables: dict[TableId, list[IndexId]] = {}
    for element in data:
        assert isinstance(element, elements.IndexData)
        tables.setdefault(element.table_id, []).append(element.index_id)
    return tuple(CollectIndexes(table, tuple(ids)) for table, ids in tables.items())
