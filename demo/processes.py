"""The processes of the demonstration: two of traffic, and the workers. All end with it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from demo.story import Scale, Step
from demo.timeline import Sample

_PATIENCE_S = 60.0


def seachange_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "seachange.cli.main", *arguments]


class TrafficProcess:
    """Adds its transactions to the samples as it reports them."""

    def __init__(self, target: Sequence[str], number: int, scale: Scale, seed: int, samples: list[Sample]) -> None:
        command = [sys.executable, "-m", "demo.traffic", *target, "--number", str(number), "--seed", str(seed)]
        command += ["--accounts", str(scale.accounts), "--rate", str(scale.transactions_per_second)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._samples = samples
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_until_ready(self) -> None:
        if not self._ready.wait(_PATIENCE_S) or self._process.poll() is not None:
            raise RuntimeError("a process of traffic did not start")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                self._samples.append(Sample(**json.loads(line)))
            else:
                self._ready.set()
        self._ready.set()

    def stop(self) -> None:
        """Stops after the current transaction."""
        with suppress(BrokenPipeError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reader.join(_PATIENCE_S)

    @property
    def pid(self) -> int:
        return self._process.pid


class Worker:
    """`seachange worker`: runs the jobs."""

    def __init__(self, place: Sequence[str], log: Path) -> None:
        self._log = log
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                seachange_command("worker", *place, "--warm"),
                stdout=file,
                stderr=file,
                stdin=subprocess.DEVNULL,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        if self._process.poll() is not None:
            raise RuntimeError(f"a worker has ended: {self._log.read_text().strip()}")

    def kill(self) -> None:
        """With SIGKILL: it cannot clean up."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()


class Request:
    """A short-lived client that requests a change; the job is left to the workers. It may take a while to end, since
    its node expects the work and begins to start Spark."""

    def __init__(self, place: Sequence[str], step: Step) -> None:
        self._step = step
        said = [("seachange.concurrently", "async"), *step.settings]
        commands = [f"set {name} = '{value}'" for name, value in said] + [step.statement]
        arguments = [part for command in commands for part in ("-c", command)]
        self._process = subprocess.Popen(
            seachange_command("sql", *place, "--format", "csv", *arguments),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def check(self) -> None:
        if self._process.poll():
            assert self._process.stderr is not None
            raise RuntimeError(f"{self._step.statement}: {self._process.stderr.read().strip()}")

    def wait(self) -> None:
        self._process.wait(_PATIENCE_S)
        self.check()
