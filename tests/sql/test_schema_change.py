"""DDL that takes effect at once: what it does, and what waits for a change that moves data."""

from __future__ import annotations

import pytest

import seachange
from seachange.errors import Error


@pytest.fixture
def db(tmp_path):
    with seachange.connect(str(tmp_path)) as connection:
        connection.autocommit = True
        yield connection


def rows(db, sql):
    cursor = db.cursor()
    cursor.execute(sql)
    return cursor.fetchall()


def run(db, sql):
    db.cursor().execute(sql)


def test_an_index_can_be_dropped_from_a_table_that_has_rows(db):
    run(db, "create table t (id int primary key, a int)")
    run(db, "create unique index i on t (a)")
    run(db, "insert into t values (1, 1)")
    run(db, "drop index i")
    run(db, "insert into t values (2, 1)")
    assert rows(db, "select * from t order by id") == [(1, 1), (2, 1)]


def test_a_column_goes_with_its_indexes_and_constraints(db):
    run(db, "create table t (id int primary key, a int unique check (a > 0), b int)")
    run(db, "insert into t values (1, 1, 1)")
    run(db, "alter table t drop column a")
    run(db, "alter table t add column a int")
    assert rows(db, "select * from t") == [(1, 1, None)]


@pytest.mark.parametrize(
    "change",
    [
        "update t set a = 9 where id = 1",
        "delete from t where id = 1",
        "insert into t values (1, 7) on conflict (id) do update set a = 9",
    ],
)
def test_truncate_leaves_nothing_that_a_writer_could_bring_back(db, tmp_path, change):
    """A writer whose snapshot is from before it inserts after it, and changes no row that is gone."""
    run(db, "create table t (id int primary key, a int unique)")
    run(db, "insert into t values (1, 1), (2, 2)")
    with seachange.connect(str(tmp_path)) as other, seachange.connect(str(tmp_path)) as changer:
        for connection in (other, changer):
            # TRUNCATE would wait for a writer, and READ COMMITTED see the table empty.
            connection.cursor().execute("set transaction isolation level repeatable read")
            assert rows(connection, "select * from t order by id") == [(1, 1), (2, 2)]
        run(db, "truncate t")
        assert rows(db, "select * from t") == []
        other.cursor().execute("insert into t values (3, 3)")
        changer.cursor().execute(change)
        other.commit()
        with pytest.raises(Error) as caught:
            changer.commit()
        assert caught.value.sqlstate == "40001"
    run(db, "insert into t values (1, 2)")
    assert rows(db, "select * from t where a in (2, 3) order by a") == [(1, 2), (3, 3)]


def test_truncate_in_a_transaction_takes_its_own_rows_too_and_can_be_undone(db):
    run(db, "create table t (id int primary key)")
    run(db, "insert into t values (1)")
    run(db, "begin")
    run(db, "insert into t values (2)")
    run(db, "savepoint s")
    run(db, "truncate t")
    run(db, "insert into t values (3)")
    assert rows(db, "select * from t") == [(3,)]
    run(db, "rollback to s")
    assert rows(db, "select * from t order by id") == [(1,), (2,)]
    run(db, "commit")


def test_a_constraint_that_is_not_valid_binds_new_rows_only(db):
    run(db, "create table t (id int primary key, a int)")
    run(db, "insert into t values (1, -1)")
    run(db, "alter table t add constraint positive check (a > 0) not valid")
    with pytest.raises(Error) as caught:
        run(db, "insert into t values (2, -2)")
    assert caught.value.sqlstate == "23514"


def test_a_not_null_that_a_check_implies_needs_no_look_at_the_rows(db):
    run(db, "create table t (id int primary key, a int check (a is not null))")
    run(db, "insert into t values (1, 1)")
    run(db, "alter table t alter a set not null")
    with pytest.raises(Error) as caught:
        run(db, "insert into t values (2, null)")
    assert caught.value.sqlstate in ("23502", "23514")


def test_a_unique_index_becomes_a_constraint(db):
    run(db, "create table t (id int primary key, a int)")
    run(db, "create unique index i on t (a)")
    run(db, "insert into t values (1, 1)")
    run(db, "alter table t add constraint u unique using index i")
    with pytest.raises(Error, match='"u"'):
        run(db, "insert into t values (2, 1)")


@pytest.mark.parametrize("filled", [False, True])
def test_a_primary_key_is_called_as_it_would_be_from_the_start(db, filled):
    """What pg_dump writes: a table without a key, its rows, then the key under its usual name."""
    run(db, "create table t (id int not null, a int)")
    if filled:
        run(db, "insert into t values (1, 1)")
    run(db, "alter table t add constraint t_pkey primary key (id)")
    with pytest.raises(Error, match='"t_pkey"'):
        run(db, "insert into t values (2, 1), (2, 2)")


def test_constraints_are_renamed(db):
    run(db, "create table t (id int primary key, a int check (a > 0))")
    run(db, "alter table t rename constraint t_a_check to positive")
    with pytest.raises(Error, match="positive"):
        run(db, "insert into t values (1, 0)")


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("alter table t add constraint k check (a > %s)", "23514"),
        ("alter table t add constraint k foreign key (a) references p (id)", "23503"),
        ("create unique index k on t (a)", "23505"),
        ("alter table t alter a set not null", "23502"),
    ],
)
def test_a_constraint_is_shown_to_hold_for_the_rows_that_are_there(db, sql, sqlstate):
    """The row that violates it is named, and nothing is left of the change; without the row it is carried out."""
    run(db, "create table p (id int primary key)")
    run(db, "insert into p values (1), (2)")
    run(db, "create table t (id int primary key, a int)")
    run(db, "insert into t values (1, 1), (2, 2)")
    bad = {"23514": "7, 0", "23503": "7, 7", "23505": "7, 2", "23502": "7, null"}[sqlstate]
    run(db, f"insert into t values ({bad})")
    statement = sql.replace("%s", "0")
    with pytest.raises(Error, match=r"7|\(a\)=\(2\)") as caught:
        run(db, statement)
    assert caught.value.sqlstate == sqlstate
    run(db, f"insert into t values ({bad.replace('7,', '8,')})")
    run(db, "delete from t where id > 2")
    run(db, statement)
    with pytest.raises(Error) as caught:
        run(db, f"insert into t values ({bad})")
    assert caught.value.sqlstate == sqlstate


def test_a_constraint_that_is_not_valid_proves_nothing(db):
    run(db, "create table t (id int primary key, a int)")
    run(db, "insert into t values (1, null)")
    run(db, "alter table t add check (a is not null) not valid")
    with pytest.raises(Error) as caught:
        run(db, "alter table t alter column a set not null")
    assert caught.value.sqlstate == "23502"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("create unique index i on t ((a % 2))", "23505"),
        ("alter table t alter a type int using 1 / (a - 1)", "22012"),
    ],
)
def test_a_conversion_that_breaks_an_expression_index_is_reverted(db, change, code):
    """DuckDB tells the type of such a key when the change has been planned."""
    run(db, "create table t (id int primary key, a int, b text)")
    run(db, "create index lengths on t ((length(b) + a))")
    run(db, "insert into t values (1, 1, 'x'), (2, 3, 'y')")
    run(db, "set statement_timeout = '10min'")
    with pytest.raises(Error) as problem:
        run(db, change)
    assert problem.value.sqlstate == code
    assert rows(db, "select status from seachange.jobs") == [("failed",)]
    run(db, "drop index lengths")
    assert rows(db, "select id from t where a = 3") == [(2,)]
