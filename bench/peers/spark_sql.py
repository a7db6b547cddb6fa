"""Plain Spark SQL: an index as users would write one, by repartitionByRange, a sort and a write of Parquet."""

import os
import time

from pyspark.sql import DataFrame, SparkSession

from bench.peers.protocol import Answer, serve

# As many as Seachange cuts the same work into.
PARTITIONS = 16


class Peer:
    def open(self, folder: str) -> Answer:
        """A session with all cores of this machine that has run a query."""
        self.spark = (
            SparkSession.builder.master("local[*]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.memory", "4g")
            .config("spark.local.dir", folder)
            .getOrCreate()
        )
        self.spark.sparkContext.setLogLevel("ERROR")
        self._write(self.spark.range(10_000).selectExpr("id", "string(id) as k"), "k", "id", f"{folder}/warm")
        return {"cores": os.cpu_count()}

    def build(self, source: str, target: str, key: str, row_key: str) -> Answer:
        """Writes the entries of an index on the key; returns its seconds."""
        start = time.perf_counter()
        self._write(self.spark.read.parquet(source), key, row_key, target)
        return {"seconds": time.perf_counter() - start}

    def _write(self, rows: DataFrame, key: str, row_key: str, target: str) -> None:
        entries = rows.select(key, row_key).repartitionByRange(PARTITIONS, key)
        entries.sortWithinPartitions(key, row_key).write.mode("overwrite").parquet(target)

    def close(self) -> Answer:
        self.spark.stop()
        return {}


if __name__ == "__main__":
    serve(Peer())
