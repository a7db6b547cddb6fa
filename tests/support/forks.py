"""Processes that begin with their imports done: forked from a server that runs nothing itself.

An interpreter with all that a node needs spends a second of a processor on its imports, which a fork does not repeat.
To others the process is like any other: it has its own pipes, can be stopped and killed, and says how it ended.

Invariant: a fork has nothing of the test's process, neither threads nor open files, save the pipes that it was given.
"""

import faulthandler
import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import reduction
from types import TracebackType
from typing import Any, Self

from seachange.cli.main import COMMANDS
from seachange.runtime.faults import FAULTS, arm_from
from tests.support.patience import PATIENCE_S

# Whatever a fork runs is imported by the server, with all that it needs.
_MODULES = (
    "seachange.cli.main",
    "tests.catalog.worker",
    "tests.cluster.load.member",
    "tests.cluster.sqlprocess",
    "tests.crash.workload",
    "tests.engine.drawing",
)
_CONTEXT = multiprocessing.get_context("forkserver")
# What is imported only when it is needed: a command when it is run, a catalog when it is opened.
_LATE = (*(module for module, _ in COMMANDS.values()), "seachange.catalog.postgres")
_CONTEXT.set_forkserver_preload([*_MODULES, *_LATE, "tests.support.warmth"])


class _Handed:
    """A file descriptor on its way to another process."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __getstate__(self) -> Any:
        return reduction.DupFd(self.fd)

    def __setstate__(self, sent: Any) -> None:
        self.fd = sent.detach()


def _run(
    module: str,
    arguments: tuple[str, ...],
    fault: str | None,
    streams: tuple[_Handed, ...],
    environment: dict[str, str],
) -> None:
    os.environ.update(environment)
    for number, stream in enumerate(streams):
        os.dup2(stream.fd, number)
        os.close(stream.fd)
    # Prints the stacks of its threads at SIGABRT, and when it crashes.
    faulthandler.enable(file=2)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - it lives as long as the process
    sys.argv = [module, *arguments]
    if fault is not None:
        arm_from(fault, FAULTS)
    sys.exit(importlib.import_module(module).main())


class Fork:
    """Runs `main()` of a module, as far as that is one of those above; used as a context it is killed at the end."""

    def __init__(self, module: str, *arguments: str, fault: str | None = None) -> None:
        assert module in _MODULES
        pipes = [os.pipe() for _ in range(3)]
        theirs = (pipes[0][0], pipes[1][1], pipes[2][1])
        self.stdin = open(pipes[0][1], "wb")  # noqa: SIM115
        self.stdout = open(pipes[1][0], "rb")  # noqa: SIM115
        self.stderr = open(pipes[2][0], "rb")  # noqa: SIM115
        streams = tuple(map(_Handed, theirs))
        # The server of the forks was started before.
        stores = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        self._process = _CONTEXT.Process(target=_run, args=(module, arguments, fault, streams, stores), daemon=True)
        self._process.start()
        for fd in theirs:
            os.close(fd)

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout_s: float = PATIENCE_S) -> int:
        self._process.join(timeout_s)
        assert self._process.exitcode is not None, f"the process did not end within {timeout_s} s"
        return self._process.exitcode

    def communicate(self, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """Tells it something, and gives all that it said until it ended."""
        with ThreadPoolExecutor(2) as pool:
            heard = [pool.submit(pipe.read) for pipe in (self.stdout, self.stderr)]
            with suppress(BrokenPipeError):
                self.stdin.write(stdin.encode())
                self.stdin.close()
            out, err = (pipe.result(PATIENCE_S).decode() for pipe in heard)
        return subprocess.CompletedProcess((), self.wait(), out, err)

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        """Gives back the pipes of a process that has ended, and what is known of it."""
        for pipe in (self.stdin, self.stdout, self.stderr):
            try:
                pipe.close()
            except BrokenPipeError:
                continue
        self._process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self.wait()
        self.close()
