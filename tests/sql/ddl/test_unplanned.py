"""What is understood but not carried out yet is refused, and changes nothing."""

import pytest

from seachange.engine.opening import open_node
from seachange.engine.session import Session
from seachange.errors import Error


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    node = open_node(tmp_path_factory.mktemp("data"))
    session = Session(node)
    session.execute("create table t (id int primary key, a int)")
    yield session
    session.close()
    node.close()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("create table u (a nosuch)", "42704"),
        ("create table u (a serial)", "0A000"),
        ("create table u (a timestamptz default now())", "0A000"),
        ("create table u (a int generated always as identity)", "0A000"),
        ("create table u (a int, b int generated always as (a + 1) stored)", "0A000"),
        ("alter table t add primary key (a)", "0A000"),
        ("alter table t add constraint c check (a > 0) not valid", "0A000"),
        ("alter table t add unique using index i", "0A000"),
        ("alter table t add b int unique", "0A000"),
        ("alter table t drop a cascade", "0A000"),
        ("alter table concurrently t add b int", "0A000"),
        ("alter table t alter a type text using a + 1", "0A000"),
        ("alter table t set schema s", "0A000"),
        ("alter table t owner to r", "0A000"),
        ("create index concurrently i on t (a)", "0A000"),
        ("truncate t", "0A000"),
        ("undrop table u", "0A000"),
        ("create view v as select * from t", "0A000"),
        ("create type m as enum ('a')", "0A000"),
        ("create sequence q", "0A000"),
        ("create schema s", "0A000"),
        ("drop view v", "0A000"),
        ("comment on table t is 'x'", "0A000"),
        ("grant select on t to r", "0A000"),
        ("explain (ddl) alter table t add b int; drop table t", "0A000"),
    ],
)
def test_refused(session, text, code):
    with pytest.raises(Error) as caught:
        session.execute(text)
    assert caught.value.sqlstate == code
    session.execute("begin read only")
    with pytest.raises(Error) as caught:
        session.execute(text)
    session.execute("rollback")
    assert caught.value.sqlstate == "25006" or text.startswith("explain")
    assert [c.name for c in session.execute("select * from t").columns] == ["id", "a"]
