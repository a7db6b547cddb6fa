"""A PySpark job that writes DataFrames in a loop while another process changes the table under it.

    python examples/spark_writes.py [--data DIR] [--rounds N] [--rows N]

Columns, an index and constraints come while it writes, and a column goes. No write fails and none waits for a change: a
DataFrame that was on its way when a change was published is made to fit it. In the end `seachange check` compares every
index with its rows, and every constraint.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import seachange
from seachange.cli.main import main as seachange_command

TABLE = "create table reading (id bigint primary key, sensor text, value double precision, unit text)"
CHANGES = [
    "alter table reading add column quality integer not null default 1",
    "create index reading_by_sensor on reading (sensor) include (value)",
    "alter table reading add column received timestamptz default now()",
    "alter table reading add constraint value_in_range check (value >= 0 and value < 1000)",
    "alter table reading alter column sensor set not null",
    "create unique index reading_once on reading (sensor, id)",
    "alter table reading drop column unit",
]


def tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def change(data: Path) -> None:
    """The other process: a session like any other."""
    with seachange.connect(data=data, autocommit=True) as db:
        for statement in CHANGES:
            db.execute(statement)
            tell(f"  changed: {statement}")


def readings(spark: SparkSession, first: int, rows: int) -> DataFrame:
    return spark.range(first, first + rows).selectExpr(
        "id", "concat('s', id % 50) as sensor", "cast(id % 1000 as double) as value"
    )


def write(data: Path, rounds_min: int, rows: int) -> int:
    """Writes at least until the other process has ended; gives the number of rows."""
    quiet: dict[str, Any] = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    spark = SparkSession.builder.master("local[2]").config(map=quiet).getOrCreate()
    written = rounds = 0
    with seachange.connect(data=data, autocommit=True) as db:
        db.execute(TABLE)
        # A worker is a Python that has to start: it is there before the changes are.
        written += db.insert_dataframe("reading", readings(spark, written, rows))
        with subprocess.Popen([sys.executable, __file__, "--data", str(data), "--change"]) as changer:
            while changer.poll() is None or rounds < rounds_min:
                written += db.insert_dataframe("reading", readings(spark, written, rows))
                rounds += 1
        if changer.returncode:
            raise SystemExit(f"the changes failed with exit code {changer.returncode}")
        tell(f"{rounds} DataFrames of {rows} rows were written during {len(CHANGES)} changes, and none failed")
        shown = db.spark_table("reading", spark)
        shown.groupBy("quality").count().orderBy("quality").show()
        found = shown.count()
        if found != written:
            raise SystemExit(f"{found} rows are there instead of {written}")
    spark.stop()
    return written


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    options.add_argument("--data", type=Path, help="the folder of the database, which must not exist yet")
    options.add_argument("--rounds", type=int, default=5, help="how many DataFrames are written at least")
    options.add_argument("--rows", type=int, default=20_000, help="how many rows each of them has")
    options.add_argument("--change", action="store_true", help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.change:
        change(asked.data)
        return 0
    data = asked.data or Path(tempfile.mkdtemp(prefix="seachange-")) / "data"
    tell(f"{write(data, asked.rounds, asked.rows)} rows are in {data}")
    return seachange_command(["check", "--data", str(data)])


if __name__ == "__main__":
    sys.exit(main())
