"""Prints what pyiceberg reads of a table through the REST catalog: a JSON line for each line of its input."""

import json
import sys

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog.rest import RestCatalog


def is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def read(catalog: RestCatalog, table: str) -> dict[str, object]:
    """The newest snapshot, its number of rows, and the sum of each column with numbers."""
    found = catalog.load_table(table)
    rows = found.scan().to_arrow()
    columns = [field.name for field in rows.schema if is_number(field.type)]
    sums = {name: float(pc.sum(rows[name]).as_py() or 0) for name in columns}
    return {"snapshot": found.metadata.current_snapshot_id, "rows": rows.num_rows, "sums": sums}


def main() -> None:
    uri, user, password, table = sys.argv[1:]
    login = {"credential": f"{user}:{password}", "oauth2-server-uri": f"{uri}/v1/oauth/tokens"}
    catalog = RestCatalog("lake", uri=uri, warehouse="seachange", **login)
    for _ in sys.stdin:
        print(json.dumps(read(catalog, table)), flush=True)


if __name__ == "__main__":
    main()
