"""The Python interface keeps PEP 249."""

import datetime as dt
import subprocess
import sys
from decimal import Decimal

import pyarrow as pa
import pytest

import seachange


@pytest.fixture
def db(tmp_path):
    with seachange.connect(tmp_path) as db:
        db.execute("create table t (id int primary key, name text, price numeric(8,2))")
        db.commit()
        yield db


def filled(db):
    db.cursor().executemany("insert into t values (%s, %s, %s)", [(i, f"n{i}", i) for i in range(5)])
    db.commit()
    return db


def test_module_has_the_attributes_of_pep_249():
    assert (seachange.apilevel, seachange.threadsafety, seachange.paramstyle) == ("2.0", 1, "pyformat")
    assert seachange.__version__


def test_exceptions_form_the_tree_of_pep_249():
    tree = [
        (seachange.Warning, Exception),
        (seachange.Error, Exception),
        (seachange.InterfaceError, seachange.Error),
        (seachange.DatabaseError, seachange.Error),
        (seachange.DataError, seachange.DatabaseError),
        (seachange.OperationalError, seachange.DatabaseError),
        (seachange.IntegrityError, seachange.DatabaseError),
        (seachange.InternalError, seachange.DatabaseError),
        (seachange.ProgrammingError, seachange.DatabaseError),
        (seachange.NotSupportedError, seachange.DatabaseError),
    ]
    for derived, base in tree:
        assert issubclass(derived, base)
        assert getattr(seachange.Connection, derived.__name__) is derived


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ("insert into t values (0, 'x', 1)", "IntegrityError", "23505"),
        ("insert into t values (null)", "IntegrityError", "23502"),
        ("insert into t values ('x')", "DataError", "22P02"),
        ("select 1 / 0", "DataError", "22012"),
        ("select nope", "ProgrammingError", "42703"),
        ("selec", "ProgrammingError", "42601"),
        ("cluster t", "NotSupportedError", "0A000"),
    ],
)
def test_errors_carry_their_code(db, text, kind, code):
    filled(db)
    with pytest.raises(getattr(seachange, kind)) as caught:
        db.execute(text)
    assert caught.value.sqlstate == code


def test_transactions_are_implicit(db, tmp_path):
    with seachange.connect(tmp_path, autocommit=True) as other:
        db.execute("insert into t values (1, 'a', 1)")
        assert other.execute("select * from t").fetchall() == []
        db.commit()
        assert len(other.execute("select * from t").fetchall()) == 1
        db.execute("delete from t")
        db.rollback()
        assert len(other.execute("select * from t").fetchall()) == 1


def test_a_failed_transaction_is_left_by_rollback(db):
    with pytest.raises(seachange.Error):
        db.execute("select nope")
    with pytest.raises(seachange.Error) as caught:
        db.execute("select 1")
    assert caught.value.sqlstate == "25P02"
    db.rollback()
    assert db.execute("select 1").fetchone() == (1,)


def test_autocommit_makes_each_statement_visible_at_once(db, tmp_path):
    db.autocommit = True
    db.execute("insert into t values (1, 'a', 1)")
    with seachange.connect(tmp_path) as other:
        assert len(other.execute("select * from t").fetchall()) == 1
    db.autocommit = False
    db.execute("select 1")
    with pytest.raises(seachange.Error):
        db.autocommit = True


def test_a_context_commits_or_rolls_back(tmp_path):
    with seachange.connect(tmp_path) as db:
        db.execute("create table c (a int)")
    with pytest.raises(seachange.DataError), seachange.connect(tmp_path) as db:
        db.execute("insert into c values (1); select 1 / 0")
    with seachange.connect(tmp_path) as db:
        assert db.execute("select * from c").fetchall() == []


def test_fetch_methods_return_the_remaining_rows(db):
    cursor = filled(db).cursor()
    cursor.execute("select id from t order by id")
    assert cursor.rowcount == 5
    assert cursor.fetchone() == (0,)
    assert cursor.fetchmany() == [(1,)]
    assert cursor.fetchmany(2) == [(2,), (3,)]
    assert cursor.fetchall() == [(4,)]
    assert cursor.fetchone() is None
    assert cursor.fetchmany(2) == []
    assert cursor.fetchall() == []
    assert list(cursor.execute("select id from t where id < 2 order by id")) == [(0,), (1,)]
    cursor.arraysize = 3
    assert len(cursor.execute("select id from t").fetchmany()) == 3


def test_description_has_names_and_type_oids(db):
    assert db.cursor().description is None
    cursor = db.execute("select id, name, price, count(*) from t group by all")
    assert cursor.description == [
        ("id", 23, None, None, None, None, None),
        ("name", 25, None, None, None, None, None),
        ("price", 1700, None, None, 8, 2, None),
        ("count", 20, None, None, None, None, None),
    ]
    cursor.execute("insert into t values (1, 'a', 1)")
    assert (cursor.description, cursor.rowcount) == (None, 1)


