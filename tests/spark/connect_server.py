"""A server of Spark Connect on the loopback interface, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.patience import PATIENCE_S

SERVER = """
import sys
from pyspark import SparkConf, SparkContext
conf = SparkConf()
for name, value in {
    "spark.master": "local[2,4]", "spark.ui.enabled": "false", "spark.app.name": "elsewhere",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": "0",
    "spark.python.task.killTimeout": "200ms",
}.items():
    conf.set(name, value)
context = SparkContext(conf=conf)
service = getattr(context._jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
print("port", getattr(service, "MODULE$").localPort(), flush=True)
sys.stdin.read()
"""


class ConnectServer:
    def __init__(self, folder: Path) -> None:
        self._log = (folder / "connect.log").open("wb")

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline().split()
        if said[:1] != [b"port"]:
            self.__exit__(None, None, None)
            raise AssertionError(Path(self._log.name).read_text())
        self.url = f"sc://127.0.0.1:{int(said[1])}"
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        # It ends when its input does.
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()
