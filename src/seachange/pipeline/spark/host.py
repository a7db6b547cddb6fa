"""The Spark application of this process: started on demand, reused, stopped when idle.

Spark has one application per process. One that the program itself has started is used as it is, and never stopped.

**Invariant:** an application in use is not stopped; a broken one is not used again.
"""

from __future__ import annotations

import atexit
import logging
import os
import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Protocol

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway

from seachange import errors
from seachange.pipeline.spark.failures import cause, failure
from seachange.pipeline.spark.packed_task import Outcome, load_kernels, run_assignments
from seachange.pipeline.spark_options import SparkOptions, configuration
from seachange.runtime.permissions import create_file, create_folder
from seachange.runtime.process import give_way
from seachange.runtime.threads import start_thread

_JAVA = "Install Java 17 or newer and set JAVA_HOME, or leave seachange.local_rows unset to work in-process."
_END_SECONDS = 10
# How often a thread that waits for Spark to start checks whether it should still wait.
_TICK_SECONDS = 0.2


class Application:
    """A running Spark application. `own`: it was started here."""

    def __init__(self, context: SparkContext, own: bool, log: Path) -> None:
        self._context = context
        self.own = own
        self.log = log
        self.id = str(context.applicationId)
        self.master = str(context.master)
        self._groups = count(1)
        self.users = 0

    def __str__(self) -> str:
        return f"{self.id} ({self.master})"

    @property
    def slots(self) -> int:
        """The number of tasks that run concurrently."""
        with self._reaching():
            return max(int(self._context.defaultParallelism), 1)

    @property
    def speculates(self) -> bool:
        """Whether a task may be started again while an attempt is running."""
        with self._reaching():
            return str(self._context.getConf().get("spark.speculation", "")).lower() == "true"

    @property
    def is_alive(self) -> bool:
        try:
            return self._context._jsc is not None and not self._context._jsc.sc().isStopped()
        except (Py4JError, OSError):
            return False

    def warm_up(self) -> None:
        """Makes the Python workers of the executors load the kernels before the first task."""
        with suppress(Py4JError, PySparkException, OSError):
            self._context.parallelize(range(self.slots), self.slots).map(load_kernels).collect()

    @contextmanager
    def group(self) -> Iterator[str]:
        """A group of jobs that can be cancelled together."""
        yield f"seachange-{os.getpid()}-{next(self._groups)}"

    def call(self, payload: bytes, group: str, title: str) -> Outcome:
        """Runs one packed task as a Spark job and returns its outcome."""
        with self._reaching():
            self._context.setJobGroup(group, title, interruptOnCancel=True)
            (outcome,) = self._context.parallelize([payload], 1).mapPartitions(run_assignments).collect()
        found: Outcome = pickle.loads(outcome)
        return found

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """Converts errors of the JVM, including its loss."""
        try:
            yield
        except Py4JJavaError as problem:
            raise failure(str(problem.java_exception), self.log) from problem
        except (Py4JError, PySparkException, OSError, EOFError) as problem:
            raise errors.SparkFailed(detail=f"application {self.id} is gone: {problem}", log=self.log) from problem

    def cancel(self, group: str) -> None:
        with suppress(Py4JError, OSError):
            self._context.cancelJobGroup(group)

    def stop(self) -> None:
        """Stops the application and its JVM; only for an application that was started here."""
        gateway = SparkContext._gateway
        # If the JVM is gone, the first call only notices that; the second releases the rest.
        for _ in range(2):
            with suppress(Py4JError, OSError):
                self._context.stop()
        SparkContext._gateway = SparkContext._jvm = None
        if gateway is not None:
            _end_jvm(gateway)


def _end_jvm(gateway: JavaGateway) -> None:
    with suppress(Py4JNetworkError, OSError):
        gateway.shutdown()
    process: subprocess.Popen[bytes] = gateway.proc
    # The JVM exits when its standard input is closed.
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class AnyApplication(Protocol):
    """An application that was started here, one that the program has started, or one behind a Spark Connect server."""

    own: bool
    users: int
    log: Path

    @property
    def slots(self) -> int: ...

    @property
    def speculates(self) -> bool: ...

    @property
    def is_alive(self) -> bool: ...

    def warm_up(self) -> None: ...

    def group(self) -> AbstractContextManager[str]: ...

    def call(self, payload: bytes, group: str, title: str) -> Outcome: ...

    def cancel(self, group: str) -> None: ...

    def stop(self) -> None: ...


