"""A standalone Spark cluster on the loopback interface, from the programs that PySpark brings along."""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pyspark

from tests.support.postgres import find_free_port
from tests.support.workers import wait_until

HOME = Path(pyspark.__file__).parent
_ENVIRONMENT = {
    "SPARK_HOME": str(HOME),
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1",
}


class StandaloneCluster:
    """A master and workers of one core each, on these machines in turn; every one has, with its children, a process
    group of its own."""

    def __init__(self, folder: Path, workers: int, hosts: Sequence[str] = ("127.0.0.1",)) -> None:
        self._folder = folder
        self.master = f"spark://127.0.0.1:{find_free_port()}"
        port = self.master.rpartition(":")[2]
        self._processes: list[subprocess.Popen[bytes]] = []
        self._start("master", "master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0")
        options = ["--cores", "1", "--memory", "1g", "--webui-port", "0"]
        for number in range(workers):
            place = ["--host", hosts[number % len(hosts)], "--work-dir", str(folder / f"work-{number}")]
            self._start(f"worker-{number}", "worker.Worker", *options, *place, self.master)

    def _start(self, name: str, program: str, *arguments: str) -> None:
        command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}", *arguments]
        with (self._folder / f"{name}.log").open("wb") as log:
            environment = {**os.environ, **_ENVIRONMENT}
            self._processes.append(
                subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
            )

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text()

    def wait(self, workers: int) -> None:
        wait_until(lambda: self.log("master").count("Registering worker") == workers, "the workers to register")

    def kill_worker(self, number: int) -> None:
        """With its executors."""
        os.killpg(self._processes[1 + number].pid, signal.SIGKILL)

    def end(self) -> None:
        for process in self._processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        for process in self._processes:
            process.wait()
