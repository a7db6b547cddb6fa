"""The local pipeline over real databases, on both catalogs: another node resumes, and an interrupt stops the work."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
import pytest

from seachange import errors
from seachange.engine.bulk.local_pipeline import local_pipeline
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.model.change.ops import BackfillIndexes
from seachange.model.change.work import Built, UnitDone
from seachange.model.ids import ColumnId, IndexId, Seq
from seachange.model.schema.descriptor import Index, Table
from seachange.model.states import State
from seachange.pipeline.kernels.executor import Sizes
from seachange.pipeline.local_kernels import LocalPipeline
from seachange.runtime.faults import FAULTS
from seachange.storage.shuffle_file import shuffle_name
from tests.engine.database import bulk, create, insert, rows
from tests.support.nodes import Place
from tests.support.patience import PATIENCE_S

SIZES = Sizes(unit_rows=40, range_rows=30)


@pytest.fixture
def node(place: Place) -> Iterator[Node]:
    node = open_quietly(place, "one")
    yield node
    node.close()


def open_quietly(where: Place, name: str) -> Node:
    node = open_node(where.data, where.catalog, name=name)
    node.maintenance.paused = True
    return node


def pipeline(node: Node, interrupts: SessionInterrupts | None = None) -> LocalPipeline:
    made = local_pipeline(node.parts, node.epoch, interrupts or SessionInterrupts())
    return replace(made, sizes=SIZES)


def prepare(node: Node) -> tuple[BackfillIndexes, Seq]:
    """Rows in files and inline, some of them changed and deleted since, and an index to build."""
    table = create(node)
    for start in (0, 50, 100):
        bulk(node, *((i, f"v{i * 37 % 101:03}", i % 7) for i in range(start, start + 50)))
    insert(node, *((i, f"v{i}", None) for i in range(200, 220)))
    txn = node.begin()
    found = txn.schema.table(None, "t")
    old = [(i, f"v{i * 37 % 101:03}", i % 7) for i in (3, 70, 120)]
    txn.writes.delete(found, old[:1])
    txn.writes.update(found, old[1:], [(i, "changed", n) for i, _, n in old[1:]])
    index_id = IndexId(txn.definitions.allocate_ids(1)[0])
    coming = Index(index_id, "by_v", (ColumnId(2),), state=State.WRITE_ONLY, include=(ColumnId(3),))
    txn.definitions.publish(found, replace(found, version=found.version + 1, secondary=(coming,)))
    at = txn.commit()
    assert at is not None
    insert(node, (999, "later", 1))
    return BackfillIndexes(table.id, table.primary.id, (index_id,)), at


def entries(node: Node, built: Built) -> list[tuple[Any, ...]]:
    tables = [pq.read_table(node.parts.warehouse.path(member.segment)) for member in built.members]
    return [row for table in tables for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]


def expected(node: Node, at: Seq) -> list[tuple[Any, ...]]:
    return sorted(((v, id_, n) for id_, v, n in rows(node, as_of=at)), key=lambda row: row[:2])


def test_another_node_resumes_where_the_first_stopped(node: Node, place: Place) -> None:
    op, at = prepare(node)
    units: list[UnitDone] = []

    class Stop(Exception):
        pass

    def stop_after_two(unit: UnitDone) -> None:
        units.append(unit)
        if len(units) == 2:
            raise Stop

    with pytest.raises(Stop):
        pipeline(node).backfill(op, at, (), stop_after_two)
    other = open_quietly(place, "two")
    try:
        again: list[UnitDone] = []
        (built,) = pipeline(other).backfill(op, at, units, again.append)
        assert {unit.unit for unit in units}.isdisjoint(unit.unit for unit in again)
        assert entries(other, built) == expected(other, at)
        assert sum(unit.rows for unit in (*units, *again)) == len(expected(other, at))
    finally:
        other.close()


def test_the_rows_are_counted(node: Node) -> None:
    op, at = prepare(node)
    assert abs(pipeline(node).rows(op.table_id, at) - 169) <= 6
    assert pipeline(node).rows(IndexId(10**6), at) == 0  # type: ignore[arg-type]


def test_work_that_is_interrupted_leaves_no_file(node: Node) -> None:
    op, at = prepare(node)
    before = set(node.parts.files.names())
    interrupts = SessionInterrupts()
    kept: list[UnitDone] = []

    def interrupt(unit: UnitDone) -> None:
        kept.append(unit)
        interrupts.set()

    with pytest.raises(errors.QueryCanceled):
        pipeline(node, interrupts).backfill(op, at, (), interrupt)
    assert len(kept) == 1
    written = {shuffle_name(id_) for unit in kept for id_ in unit.files}
    assert set(node.parts.files.names()) - before == written


def test_work_ended_by_its_progress_callback_leaves_no_intent(node: Node) -> None:
    """As for a job that was cancelled on another node: the files of a task are garbage at once, not when the epoch
    ends."""

    class Canceled(Exception):
        pass

    about_to_be_done, looked_at = threading.Event(), threading.Event()

    def wait() -> None:
        about_to_be_done.set()
        assert looked_at.wait(PATIENCE_S)

    def on_progress(rows: int) -> None:
        if about_to_be_done.is_set():
            looked_at.set()
            raise Canceled

    op, at = prepare(node)
    before = set(node.parts.files.names())
    FAULTS.arm("segment.written", wait)
    with pytest.raises(Canceled):
        pipeline(node).backfill(op, at, (), lambda unit: None, on_progress)
    FAULTS.disarm()
    assert set(node.parts.files.names()) - before
    node.collect_garbage(0)
    assert not set(node.parts.files.names()) - before


def test_snapshot_is_pinned_while_it_is_read(node: Node) -> None:
    op, at = prepare(node)
    marks: list[int] = []

    def on_progress(unit: UnitDone) -> None:
        insert(node, (2_000 + len(marks), "x", 1))
        marks.append(node.epoch.registry.marks().low)

    pipeline(node).backfill(op, at, (), on_progress)
    assert marks
    assert max(marks) <= at
    assert node.epoch.registry.marks().low > at


def test_a_source_that_is_not_complete_is_not_read(node: Node) -> None:
    op, at = prepare(node)
    wrong = BackfillIndexes(op.table_id, op.index_ids[0], op.index_ids)
    with pytest.raises(errors.Bug, match="not a primary one"):
        pipeline(node).backfill(wrong, at, (), lambda _: None)


def test_a_new_primary_index_and_one_made_from_it(node: Node) -> None:
    """Both are built before either is attached; the second ends with the new key."""
    _, at = prepare(node)
    txn = node.begin()
    table = txn.schema.table(None, "t")
    ids = txn.definitions.allocate_ids(2)
    primary = Index(IndexId(ids[0]), "t_new", (ColumnId(2), ColumnId(1)), True, state=State.WRITE_ONLY)
    second = Index(IndexId(ids[1]), "by_n", (ColumnId(3),), state=State.WRITE_ONLY)
    changed: Table = replace(
        table, version=table.version + 1, next_primary=primary, secondary=(*table.secondary, second)
    )
    txn.definitions.publish(table, changed)
    at = txn.commit() or at
    work = pipeline(node)
    (built,) = work.backfill(BackfillIndexes(table.id, table.primary.id, (primary.id,)), at, (), lambda _: None)
    wanted = sorted((v, id_, n) for id_, v, n in rows(node, as_of=at))
    assert sorted(entries(node, built)) == sorted(wanted)
    (made,) = work.backfill(BackfillIndexes(table.id, primary.id, (second.id,)), at, (), lambda _: None)
    by_n = sorted(
        ((n, v, id_) for v, id_, n in wanted),
        key=lambda e: (e[0] is None, *e) if e[0] is not None else (True, 0, *e[1:]),
    )
    assert entries(node, made) == by_n
