"""An application behind a Spark Connect server, which is reached over the network and needs no Java on this side.

There are no jobs of single tasks in Spark Connect: a task is a row, and a function over rows runs it. A frame of one
row has one partition, and so one Spark task.
"""

from __future__ import annotations

import os
import pickle
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession

from seachange import errors
from seachange.pipeline.spark.failures import failure
from seachange.pipeline.spark.packed_task import OUTCOMES, Outcome, load_rows, run_rows
from seachange.pipeline.spark_options import SparkOptions

_ASSIGNMENTS = pa.schema([pa.field("assignment", pa.binary())])
_PORT = 15002
_REACH_SECONDS = 10
_LOCAL = re.compile(r"local\[(\d+)")
# The default for a cluster that does not report its parallelism; excess tasks wait there.
_SLOTS = 8


class ConnectApplication:
    """One session of the server, which is used here alone (`own`). Its log is kept by the server."""

    own = True

    def __init__(self, session: SparkSession, master: str, log: Path) -> None:
        self._session = session
        self._is_lost = False
        self._groups = count(1)
        self.log = log
        self.master = master
        self.id = self._setting("spark.app.id") or session.session_id
        self.users = 0

    def __str__(self) -> str:
        return f"{self.id} ({self.master})"

    def _setting(self, name: str) -> str:
        """A setting of the server; empty if it has none."""
        with suppress(PySparkException):
            return str(self._session.conf.get(name) or "")
        return ""

    @property
    def slots(self) -> int:
        with self._reaching():
            here = _LOCAL.match(self._setting("spark.master"))
            slots_text = (
                here[1] if here else self._setting("spark.default.parallelism") or self._setting("spark.cores.max")
            )
        return int(slots_text) if slots_text.isdigit() and int(slots_text) else _SLOTS

    @property
    def speculates(self) -> bool:
        with self._reaching():
            return self._setting("spark.speculation").lower() == "true"

    @property
    def is_alive(self) -> bool:
        return not self._is_lost and not self._session.is_stopped

    def warm_up(self) -> None:
        """Makes the Python workers load the kernels before the first task."""
        with suppress(PySparkException, grpc.RpcError):
            self._session.range(self.slots, numPartitions=self.slots).mapInArrow(load_rows, OUTCOMES).collect()

    @contextmanager
    def group(self) -> Iterator[str]:
        yield f"seachange-{os.getpid()}-{next(self._groups)}"

    def call(self, payload: bytes, group: str, title: str) -> Outcome:
        """Runs one task and returns its outcome."""
        with self._reaching():
            # A tag applies to what this thread starts, and threads are reused.
            self._session.addTag(group)
            try:
                frame = self._session.createDataFrame(pa.table([pa.array([payload], pa.binary())], _ASSIGNMENTS))
                ((outcome,),) = frame.mapInArrow(run_rows, OUTCOMES).collect()
            finally:
                self._session.removeTag(group)
        found: Outcome = pickle.loads(outcome)
        return found

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except grpc.RpcError as problem:
            self._is_lost = True
            detail = f"the Spark Connect server {self.master} does not respond: {problem}"
            raise errors.SparkFailed(detail=detail, log=self.log) from problem
        except PySparkException as problem:
            # The server may have dropped the session: the next attempt creates another.
            self._is_lost = True
            raise failure(str(problem), self.log) from problem

    def cancel(self, group: str) -> None:
        with suppress(PySparkException, grpc.RpcError):
            self._session.interruptTag(group)

    def stop(self) -> None:
        with suppress(PySparkException, grpc.RpcError):
            self._session.stop()


def start_connect(options: SparkOptions) -> ConnectApplication:
    address = urlsplit(options.remote)
    try:
        # The client itself would retry an unreachable server for ten minutes.
        socket.create_connection((address.hostname or "", address.port or _PORT), _REACH_SECONDS).close()
        session = SparkSession.builder.remote(options.remote).appName("seachange").create()
        return ConnectApplication(session, options.remote, options.log)
    except (PySparkException, grpc.RpcError, OSError, ValueError) as problem:
        detail = f"cannot connect to a Spark Connect server at {options.remote}: {problem}"
        raise errors.SparkFailed(detail=detail, log=options.log) from problem
