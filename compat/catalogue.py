"""The catalogue of clients: their names, and how each is started."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from compat import environment

CLIENTS_FOLDER = Path(__file__).resolve().parent / "clients"


@dataclass(frozen=True, slots=True)
class Client:
    """`prepare` returns the command to which the URL is added; it raises Unavailable."""

    name: str
    prepare: Callable[[str], list[str]]
    module: str


def _python(module: str) -> list[str]:
    return [str(environment.python()), "-m", f"compat.clients.{module}"]


def _dbt(module: str) -> list[str]:
    return [str(environment.dbt()), "-m", f"compat.clients.{module}"]


def _with_psql(module: str) -> list[str]:
    return ["env", f"PSQL={environment.psql()}", *_python(module)]


def _with_pg_dump(module: str) -> list[str]:
    psql = environment.psql()
    return ["env", f"PSQL={psql}", f"PG_DUMP={psql.with_name('pg_dump')}", *_python(module)]


def _with_pgbench(module: str) -> list[str]:
    return ["env", f"PGBENCH={environment.pgbench()}", *_python(module)]


def _node(module: str) -> list[str]:
    return ["env", f"NODE_PATH={environment.node()}", "node", str(CLIENTS_FOLDER / f"{module}.js")]


def _java(module: str) -> list[str]:
    driver = environment.jars() / "postgresql.jar"
    return [str(environment.java()), "-cp", str(driver), str(CLIENTS_FOLDER / f"{module}.java")]


def _with_jars(module: str) -> list[str]:
    return ["env", f"JAVA={environment.java()}", f"JARS={environment.jars()}", *_python(module)]


CLIENTS = (
    Client("psql", _with_psql, "psql"),
    Client("pg_dump", _with_pg_dump, "pg_dump"),
    Client("psycopg 3", _python, "psycopg3"),
    Client("asyncpg", _python, "asyncpg"),
    Client("pg8000", _python, "pg8000"),
    Client("node-postgres", _node, "node_postgres"),
    Client("JDBC", _java, "Jdbc"),
    Client("SQLAlchemy", _python, "sqlalchemy"),
    Client("pgbench", _with_pgbench, "pgbench"),
    Client("Alembic", _python, "alembic"),
    Client("Django", _python, "django"),
    Client("dbt", _dbt, "dbt"),
    Client("Liquibase", _with_jars, "liquibase"),
)
