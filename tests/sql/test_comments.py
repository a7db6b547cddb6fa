"""COMMENT ON every kind of object, as the functions and relations of the catalogs tell of it."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session

SETUP = """
create schema s;
create type mood as enum ('a');
create table t (id int primary key, v text check (v <> ''), u int unique, p int references t);
create index t_v on t (v);
create sequence q;
create view w as select id, v as shown from t;
create role ann;
"""
# What is said of what, and how it is asked for.
COMMENTS = {
    "schema s": "obj_description('s'::regnamespace, 'pg_namespace')",
    "type mood": "obj_description('mood'::regtype, 'pg_type')",
    "table t": "obj_description('t'::regclass, 'pg_class')",
    "column t.v": "col_description('t'::regclass, 2)",
    "index t_v": "obj_description('t_v'::regclass)",
    "constraint t_v_check on t": "(select obj_description(oid, 'pg_constraint') from pg_constraint "
    "where conname = 't_v_check')",
    "constraint t_pkey on t": "(select obj_description(oid, 'pg_constraint') from pg_constraint "
    "where conname = 't_pkey')",
    "constraint t_p_fkey on t": "(select description from pg_description d join pg_constraint c on c.oid = d.objoid "
    "and d.classoid = 'pg_constraint'::regclass where conname = 't_p_fkey')",
    "sequence q": "obj_description('q'::regclass)",
    "view w": "obj_description('w'::regclass)",
    "column w.shown": "col_description('w'::regclass, 2)",
    "role ann": "(select shobj_description(oid, 'pg_authid') from pg_roles where rolname = 'ann')",
    "database other": "(select shobj_description(oid, 'pg_database') from pg_database where datname = 'other')",
    "database seachange": "(select description from pg_shdescription d join pg_database b on b.oid = d.objoid "
    "where datname = 'seachange')",
}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with closing(open_node(tmp_path)) as node, closing(Session(node)) as session:
        session.execute(SETUP)
        session.execute("create database other")
        yield session


def test_each_comment_is_listed_in_its_catalog(session: Session):
    asked = f"select {', '.join(COMMENTS.values())}"
    for what in COMMENTS:
        session.execute(f"comment on {what} is 'of {what}'")
    assert session.execute(asked).rows == [tuple(f"of {what}" for what in COMMENTS)]
    for what in COMMENTS:
        session.execute(f"comment on {what} is null")
    assert session.execute(asked).rows == [(None,) * len(COMMENTS)]
    for relation in ("pg_description", "pg_shdescription"):
        assert session.execute(f"select count(*) from {relation}").rows == [(0,)]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("comment on role missing is 'x'", errors.UndefinedObject),
        ("comment on database nope is 'x'", errors.InvalidDatabaseName),
        ("comment on column w.v is 'x'", errors.UndefinedColumn),
        ("comment on function f() is 'x'", errors.FeatureNotSupported),
    ],
)
def test_what_is_not_there(session: Session, statement, error):
    with pytest.raises(error):
        session.execute(statement)
