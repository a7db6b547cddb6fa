"""A stream that keeps an aggregate of a table up to date while the table is altered and processes are killed.

    python examples/stream_orders.py [--data DIR] [--orders N] [--master local-cluster[1,2,1024]]

Orders are inserted, changed and deleted. A query of Spark reads the changes and keeps, for each customer, the number of
orders and their amount in another table. Meanwhile the amount is converted to another type, a column is added, an
executor is killed, and then the driver; it is started again and continues from its checkpoint. In the end the aggregate
is compared with the orders: nothing was lost and nothing counted twice.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

import seachange
from seachange.cli.main import main as seachange_command
from seachange.engine.api import Connection

TABLES = (
    "create table orders (id int primary key, customer int, amount int)",
    "create table total (customer int primary key, orders bigint, amount bigint)",
    # The stream reads the orders in this shape, whatever they become, also when it is started again.
    "create shape first_orders",
)
CONVERT = "alter table orders alter column amount type numeric(12,2) using amount"
ADD = "alter table orders add column note text default 'none'"
EXPECTED = "select customer, count(*), sum(amount)::bigint from orders group by customer order by customer"
FOUND = "select customer, orders, amount from total where orders > 0 order by customer"
_EXECUTOR = b"CoarseGrainedExecutorBackend"


def tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def drive(data: Path, checkpoint: Path, master: str) -> None:
    """The program of the query, which runs until it is killed."""
    quiet: dict[str, Any] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    spark = SparkSession.builder.master(master).config(map=quiet).getOrCreate()
    changes = (
        spark.readStream.format("seachange")
        .options(data=str(data), changes="true", layout="first_orders", maxRowsPerBatch="2000")
        .load("orders")
    )
    sign = F.when(F.col("_change").isin("insert", "update_after"), 1).otherwise(-1)
    totals = changes.groupBy("customer").agg(
        F.sum(sign).alias("orders"), F.sum(sign * F.col("amount")).cast("bigint").alias("amount")
    )

    def merge(batch: DataFrame, batch_id: int) -> None:
        """Exactly once: a batch that Spark repeats is recognised by its number."""
        once = {"writer_id": "totals", "batch_id": str(batch_id), "merge_keys": "customer"}
        batch.write.format("seachange").options(data=str(data), **once).mode("append").save("total")

    stream = totals.writeStream.outputMode("update").foreachBatch(merge)
    query = stream.option("checkpointLocation", str(checkpoint)).start()
    query.awaitTermination()


class Driver:
    """A process of its own with everything that it starts: JVM, executors and Python workers."""

    def __init__(self, data: Path, checkpoint: Path, master: str) -> None:
        command = [sys.executable, __file__, "--data", str(data), "--checkpoint", str(checkpoint), "--master", master]
        log = data.with_name("driver.log").open("ab")
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        self._process = subprocess.Popen(
            [*command, "--drive"], stdout=log, stderr=log, env=environment, start_new_session=True
        )

    def kill_executor(self) -> bool:
        """False if there is none."""
        for found in Path("/proc").glob("[0-9]*"):
            try:
                is_ours = os.getpgid(int(found.name)) == self._process.pid
                if is_ours and _EXECUTOR in (found / "cmdline").read_bytes():
                    os.kill(int(found.name), signal.SIGKILL)
                    return True
            except OSError:
                continue
        return False

    def kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def check(self) -> None:
        if self._process.poll() is not None:
            raise SystemExit("the query ended by itself: see driver.log beside the data")


def change(db: Connection, first: int, count: int) -> None:
    """Inserts orders, and changes and deletes some of them; a commit each."""
    for id_ in range(first, first + count):
        db.execute("insert into orders (id, customer, amount) values (%s, %s, %s)", (id_, id_ % 7, id_ % 100))
        if id_ % 3 == 0:
            db.execute(
                "update orders set amount = amount + 1, customer = (customer + 1) %% 7 where id = %s", (id_ - 1,)
            )
        if id_ % 5 == 0:
            db.execute("delete from orders where id = %s", (id_ - 2,))


def wait_until_equal(db: Connection, driver: Driver, seconds: float) -> None:
    """The stream has counted everything that was committed."""
    expected, pause = db.execute(EXPECTED).fetchall(), threading.Event()
    for _ in range(int(seconds / 0.2)):
        driver.check()
        if db.execute(FOUND).fetchall() == expected:
            return
        pause.wait(0.2)
    raise SystemExit(f"the totals are {db.execute(FOUND).fetchall()} instead of {expected}")


def run(data: Path, orders: int, master: str, seconds: float) -> None:
    checkpoint, part = data.with_name("checkpoint"), max(orders // 4, 10)
    with seachange.connect(data=data, autocommit=True) as db:
        for statement in TABLES:
            db.execute(statement)
        change(db, 0, part)
        driver = Driver(data, checkpoint, master)
        try:
            wait_until_equal(db, driver, seconds)
            tell(f"{part} orders were counted")
            db.execute(CONVERT)
            change(db, part, part)
            tell(f"the executor was {'killed' if driver.kill_executor() else 'not found: the driver does the work'}")
            db.execute(ADD)
            change(db, 2 * part, part)
            wait_until_equal(db, driver, seconds)
            tell("the amount was converted and a column was added, and the query went on")
            change(db, 3 * part, part // 2)
            driver.kill()
            change(db, 3 * part + part // 2, part // 2)
            tell("the driver was killed")
            driver = Driver(data, checkpoint, master)
            wait_until_equal(db, driver, seconds)
        finally:
            driver.kill()
        ((count,),) = db.execute("select count(*) from orders").fetchall()
        tell(f"the totals of {count} orders are right")


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    options.add_argument("--data", type=Path, help="the folder of the database, which must not exist yet")
    options.add_argument("--orders", type=int, default=1_000, help="how many orders are inserted")
    options.add_argument("--master", default="local-cluster[1,2,1024]", help="where the query runs")
    options.add_argument("--seconds", type=float, default=300, help="how long to wait for the query")
    options.add_argument("--drive", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("--checkpoint", type=Path, help=argparse.SUPPRESS)
    asked = options.parse_args()
    data = asked.data or Path(tempfile.mkdtemp(prefix="seachange-")) / "data"
    if asked.drive:
        drive(data, asked.checkpoint, asked.master)
        return 0
    run(data, asked.orders, asked.master, asked.seconds)
    return seachange_command(["check", "--data", str(data)])


if __name__ == "__main__":
    sys.exit(main())
