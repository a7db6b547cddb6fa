"""Dumps in one transaction, as `psql -1 -f dump.sql` loads them: the tables are the block's own, so indexes and
constraints over their rows are made before COMMIT."""

import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session
from seachange.errors import Error
from seachange.verify.consistency import check
from tests.differential.both import Answer, open_both, values
from tests.differential.test_dumps import DUMPS, INTROSPECTION, OWN, read_dump, stored
from tests.support.postgres import Account, LocalPostgres, find_binaries
from tests.support.serving import serving

# The oldest version whose pg_dump and psql are at hand.
VERSION = 16


@contextmanager
def open_session(data: Path) -> Iterator[Session]:
    with closing(open_node(data)) as node, closing(Session(node)) as session:
        yield session


def answer(session: Session, statement: str) -> Answer:
    try:
        return Answer(tuple(map(tuple, session.execute(statement).rows or ())))
    except Error as problem:
        return Answer(None, problem.sqlstate)


@pytest.mark.parametrize("name", DUMPS)
def test_a_dump_in_one_transaction_is_as_statement_by_statement(name: str, tmp_path: Path) -> None:
    made, asked = read_dump(name)
    tables = "SELECT table_schema, table_name FROM information_schema.tables WHERE " + OWN
    with open_session(tmp_path / "apart") as apart, open_session(tmp_path / "together") as together:
        # What fails would fail the transaction, and VACUUM is not part of one.
        accepted = [statement for statement in made if answer(apart, statement).sqlstate is None]
        accepted = [statement for statement in accepted if not statement.startswith("VACUUM")]
        together.execute("BEGIN")
        for statement in accepted:
            together.execute(statement)
        rows = [f'SELECT * FROM "{schema}"."{table}"' for schema, table in answer(apart, tables).rows or ()]
        assert rows
        queries = [*rows, *(query.format(own=OWN) for query in INTROSPECTION), *asked, *rows]
        together.execute("COMMIT")
        for query in queries:
            assert values(answer(together, query)) == values(answer(apart, query)), query
        assert check(together.node) == []


@pytest.mark.parametrize("name", DUMPS)
def test_what_pg_dump_writes_is_loaded_in_one_transaction(
    name: str, postgres_server: LocalPostgres, tmp_path: Path
) -> None:
    binaries = find_binaries(VERSION, tmp_path, Account())
    made, _ = read_dump(name)
    with open_both(postgres_server, tmp_path / "unused") as both, serving(tmp_path / "served") as served:
        for statement in made:
            both.ask_postgres(statement)
        url = str(both.postgres.info.dsn) + f" password={both.postgres.info.password}"
        written = subprocess.run([str(binaries / "pg_dump"), url], capture_output=True, text=True, check=True).stdout
        script = tmp_path / "dump.sql"
        script.write_text(written)
        psql = [str(binaries / "psql"), "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-f", str(script), served.url]
        loaded = subprocess.run(psql, capture_output=True, text=True, check=False)
        assert loaded.returncode == 0, loaded.stderr
        with psycopg.connect(served.url, autocommit=True) as ours:
            for query in stored(both):
                expected = both.ask_postgres(query)
                found = Answer(tuple(ours.execute(query.encode()).fetchall()))
                assert values(found) == values(expected), query
        assert check(served.node) == []
