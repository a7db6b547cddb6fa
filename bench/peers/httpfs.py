"""DuckDB 1.5.5 reading Parquet files of an object store by its extension httpfs, with default settings."""

import os
import time
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import duckdb

from bench.peers.protocol import Answer, plain_rows, serve


class Peer:
    def open(self, files: dict[str, list[str]], columns: dict[str, list[str]]) -> Answer:
        """A view for each table, whose files have these columns under other names."""
        self.connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        spec = find_spec("duckdb_extension_httpfs")
        assert spec is not None
        assert spec.origin is not None
        (path,) = Path(spec.origin).parent.glob("extensions/*/httpfs.duckdb_extension")
        self.connection.execute(f"load '{path}'")
        endpoint = urlsplit(os.environ["AWS_ENDPOINT_URL"]).netloc
        self.connection.execute(
            f"create secret (type s3, key_id '{os.environ['AWS_ACCESS_KEY_ID']}',"
            f" secret '{os.environ['AWS_SECRET_ACCESS_KEY']}', region 'us-east-1', endpoint '{endpoint}',"
            " url_style 'path', use_ssl false)"
        )
        for table, urls in files.items():
            shown = ", ".join(f"c{number} as {name}" for number, name in enumerate(columns[table], 1))
            self.connection.execute(f"create view {table} as select {shown} from read_parquet({urls})")
        return {}

    def query(self, sql: str) -> Answer:
        start = time.perf_counter()
        rows = self.connection.execute(sql).fetchall()
        return {"seconds": time.perf_counter() - start, "rows": plain_rows(rows)}


if __name__ == "__main__":
    serve(Peer())
