"""Prints what DuckDB reads of a table through the REST catalog: a JSON line for each line of its input.

Runs in an environment with duckdb 1.5.5 and the packages of its extensions avro, httpfs and iceberg.
"""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import duckdb

NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")


def connect(uri: str, user: str, password: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in ("avro", "httpfs", "iceberg"):
        found = find_spec(f"duckdb_extension_{name}")
        assert found is not None
        assert found.submodule_search_locations
        (path,) = Path(found.submodule_search_locations[0]).glob(f"extensions/*/{name}.duckdb_extension")
        connection.execute(f"LOAD '{path}'")
    connection.execute(
        f"CREATE SECRET (TYPE iceberg, CLIENT_ID '{user}', CLIENT_SECRET '{password}', "
        f"OAUTH2_SERVER_URI '{uri}/v1/oauth/tokens')"
    )
    connection.execute(f"ATTACH 'seachange' AS lake (TYPE iceberg, ENDPOINT '{uri}')")
    return connection


def read(connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, object]:
    """The newest snapshot, its number of rows, and the sum of each column with numbers."""
    newest = f"SELECT snapshot_id FROM iceberg_snapshots(lake.{table}) ORDER BY sequence_number DESC LIMIT 1"
    ((snapshot,),) = connection.sql(newest).fetchall()
    source = f"lake.{table} AT (VERSION => {snapshot})"
    shown = connection.sql(f"DESCRIBE SELECT * FROM {source}").fetchall()
    columns = [name for name, type_, *_ in shown if type_.split("(")[0] in NUMBERS]
    sums = ", ".join(f'sum("{name}")::DECIMAL(30, 4)' for name in columns)
    rows, *found = connection.sql(f"SELECT count(*), {sums} FROM {source}").fetchall()[0]
    return {"snapshot": snapshot, "rows": rows, "sums": dict(zip(columns, map(float, found), strict=True))}


def main() -> None:
    uri, user, password, table = sys.argv[1:]
    connection = connect(uri, user, password)
    for _ in sys.stdin:
        print(json.dumps(read(connection, table)), flush=True)


if __name__ == "__main__":
    main()
