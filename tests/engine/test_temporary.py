"""Temporary tables go with their session, or with the process of a session that could not drop them."""

from contextlib import closing

import pytest

import seachange
from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    return tmp_path, request.getfixturevalue("postgres_catalog_url") if request.param == "postgres" else None


def _open(place, name):
    data, catalog = place
    return open_node(data, catalog, name)


def _names(node):
    node.epoch.catch_up()
    return [table.name for table in node.epoch.schemas.newest.by_id.values()]


def test_a_session_drops_them_when_it_is_closed(place):
    with closing(_open(place, "one")) as node:
        with closing(Session(node)) as session:
            session.execute("create temp table t (id int primary key, n serial)")
            session.execute("create temp table u as select 1 as one")
            session.execute("create temp view v as select one from u; create temp view w as select 1 as one")
            assert _names(node) == ["t", "u"]
        assert _names(node) == []
        assert not list(node.epoch.schemas.newest.objects)


def test_opening_a_database_drops_temporary_tables_of_dead_nodes_only(place):
    alive = _open(place, "alive")
    dead = _open(place, "dead")
    with closing(alive), closing(Session(alive)) as session:
        session.execute("create temp table kept (id int)")
        session.execute("insert into kept values (1)")
        Session(dead).execute("create temp table left_over (id int); create temp view gone as select 1 as one")
        dead.close()
        assert sorted(_names(alive)) == ["kept", "left_over"]
        with closing(_open(place, "next")) as node:
            assert _names(node) == ["kept"]
            assert "gone" not in [found.name for found in node.epoch.schemas.newest.objects.values()]
        assert list(session.execute("select * from kept").rows) == [(1,)]


def test_those_of_a_connection_are_not_seen_by_others(tmp_path):
    with closing(seachange.connect(tmp_path, autocommit=True)) as one, closing(seachange.connect(tmp_path)) as other:
        one.execute("create temp table t (id int)")
        with pytest.raises(seachange.Error) as caught:
            other.execute("select * from t")
        assert caught.value.sqlstate == "42P01"


def test_a_commit_that_cannot_empty_them_leaves_no_transaction(tmp_path):
    with closing(open_node(tmp_path)) as node, closing(Session(node)) as session:
        session.execute("create temp table emptied (id int primary key) on commit delete rows")
        session.execute("create temp table referring (id int references emptied)")
        session.execute("begin; insert into emptied values (1); insert into referring values (1)")
        with pytest.raises(errors.StillReferenced):
            session.execute("commit")
        assert node.statistics()["open_transactions"] == 0
