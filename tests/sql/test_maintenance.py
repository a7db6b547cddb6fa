"""Statements that need not be sent here, and words that mean nothing here, are taken as they are in PostgreSQL."""

import pytest

import seachange
from seachange import errors


@pytest.fixture
def database(tmp_path):
    with seachange.connect(data=str(tmp_path), autocommit=True) as connection:
        connection.execute("create table t (id int primary key, name varchar(20)) with (fillfactor = 70)")
        yield connection


@pytest.mark.parametrize(
    "text",
    [
        "analyze",
        "analyze t (id, name)",
        "checkpoint",
        "unlisten *",
        "create index on t (name varchar_pattern_ops desc) with (fillfactor = 90)",
        "create table u (id int) with (autovacuum_enabled = false, toast.vacuum_truncate = off) tablespace pg_default",
        "create table o (id int) without oids",
    ],
)
def test_maintenance_statement_is_accepted(database, text):
    database.execute(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("analyze t as", errors.SyntaxProblem),
        ("create table u (id int) with (nonsense = 1)", errors.UndefinedObject),
        ("create table u (id int) tablespace fast", errors.FeatureNotSupported),
        ("create index on t (name nonsense_ops)", errors.UndefinedObject),
        ("listen x", errors.FeatureNotSupported),
    ],
)
def test_maintenance_of_a_missing_object_is_rejected(database, text, problem):
    with pytest.raises(problem):
        database.execute(text)


def test_sleep_is_cut_by_a_timeout(database):
    assert database.execute("select pg_sleep(0.01)").fetchall() == [("",)]
    database.execute("set statement_timeout = '50ms'")
    with pytest.raises(errors.QueryCanceled):
        database.execute("select pg_sleep(60)")


def test_the_isolation_of_the_next_transaction_is_shown(database):
    database.execute("set session characteristics as transaction isolation level serializable")
    assert database.execute("show transaction isolation level").fetchall() == [("serializable",)]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("select ('{a,\"b c\"}')::varchar(9)[]", (["a", "b c"],)),
        ("select pg_catalog.array_position(pg_catalog.current_schemas(true), 'public')", (2,)),
        ("select catcode, barelabel from pg_get_keywords() where word = 'select'", ("R", True)),
        ("select count(*) from pg_available_extensions()", (0,)),
        ("select pg_sequence_last_value('s'::regclass)", (None,)),
    ],
)
def test_what_clients_ask(database, query, found):
    database.execute("create sequence s")
    assert database.execute(query).fetchone() == found
