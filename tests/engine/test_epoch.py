"""What happens to a node whose epoch ends, or whose catalog is out of reach for a moment."""

from collections.abc import Iterator
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from seachange import errors
from seachange.catalog.open import open_catalog
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.ids import Seq
from seachange.model.isolation import Isolation
from seachange.runtime.clock import SystemClock
from seachange.runtime.entropy import SYSTEM_ENTROPY
from seachange.sql.run.execute import prepare
from tests.engine.database import arrow, bulk, create, insert, rows, scan
from tests.engine.ports import HOUR_MS, HookedCatalog, open_hooked
from tests.engine.threads import together
from tests.support.patience import PATIENCE_S


@pytest.fixture
def hooked(tmp_path: Path) -> Iterator[tuple[Node, HookedCatalog]]:
    node, catalog = open_hooked(tmp_path)
    yield node, catalog
    catalog.before.clear()
    node.close()


def end_epoch(node: Node) -> None:
    """As another node does when this one's heartbeat is older than its expiry."""
    node.parts.catalog.end_node(node.epoch.epoch)


def test_a_commit_under_an_ended_epoch_is_refused(hooked, other: Node):
    node, _ = hooked
    create(node)
    writer = node.begin()
    writer.writes.insert(writer.schema.table(None, "t"), [(1, "late", 0)])
    end_epoch(node)
    with pytest.raises(errors.StaleNode) as refused:
        writer.commit()
    assert refused.value.sqlstate == "40001"
    assert rows(other) == []


def test_the_next_transaction_has_a_new_epoch(hooked):
    """Without waiting for a heartbeat: the client that was told to try again does so at once."""
    node, _ = hooked
    create(node)
    before = node.epoch.epoch
    writer = node.begin()
    writer.writes.insert(writer.schema.table(None, "t"), [(1, "late", 0)])
    end_epoch(node)
    with pytest.raises(errors.StaleNode):
        writer.commit()
    insert(node, (1, "again", 0))
    assert node.epoch.epoch > before
    assert rows(node) == [(1, "again", 0)]


def test_a_load_under_an_ended_epoch_is_refused_and_can_be_tried_again(hooked):
    node, _ = hooked
    table = create(node)
    loader = node.begin()
    end_epoch(node)
    with pytest.raises(errors.StaleNode):
        loader.writes.insert_arrow(table, arrow(table, [(1, "late", 0)]))
    loader.rollback()
    bulk(node, (1, "again", 0))
    assert rows(node) == [(1, "again", 0)]


def test_a_read_under_an_ended_epoch_is_refused_and_can_be_tried_again(hooked, other: Node):
    node, _ = hooked
    create(other)
    insert(other, (1, "a", 1))
    reader = node.begin()
    end_epoch(node)
    # Nothing of the table is in memory yet, and what is behind it may be gone.
    with pytest.raises(errors.StaleNode):
        reader.reads.get(reader.schema.table(None, "t"), (1,))
    reader.rollback()
    assert rows(node) == [(1, "a", 1)]


def test_a_heartbeat_finds_that_its_epoch_has_ended(hooked):
    node, _ = hooked
    before = node.epoch.epoch
    end_epoch(node)
    node.beat()
    assert node.epoch.epoch > before


def test_an_expired_epoch_is_ended_by_another_node(tmp_path: Path, other: Node):
    table = create(other)
    clock = LateClock()
    judge = open_catalog(None, tmp_path, clock, SYSTEM_ENTROPY)
    silent, _ = open_hooked(tmp_path)
    writer = silent.begin()
    writer.writes.insert(table, [(1, "late", 0)])
    clock.offset_us = 2 * HOUR_MS * 1_000
    assert silent.epoch.epoch in judge.expire_nodes()
    judge.close()
    with pytest.raises(errors.StaleNode):
        writer.commit()
    insert(silent, (1, "again", 0))
    silent.close()


class LateClock(SystemClock):
    """The clock of a catalog that looks at everybody's heartbeats much later."""

    offset_us = 0

    def steady_us(self) -> int:
        return super().steady_us() + self.offset_us


def test_a_failed_begin_does_not_hold_the_mark(hooked, other: Node):
    node, catalog = hooked
    create(node)

    def unreachable() -> None:
        raise errors.CatalogUnavailable(catalog="here", detail="for now")

    catalog.before["follow"] = unreachable
    with pytest.raises(errors.CatalogUnavailable):
        node.begin()
    catalog.before.clear()
    assert len(node.epoch.registry) == 0
    seq = insert(other, (1, "a", 1))
    node.begin().rollback()
    assert node.epoch.registry.mark() == seq


class AnnouncingLock:
    """A lock that tells when so many stand in line for it."""

    def __init__(self, lock: Any, count: int) -> None:
        self._lock = lock
        self._line = Barrier(count + 1)

    def wait_for_line(self) -> None:
        self._line.wait(PATIENCE_S)

    def acquire(self, blocking: bool = True) -> bool:
        if not self._line.broken:
            self._line.wait(PATIENCE_S)
        return bool(self._lock.acquire(blocking))

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def test_a_failed_poll_is_repeated_by_each_waiter(hooked, other: Node):
    """Sessions that begin at once share a look at the log; when it fails, none may take it for its own."""
    node, catalog = hooked
    create(node)
    insert(other, (1, "a", 1))
    calls = []

    def fail_first() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise errors.CatalogUnavailable(catalog="here", detail="for now")

    def begin() -> int | None:
        try:
            return int(node.begin().state.snapshot.seq)
        except errors.CatalogUnavailable:
            return None

    catalog.before["follow"] = fail_first
    held = node.epoch.lock
    line = AnnouncingLock(held, 2)
    node.epoch.lock = line

    def release() -> None:
        with held:
            line.wait_for_line()
            node.epoch.lock = held

    snapshots = together(begin, begin, release)[:2]
    assert set(snapshots) == {None, other.parts.catalog.head()}


