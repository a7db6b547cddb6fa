"""The optional Spark backend: loaded on first use, so that a node without Spark does not import PySpark."""

from __future__ import annotations

from dataclasses import dataclass, fields
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from seachange import errors

_REMEDY = "pip install 'seachange[spark]', or leave seachange.local_rows unset to work in-process."


@dataclass(frozen=True, slots=True)
class SparkBackend:
    """The modules of the backend: the application, the executor, the tasks that it sends, and DataFrames of tables."""

    host: Any
    spark_executor: Any
    packed_task: Any
    frame_reads: Any
    frame_writes: Any


def load_spark() -> SparkBackend:
    if find_spec("pyspark") is None:
        raise errors.SparkUnavailable(detail="PySpark is not installed", remedy=_REMEDY)
    names = (field.name for field in fields(SparkBackend))
    return SparkBackend(*(import_module(f"seachange.pipeline.spark.{name}") for name in names))
