"""CALL seachange.import_table: the rows of Parquet files or of an Iceberg table, loaded by the pipeline into a table
that exists, or that is created with their columns, in one transaction.

**Invariant:** only superusers and members of pg_read_server_files import, and only from `seachange.import_folders`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from seachange import errors
from seachange.engine.bulk.bulk_insert import BulkInsert
from seachange.engine.dataframes.dataframe_write import spool_folder, sweep_spool
from seachange.engine.dataframes.file_insert import FileInsert
from seachange.engine.encode.write_plan import WritePlan
from seachange.engine.imports.iceberg_source import iceberg_source
from seachange.engine.imports.import_folders import read_folders
from seachange.engine.imports.import_source import ImportSource, parquet_source
from seachange.engine.jobs.spark_pipeline import pipeline_settings
from seachange.engine.transaction.enum_labels import labelled
from seachange.engine.transaction.transaction import Transaction
from seachange.model.schema.actor import READ_SERVER_FILES
from seachange.model.schema.descriptor import Table
from seachange.model.statements import ImportTable
from seachange.pipeline.spark_backend import load_spark
from seachange.sql.change.schema_change import run_ddl
from seachange.sql.copy.frame_load import FrameColumn, plan_frame
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.settings.session_settings import SessionSettings

_PARQUET, _ICEBERG = "parquet", "iceberg"


def import_table(
    txn: Transaction,
    duck: DuckSession,
    statement: ImportTable,
    settings: Sequence[tuple[str, str]],
    notices: list[str],
) -> int:
    """Returns the number of rows; `settings` are the pipeline settings of the session."""
    actor = txn.state.rights.actor
    if not actor.superuser and READ_SERVER_FILES not in actor.roles:
        raise errors.InsufficientPrivilege(
            detail=f"permission denied to import: only superusers and members of {READ_SERVER_FILES} may"
        )
    with _open(txn, statement) as source, _damage_of(source):
        columns = source.describe(duck)
        table = _find_or_create(txn, duck, statement, source, columns, notices)
        txn.state.rights.check_access(table, "INSERT")
        txn.port.locks.begin_write(table, reads=False)
        count = _load(txn, table, source, columns, settings)
    notices.append(f"{count} rows were imported into {statement.table}")
    return count


@contextmanager
def _open(txn: Transaction, statement: ImportTable) -> Iterator[ImportSource]:
    parts, epoch = txn.state.parts, txn.state.epoch.epoch
    folders = read_folders(SessionSettings(parts.settings).get("seachange.import_folders"))
    match statement.format.lower():
        case "parquet":
            yield parquet_source(statement.source, folders.find(statement.source))
        case "iceberg":
            folders.check(statement.source)
            nodes = parts.catalog.nodes
            sweep_spool(parts.data, lambda: {node.epoch for node in nodes() if node.live and node.epoch != epoch})
            check_interrupt = txn.state.client.interrupts.check
            with spool_folder(parts.data, epoch, parts.entropy.token(8)) as folder:
                yield iceberg_source(statement.source, folder, folders.check, check_interrupt)
        case other:
            raise errors.InvalidParameterValue(
                detail=f'format "{other}" is not known: formats are {_PARQUET} and {_ICEBERG}'
            )


@contextmanager
def _damage_of(source: ImportSource) -> Iterator[None]:
    """A file of the user that cannot be read is no damage of the database."""
    try:
        yield
    except errors.SegmentDamaged as problem:
        file = problem.fields.get("file")
        if not source.shows_files or file not in {source.sample, *(each.path for each in source.files)}:
            raise
        raise errors.ImportFailed(source=file, detail=problem.fields["detail"]) from problem


def _find_or_create(
    txn: Transaction,
    duck: DuckSession,
    statement: ImportTable,
    source: ImportSource,
    columns: Sequence[FrameColumn],
    notices: list[str],
) -> Table:
    name = statement.table
    try:
        found = txn.port.names.table(name.schema, name.name)
    except errors.UndefinedTable:
        run_ddl(source.definition(statement, columns), "", labelled(txn), duck, notices)
        return txn.port.names.table(name.schema, name.name)
    if statement.key is not None:
        raise errors.InvalidParameterValue(detail=f'table "{name}" exists: its key is not changed by an import')
    return found


def _load(
    txn: Transaction,
    table: Table,
    source: ImportSource,
    columns: Sequence[FrameColumn],
    settings: Sequence[tuple[str, str]],
) -> int:
    query = plan_frame(table, columns, is_case_sensitive=False, is_spooled=False)
    if not source.files:
        return 0
    chosen = pipeline_settings(txn.state.parts, settings)

    def write(load: BulkInsert, plan: WritePlan) -> int:
        return FileInsert(txn, plan, query, load_spark, chosen, source.shows_files).write(source.files, load)

    return txn.writes.insert_bulk(table, write, checked=True)
