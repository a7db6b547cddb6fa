"""COPY through psycopg, both ways."""

import psycopg
import pytest

from tests.support.serving import serving


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("served")) as served:
        with psycopg.connect(served.url, autocommit=True) as connection:
            connection.execute("create table t (id bigint primary key, name text)")
        yield served


@pytest.fixture
def connection(served):
    with psycopg.connect(served.url, autocommit=True) as connection:
        connection.execute("delete from t")
        yield connection


@pytest.mark.parametrize("count", [3, 20_000])
def test_rows_go_in_and_out(connection, count):
    rows = [(i, None if i % 3 else f"name\t{i}\\") for i in range(count)]
    with connection.cursor() as cursor:
        with cursor.copy("copy t (id, name) from stdin") as copy:
            for row in rows:
                copy.write_row(row)
        assert cursor.rowcount == count
        with cursor.copy("copy (select * from t order by id) to stdout") as copy:
            copy.set_types(["int8", "text"])
            assert list(copy.rows()) == rows


def test_csv_has_its_header(connection):
    with connection.cursor() as cursor:
        with cursor.copy("copy t from stdin with (format csv, header)") as copy:
            copy.write('id,name\n1,"a, b"\n2,\n')
        with cursor.copy("copy t to stdout csv header") as copy:
            assert b"".join(copy) == b'id,name\n1,"a, b"\n2,\n'


def test_a_wrong_line_leaves_no_row_and_the_connection_as_it_was(connection):
    with (
        pytest.raises(psycopg.errors.InvalidTextRepresentation),
        connection.cursor() as cursor,
        cursor.copy("copy t from stdin") as copy,
    ):
        copy.write("1\ta\nx\tb\n")
    assert connection.execute("select count(*) from t").fetchone() == (0,)
    with pytest.raises(ZeroDivisionError):
        _break_off(connection)
    assert connection.execute("select count(*) from t").fetchone() == (0,)
    with pytest.raises(psycopg.errors.UndefinedTable), connection.cursor() as cursor, cursor.copy("copy u from stdin"):
        pass


def _break_off(connection: psycopg.Connection) -> None:
    with connection.cursor() as cursor, cursor.copy("copy t from stdin") as copy:
        copy.write("1\ta\n")
        raise ZeroDivisionError


def test_files_of_the_server_are_out_of_reach(connection):
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        connection.execute("copy t from '/etc/passwd'")
