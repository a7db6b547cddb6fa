"""Parameters have the types that they have in PostgreSQL: those that are declared, or those that their places require;
and so have the results that are computed from them."""

from collections.abc import Iterator

import psycopg
import pytest

from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session
from seachange.sql.run.execute import prepare
from seachange.sql.text.names import read_list, read_type
from seachange.sql.text.tokens import Reader, split_script
from seachange.values.types import TEXT, SqlType
from tests.differential.test_expressions import SAMPLE, read_lines
from tests.support.postgres import LocalPostgres

LINES = read_lines("parameters.txt")


@pytest.fixture(scope="module")
def postgres(postgres_server: LocalPostgres) -> Iterator[psycopg.Connection]:
    postgres_server.start()
    with psycopg.connect(postgres_server.url) as connection:
        connection.execute("CREATE SCHEMA parameters; SET search_path = parameters")
        connection.execute(SAMPLE.encode())
        yield connection
        connection.rollback()


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    node = open_node(tmp_path_factory.mktemp("data"))
    session = Session(node)
    session.execute(SAMPLE)
    yield session
    session.close()
    node.close()


def describe_postgres(connection: psycopg.Connection, types: str, text: str) -> tuple[list[int], list[int]]:
    declared = f"({types})" if types else ""
    connection.execute(f"PREPARE p {declared} AS {text}".encode())
    query = "SELECT parameter_types::oid[], result_types::oid[] FROM pg_prepared_statements WHERE name = 'p'"
    (parameters, results) = connection.execute(query).fetchone() or ((), ())
    connection.execute("DEALLOCATE p")
    return list(parameters), list(results or ())


def describe_ours(session: Session, types: str, text: str) -> tuple[list[int], list[int]]:
    declared: tuple[SqlType, ...] = ()
    if types:
        (raw,) = split_script(types)
        declared = read_list(Reader(raw.words, raw.text), read_type)
    (prepared,) = prepare(text)
    found = session.describe(prepared.with_types(declared), declared)
    return [(type_ or TEXT).oid for type_ in found.types], [column.oid for column in found.columns or ()]


@pytest.mark.parametrize("line", LINES)
def test_parameters_and_results_have_the_same_types(postgres: psycopg.Connection, ours: Session, line: str) -> None:
    types, text = (part.strip() for part in line.split("|", 1))
    assert describe_ours(ours, types, text) == describe_postgres(postgres, types, text)
