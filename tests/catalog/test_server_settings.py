"""The catalog works whatever defaults its PostgreSQL server, database or role has."""

from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

import seachange
from seachange import errors
from seachange.catalog.postgres import PostgresCatalog
from seachange.catalog.postgres.connections import SERVER_SETTINGS, client_error, connect, one_snapshot
from seachange.runtime.clock import SYSTEM_CLOCK

# A default that breaks the catalog, or makes it slow, for each setting that has one.
HOSTILE = {
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "on",
    "default_transaction_deferrable": "on",
    "statement_timeout": "1min",
    "lock_timeout": "1min",
    "idle_in_transaction_session_timeout": "1min",
    "idle_session_timeout": "1min",
    "transaction_timeout": "1min",
    "plan_cache_mode": "force_custom_plan",
    "enable_seqscan": "on",
    "enable_indexscan": "off",
    "enable_indexonlyscan": "off",
    "enable_bitmapscan": "off",
    "enable_nestloop": "off",
    "jit": "on",
    "jit_above_cost": "0",
    "max_parallel_workers_per_gather": "2",
    "search_path": "hostile, pg_catalog",
    "row_security": "on",
    "TimeZone": "Asia/Tokyo",
    "DateStyle": "German",
    "IntervalStyle": "iso_8601",
    "bytea_output": "escape",
    "standard_conforming_strings": "off",
    "array_nulls": "off",
    "transform_null_equals": "on",
    "extra_float_digits": "-15",
    "client_min_messages": "debug5",
    "client_encoding": "LATIN1",
    "synchronous_commit": "off",
}
# A function of the same name is found first by a session that looks in this schema first.
SHADOW = (
    "CREATE SCHEMA hostile; CREATE FUNCTION hostile.clock_timestamp() RETURNS timestamptz LANGUAGE sql "
    "RETURN NULL::timestamptz"
)


def spoil_database(url: str) -> None:
    """Gives the database every hostile default that its server knows."""
    with psycopg.connect(url, autocommit=True) as db:
        known = {name for (name,) in db.execute("SELECT name FROM pg_settings").fetchall()}
        name = sql.Identifier(str(conninfo_to_dict(url)["dbname"]))
        db.execute(SHADOW)
        for setting, value in HOSTILE.items():
            if setting in known:
                db.execute(sql.SQL("ALTER DATABASE {} SET {} = {}").format(name, sql.Identifier(setting), value))


def test_each_setting_has_a_hostile_default():
    assert {setting.name for setting in SERVER_SETTINGS} <= HOSTILE.keys()


def test_database_works_with_hostile_defaults(postgres_catalog_url: str, tmp_path: Path):
    spoil_database(postgres_catalog_url)
    with seachange.connect(data=str(tmp_path), catalog=postgres_catalog_url, autocommit=True) as db:
        db.execute("create table t (id int primary key, name text)")
        db.execute("insert into t values (1, 'Müller \\ ''q'''), (2, null)")
        db.execute("create index on t (name)")
        db.execute("alter table t alter column name type text using upper(name)")
        assert db.execute("select id, name from t order by id").fetchall() == [(1, "MÜLLER \\ 'Q'"), (2, None)]


def test_session_has_all_settings(postgres_catalog_url: str):
    spoil_database(postgres_catalog_url)
    with connect(postgres_catalog_url) as db:
        for setting in SERVER_SETTINGS:
            if setting.since <= db.info.server_version:
                found = db.execute("SELECT current_setting(%s)", (setting.name,)).fetchone()
                assert found == (setting.value,), setting.name
        assert db.execute("SHOW synchronous_commit").fetchone() == ("on",)
        assert db.info.encoding == "utf-8"


def test_functions_keep_the_planner_settings_without_those_of_the_session(postgres_catalog_url: str):
    """A pooler may hand out a server's session that was never set up."""
    PostgresCatalog(postgres_catalog_url, SYSTEM_CLOCK).close()
    with connect(postgres_catalog_url) as db:
        bare = db.execute(
            "SELECT proname FROM pg_proc p JOIN pg_language l ON l.oid = prolang "
            "WHERE pronamespace = 'seachange'::regnamespace AND lanname = 'plpgsql' AND proname <> 'lock_sequencer' "
            "AND NOT coalesce(proconfig @> ARRAY['jit=off', 'enable_seqscan=off'], false)"
        ).fetchall()
        assert bare == []
        db.execute("SET jit = on")
        with one_snapshot(db):
            assert db.execute("SHOW jit").fetchone() == ("off",)


def test_lost_settings_cost_no_durability(postgres_catalog_url: str):
    PostgresCatalog(postgres_catalog_url, SYSTEM_CLOCK).close()
    with connect(postgres_catalog_url) as db:
        db.execute("SET synchronous_commit = off")
        with db.transaction():
            db.execute("SELECT seachange.lock_sequencer()")
            assert db.execute("SHOW synchronous_commit").fetchone() == ("on",)


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_commit_in_another_isolation_level_is_refused(postgres_catalog_url: str, level: str):
    """It would not see what was committed while it waited for the lock."""
    PostgresCatalog(postgres_catalog_url, SYSTEM_CLOCK).close()
    with connect(postgres_catalog_url) as db:
        db.execute(sql.SQL("SET default_transaction_isolation = {}").format(level))
        with pytest.raises(psycopg.Error, match="READ COMMITTED") as caught:
            db.execute("SELECT seachange.lock_sequencer()")
    assert isinstance(client_error(caught.value, "c"), errors.InvalidCatalog)
