"""What only the PostgreSQL catalog has: connections that are lost, partitions, notifications."""

from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import psycopg
import pytest

from seachange import errors
from seachange.catalog.postgres import PostgresCatalog
from seachange.catalog.postgres import catalog as module
from seachange.catalog.postgres import commit as commit_module
from seachange.model.ids import IndexId, Seq
from seachange.model.log import Burned, Committed, Conflict
from seachange.runtime.clock import SYSTEM_CLOCK
from tests.catalog.builders import (
    accept,
    batch,
    publish,
    raise_to,
    register,
    request,
    submit,
    swap,
)
from tests.catalog.proxy import Cut, CuttingProxy
from tests.support.patience import PATIENCE_S
from tests.support.postgres import LocalPostgres


@pytest.fixture
def catalog(postgres_catalog_url: str) -> Iterator[PostgresCatalog]:
    opened = PostgresCatalog(postgres_catalog_url, SYSTEM_CLOCK)
    yield opened
    opened.close()


@pytest.fixture
def proxy(postgres_catalog_url: str) -> Iterator[CuttingProxy]:
    parts = urlsplit(postgres_catalog_url)
    assert parts.hostname is not None
    assert parts.port is not None
    made = CuttingProxy(parts.hostname, parts.port)
    yield made
    made.close()


@pytest.fixture
def far_catalog(postgres_catalog_url: str, proxy: CuttingProxy) -> Iterator[PostgresCatalog]:
    parts = urlsplit(postgres_catalog_url)
    far = parts._replace(netloc=parts.netloc.replace(f":{parts.port}", f":{proxy.port}"))
    opened = PostgresCatalog(far.geturl(), SYSTEM_CLOCK)
    yield opened
    opened.close()


def test_terminated_connections_are_replaced(catalog: PostgresCatalog, postgres_server: LocalPostgres):
    epoch = register(catalog)
    for number in range(3):
        assert postgres_server.break_connections(catalog.url) > 0
        assert submit(catalog, epoch, request(number, batches=(batch(),))) == Committed(
            Seq(number + 1), catalog.follow(epoch, Seq(number))[0].timestamp_us
        )
        postgres_server.break_connections(catalog.url)
        assert catalog.head() == number + 1
        postgres_server.break_connections(catalog.url)
        assert catalog.heartbeat(epoch, Seq(0)).head == number + 1


@pytest.mark.parametrize("cut", [Cut.REQUEST, Cut.REPLY])
def test_a_commit_whose_connection_is_lost_commits_once(far_catalog: PostgresCatalog, proxy: CuttingProxy, cut: Cut):
    epoch = register(far_catalog)
    accept(far_catalog, epoch, writes=(1,))
    members = [
        request(1, writes=(2,), batches=(batch(1, b"a"),)),
        request(0, writes=(1,)),
        request(1, writes=(3,), batches=(batch(1, b"b"),)),
    ]
    proxy.cut = cut
    first, refused, second = far_catalog.commit(epoch, members)
    assert proxy.cut is Cut.NEVER
    assert isinstance(first, Committed)
    assert isinstance(second, Committed)
    assert (first.seq, second.seq) == (2, 3)
    assert refused == Conflict(Seq(1))
    # What was refused can never arrive late.
    assert submit(far_catalog, epoch, members[1]) == Burned(members[1].commit_id)
    payloads = [entry.batches[0].payload for entry in far_catalog.follow(epoch, Seq(1))]
    assert payloads == [b"a", b"b"]


@pytest.mark.parametrize("cut", [Cut.REQUEST, Cut.REPLY])
def test_reads_are_tried_again(far_catalog: PostgresCatalog, proxy: CuttingProxy, cut: Cut):
    epoch = register(far_catalog)
    accept(far_catalog, epoch, batches=(batch(1),), descriptors=(publish(1, 0, 1),))
    proxy.cut = cut
    assert len(far_catalog.follow(epoch, Seq(0))) == 1
    proxy.cut = cut
    assert len(far_catalog.index_contents(epoch, IndexId(1), Seq(1)).deltas) == 1
    proxy.cut = cut
    assert len(far_catalog.descriptors(epoch, Seq(1))) == 1


def test_a_commit_waits_for_a_server_that_comes_back(catalog: PostgresCatalog, postgres_server: LocalPostgres):
    epoch = register(catalog)
    accept(catalog, epoch)
    postgres_server.restart()
    assert isinstance(submit(catalog, epoch, request(1)), Committed)
    postgres_server.kill()
    postgres_server.start()
    assert isinstance(submit(catalog, epoch, request(2)), Committed)
    assert catalog.head() == 3


