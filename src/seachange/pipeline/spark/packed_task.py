"""The code that runs in a Spark task: unpacks a task, runs its kernel, and packs the outcome.

**Invariant:** every attempt at a task writes under ids of its own, which were reserved before it was sent. The files of
an attempt whose result is not used are garbage; no two attempts ever write the same file.

**Invariant:** an error that a client can see is an outcome, not a failure of the task: Spark would only repeat it.
"""

from __future__ import annotations

import pickle
import socket
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyspark import TaskContext

from seachange import errors
from seachange.model.ids import SegmentId
from seachange.pipeline.kernels.executor import Task
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.rebuild import Translate
from seachange.pipeline.spark.progress_file import ProgressFile
from seachange.pipeline.throttling.progress_meter import ProgressMeter
from seachange.runtime.identity import check_identity
from seachange.runtime.opening import CacheOptions, open_files, open_identity
from seachange.storage.sorter import Sorter
from seachange.storage.spill import KeptInstance, SortLimits
from seachange.storage.warehouse import Warehouse

# Checksums use DuckDB's hash function, and kernels are this package's: both versions must be the driver's.
VERSIONS = (version("seachange"), duckdb.__version__)
_SPILL_NAME = "seachange-spill"
# The columns that `run_rows` returns.
OUTCOMES = "outcome binary"
# A Python worker runs one task after the other.
_KEPT = KeptInstance()


@dataclass(frozen=True, slots=True)
class Site:
    """The warehouse as executors see it: a folder that they share, or a URL. Without a spill folder, each executor uses
    the temporary folder of its machine. `identity` is the id of the database, which every task compares with that of
    the folder or store that its machine sees."""

    segments: str
    spill: str | None
    limits: SortLimits
    translate: Translate
    identity: str | None = None
    cache: CacheOptions = CacheOptions()  # noqa: RUF009 - a value


@dataclass(frozen=True, slots=True)
class PackedTask:
    """A task with the reserved file ids of each possible attempt, and the path prefix of its progress file."""

    task: Task[Any]
    site: Site
    ids: tuple[tuple[SegmentId, ...], ...]
    sign: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """The attempt and Spark task that ran, and its host."""

    attempt: int
    task_id: int
    host: str


@dataclass(frozen=True, slots=True)
class Finished:
    result: Any
    used: tuple[SegmentId, ...]
    trace: Trace


@dataclass(frozen=True, slots=True)
class Failed:
    sqlstate: str
    message: str
    hint: str | None
    trace: Trace


@dataclass(frozen=True, slots=True)
class Again:
    """There were no ids left: the task must be sent again with others, and with more of them if `too_few`."""

    trace: Trace
    too_few: bool


Outcome = Finished | Failed | Again


class _NoneLeft(Exception):
    pass


def run_assignments(payloads: Iterable[bytes]) -> Iterator[bytes]:
    """The function of a Spark partition."""
    for payload in payloads:
        yield pickle.dumps(_run(payload))


def run_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same for tasks that are rows of a frame."""
    for batch in batches:
        outcomes = list(run_assignments(batch.column(0).to_pylist()))
        yield pa.record_batch([pa.array(outcomes, pa.binary())], names=["outcome"])


def load_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Returns no rows; loads this module."""
    for _ in batches:
        yield pa.record_batch([pa.array([], pa.binary())], names=["outcome"])


def load_kernels(number: int) -> int:
    """Calling it loads this module."""
    return number


def _run(payload: bytes) -> Outcome:
    context = TaskContext.get()
    assert context is not None
    trace = Trace(context.attemptNumber(), int(context.taskAttemptId()), socket.gethostname())
    versions, body = pickle.loads(payload)
    if versions != VERSIONS:
        problem = errors.SparkUnavailable(
            detail=f"{trace.host} has Seachange {VERSIONS[0]} and DuckDB {VERSIONS[1]}, this node has "
            f"{versions[0]} and {versions[1]}",
            remedy="Install the same versions there, or set seachange.spark.python to an interpreter that has them.",
        )
        return Failed(problem.sqlstate, str(problem), problem.hint, trace)
    return run_assignment(pickle.loads(body), trace)


def run_assignment(assignment: PackedTask, trace: Trace) -> Outcome:
    if trace.attempt >= len(assignment.ids):
        return Again(trace, too_few=False)
    left = list(assignment.ids[trace.attempt])
    used: list[SegmentId] = []

    def take(count: int) -> Sequence[SegmentId]:
        if count > len(left):
            raise _NoneLeft
        taken = [left.pop(0) for _ in range(count)]
        used.extend(taken)
        return taken

    site = assignment.site
    try:
        # Before the folder is opened, which would create it.
        check_identity(open_identity(site.segments), site.identity)
    except errors.Error as problem:
        return Failed(problem.sqlstate, str(problem), problem.hint, trace)
    meter = ProgressMeter(assignment.task.steps)
    warehouse = open_warehouse(site.segments, site.cache)
    kernel_context = KernelContext(
        warehouse,
        spill_folder(site.spill),
        take,
        _Uninterrupted(),
        site.translate,
        site.limits,
        meter=meter,
        connect=_KEPT.connect,
    )
    try:
        with warehouse.files.uses.using(), ProgressFile(meter, assignment.sign, trace.task_id):
            return Finished(assignment.task.run(kernel_context), tuple(used), trace)
    except _NoneLeft:
        return Again(trace, too_few=True)
    except errors.Error as problem:
        return Failed(problem.sqlstate, str(problem), problem.hint, trace)


@cache
def open_warehouse(segments: str, cache_options: CacheOptions) -> Warehouse:
    """One per Python worker, which runs many tasks: a file is verified once."""
    return Warehouse(open_files(segments, cache_options))


def spill_folder(asked: str | None) -> Path:
    return Path(asked) if asked is not None else Path(tempfile.gettempdir()) / _SPILL_NAME


class _Uninterrupted:
    """A task that must end is killed with its process."""

    def check(self) -> None:
        pass

    def reaching(self, running: Sorter) -> nullcontext[None]:
        return nullcontext()
