"""Enum types that change while transactions are open, and on the ways into a table that no statement takes."""

from collections.abc import Iterator
from contextlib import closing

import pyarrow as pa
import pytest

import seachange
from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.verify.consistency import check


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    url = request.getfixturevalue("postgres_server").create_database() if request.param == "postgres" else None
    with closing(open_node(tmp_path_factory.mktemp("enums"), url, "one")) as node:
        node.maintenance.paused = True
        yield node


@pytest.fixture
def changer(opened: Node) -> Iterator[Session]:
    """A session that does not wait for locks."""
    with closing(Session(opened)) as session:
        session.execute("set seachange.drain_timeout = '1ms'")
        session.execute("create type mood as enum ('sad', 'ok', 'happy')")
        session.execute("create table t (id int primary key, m mood default 'ok', n text)")
        session.execute("insert into t values (1, 'sad', 'happy'), (2, 'ok', 'sad')")
        yield session
        assert not list(check(opened))
        session.execute("drop table t")
        session.execute("drop type mood cascade")


@pytest.fixture
def writer(opened: Node, changer: Session) -> Iterator[Session]:
    with closing(Session(opened)) as session:
        yield session


def _rows(session: Session) -> list[tuple[object, ...]]:
    return list(session.execute("select id, m from t order by m, id").rows)


def test_a_value_that_goes_is_kept_out_of_transactions_in_flight(changer, writer):
    writer.execute("begin")
    writer.execute("insert into t values (3, 'happy')")
    changer.execute("alter type mood drop value 'happy'")
    with pytest.raises(errors.InvalidTextRepresentation):
        writer.execute("commit")
    assert _rows(changer) == [(1, "sad"), (2, "ok")]


def test_a_renamed_enum_label_does_not_block_writers(changer, writer):
    writer.execute("begin isolation level repeatable read")
    writer.execute("insert into t values (3, 'happy')")
    changer.execute("alter type mood rename value 'happy' to 'glad'")
    changer.execute("alter type mood add value 'happy' before 'sad'")
    assert _rows(writer) == [(1, "sad"), (2, "ok"), (3, "happy")]
    writer.execute("insert into t values (4, 'happy')")
    writer.execute("commit")
    changer.execute("insert into t values (5, 'happy')")
    assert _rows(changer) == [(5, "happy"), (1, "sad"), (2, "ok"), (3, "glad"), (4, "glad")]


def test_a_writer_of_texts_commits_after_they_became_labels(changer, writer):
    changer.execute("alter type mood rename value 'happy' to 'glad'")
    changer.execute("update t set n = 'glad' where id = 1")
    writer.execute("begin")
    writer.execute("insert into t values (3, 'ok', 'glad')")
    writer.execute("update t set n = 'ok' where id = 2")
    changer.execute("alter table t alter column n type mood using n::mood")
    writer.execute("commit")
    rows = changer.execute("select id, n from t order by n, id").rows
    assert list(rows) == [(2, "ok"), (1, "glad"), (3, "glad")]


def test_a_row_in_flight_to_an_empty_table_does_not_keep_a_value_that_was_dropped(changer, writer):
    changer.execute("truncate t")
    writer.execute("begin")
    writer.execute("insert into t values (3, 'sad')")
    changer.execute("alter type mood drop value 'sad'")
    with pytest.raises(errors.InvalidTextRepresentation):
        writer.execute("commit")
    assert _rows(changer) == []


def test_the_past_has_the_labels_of_its_time(opened, changer, writer):
    before = opened.epoch.applied
    changer.execute("alter type mood rename value 'ok' to 'fine'")
    writer.execute(f"set seachange.as_of = '{before}'")
    assert _rows(writer) == [(1, "sad"), (2, "ok")]
    assert _rows(changer) == [(1, "sad"), (2, "fine")]


def test_bulk_changes(changer):
    changer.execute("alter type mood rename value 'happy' to 'glad'")
    changer.execute(
        "insert into t select i, case when i % 2 = 0 then 'glad'::mood else 'sad' end"
        " from generate_series(10, 20009) g(i)"
    )
    changer.execute("update t set m = case when m = 'glad' then 'ok'::mood else 'glad' end where id >= 10")
    counted = changer.execute("select m, count(*) from t where id >= 10 group by m order by m").rows
    assert list(counted) == [("ok", 10_000), ("glad", 10_000)]
    with pytest.raises(errors.InvalidTextRepresentation):
        changer.execute("update t set m = 'happy' where id >= 10")
    with pytest.raises(errors.InvalidTextRepresentation):
        changer.execute("insert into t select i, ('x' || i)::mood from generate_series(30000, 50000) g(i)")
    for given in ("'x' || id", "case when m = 'ok' then 'glad' else 'ok' end"):
        with pytest.raises(errors.DatatypeMismatch, match=r'"m" is of type mood but expression is of type text$'):
            changer.execute(f"update t set m = {given} where id >= 10")
    changer.execute("delete from t where m <> 'glad'")
    assert changer.execute("select count(*) from t").rows[0] == (10_000,)


