"""Prints what Spark reads of a table through the REST catalog: a JSON line for each line of its input.

Runs in an environment with PySpark 3.5 and the package sagemaker-feature-store-pyspark, whose jar has Iceberg 1.9 under
other names of its classes (compat/iceberg-spark-requirements.txt).
"""

import json
import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import NumericType

CATALOG = "smfs.shaded.org.apache.iceberg.spark.SparkCatalog"


def connect(uri: str, user: str, password: str) -> SparkSession:
    found = find_spec("feature_store_pyspark")
    assert found is not None
    assert found.submodule_search_locations
    (jar,) = Path(found.submodule_search_locations[0]).glob("jars/*-sdk-3.5.jar")
    # The launcher's messages go to standard output otherwise.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    scratch = tempfile.mkdtemp(prefix="read-spark-")
    options = {
        "spark.driver.extraClassPath": str(jar),
        "spark.ui.enabled": "false",
        "spark.local.dir": scratch,
        "spark.sql.warehouse.dir": scratch,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.catalog.lake": CATALOG,
        "spark.sql.catalog.lake.type": "rest",
        "spark.sql.catalog.lake.uri": uri,
        "spark.sql.catalog.lake.warehouse": "seachange",
        "spark.sql.catalog.lake.credential": f"{user}:{password}",
        "spark.sql.catalog.lake.oauth2-server-uri": f"{uri}/v1/oauth/tokens",
        # Each query asks the catalog.
        "spark.sql.catalog.lake.cache-enabled": "false",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def read(session: SparkSession, table: str) -> dict[str, object]:
    """The newest snapshot, its number of rows, and the sum of each column with numbers."""
    snapshots = session.table(f"lake.{table}.snapshots").orderBy(f.desc("committed_at")).limit(1)
    ((snapshot,),) = snapshots.select("snapshot_id").collect()
    rows = session.sql(f"SELECT * FROM lake.{table} VERSION AS OF {snapshot}")
    columns = [field.name for field in rows.schema.fields if isinstance(field.dataType, NumericType)]
    found = rows.agg(f.count("*"), *(f.sum(f.col(f"`{name}`").cast("decimal(30,4)")) for name in columns)).collect()
    count, *sums = found[0]
    return {"snapshot": snapshot, "rows": count, "sums": dict(zip(columns, map(float, sums), strict=True))}


def main() -> None:
    uri, user, password, table = sys.argv[1:]
    session = connect(uri, user, password)
    for _ in sys.stdin:
        print(json.dumps(read(session, table)), flush=True)
    session.stop()


if __name__ == "__main__":
    main()
