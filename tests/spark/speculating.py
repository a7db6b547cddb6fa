"""A program on a cluster that runs tasks twice: a partition of a DataFrame, and a unit of an index.

Each time the first attempt waits, with its work done, until a second one is there, and both go on.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession

import seachange
from seachange.runtime import faults
from tests.support.patience import PATIENCE_S

ROWS = 4_000


def meet(folder: Path, name: str) -> None:
    """Leaves a mark, and waits until there are two."""
    context = TaskContext.get()
    assert context is not None
    (folder / f"{name}-{context.taskAttemptId()}").touch()
    end = time.monotonic() + PATIENCE_S
    while len(list(folder.glob(f"{name}-*"))) < 2 and time.monotonic() < end:
        time.sleep(0.05)


@dataclass(frozen=True)
class SlowPartition:
    folder: Path

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 1:
            meet(self.folder, "partition")


@dataclass(frozen=True)
class SlowUnit:
    """Has the Python worker that it is sent to wait when it has next published a segment, if it is the first to."""

    folder: Path

    def __call__(self, number: int) -> int:
        faults.FAULTS.arm("segment.published", lambda: meet(self.folder, "unit"))
        time.sleep(0.5)
        return number


def main(master: str, data: str, marks: str) -> None:
    options = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.minTaskRuntime": "200ms",
        # Of stages of a single task.
        "spark.speculation.task.duration.threshold": "2s",
    }
    builder = SparkSession.builder.master(master)
    for name, value in options.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    with seachange.connect(data=data, autocommit=True) as db:
        db.execute("set seachange.local_rows = 0")
        db.execute("create table t (id bigint primary key, w text)")
        frame = spark.range(0, ROWS, 1, 4).selectExpr("id", "concat('w', id) as w")
        db.insert_dataframe("t", frame.mapInArrow(SlowPartition(Path(marks)), frame.schema))
        spark.sparkContext.parallelize(range(2), 2).map(SlowUnit(Path(marks))).collect()
        db.execute("create unique index by_w on t (w)")
        counted = "select count(*), count(distinct id), (select count(*) from t where w >= '') from t"
        print(*db.execute(counted).fetchall()[0])
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
