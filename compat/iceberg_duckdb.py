"""Prints the rows of Iceberg tables as DuckDB reads them, as JSON: one line per metadata file.

Runs in an environment of its own, with the extensions from packages.
"""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import duckdb

EXTENSIONS = ("avro", "httpfs", "iceberg")


def main() -> None:
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in EXTENSIONS:
        found = find_spec(f"duckdb_extension_{name}")
        assert found is not None
        assert found.submodule_search_locations
        (path,) = Path(found.submodule_search_locations[0]).glob(f"extensions/*/{name}.duckdb_extension")
        connection.execute(f"LOAD '{path}'")
    connection.execute("SET TimeZone = 'UTC'")
    for address in sys.argv[1:]:
        source = connection.sql(f"SELECT * FROM iceberg_scan('{address}')")
        columns = ", ".join(f'CAST("{name}" AS VARCHAR) AS "{name}"' for name in source.columns)
        rows = connection.sql(f"SELECT {columns} FROM iceberg_scan('{address}')").fetchall()
        print(json.dumps([dict(zip(source.columns, row, strict=True)) for row in rows]))


if __name__ == "__main__":
    main()
