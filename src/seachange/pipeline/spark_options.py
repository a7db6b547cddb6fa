"""The Spark settings: `seachange.spark.*` as a value, and as Spark's own configuration."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_LOG4J = Path(__file__).with_name("spark") / "log4j2.properties"
# Less compilation halves the start time; the JVM only does scheduling.
_QUICK_START = "-XX:TieredStopAtLevel=1"

# The configuration of every application that is started here, unless `seachange.spark.options` overrides it.
_CONF = {
    "spark.app.name": "seachange",
    "spark.ui.enabled": "false",
    # Progress bars on the terminal also make every job wait for their next tick.
    "spark.ui.showConsoleProgress": "false",
    "spark.python.daemon.module": "seachange.pipeline.spark.daemon",
    # Over TCP the small messages of a task wait for acknowledgements, 40 ms.
    "spark.python.unix.domain.socket.enabled": "true",
    # A cancelled task is killed soon: its output is garbage anyway.
    "spark.python.task.killTimeout": "200ms",
    # Kernels sort in DuckDB; nothing is cached or shuffled in the JVM.
    "spark.memory.fraction": "0.3",
    "spark.scheduler.mode": "FAIR",
}
_LOCAL_RETRIES = 4


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """An empty text is Spark's own default; an empty `master` is this machine. `remote` is a Spark Connect server,
    which has its own configuration. `python` is the interpreter of the executors, empty for that of this process. `log`
    is the file for Spark's messages."""

    master: str = ""
    driver_memory: str = "1g"
    executor_memory: str = "1g"
    executor_cores: str = ""
    cores_max: str = ""
    python: str = ""
    idle_seconds: int = 600
    more: tuple[tuple[str, str], ...] = ()
    log: Path = Path(os.devnull)
    remote: str = ""

    @property
    def master_url(self) -> str:
        """On this machine tasks are retried only if the master URL says so.

        >>> SparkOptions("local[2]").master_url, SparkOptions().master_url, SparkOptions("spark://a:7077").master_url
        ('local[2,4]', 'local[*,4]', 'spark://a:7077')
        """
        master = self.master or "local[*]"
        if master == "local":
            master = "local[1]"
        if master.startswith("local[") and "," not in master:
            return f"{master[:-1]},{_LOCAL_RETRIES}]"
        return master

    @property
    def is_local(self) -> bool:
        return not self.remote and self.master_url.startswith("local")


def parse_options(text: str) -> tuple[tuple[str, str], ...]:
    """Spark's own settings, separated by spaces.

    >>> parse_options("spark.speculation=true spark.locality.wait=0s")
    (('spark.speculation', 'true'), ('spark.locality.wait', '0s'))
    """
    pairs = [item.partition("=") for item in text.split()]
    for name, equals, _ in pairs:
        if not equals or not name.startswith("spark."):
            raise ValueError(text)
    return tuple((name, value) for name, _, value in pairs)


def configuration(options: SparkOptions) -> dict[str, str]:
    sizes = {
        "spark.driver.memory": options.driver_memory,
        "spark.executor.memory": options.executor_memory,
        "spark.executor.cores": options.executor_cores,
        "spark.cores.max": options.cores_max,
    }
    conf = {
        **_CONF,
        "spark.master": options.master_url,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG4J.as_uri()} {_QUICK_START}",
        "spark.executor.extraJavaOptions": _QUICK_START,
        **{name: value for name, value in sizes.items() if value},
    }
    if not options.python:
        # Executors with our interpreter import this very package, wherever it is.
        conf["spark.executorEnv.PYTHONPATH"] = package_path()
    return {**conf, **dict(options.more)}


def package_path() -> str:
    return str(Path(__file__).parents[2])