def test_unknown_commit_outcome_is_reported(postgres_catalog_url: str, postgres_server: LocalPostgres):
    catalog = PostgresCatalog(postgres_catalog_url, SYSTEM_CLOCK, patience_s=0.2)
    epoch = register(catalog)
    what = request(0)
    postgres_server.shut_down()
    with pytest.raises(errors.UnknownCommitOutcome):
        submit(catalog, epoch, what)
    with pytest.raises(errors.CatalogUnavailable):
        catalog.head()
    postgres_server.start()
    assert catalog.outcome(what.commit_id) is None
    assert submit(catalog, epoch, what) == Burned(what.commit_id)
    catalog.close()


def test_errors_do_not_show_the_password(catalog: PostgresCatalog):
    catalog.close()
    with pytest.raises(errors.CatalogUnavailable) as caught:
        catalog.head()
    password = urlsplit(catalog.url).password
    assert password is not None
    assert password not in str(caught.value)


def test_heartbeats_have_a_connection_of_their_own(catalog: PostgresCatalog):
    """A heartbeat comes through while a statement holds the sequencer lock."""
    epoch = register(catalog)
    with psycopg.connect(catalog.url) as other:
        other.execute("SELECT seachange.lock_sequencer()")
        assert catalog.heartbeat(epoch, Seq(0)).head == 0


def test_only_descriptors_of_others_notify(catalog: PostgresCatalog):
    epoch = register(catalog)
    with closing(PostgresCatalog(catalog.url, SYSTEM_CLOCK)) as other:
        watch, own = other.watch(), catalog.watch()
        assert watch.wait(0)
        assert own.wait(0)
        accept(catalog, epoch, batches=(batch(),))
        assert not watch.wait(0.05)
        accept(catalog, epoch, descriptors=(publish(1, 0, 1),))
        assert watch.wait(PATIENCE_S)
        accept(catalog, epoch, raises=(raise_to(1, 1),))
        assert watch.wait(PATIENCE_S)
        # Both were sent before the answer to the commit was.
        assert not own.wait(0.05)
        watch.close()
        own.close()


def test_heartbeats_need_not_be_durable_and_commits_must(catalog: PostgresCatalog):
    level = "SELECT current_setting('synchronous_commit')"
    found = [pool.run(lambda db: db.execute(level).fetchone()) for pool in (catalog._pulse, catalog._pool)]
    assert found == [("off",), ("on",)]


def partitions(catalog: PostgresCatalog) -> int:
    with psycopg.connect(catalog.url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_inherits WHERE inhparent = 'seachange.batch'::regclass"
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_inline_batches_are_dropped_by_partitions(postgres_catalog_url: str, monkeypatch):
    for where in (module, commit_module):
        monkeypatch.setattr(where, "PARTITION_SPAN", 10)
    catalog = PostgresCatalog(postgres_catalog_url, SYSTEM_CLOCK)
    epoch = register(catalog)
    accept(catalog, epoch, generations=(swap(1, None, 0),), descriptors=(publish(1, 0, 1),))
    for _ in range(35):
        accept(catalog, epoch, batches=(batch(1), batch(1_001)))
    before = partitions(catalog)
    assert before >= 5
    catalog.heartbeat(epoch, catalog.head())
    catalog.collect(epoch, 0)
    # Index 1,001 has no base: all of its deltas are still read.
    assert partitions(catalog) == before
    newest = catalog.newest_generation(IndexId(1))
    assert newest is not None
    accept(catalog, epoch, generations=(swap(1, newest.id, 36), swap(1_001, None, 25)))
    catalog.heartbeat(epoch, catalog.head())
    catalog.collect(epoch, 0)
    assert partitions(catalog) == before - 2
    at = catalog.head()
    assert len(catalog.index_contents(epoch, IndexId(1_001), at).deltas) == 11
    assert catalog.index_contents(epoch, IndexId(1), at).deltas == ()
    catalog.close()


def test_a_commit_makes_the_partition_that_is_missing(postgres_catalog_url: str, monkeypatch):
    monkeypatch.setattr(commit_module, "PARTITION_SPAN", 10)
    catalog = PostgresCatalog(postgres_catalog_url, SYSTEM_CLOCK)
    epoch = register(catalog)
    with psycopg.connect(catalog.url) as connection:
        connection.execute("UPDATE seachange.sequencer SET partitioned = 0")
        connection.execute("DROP TABLE seachange.batch_0, seachange.batch_50000")
        connection.execute("DELETE FROM seachange.batch_partition")
    outcomes = catalog.commit(epoch, [request(0, batches=(batch(),)) for _ in range(25)])
    assert [o.seq for o in outcomes if isinstance(o, Committed)] == list(range(1, 26))
    assert len(catalog.index_contents(epoch, IndexId(1), Seq(25)).deltas) == 25
    catalog.close()
