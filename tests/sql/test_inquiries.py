"""has_table_privilege and similar functions agree with the privilege checks."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import seachange
from seachange import errors

SETUP = """
create table t (id int primary key, v int);
create sequence q;
create view w as select id from t;
create type mood as enum ('a');
create schema s;
create role readers;
create role ann login in role readers;
create role loner login noinherit in role readers;
create role boss login superuser;
grant select on t, w to readers;
grant insert on t to ann with grant option;
grant usage on sequence q to ann;
grant usage on schema s to ann;
grant create on database seachange to ann;
"""
# The answers that ann gets.
TOLD = [
    ("has_table_privilege('t', 'select')", True),
    ("has_table_privilege('t'::regclass, 'SELECT')", True),
    ("has_table_privilege('public.w', 'select')", True),
    ("has_table_privilege('t', 'update')", False),
    ("has_table_privilege('t', 'update, Insert')", True),
    ("has_table_privilege('t', 'insert with grant option')", True),
    ("has_table_privilege('t', 'select with grant option')", False),
    ("has_table_privilege('readers', 't', 'insert')", False),
    ("has_table_privilege('public', 't', 'select')", False),
    ("has_table_privilege('boss', 't', 'delete')", True),
    ("has_table_privilege('loner', 't', 'select')", False),
    ("has_table_privilege('pg_class', 'select')", True),
    ("has_column_privilege('t', 'v', 'select')", True),
    ("has_column_privilege('t', 2::smallint, 'update')", False),
    ("has_any_column_privilege('t', 'insert')", True),
    ("has_sequence_privilege('q', 'usage')", True),
    ("has_sequence_privilege('q', 'update')", False),
    ("has_schema_privilege('s', 'usage')", True),
    ("has_schema_privilege('s', 'create')", False),
    ("has_schema_privilege('public', 'usage')", True),
    ("has_schema_privilege('public', 'create')", False),
    ("has_schema_privilege('pg_catalog', 'usage')", True),
    ("has_database_privilege('seachange', 'create')", True),
    ("has_database_privilege('loner', 'seachange', 'create')", False),
    ("has_database_privilege(current_database(), 'connect')", True),
    ("has_type_privilege('mood', 'usage')", True),
    ("has_function_privilege('now()', 'execute')", True),
    ("pg_has_role('readers', 'member')", True),
    ("pg_has_role('loner', 'readers', 'member')", True),
    ("pg_has_role('loner', 'readers', 'usage')", False),
    ("pg_has_role('boss', 'usage')", False),
    ("pg_has_role('ann', 'member')", True),
    ("has_table_privilege(null, 'select')", None),
]


@pytest.fixture(scope="module")
def ann(tmp_path_factory: pytest.TempPathFactory) -> Iterator[seachange.Connection]:
    folder: Path = tmp_path_factory.mktemp("inquiries")
    with closing(seachange.connect(folder, autocommit=True)) as root:
        root.execute(SETUP)
        with closing(seachange.connect(folder, user="ann", autocommit=True)) as session:
            yield session


def test_privilege_inquiries(ann: seachange.Connection):
    found = ann.execute(f"select {', '.join(call for call, _ in TOLD)}").fetchone()
    assert found is not None
    assert list(zip([call for call, _ in TOLD], found, strict=True)) == TOLD


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("has_table_privilege('nope', 'select')", errors.UndefinedTable),
        ("has_table_privilege('missing', 't', 'select')", errors.UndefinedObject),
        ("has_table_privilege('t', 'fly')", errors.InvalidParameterValue),
        ("has_column_privilege('t', 'nope', 'select')", errors.UndefinedColumn),
        ("has_schema_privilege('nope', 'usage')", errors.InvalidSchemaName),
        ("has_database_privilege('nope', 'connect')", errors.InvalidDatabaseName),
        ("has_sequence_privilege('t', 'usage')", errors.WrongObjectType),
        ("pg_has_role('missing', 'member')", errors.UndefinedObject),
    ],
)
def test_what_is_not_there(ann: seachange.Connection, call, error):
    with pytest.raises(error):
        ann.execute(f"select {call}")


def test_inquiry_functions_agree_with_privilege_checks(ann: seachange.Connection):
    for statement, call in (
        ("select * from t", "has_table_privilege('t', 'select')"),
        ("delete from t where id = 1", "has_table_privilege('t', 'delete')"),
        ("select nextval('q')", "has_sequence_privilege('q', 'usage')"),
        ("create table s.x (id int)", "has_schema_privilege('s', 'create')"),
        ("create schema mine", "has_database_privilege('seachange', 'create')"),
        ("set role readers", "pg_has_role('readers', 'member')"),
    ):
        ((told,),) = ann.execute(f"select {call}").fetchall()
        try:
            ann.execute(statement)
        except errors.InsufficientPrivilege:
            assert not told, statement
        else:
            assert told, statement
        ann.execute("reset role")
