"""EXPLAIN (DDL, COST): what a change costs. Always both numbers: bytes moved and versions waited for."""

from __future__ import annotations

from seachange.model.change.ops import BackfillIndexes, CollectIndexes, OpType, RestoreColumns, Validate
from seachange.model.change.targets import Goal
from seachange.planner.explain.names import Names
from seachange.planner.explain.outline import StageView, indent, point_of_no_return, view_stages
from seachange.planner.explain.stages import NOTHING, statement_phase
from seachange.planner.explain.subjects import subjects
from seachange.planner.explain.words import bytes_in_words, claim, count_of, enumerate_words, status_name
from seachange.planner.known_schema import KnownSchema, TableSize
from seachange.planner.plan import ChangePlan, plan_revert
from seachange.planner.stages import Phase, progress_after
from seachange.planner.strategy import Cost, OpWork, Strategy, measure, strategy_of_all

_MEANINGS: dict[Strategy, str] = {
    Strategy.METADATA_ONLY: "no data is read or written",
    Strategy.VALIDATE_ONLY: "rows are read, none is written",
    Strategy.RESTORE_VALUES: "rows are read, those without their values are written",
    Strategy.BUILD_INDEX: "rows are read, entries are written",
    Strategy.REBUILD_PRIMARY: "all rows are rewritten",
}


def explain_shape(plan: ChangePlan, catalog: KnownSchema) -> list[str]:
    if not plan.stages:
        return [NOTHING]
    names = Names(plan, catalog)
    cost = measure(plan, catalog)
    views = view_stages(plan, catalog)
    return [
        f"Strategy: {cost.strategy.value} ({_MEANINGS[cost.strategy]})",
        f"Bytes moved: {bytes_in_words(cost.bytes_moved)}",
        f"Versions waited for: {_drains(cost, views, names)}",
        f"Versions published: {_published(cost, views, names)}",
        f"Time: {_time(cost)}",
        *_changes(plan, names),
        *_works(cost, names),
        *_no_return(plan, views),
        *_cancel(plan, catalog, views),
        *statement_phase(plan, names),
    ]


def _time(cost: Cost) -> str:
    took_us = cost.estimate.duration_us
    return "unknown" if took_us is None else f"about {max(took_us, 1_000) / 1e6:,.3g} s, without waits"


def _drains(cost: Cost, views: list[StageView], names: Names) -> str:
    drained = [
        enumerate_words([f"version {view.before[id_]} of {names.descriptor(id_)}" for id_ in view.stage.raises])
        for view in views
        if view.stage.raises and view.stage.type is not OpType.COLLECTION
    ]
    if not drained:
        return "0"
    return f"{cost.drains} ({', then '.join(drained)})"


def _published(cost: Cost, views: list[StageView], names: Names) -> str:
    counts: dict[str, int] = {}
    for view in views:
        for id_ in view.stage.publishes:
            counts[names.descriptor(id_)] = counts.get(names.descriptor(id_), 0) + 1
    each = [f"{number} of {name}" for name, number in counts.items()]
    return f"{cost.versions} ({enumerate_words(each)})"


def _changes(plan: ChangePlan, names: Names) -> list[str]:
    """How each thing that the user named is brought about, by way of which statuses."""
    lines = ["Changes"]
    for subject in subjects(plan, names):
        strategy = strategy_of_all(subject.targets, plan.graph)
        path = plan.graph.paths[subject.host]
        way = " -> ".join(status_name(plan.graph.nodes[node].status) for node in path)
        start = status_name(plan.graph.targets[subject.host].start)
        lines += indent([f"{subject.label}: {strategy.value}; {start} -> {way}"])
    return lines


def _works(cost: Cost, names: Names) -> list[str]:
    """Data is deleted long after; it is shown, but is no work of the change."""
    lines = ["Work"] if cost.work else ["Work: none"]
    for work in cost.work:
        lines += indent([_work(work, names)])
    return lines


def _work(work: OpWork, names: Names) -> str:
    table = names.object(work.table_id)
    match work.op:
        case BackfillIndexes():
            built = enumerate_words([names.index(work.op.table_id, index) for index in work.op.index_ids])
            written = "an unknown amount" if work.read is None else f"about {bytes_in_words(work.written)}"
            return f"scan {table} once: {_size(work.read)}; write {written} of {built}"
        case Validate():
            return f"validate that {claim(work.op.element, names)}: read {_size(work.read)}; write nothing"
        case RestoreColumns():
            columns = enumerate_words([names.column(work.table_id, column) for column in work.op.column_ids])
            return f"write the values of {columns} as of {work.op.as_of} into {table}: read {_size(work.read)}"
        case CollectIndexes():
            gone = enumerate_words([names.index(work.op.table_id, index) for index in work.op.index_ids])
            deleted = "an unknown amount" if work.read is None else f"about {bytes_in_words(work.deleted)}"
            return f"later, once no snapshot can read it, delete {deleted} of {gone} of {table}"
        case _:
            raise AssertionError(work)


def _no_return(plan: ChangePlan, views: list[StageView]) -> list[str]:
    turning = point_of_no_return(plan)
    if turning is None:
        return ["Point of no return: none"]
    if plan.then is not None:
        return ["Point of no return: that of the second change"]
    if views[turning].stage.phase is Phase.PRE_COMMIT:
        return ["Point of no return: COMMIT"]
    return [f"Point of no return: stage {turning + 1} of {len(views)}, the publication ({views[turning].title})"]


def _cancel(plan: ChangePlan, catalog: KnownSchema, views: list[StageView]) -> list[str]:
    """The revert from after the last revertible stage, where there is most to undo."""
    turning = point_of_no_return(plan)
    if turning == 0:
        return ["Cancel: before COMMIT, ROLLBACK leaves nothing; after it there is nothing left to cancel"]
    done = plan.stages[: turning if turning is not None else len(plan.stages)]
    back = plan_revert(plan.change, progress_after(plan.graph, done))
    cost = measure(back, catalog)
    gone = [t for t in plan.change.targets if t.adds and t.goal is not Goal.TRANSIENT]
    takes = f"{count_of(cost.versions, 'version')} published, {cost.drains} waited for, nothing moved"
    built = "; what was built is deleted" if cost.late_drains or any(w.deleted for w in cost.work) else ""
    until = f"Cancel before stage {len(done) + 1} of {len(views)}"
    first = "; then the first change, by 1 version more" if plan.follows else ""
    return [f"{until}: {count_of(len(gone), 'element')} reverted, {takes}{built}{first}"]


def _size(size: TableSize | None) -> str:
    if size is None:
        return "an unknown amount"
    return f"about {count_of(size.rows, 'row')}, {bytes_in_words(size.bytes)}, {count_of(size.files, 'file')}"
