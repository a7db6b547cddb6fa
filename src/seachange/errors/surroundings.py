"""Errors of the environment: locks, memory, disk, catalog, data folder, Spark."""

from __future__ import annotations

from seachange.errors.families import NotSupportedError, OperationalError


class QueryCanceled(OperationalError):
    sqlstate = "57014"
    message = "canceling statement due to {reason}"


class LockNotAvailable(OperationalError):
    sqlstate = "55P03"
    message = "could not obtain a lock: {detail}"


class LockRefused(LockNotAvailable):
    """With NOWAIT. `holders` names the sessions that hold the lock."""

    message = "could not obtain lock on {what}"

    def __init__(self, what: str, holders: str | None = None) -> None:
        super().__init__(what=what)
        self.detail = holders


class LockTimeout(LockNotAvailable):
    message = "canceling statement due to lock timeout"

    def __init__(self, holders: str | None = None) -> None:
        super().__init__()
        self.detail = holders


class AdvisoryLocksLost(OperationalError):
    sqlstate = "55000"
    message = "the session's advisory locks are lost: its node did not send a heartbeat within its expiry"
    hint_text = "Take them again before you rely on them; another session may hold them now."


class OutOfMemory(OperationalError):
    sqlstate = "53200"
    message = "out of memory: {detail}"
    hint_text = (
        "Read fewer rows at a time, or raise the limit that was exceeded: seachange.memory_limit or "
        "seachange.process_growth_limit."
    )


class OutOfTemporarySpace(OperationalError):
    sqlstate = "53100"
    message = "out of temporary space: {detail}"
    hint_text = "Read fewer rows at a time, or raise seachange.temp_space_limit."


class DataFolderOpen(OperationalError):
    sqlstate = "55000"
    message = 'data folder "{path}" has invalid permissions'
    detail_text = "Permissions should be u=rwx (0700) or u=rwx,g=rx (0750)."
    hint_text = "chmod -R go-rwx {path}"


class CatalogUnavailable(OperationalError):
    sqlstate = "08006"
    message = "the catalog {catalog} cannot be reached: {detail}"


class CatalogFormatTooNew(OperationalError):
    sqlstate = "55000"
    message = "the catalog {catalog} has format {found}; this program supports formats up to {known}"
    hint_text = "Use a newer Seachange for this catalog."


class ReleaseTooOld(OperationalError):
    sqlstate = "55000"
    message = "the database requires the rules of release {needed}; this program supports releases up to {known}"
    hint_text = "Use a newer Seachange for this database."


class UnknownRelease(OperationalError):
    sqlstate = "55000"
    message = "the change was planned with the rules of release {release}, which this program does not support"
    hint_text = "A node that runs a newer Seachange finishes the change or rolls it back."


class UnreadableJob(OperationalError):
    sqlstate = "XX001"
    message = "the record of job {job} cannot be read: {detail}"
    hint_text = (
        "If a newer Seachange wrote it, a node that runs that version finishes the job; otherwise restore the catalog "
        "from a backup."
    )


class InvalidCatalog(OperationalError):
    sqlstate = "22023"
    message = "{catalog} is not a catalog: {detail}"
    hint_text = "Give sqlite:///PATH or postgresql://..."


class CatalogMissing(OperationalError):
    sqlstate = "58P01"
    message = "there is no catalog in {catalog}"
    hint_text = (
        "Name the catalog of the database in this data folder with --catalog (in Python: catalog=). None is created "
        "for a folder that has a database already: a new database needs an empty folder. Nothing was written."
    )


class WrongDatabase(OperationalError):
    sqlstate = "55000"
    message = "the catalog {catalog} and the data folder {path} do not belong to the same database: {detail}"
    hint_text = "Name the catalog and the data folder of one database with --catalog and --data. Nothing was written."


class DatabaseMoved(OperationalError):
    sqlstate = "55000"
    message = "the database has moved from {path} to another place"
    hint_text = "Name its new place with --data (in Python: data=); the catalog is the same."


class NetworkFileSystem(OperationalError):
    sqlstate = "58000"
    message = "the SQLite catalog {path} lies on a network file system ({filesystem}), whose locks cannot be trusted"
    hint_text = "Put the data folder on a local disk, or use a PostgreSQL catalog."


class FolderIncomplete(OperationalError):
    sqlstate = "58P01"
    message = "the folder {path} lacks the file {file}, one of the newest of its database, so no files are added to it"
    hint_text = (
        "If it is a copy of the folder that other nodes use, name that one with --data. If the file was lost, restore "
        "it from a backup, or drop its table."
    )


