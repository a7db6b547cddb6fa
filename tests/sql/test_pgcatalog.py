"""The catalogs tell of what a statement may see, by numbers that stay."""

import gc
from dataclasses import replace

import pyarrow.compute as pc
import pytest

import seachange
from seachange.errors import Error
from seachange.model.states import State
from seachange.sql.pgcatalog.facts import Facts
from seachange.sql.pgcatalog.rows import make_table

TABLE = "CREATE TABLE t (a integer PRIMARY KEY, b text UNIQUE, c integer CHECK (c > 0) REFERENCES t)"


@pytest.fixture
def database(tmp_path):
    with seachange.connect(data=str(tmp_path)) as connection:
        connection.autocommit = True
        connection.execute(TABLE)
        yield connection


def rows(database, query):
    return sorted(database.execute(query).fetchall())


def facts_of(database, **states):
    """The schema with the states of some parts of the table changed."""
    (table,) = database._node.epoch.schemas.newest.by_id.values()
    parts = {kind: tuple(replace(part, state=state) for part in getattr(table, kind)) for kind, state in states.items()}
    return Facts((replace(table, **parts),), (), "d", "u", ("public",))


@pytest.mark.parametrize("state", [s for s in State if s is not State.PUBLIC])
@pytest.mark.parametrize(
    ("kind", "relation", "column", "shown"),
    [
        ("secondary", "pg_index", "indexrelid", 2),
        ("checks", "pg_constraint", "conname", 4),
        ("foreign_keys", "pg_constraint", "conname", 4),
    ],
)
def test_elements_that_are_not_public_are_not_listed(database, kind, relation, column, shown, state):
    def count(facts):
        return len(make_table(facts, ("pg_catalog", relation)).column(column))

    assert count(facts_of(database)) == shown
    assert count(facts_of(database, **{kind: state})) == shown - 1


def test_a_column_under_construction_is_not_listed(database):
    (table,) = database._node.epoch.schemas.newest.by_id.values()
    coming = replace(table.columns[2], id=9, name="coming", state=State.WRITE_ONLY)
    facts = Facts((replace(table, columns=(*table.columns, coming)),), (), "d", "u", ("public",))
    told = make_table(facts, ("information_schema", "columns"))
    names = told.filter(pc.equal(told["table_schema"], "public")).column("column_name").to_pylist()
    assert names == ["a", "b", "c"]


def test_numbers_stay(database, tmp_path):
    query = "SELECT oid FROM pg_class WHERE relkind = 'r'"
    before = rows(database, query)
    database.execute("ALTER TABLE t RENAME TO u")
    database.execute("ALTER TABLE u ADD COLUMN d integer")
    assert rows(database, query) == before
    database.close()
    with seachange.connect(data=str(tmp_path)) as again:
        assert rows(again, query) == before


def test_a_transaction_sees_its_own_changes_and_no_others(database):
    query = "SELECT attname FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0"
    with database.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("ALTER TABLE t ADD COLUMN d integer")
        cursor.execute(query)
        assert sorted(cursor.fetchall()) == [("a",), ("b",), ("c",), ("d",)]
        cursor.execute("ROLLBACK")
        cursor.execute(query)
        assert sorted(cursor.fetchall()) == [("a",), ("b",), ("c",)]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("DELETE FROM pg_class", "42501"),
        ("UPDATE pg_catalog.pg_type SET typname = 'x'", "42501"),
        ("SELECT 'nosuch'::regclass", "42P01"),
        ("SELECT 'nosuch'::regtype", "42704"),
        ("SELECT 'nosuch'::regnamespace", "3F000"),
        ("SELECT current_setting('nosuch')", "42704"),
        ("SELECT set_config('server_version', '9', false)", "55P02"),
        ("SELECT * FROM pg_nosuch", "42P01"),
    ],
)
def test_catalogs_reject_invalid_statements_with_their_code(database, statement, code):
    with pytest.raises(Error) as caught:
        database.execute(statement)
    assert caught.value.sqlstate == code