class SparkHost:
    """Starts and shares the application."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._application: AnyApplication | None = None
        self._options: SparkOptions | None = None
        self._idle: threading.Timer | None = None
        self._starting: threading.Thread | None = None
        self._problem: errors.Error | None = None

    @property
    def problem(self) -> errors.Error | None:
        """Why the last start failed."""
        return self._problem

    @property
    def is_warm(self) -> bool:
        return self._application is not None

    @property
    def is_starting(self) -> bool:
        starting = self._starting
        return starting is not None and starting.is_alive()

    @contextmanager
    def using(self, options: SparkOptions, on_wait: Callable[[], None]) -> Iterator[AnyApplication]:
        """Starts the application if there is none; `on_wait` is called while it starts, and may raise."""
        application = self._acquire(options, on_wait)
        try:
            yield application
        finally:
            self._release(application, options)

    def warm(self, options: SparkOptions) -> None:
        """Starts the application in the background, if there is none; a problem is reported by `using`."""
        with self._lock:
            if self._application is not None or self.is_starting:
                return
            self._problem = None
            self._starting = threading.Thread(target=self._start, args=(options,), name="spark-start", daemon=True)
            start_thread(self._starting)

    def _acquire(self, options: SparkOptions, on_wait: Callable[[], None]) -> AnyApplication:
        while True:
            with self._lock:
                self._forget_unfit(options)
                if self._application is not None:
                    self._application.users += 1
                    return self._application
            self.warm(options)
            while (starting := self._starting) is not None and starting.is_alive():
                on_wait()
                starting.join(_TICK_SECONDS)
            if self._problem is not None:
                raise self._problem
            if self._application is None:
                raise errors.SparkFailed(detail="the application does not start", log=options.log)

    def _forget_unfit(self, options: SparkOptions) -> None:
        """Drops an application that is broken, or that is unused and has other options."""
        found = self._application
        if found is None:
            return
        other = found.own and self._options != options and not found.users
        if not found.is_alive or other:
            self._application = None
            if found.own:
                found.stop()

    def _start(self, options: SparkOptions) -> None:
        # Processes inherit the priority of the thread that starts them, including the workers of a local application.
        give_way()
        try:
            application = start_application(options)
            application.warm_up()
        except errors.Error as problem:
            self._problem = problem
            return
        with self._lock:
            self._application, self._options = application, options

    def _release(self, application: AnyApplication, options: SparkOptions) -> None:
        with self._lock:
            application.users -= 1
            if application.users or not application.own:
                return
            if self._idle is not None:
                self._idle.cancel()
            self._idle = threading.Timer(options.idle_seconds, self.stop_idle)
            self._idle.daemon = True
            self._idle.start()

    def stop_idle(self) -> None:
        with self._lock:
            found = self._application
            if found is None or found.users or not found.own:
                return
            self._application = None
            found.stop()

    def stop(self) -> None:
        """Called when the process ends. It does not wait for an application that is starting: its JVM exits when its
        standard input is closed, with the process."""
        with self._lock:
            if self._idle is not None:
                self._idle.cancel()
            found, self._application = self._application, None
            if found is not None and found.own:
                found.stop()


def start_application(options: SparkOptions) -> AnyApplication:
    if options.remote:
        return _start_connect(options)
    running = SparkContext._active_spark_context
    if running is not None:
        return Application(running, False, options.log)
    check_java()
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(configuration(options).items()))
    create_folder(options.log.parent)
    create_file(options.log)
    try:
        with options.log.open("ab") as log:
            gateway = launch_gateway(conf, {"stdin": subprocess.PIPE, "stdout": log, "stderr": log})
    except (PySparkException, Py4JError, OSError) as problem:
        raise errors.SparkFailed(detail=f"the application does not start: {problem}", log=options.log) from problem
    try:
        context = SparkContext(gateway=gateway, conf=conf)
        # PySpark takes this from the environment, which must not be changed here, and not from the configuration.
        context.pythonExec = options.python or sys.executable
        return Application(context, True, options.log)
    except (PySparkException, Py4JError, OSError) as problem:
        SparkContext._gateway = SparkContext._jvm = None
        _end_jvm(gateway)
        said = cause(str(problem.java_exception)) if isinstance(problem, Py4JJavaError) else str(problem)
        raise errors.SparkFailed(detail=f"the application does not start: {said}", log=options.log) from problem


def _start_connect(options: SparkOptions) -> AnyApplication:
    """Imported only here: the Spark Connect client has further dependencies."""
    try:
        from seachange.pipeline.spark.connect import start_connect  # noqa: PLC0415 - see above
    except ImportError as problem:
        raise errors.SparkUnavailable(
            detail=f"the Spark Connect client is not installed: {problem}",
            remedy="pip install 'seachange[connect]', or set seachange.spark.master to the master of the cluster.",
        ) from problem
    return start_connect(options)


def check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if home and not Path(home, "bin", "java").exists():
        raise errors.SparkUnavailable(detail=f"JAVA_HOME is {home}, which has no bin/java", remedy=_JAVA)
    if not home and shutil.which("java") is None:
        raise errors.SparkUnavailable(detail="Java was not found", remedy=_JAVA)


# Without a handler Python would print the messages about a lost JVM.
logging.getLogger("py4j").addHandler(logging.NullHandler())
HOST = SparkHost()
atexit.register(HOST.stop)
