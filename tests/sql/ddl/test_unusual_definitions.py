"""Definitions that PostgreSQL accepts and hardly any program writes can be made, used and removed."""

import pytest

import seachange


@pytest.fixture
def connection(tmp_path):
    with seachange.connect(data=tmp_path, autocommit=True) as made:
        yield made


@pytest.mark.parametrize(
    "text",
    [
        "drop table child",
        "alter table child drop column x",
        "alter table child drop constraint child_x_x_fkey",
        "truncate parent cascade",
        "drop table parent cascade",
    ],
)
def test_a_foreign_key_may_use_a_column_twice(connection, text):
    connection.execute("create table parent (a int, b int, unique (a, b))")
    connection.execute("create table child (x int, y int, foreign key (x, x) references parent (a, b))")
    connection.execute("insert into parent values (1, 1), (1, 2)")
    connection.execute("insert into child values (1)")
    with pytest.raises(seachange.IntegrityError):
        connection.execute("insert into child values (2)")
    connection.execute(text)
    with pytest.raises(seachange.Error) as problem:
        connection.execute(text.replace("truncate parent cascade", "truncate nothing"))
    assert problem.value.sqlstate in ("42P01", "42703", "42704")


def test_a_default_may_compare_labels(connection):
    connection.execute("create type mood as enum ('sad', 'it''s')")
    connection.execute("create table t (a int)")
    connection.execute("insert into t values (1)")
    connection.execute("alter table t add column b boolean default ('it''s'::mood = 'it''s'::mood)")
    connection.execute("insert into t values (2)")
    assert connection.execute("select a, b from t order by a").fetchall() == [(1, True), (2, True)]


def test_catalogs_show_pinned_tables(connection):
    connection.execute("create table t (a int primary key)")
    connection.execute("alter table t add column b int")
    connection.execute("set seachange.layout = '1'")
    assert connection.execute("select relkind from pg_class where relname = 't'").fetchall() == [("r",)]


def test_an_unfit_index_expression_is_not_shown_as_it_is_computed(connection):
    connection.execute("create table t (a int, d jsonb)")
    with pytest.raises(seachange.Error, match="an index on an expression of type json is not supported") as problem:
        connection.execute("create index on t ((d -> 'a'))")
    assert problem.value.sqlstate == "0A000"