def test_arrow_and_copy(tmp_path):
    with closing(seachange.connect(tmp_path / "d", autocommit=True)) as connection:
        connection.execute("create type mood as enum ('sad', 'ok')")
        connection.execute("create table t (id int primary key, m mood default 'ok')")
        connection.execute("alter type mood rename value 'ok' to 'fine'")
        connection.load_arrow("t", pa.table({"id": [1, 2], "m": ["sad", "fine"]}))
        connection.load_arrow("t", pa.table({"id": [3]}))
        with pytest.raises(errors.InvalidTextRepresentation):
            connection.load_arrow("t", pa.table({"id": [4], "m": ["ok"]}))
        (tmp_path / "in.csv").write_text("5,fine\n6,sad\n")
        connection.copy_from("t", tmp_path / "in.csv")
        (tmp_path / "bad.csv").write_text("7,ok\n")
        with pytest.raises(errors.InvalidTextRepresentation):
            connection.copy_from("t", tmp_path / "bad.csv")
        connection.copy_to("select * from t", tmp_path / "out.csv")
        lines = sorted((tmp_path / "out.csv").read_text().split())
        assert lines == ["1,sad", "2,fine", "3,fine", "5,fine", "6,sad"]


def test_arrays_in_flight_and_in_bulk(changer, writer):
    changer.execute("create table l (id int primary key, m mood[])")
    changer.execute("alter type mood rename value 'ok' to 'fine'")
    writer.execute("begin")
    writer.execute("insert into l values (1, '{fine,happy,null}')")
    changer.execute("alter type mood drop value 'happy'")
    with pytest.raises(errors.InvalidTextRepresentation):
        writer.execute("commit")
    changer.execute("insert into l select i, array['fine', 'sad']::mood[] from generate_series(1, 20000) g(i)")
    changer.execute("update l set m = array['sad', 'fine']::mood[] where id > 10")
    with pytest.raises(errors.InvalidTextRepresentation):
        changer.execute("update l set m = array['ok']::mood[] where id > 10")
    with pytest.raises(errors.DatatypeMismatch, match=r'"m" is of type mood\[\] but expression is of type text\[\]$'):
        changer.execute("update l set m = array['ok'] where id > 10")
    counted = changer.execute("select m::text, count(*) from l group by 1 order by 1").rows
    assert list(counted) == [("{fine,sad}", 10), ("{sad,fine}", 19_990)]


def test_arrays_through_arrow_and_copy(tmp_path):
    with closing(seachange.connect(tmp_path / "d", autocommit=True)) as connection:
        connection.execute("create type mood as enum ('sad', 'ok')")
        connection.execute("create table t (id int primary key, m mood[] default '{ok}')")
        connection.execute("alter type mood rename value 'ok' to 'fine'")
        listed = pa.array([["sad", None], None, []], pa.list_(pa.string()))
        connection.load_arrow("t", pa.table({"id": [1, 2, 3], "m": listed}))
        connection.load_arrow("t", pa.table({"id": [4]}))
        with pytest.raises(errors.InvalidTextRepresentation):
            connection.load_arrow("t", pa.table({"id": [5], "m": pa.array([["ok"]], pa.list_(pa.string()))}))
        (tmp_path / "in.csv").write_text('6,"{fine,sad}"\n')
        connection.copy_from("t", tmp_path / "in.csv")
        (tmp_path / "bad.csv").write_text("7,{ok}\n")
        with pytest.raises(errors.InvalidTextRepresentation):
            connection.copy_from("t", tmp_path / "bad.csv")
        connection.copy_to("select * from t order by id", tmp_path / "out.csv")
        lines = (tmp_path / "out.csv").read_text().split()
        assert lines == ['1,"{sad,NULL}"', "2,", "3,{}", "4,{fine}", '6,"{fine,sad}"']