def test_what_gives_no_rows_cannot_be_fetched(db):
    cursor = db.cursor()
    for fetch in (cursor.fetchone, cursor.fetchmany, cursor.fetchall):
        with pytest.raises(seachange.InterfaceError):
            fetch()
    cursor.execute("delete from t")
    with pytest.raises(seachange.InterfaceError):
        cursor.fetchall()


def test_parameters_are_passed_by_position_and_by_name(db):
    moment = dt.datetime(2024, 2, 9, 1, tzinfo=dt.UTC)
    assert db.execute("select %s, %s", ("a%s", moment)).fetchone() == ("a%s", moment)
    assert db.execute("select %(b)s, %(a)s, %(b)s", {"a": 1, "b": "x"}).fetchone() == ("x", 1, "x")
    assert db.execute("select 5 %% 3, '%%', %s", (Decimal("1.50"),)).fetchone() == (2, "%", Decimal("1.50"))
    assert db.execute("select 5 % 3, '%%'").fetchone() == (2, "%%")
    assert db.execute("select $1::int + $2::int", (1, 2)).fetchone() == (3,)
    assert db.execute("select %s", (None,)).fetchone() == (None,)
    with pytest.raises(seachange.ProgrammingError):
        db.execute("select %s, %s", (1,))


def test_executemany_counts(db):
    cursor = db.cursor()
    cursor.executemany("insert into t values (%(id)s, %(name)s)", [{"id": i, "name": "x"} for i in range(3)])
    assert cursor.rowcount == 3
    cursor.executemany("update t set name = %s where id = %s", [("a", 0), ("b", 9)])
    assert cursor.rowcount == 1


def test_executemany_is_all_or_nothing_with_autocommit(db):
    db.autocommit = True
    with pytest.raises(seachange.IntegrityError):
        db.cursor().executemany("insert into t (id) values (%s)", [(1,), (2,), (1,)])
    assert db.execute("select count(*) from t").fetchone() == (0,)


def test_closed_cursors_and_connections_raise(tmp_path):
    db = seachange.connect(tmp_path)
    cursor = db.cursor()
    cursor.close()
    with pytest.raises(seachange.InterfaceError):
        cursor.execute("select 1")
    other = db.cursor()
    db.close()
    db.close()
    for use in (db.cursor, db.commit, db.rollback, db.node_statistics, lambda: other.execute("select 1")):
        with pytest.raises(seachange.InterfaceError):
            use()


def test_notices_are_kept_on_the_connection(db):
    db.execute("drop table if exists nope")
    assert db.notices == ['table "nope" does not exist, skipping']


def test_load_arrow(db):
    table = pa.table({"name": ["a", "b"], "id": pa.array([1, 2], pa.int64())})
    assert db.load_arrow("t", table) == 2
    assert db.load_arrow("public.t", table.slice(0, 0).to_reader()) == 0
    assert db.execute("select * from t order by id").fetchall() == [(1, "a", None), (2, "b", None)]
    db.rollback()
    assert db.execute("select count(*) from t").fetchone() == (0,)


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"id": [1], "nope": [1]}, "42703"),
        ({"id": [2**40]}, "22000"),
        ({"id": [1, 1]}, "23505"),
        ({"name": ["x"]}, "23502"),
    ],
)
def test_load_arrow_refuses(db, columns, code):
    with pytest.raises(seachange.Error) as caught:
        db.load_arrow("t", pa.table(columns))
    assert caught.value.sqlstate == code


def test_compact_keeps_the_rows(db):
    filled(db)
    db.compact("t")
    assert db.execute("select count(*) from t").fetchone() == (5,)
    assert db.node_statistics()["compactions"] >= 1


def test_sessions_of_a_process_share_a_node(tmp_path):
    with seachange.connect(tmp_path) as first, seachange.connect(tmp_path) as second:
        assert first.node_statistics()["epoch"] == second.node_statistics()["epoch"]


@pytest.mark.parametrize(
    "program",
    [
        "import seachange; seachange.__version__; seachange.Error",
        "from seachange.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass",
    ],
)
def test_engines_are_loaded_when_connect_is_used(program):
    engines = "import sys; print({'duckdb', 'pyarrow', 'sqlglot'}.intersection(sys.modules))"
    done = subprocess.run([sys.executable, "-c", f"{program}\n{engines}"], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n")


def test_module_lists_the_names_that_are_loaded_when_used():
    assert {*seachange.__all__} <= {*dir(seachange)}
    assert [name for name in seachange.__all__ if not hasattr(seachange, name)] == []
    with pytest.raises(AttributeError, match="no attribute 'conect'"):
        seachange.conect  # noqa: B018