def test_the_past_is_what_others_have_committed(node: Node, other: Node):
    """A node that is asked for a sequence it has not applied yet must look first."""
    create(node)
    first = insert(node, (1, "a", 1))
    second = insert(node, (2, "b", 2))
    assert rows(other, as_of=second) == [(1, "a", 1), (2, "b", 2)]
    assert rows(other, as_of=first) == [(1, "a", 1)]
    third = insert(node, (3, "c", 3))
    assert len(rows(other, as_of=third)) == 3


def test_the_future_cannot_be_read(node: Node):
    create(node)
    seq = insert(node, (1, "a", 1))
    with pytest.raises(errors.Error):
        node.begin(as_of=Seq(seq + 1))


def test_a_reader_of_the_past_cannot_write(node: Node):
    create(node)
    seq = insert(node, (1, "a", 1))
    txn = node.begin(as_of=Seq(seq))
    with pytest.raises(errors.ReadOnlyTransaction):
        txn.writes.insert(txn.schema.table(None, "t"), [(2, "b", 2)])
    txn.rollback()


def test_reading_the_past_leaves_no_images_behind(node: Node):
    table = create(node)
    seq = insert(node, (1, "a", 1))
    insert(node, (2, "b", 2))
    node.compact(table)
    node.beat()
    for _ in range(5):
        assert rows(node, as_of=seq) == [(1, "a", 1)]
    assert len(node.epoch.images._images[table.primary.id]) <= 2


def test_the_past_is_gone_once_it_is_collected(node: Node):
    table = create(node)
    seq = insert(node, (1, "a", 1))
    insert(node, (2, "b", 2))
    node.compact(table)
    node.beat()
    node.collect_garbage(retention_us=0)
    with pytest.raises(errors.SnapshotTooOld) as lost:
        rows(node, as_of=seq)
    assert lost.value.sqlstate == "72000"
    assert len(rows(node)) == 2


def test_an_open_snapshot_keeps_what_it_reads(node: Node, other: Node):
    table = create(node)
    bulk(node, *[(i, "old", i) for i in range(50)])
    reader = other.begin(Isolation.REPEATABLE_READ)
    txn = node.begin()
    txn.writes.update(table, [(i, "old", i) for i in range(50)], [(i, "new", i) for i in range(50)])
    txn.commit()
    node.compact(table)
    for each in (node, other):
        each.beat()
        each.collect_garbage(retention_us=0)
    assert {row[1] for row in scan(other, reader, table)} == {"old"}
    assert reader.reads.get(table, (7,)) == (7, "old", 7)
    reader.rollback()
    # The node follows the log, then publishes how far it is.
    other.follow()
    other.beat()
    assert node.collect_garbage(retention_us=0) > 0
    assert {row[1] for row in rows(other)} == {"new"}


def test_an_epoch_that_ends_before_it_has_read_anything_is_not_the_last(hooked):
    """A node whose clock is ahead ends it at once; a process would not even open the database."""
    node, catalog = hooked
    create(node)
    ended: list[int] = []

    def end_all() -> None:
        if len(ended) < 3:
            live = [record.epoch for record in catalog.nodes() if record.live]
            ended.extend(live)
            for epoch in live:
                catalog.end_node(epoch)

    end_epoch(node)
    catalog.before["descriptors"] = end_all
    node.beat()
    assert len(ended) == 3
    assert node.epoch.epoch > max(ended)
    insert(node, (1, "a", 1))


def test_a_session_begins_in_a_new_epoch(hooked, other: Node):
    """It looks for its role before it has a transaction."""
    node, _ = hooked
    create(node)
    session = Session(node)
    other.parts.catalog.end_node(node.epoch.epoch)
    session.check_login()
    assert session.execute("select count(*) from t").rows == [(0,)]
    session.close()


def test_an_epoch_that_ends_again_and_again_is_followed_by_another(hooked, other: Node):
    """A node that gets no processor time may lose several before a transaction has begun."""
    node, catalog = hooked
    create(node)
    left = [3]

    def end() -> None:
        if left[0]:
            left[0] -= 1
            other.parts.catalog.end_node(node.epoch.epoch)

    catalog.before["follow"] = end
    session = Session(node)
    session.check_login()
    left[0] = 3
    assert session.execute("select count(*) from t").rows == [(0,)]
    assert not left[0]
    session.close()


@pytest.mark.parametrize("statement", ["vacuum t", "create index by_n on t (n)"])
def test_a_job_begins_in_a_new_epoch(hooked, other: Node, statement: str):
    node, _ = hooked
    create(node)
    session = Session(node)
    other.parts.catalog.end_node(node.epoch.epoch)
    session.execute(statement)
    session.close()


def test_a_statement_is_described_in_a_new_epoch(hooked, other: Node):
    node, _ = hooked
    create(node)
    session = Session(node)
    (prepared,) = prepare("select * from t where id = $1")
    other.parts.catalog.end_node(node.epoch.epoch)
    assert len(session.describe(prepared, ()).types) == 1
    session.close()
