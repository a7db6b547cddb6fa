"""Reading a table: the driver plans units at one snapshot, executors read them as Arrow batches.

**Invariant:** what a frame shows is of one snapshot: that of `load` where Spark keeps the source (classic), that of the
plan where it does not (a schema was given, Spark Connect).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyspark_seachange.filters import condition_of
from pyspark_seachange.options import SourceOptions, read_options, shown_errors
from seachange import errors
from seachange.engine.api import Connection
from seachange.engine.datasource.change_rows import DESCRIBING
from seachange.engine.datasource.table_units import FrameUnit, TableSnapshot, snapshot_table
from seachange.engine.jobs.spark_pipeline import pipeline_settings, task_site
from seachange.pipeline.spark.frame_types import frame_type
from seachange.pipeline.spark.packed_task import VERSIONS, Site, open_warehouse, spill_folder
from seachange.pipeline.spark_backend import load_spark
from seachange.runtime.identity import check_identity
from seachange.runtime.opening import open_identity


def describe(given: Mapping[str, str]) -> tuple[int, str]:
    """The snapshot of now, and the table's columns as Spark's DDL."""
    with shown_errors():
        options = read_options(given)
        with closing(options.connect()) as db:
            found = read_snapshot(db, options, None)
            chosen = found.choose(options.names("columns")) or found.columns
            named = [(column.name, frame_type(column.type)) for column in chosen]
            named += DESCRIBING if options.flag("changes") else ()
            return found.at, ", ".join(f"{_quote(name)} {type_}" for name, type_ in named)


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def read_snapshot(db: Connection, options: SourceOptions, at: int | None) -> TableSnapshot:
    """`at`: None is the option, and without one the newest commit."""
    moment = str(at) if at is not None else options.text("as_of")
    _set(db, "layout", options.text("layout"))
    _set(db, "as_of", moment)
    try:
        return snapshot_table(db.session, options.table)
    finally:
        _set(db, "as_of", "")


def _set(db: Connection, name: str, value: str) -> None:
    db.execute("select set_config(%s, %s, false)", (f"seachange.{name}", value))


@dataclass(frozen=True, slots=True)
class ReadPlace:
    """How executors reach the files; `versions` are those of the driver."""

    site: Site
    versions: tuple[str, str]


def read_place(db: Connection) -> ReadPlace:
    """Executors that share the database's folder, or read its object store. Without a spill folder of the driver: its
    machine may not be theirs."""
    parts = db.session.node.parts
    settings = pipeline_settings(parts, db.session.settings.for_jobs())
    site = task_site(load_spark(), parts, settings, is_local=False)
    assert isinstance(site, Site)
    return ReadPlace(site, VERSIONS)


@dataclass(frozen=True)
class UnitPartition(InputPartition):
    unit: FrameUnit
    place: ReadPlace


def read_unit(partition: UnitPartition, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The columns of the unit, which are those of the schema, in Spark's Arrow types."""
    site = partition.place.site
    if partition.place.versions != VERSIONS:
        raise errors.SparkUnavailable(
            detail=f"an executor has Seachange {VERSIONS[0]} and DuckDB {VERSIONS[1]}, the driver has "
            f"{partition.place.versions[0]} and {partition.place.versions[1]}",
            remedy="Install the same versions there.",
        )
    check_identity(open_identity(site.segments), site.identity)
    warehouse, memory_bytes_max = open_warehouse(site.segments, site.cache), site.limits.memory_bytes_max
    for batch in partition.unit.batches(warehouse, spill_folder(site.spill), memory_bytes_max):
        arrays = [column.cast(type_) for column, type_ in zip(batch.columns, schema.types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


class TableReader(DataSourceReader):
    def __init__(self, options: SourceOptions, schema: StructType, at: int | None) -> None:
        self._options = options
        self._schema = schema
        self._at = at
        self._filters: tuple[Filter, ...] = ()

    def partitions(self) -> list[InputPartition]:
        with shown_errors(), closing(self._options.connect()) as db:
            found = read_snapshot(db, self._options, self._at)
            place = read_place(db)
            names = self._schema.fieldNames()
            columns = found.choose(names)
            known = dict(zip(names, columns, strict=True))
            made = (condition_of(each, known) for each in self._filters)
            conditions = tuple(condition for condition in made if condition is not None)
            return [UnitPartition(replace(unit, columns=columns, conditions=conditions), place) for unit in found.units]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, UnitPartition)
        with shown_errors():
            yield from read_unit(partition, to_arrow_schema(self._schema, timezone="UTC"))


class FilteringReader(TableReader):
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - PySpark's name
        """They only have to leave out files and rows: Spark evaluates all of them again."""
        self._filters = tuple(filters)
        return filters


def open_reader(given: Mapping[str, str], schema: StructType, at: int | None) -> DataSourceReader:
    with shown_errors():
        options = read_options(given)
        if options.flag("changes"):
            raise errors.InvalidParameterValue(
                detail="option changes is one of readStream; a query reads changes by seachange.feed"
            )
        reader = FilteringReader if options.flag("pushfilters") else TableReader
        return reader(options, schema, at)
