"""An application behind a server of Spark Connect, which is reached over the network and has no Java on this side.

There are no jobs of single tasks there: an assignment is a row, and a function over rows does it. A frame of one row
has one partition, and so one task.
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
# Of a cluster that does not tell how much it does at a time; what is too much waits there.
_SLOTS = 8


class ConnectApplication:
    """One session of the server's; `own`, since nobody else uses it. What it writes to a log, the server keeps."""

    own = True

    def __init__(self, session: SparkSession, master: str, log: Path) -> None:
        self._session = session
        self._is_lost = False
        self._groups = count(1)
        self.log = log
        self.master = master
        self.id = self._told("spark.app.id") or session.session_id
        self.users = 0

    def __str__(self) -> str:
        return f"{self.id} ({self.master})"

    def _told(self, name: str) -> str:
        """A setting of the server; empty if it has none."""
        with suppress(PySparkException):
            return str(self._session.conf.get(name) or "")
        return ""

    @property
    def slots(self) -> int:
        with self._reaching():
            here = _LOCAL.match(self._told("spark.master"))
            told = here[1] if here else self._told("spark.default.parallelism") or self._told("spark.cores.max")
        return int(told) if told.isdigit() and int(told) else _SLOTS

    @property
    def speculates(self) -> bool:
        with self._reaching():
            return self._told("spark.speculation").lower() == "true"

    @property
    def is_alive(self) -> bool:
        return not self._is_lost and not self._session.is_stopped

    def warm_up(self) -> None:
        """The first task waits until Python has loaded the kernels."""
        with suppress(PySparkException, grpc.RpcError):
            self._session.range(self.slots, numPartitions=self.slots).mapInArrow(load_rows, OUTCOMES).collect()

    @contextmanager
    def group(self) -> Iterator[str]:
        yield f"seachange-{os.getpid()}-{next(self._groups)}"

    def call(self, payload: bytes, group: str, title: str) -> Outcome:
        """Runs one assignment and gives its outcome."""
        with self._reaching():
            # A tag holds for what this thread begins, and threads are used again.
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
            detail = f"the server of Spark Connect, {self.master}, does not answer: {problem}"
            raise errors.SparkFailed(detail=detail, log=self.log) from problem
        except PySparkException as problem:
            # The session may be one that the server has forgotten: the next attempt has another.
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
        # The client itself asks a server that is not there for ten minutes.
        socket.create_connection((address.hostname or "", address.port or _PORT), _REACH_SECONDS).close()
        session = SparkSession.builder.remote(options.remote).appName("seachange").create()
        return ConnectApplication(session, options.remote, options.log)
    except (PySparkException, grpc.RpcError, OSError, ValueError) as problem:
        detail = f"there is no server of Spark Connect at {options.remote}: {problem}"
        raise errors.SparkFailed(detail=detail, log=options.log) from problem
