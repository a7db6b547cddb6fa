"""Writing the rows of a DataFrame as files with Spark: each row exactly once, in spite of retries and speculation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from seachange import errors
from seachange.pipeline.spark.failures import cause
from seachange.pipeline.spark.frame_types import written_type

_STATE = re.compile(r"SQLSTATE: ([0-9A-Z]{5})")


class Reaching(Protocol):
    def check(self) -> None: ...

    def reaching(self, running: _Job) -> AbstractContextManager[None]:
        """An interrupt ends the job."""


@dataclass(frozen=True, slots=True)
class _Job:
    spark: SparkSession
    tag: str

    def interrupt(self) -> None:
        self.spark.interruptTag(self.tag)


def describe_frame(frame: DataFrame) -> list[tuple[str, str, str | None]]:
    """The columns: names, Spark's types, and DuckDB's types of the written files."""
    with _naming_errors():
        found = [(field.name, field.dataType.simpleString()) for field in frame.schema]
    return [(name, type_, written_type(type_)) for name, type_ in found]


def is_case_sensitive(frame: DataFrame) -> bool:
    return str(frame.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"


def write_frame(
    frame: DataFrame, names: Sequence[str], folder: Path, rows_max: int, tag: str, interrupts: Reaching
) -> None:
    """Writes the columns under these names to a new folder, in files of at most `rows_max` rows. When all are written,
    Spark moves the files of one attempt per partition there."""
    spark = frame.sparkSession
    types = [written for _, _, written in describe_frame(frame)]
    numbered = frame.toDF(*names)
    chosen = numbered.select(*(_written(name, type_).alias(name) for name, type_ in zip(names, types, strict=True)))
    writer = chosen.write.mode("errorifexists").options(maxRecordsPerFile=rows_max, compression="snappy")
    spark.addTag(tag)
    try:
        with interrupts.reaching(_Job(spark, tag)), _naming_errors(interrupts):
            writer.parquet(f"file://{folder}")
    finally:
        spark.removeTag(tag)


def _written(name: str, type_: str | None) -> SparkColumn:
    match type_:
        case "DATE":
            return F.unix_date(F.col(name))
        case "TIMESTAMP WITH TIME ZONE":
            return F.unix_micros(F.col(name))
        case '"NULL"':
            return F.lit(None).cast("int")
        case _:
            return F.col(name)


@contextmanager
def _naming_errors(interrupts: Reaching | None = None) -> Iterator[None]:
    """Converts errors of the DataFrame, with Spark's own SQLSTATE if it has one."""
    try:
        yield
    except (PySparkException, Py4JError) as problem:
        if interrupts is not None:
            interrupts.check()
        text = str(problem)
        state = _STATE.search(text)
        message = f"the DataFrame failed: {cause(text)}"
        raise errors.remembered(state[1] if state is not None else "58000", message) from problem