class SegmentDamaged(OperationalError):
    sqlstate = "XX001"
    message = "segment file {file} is damaged: {detail}"
    hint_text = "Restore the file from a backup; nothing was read from it."


class DescriptorDamaged(OperationalError):
    sqlstate = "XX001"
    message = "version {version} of descriptor {id} in the catalog cannot be read: {detail}"
    hint_text = "Restore the database from a backup."


class InlineRowsDamaged(OperationalError):
    sqlstate = "XX001"
    message = 'rows of table "{table}" in the catalog are damaged: {detail}'
    hint_text = (
        "Restore the database from a backup; nothing was read from the damaged rows. Other tables can be read, and "
        "this one as of a time before the rows were written (seachange.as_of)."
    )


class DiskFull(OperationalError):
    sqlstate = "53100"
    message = "no space left to write {file}"
    hint_text = "Free space and run the statement again; nothing was changed."


class WillNotFit(OperationalError):
    sqlstate = "53100"
    message = "{what} needs about {needed} in {folder} and must leave {spare} free, but only {free} are free"
    hint_text = "Free space in this folder, or lower seachange.pipeline_free_space, and run the statement again."


class LowDisk(OperationalError):
    sqlstate = "53100"
    message = "{needed} are needed in {folder} to continue, but only {free} are free"
    hint_text = "Free space in this folder; the job then continues by itself."


class FileExists(OperationalError):
    sqlstate = "58P02"
    message = "could not write {file}: it already exists, and files of a database are never replaced"
    hint_text = (
        "Another program wrote it, or the catalog is older than the data folder: restore both from one backup. "
        "seachange check lists the files that the catalog does not refer to."
    )


class InputOutputError(OperationalError):
    sqlstate = "58030"
    message = "could not {action} {file}: {detail}"


class DataFolderProblem(OperationalError):
    sqlstate = "58P01"
    message = "data folder {path}: {detail}"


class InvalidStore(OperationalError):
    sqlstate = "22023"
    message = "{url} is not the address of an object store: {detail}"
    hint_text = (
        "Give s3://bucket/prefix, abfs://container@account.dfs.core.windows.net/prefix or gs://bucket/prefix; "
        "credentials come from the environment."
    )


class StoreLibraryMissing(NotSupportedError):
    message = "object stores need the package obstore, which is not installed"
    hint_text = "pip install 'seachange[s3]'"


class StoreNeedsCatalog(OperationalError):
    sqlstate = "22023"
    message = "a database in {url} needs a catalog of its own: an object store cannot hold it"
    hint_text = (
        "Name one with --catalog (in Python: catalog=): postgresql://..., or sqlite:///PATH on a disk of this machine. "
        "Or name a folder with --local (in Python: local=), which then has a SQLite catalog."
    )


class StoreProblem(OperationalError):
    """The object store cannot be reached, or refuses a request: nothing is known about its files."""

    sqlstate = "58030"
    message = "could not {action} {file}: {detail}"
    hint_text = "{remedy}"


class SparkNeedsSharedFiles(NotSupportedError):
    message = "{what} needs files that all Spark executors see, and the database is in an object store"
    hint_text = "Use a Spark of this machine (local[*]). Schema changes run on any Spark."


class HistoryProblem(OperationalError):
    sqlstate = "58P01"
    message = "history {path}: {detail}"
    hint_text = "Give a folder of .sql files as Flyway, golang-migrate, Prisma or Diesel name them, or in plain order."


class ReplayNeedsEmptyDatabase(OperationalError):
    sqlstate = "55000"
    message = "the database in {path} has tables, and the writers of a replay would write to them"
    hint_text = "Give a folder without a database, or none: then a temporary one is created and deleted afterwards."


class WriterLost(OperationalError):
    message = "the writer in process {process} ended unexpectedly"
    hint_text = "See its own message above."


class BackupProblem(OperationalError):
    sqlstate = "58000"
    message = "backup {path}: {detail}"


class SparkUnavailable(NotSupportedError):
    sqlstate = "0A000"
    message = "Spark cannot be used: {detail}"
    hint_text = "{remedy}"


class SparkFailed(OperationalError):
    sqlstate = "58000"
    message = "Spark failed: {detail}"
    hint_text = "See the log of Spark in {log}. A retry resumes after the work units that are finished."
