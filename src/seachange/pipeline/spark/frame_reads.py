"""A table as a DataFrame: Parquet scans, an anti-join of row positions, rows in memory, and the projections of layouts.

It is a plan of Spark's own, so that columns are pruned and filters pushed down to the files; nothing is evaluated in
Python. The rows to skip have been resolved before: Spark compares positions, not keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import cast

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StructType

from seachange.model.schema.descriptor import Column
from seachange.pipeline.frame_parts import FrameBranch, FrameFile
from seachange.pipeline.spark.frame_types import Labels, as_read, frozen, read_type, show, shown_type
from seachange.storage.arrow import column_name
from seachange.storage.projection import Source, Stored, StoredColumns, sources

# Up to this many positions are broadcast to every task; for more, Spark chooses the join.
_BROADCAST_POSITIONS_MAX = 1_000_000
# Session settings must not change what is read: a missing file is an error, never fewer rows.
_OPTIONS = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
}
# Characters of glob patterns in file names. With the option for literal names, Spark would read the files twice.
_PATTERN = re.compile(r"([{}\[\]*?\\])")
_FILE, _POSITION = "seachange_file", "seachange_position"


def table_frame(
    spark: SparkSession, columns: Sequence[Column], branches: Sequence[FrameBranch], labels: Labels
) -> DataFrame:
    parts = [part for branch in branches for part in _Reader(spark, columns, branch, labels).parts()]
    if not parts:
        parts = [spark.createDataFrame([], _struct((column_name(c.id), shown_type(c.type, spark)) for c in columns))]
    return reduce(DataFrame.unionAll, parts).toDF(*(column.name for column in columns))


def _struct(fields: Iterable[tuple[str, str]]) -> StructType:
    ddl = ", ".join(f"{name} {type_}" for name, type_ in fields)
    return cast("StructType", StructType.fromDDL(ddl)) if ddl else StructType()


def local_path(path: str) -> str:
    """The name of a file as Spark reads it, whatever its default file system is."""
    return "file://" + _PATTERN.sub(r"\\\1", path)


class _Reader:
    """The rows of one layout as the version's columns, named by their ids."""

    def __init__(self, spark: SparkSession, columns: Sequence[Column], branch: FrameBranch, labels: Labels) -> None:
        self._spark = spark
        self._branch = branch
        self._projection = [
            _expression(spark, source, column, labels).alias(column_name(column.id))
            for source, column in zip(sources(branch.stored, columns), columns, strict=True)
        ]
        wanted = {column.id for column in columns}
        self._stored: StoredColumns = tuple((c, t) for c, t in branch.stored if c in wanted)
        self._schema = _struct((column_name(c), read_type(t)) for c, t in self._stored)

    def parts(self) -> list[DataFrame]:
        touched = [f for f in self._branch.files if len(f.superseded)]
        untouched = [f for f in self._branch.files if not len(f.superseded)]
        found = [self._read(untouched)] if untouched else []
        if touched:
            found.append(self._read_by_position(touched))
        if self._branch.rows is not None and self._branch.rows.num_rows:
            found.append(self._local(self._branch.rows))
        return [frame.select(*self._projection) for frame in found]

    def _read(self, files: Sequence[FrameFile]) -> DataFrame:
        paths = [local_path(file.path) for file in files]
        return self._spark.read.options(**_OPTIONS).schema(self._schema).parquet(*paths)

    def _read_by_position(self, files: Sequence[FrameFile]) -> DataFrame:
        rows = self._read(files).select(
            "*", F.col("_metadata.file_name").alias(_FILE), F.col("_metadata.row_index").alias(_POSITION)
        )
        gone = self._positions(files)
        return rows.join(gone, [_FILE, _POSITION], "left_anti")

    def _positions(self, files: Sequence[FrameFile]) -> DataFrame:
        names = np.repeat([file.name for file in files], [len(file.superseded) for file in files])
        positions = np.concatenate([file.superseded for file in files])
        held = pa.table({_FILE: pa.array(names.tolist(), pa.string()), _POSITION: pa.array(positions, pa.int64())})
        frame = self._spark.createDataFrame(held)
        return F.broadcast(frame) if held.num_rows <= _BROADCAST_POSITIONS_MAX else frame

    def _local(self, rows: pa.Table) -> DataFrame:
        if not self._stored:
            return self._spark.range(rows.num_rows)
        held = {column_name(c): as_read(rows.column(column_name(c)), t) for c, t in self._stored}
        frame: DataFrame = self._spark.createDataFrame(pa.table(held), self._schema)
        return frame


def _expression(spark: SparkSession, source: Source, column: Column, labels: Labels) -> SparkColumn:
    if isinstance(source, Stored):
        return show(F.col(column_name(column.id)), source.old, column.type, spark, labels)
    return frozen(source.value, column.type, spark, labels)
