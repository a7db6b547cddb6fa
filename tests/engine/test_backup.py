"""Back-ups that are made while everybody works, and the databases that are made of them."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.database.backup import back_up, holding_garbage, restore
from seachange.engine.database.database_identity import MANIFEST
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.runtime.location import SEGMENTS
from seachange.verify.consistency import inspect
from tests.support.patience import PATIENCE_S
from tests.support.postgres import LocalPostgres


@pytest.fixture(params=["sqlite", "postgres"])
def catalogs(request: pytest.FixtureRequest) -> Iterator[tuple[str | None, str | None]]:
    """The catalog of a database, and one for what is restored."""
    if request.param == "sqlite":
        yield None, None
        return
    server: LocalPostgres = request.getfixturevalue("postgres_server")
    server.start()
    urls = server.create_database(), server.create_database()
    yield urls
    for url in urls:
        server.drop_database(url)


@pytest.fixture
def node(tmp_path: Path, catalogs: tuple[str | None, str | None]):
    node = open_node(tmp_path / "data", catalogs[0])
    yield node
    node.close()


def fill(session: Session) -> None:
    session.execute("create table t (id int primary key, n int)")
    session.execute("insert into t select x, -x from generate_series(1, 20000) s(x)")
    session.execute("create index by_n on t (n)")
    session.execute("create sequence drawn")


class Writer(threading.Thread):
    """Inserts rows with the numbers 100000, 100001, ... until it is stopped."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self._node = node
        self._stopped = threading.Event()
        self.moved = threading.Event()
        self.count = 0

    def run(self) -> None:
        session = Session(self._node)
        while not self._stopped.is_set():
            session.execute("insert into t values ($1, $2)", [100_000 + self.count, -self.count])
            self.count += 1
            self.moved.set()
        session.close()

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def test_what_is_restored_is_the_database_as_of_one_sequence(tmp_path, node, catalogs):
    session = Session(node)
    fill(session)
    session.execute("delete from t where id <= 100")
    drawn = session.execute("select nextval('drawn')").rows[0][0]
    writer = Writer(node)
    writer.start()
    try:
        assert writer.moved.wait(PATIENCE_S)
        before = writer.count
        made = back_up(tmp_path / "data", catalogs[0], tmp_path / "copy")
        writer.moved.clear()
        # Nothing waited for the backup, and later commits are not in it.
        assert writer.moved.wait(PATIENCE_S)
        session.execute("alter table t add column later int")
    finally:
        writer.stop()
        session.close()

    restored = restore(tmp_path / "copy", tmp_path / "again", catalogs[1])
    assert restored == made
    other = open_node(tmp_path / "again", catalogs[1])
    try:
        assert inspect(other, []).anomalies == []
        session = Session(other)
        written = session.execute("select id from t where id >= 100000 order by id").rows
        assert written == [(100_000 + i,) for i in range(len(written))]
        assert before <= len(written) <= writer.count
        assert session.execute("select count(*), min(n) from t where id < 100000").rows == [(19_900, -20_000)]
        # It is a database like any other.
        assert session.execute("select nextval('drawn')").rows[0][0] > drawn
        session.execute("insert into t values (1, 1)")
        session.execute("alter table t add column more text default 'x'")
        assert session.execute("select more from t where id = 1").rows == [("x",)]
        session.close()
        assert other.collect_garbage(0) >= 0
        assert inspect(other, []).anomalies == []
    finally:
        other.close()


def test_no_file_is_deleted_while_a_back_up_is_made(node):
    session = Session(node)
    fill(session)
    session.execute("delete from t where id % 2 = 0")
    table = next(t for t in node.epoch.schemas.newest.by_id.values() if t.name == "t")
    node.maintenance.paused = True
    with holding_garbage(node.parts.catalog):
        node.compact(table)
        files = node.parts.files.names()
        assert node.collect_garbage(0) == 0
        assert node.parts.files.names() == files
    node.beat()
    assert node.collect_garbage(0) > 0
    session.close()


def test_a_back_up_whose_hold_was_lost_fails(tmp_path, node, catalogs):
    catalog = node.parts.catalog
    with holding_garbage(catalog) as epoch:
        catalog.end_node(epoch)
        with pytest.raises(errors.StaleNode):
            catalog.claim(epoch, "gc")


def test_what_is_no_whole_back_up_is_refused(tmp_path):
    node = open_node(tmp_path / "data")
    session = Session(node)
    fill(session)
    session.close()
    node.close()
    copy = tmp_path / "copy"
    back_up(tmp_path / "data", None, copy)
    with pytest.raises(errors.DataFolderProblem):
        back_up(tmp_path / "data", None, copy)
    with pytest.raises(errors.DataFolderProblem):
        restore(copy, tmp_path / "data", None)
    with pytest.raises(errors.BackupProblem, match="catalog is sqlite"):
        restore(copy, tmp_path / "a", "postgresql://nowhere/x")
    victim = next((copy / SEGMENTS).iterdir())
    victim.write_bytes(victim.read_bytes()[:-1])
    with pytest.raises(errors.BackupProblem, match="incomplete"):
        restore(copy, tmp_path / "b", None)
    manifest = json.loads((copy / MANIFEST).read_text())
    (copy / MANIFEST).write_text(json.dumps({**manifest, "format": 1}))
    with pytest.raises(errors.BackupProblem, match="format 1"):
        restore(copy, tmp_path / "c", None)
    (copy / MANIFEST).unlink()
    with pytest.raises(errors.BackupProblem, match="no manifest"):
        restore(copy, tmp_path / "d", None)
