"""The data source `seachange` of Spark: tables as batches and streams, read and written by executors.

PySpark finds the package by its name and registers `DefaultSource` in every session. The parts that do the work are
loaded when a method is called: a session that uses another format does not wait for the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    # The snapshot that `load` has found: what is read is of that, also where the frame is used several times.
    at: int | None = None

    @classmethod
    def name(cls) -> str:
        return "seachange"

    def schema(self) -> StructType | str:
        self.at, found = _load("batch_read").describe(self.options)
        schema: str = found
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        reader: DataSourceReader = _load("batch_read").open_reader(self.options, schema, self.at)
        return reader

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        writer: DataSourceWriter = _load("batch_write").TableWriter(self.options, schema, overwrite)
        return writer

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - PySpark's name
        reader: DataSourceStreamReader = _load("stream_read").ChangeReader(self.options, schema, self.at)
        return reader

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - PySpark's name
        writer: DataSourceStreamWriter = _load("stream_write").StreamWriter(self.options, schema, overwrite)
        return writer


def _load(module: str) -> Any:
    return import_module(f"pyspark_seachange.{module}")
