"""Transaction blocks on PostgreSQL and here."""

from pathlib import Path

import psycopg
import pytest

from seachange.errors import Error
from tests.differential.both import open_both
from tests.support.postgres import LocalPostgres

OUTSIDE = (
    "CREATE INDEX CONCURRENTLY ON t (a)",
    "CREATE UNIQUE INDEX CONCURRENTLY u ON t (a)",
    "DROP INDEX CONCURRENTLY i",
    "REINDEX INDEX CONCURRENTLY i",
    "REINDEX (CONCURRENTLY) TABLE t",
    "REINDEX TABLE CONCURRENTLY t",
    "REINDEX SCHEMA public",
    "REINDEX DATABASE seachange",
    "CREATE DATABASE other",
    "DROP DATABASE IF EXISTS other",
    "VACUUM t",
    "VACUUM",
    "DISCARD ALL",
)
# The same object without a restriction.
INSIDE = ("REINDEX INDEX i", "REINDEX TABLE t", "ANALYZE t", "DISCARD TEMP")


def test_commands_that_cannot_run_in_a_block(postgres_server: LocalPostgres, tmp_path: Path) -> None:
    """They fail with the same message, and fail the block."""
    with open_both(postgres_server, tmp_path) as both:
        both.run("CREATE TABLE t (a int); CREATE INDEX i ON t (a)")
        for command in OUTSIDE:
            both.run("BEGIN")
            with pytest.raises(psycopg.Error) as expected:
                both.postgres.execute(command.encode())
            with pytest.raises(Error) as found:
                both.ours.cursor().execute(command)
            assert (found.value.sqlstate, str(found.value)) == (expected.value.sqlstate, str(expected.value).strip())
            assert both.ask_postgres("SELECT 1") == both.ask_ours("SELECT 1"), command
            both.run("ROLLBACK")
        for command in INSIDE:
            both.run("BEGIN")
            both.run(command)
            both.run("COMMIT")
        with pytest.raises(Error) as found:
            both.ours.cursor().execute("BEGIN; ALTER TABLE CONCURRENTLY t ADD COLUMN b int")
        assert str(found.value) == "ALTER TABLE CONCURRENTLY cannot run inside a transaction block"
