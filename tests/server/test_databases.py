"""The database that a client names when it connects."""

import psycopg
import pytest
from psycopg import sql

from tests.support.serving import HOST, serving
from tests.support.workers import wait_until


def is_dropped(connection: psycopg.Connection, database: str) -> bool:
    try:
        connection.execute(sql.SQL("drop database {}").format(sql.Identifier(database)))
    except psycopg.errors.ObjectInUse:
        return False
    return True


def test_a_client_chooses_its_database(tmp_path):
    with serving(tmp_path) as served:
        url = f"postgresql://seachange@{HOST}:{served.port}"
        with psycopg.connect(f"{url}/seachange", autocommit=True) as here:
            here.execute("create database shop")
            here.execute("create table only_here (id int)")
            with pytest.raises(psycopg.OperationalError, match='database "nope" does not exist'):
                psycopg.connect(f"{url}/nope")
            with psycopg.connect(f"{url}/shop", autocommit=True) as there:
                assert there.execute("select current_database()").fetchall() == [("shop",)]
                with pytest.raises(psycopg.errors.UndefinedTable):
                    there.execute("select * from only_here")
                with pytest.raises(psycopg.errors.ObjectInUse):
                    here.execute("drop database shop")
            # What a client leaves is not there at once.
            wait_until(lambda: is_dropped(here, "shop"), "no session uses the database")
            assert here.execute("select datname from pg_database").fetchall() == [("seachange",)]
            # The dependents of what is dropped come with the error.
            here.execute("create view v as select id from only_here")
            with pytest.raises(psycopg.errors.DependentObjectsStillExist) as caught:
                here.execute("drop table only_here")
            assert caught.value.diag.message_detail == "view v depends on table only_here"