def test_names_with_and_without_their_schema(database):
    database.execute("CREATE SCHEMA s")
    database.execute("CREATE TABLE s.t (x integer)")
    assert rows(database, "SELECT 's.t'::regclass::text, 't'::regclass::text") == [("s.t", "t")]
    database.execute("SET search_path = s, public")
    assert rows(database, "SELECT 't'::regclass::text, 'public.t'::regclass::text") == [("t", "public.t")]


def test_defaults_have_the_digits_that_their_values_show(database):
    columns = "a numeric DEFAULT 0, b numeric DEFAULT 100, c numeric DEFAULT -3, d numeric(5,2) DEFAULT 0"
    database.execute(f"CREATE TABLE d ({columns}, e float8 DEFAULT 0, f float8 DEFAULT 'NaN')")
    query = "SELECT adnum, pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'd'::regclass"
    shown = ["0", "100", "'-3'::numeric", "0.00", "0", "'NaN'::double precision"]
    assert rows(database, query) == list(enumerate(shown, 1))


def test_the_checks_of_sizes_are_not_shown(database):
    database.execute(
        "CREATE TABLE d (a text CHECK (a ~ '^abcdefgh.+i$'), b text CHECK (repeat(replace(b, 'x', a), 3) <> a),"
        " c float8 CHECK (sqrt(c) > c), e text DEFAULT repeat('x', 3))"
    )
    query = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'd'::regclass ORDER BY conname"
    assert rows(database, query) == [
        ("CHECK ((a ~ '^abcdefgh.+i$'::text))",),
        ("CHECK ((repeat(replace(b, 'x'::text, a), 3) <> a))",),
        ("CHECK ((sqrt(c) > c))",),
    ]
    query = "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'd'::regclass"
    assert rows(database, query) == [("repeat('x'::text, 3)",)]


def test_a_match_without_regard_to_case_is_shown_as_one(database):
    database.execute("CREATE TABLE d (a text CHECK (a ~* '^ab'), b text CHECK (b ~ '^ab'))")
    query = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'd'::regclass"
    assert rows(database, query) == [("CHECK ((a ~* '^ab'::text))",), ("CHECK ((b ~ '^ab'::text))",)]


def test_a_setting_is_shown_and_set(database):
    assert rows(database, "SELECT set_config('search_path', 'public', false)") == [("public",)]
    assert rows(database, "SELECT current_setting('search_path')") == [("public",)]
    assert rows(database, "SELECT current_setting('nosuch', true)") == [(None,)]
    assert rows(database, "SELECT setting FROM pg_settings WHERE name = 'search_path'") == [("public",)]


def test_returning_tells_the_new_value_also_by_a_full_name(database):
    database.execute("INSERT INTO t VALUES (1, 'old')")
    query = "UPDATE public.t SET b = 'new' WHERE public.t.a = 1 RETURNING public.t.b"
    assert rows(database, query) == [("new",)]


def test_functions_outlive_the_session_that_called_them_first(database, tmp_path):
    query = "select relname::regclass::text, pg_get_userbyid(relowner) from pg_class where relname = 't'"
    for _ in range(3):
        with seachange.connect(data=str(tmp_path)) as other:
            assert rows(other, query) == [("t", "seachange")]
        gc.collect()
        # What was let go of is something else by now.
        assert len([lambda n=n: n for n in range(20_000)]) == 20_000


def test_questions_of_the_adbc_driver_are_answered(database):
    types = rows(
        database,
        "select typname from pg_type where (typreceive != 0 or typsend != 0) and typreceive::text != 'array_recv'",
    )
    assert ("int8",) in types
    assert rows(database, "select count(*) from pg_type t where 0 = t.typreceive") == [(0,)]
    assert rows(database, """select attname from pg_attribute where attrelid = '"public" . "t"'::regclass::oid""") == [
        ("a",),
        ("b",),
        ("c",),
    ]
    assert rows(database, "select nspname from pg_namespace where nspname !~ '^pg_' or oid = pg_my_temp_schema()") == [
        ("information_schema",),
        ("public",),
    ]
    # A column of a user's table is a number.
    database.execute("create table sent (typsend integer)")
    database.execute("insert into sent values (0)")
    assert rows(database, "select typsend from sent where typsend = 0") == [(0,)]
