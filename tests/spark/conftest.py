"""One Spark application for all tests of a process."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from seachange.pipeline.spark.host import HOST, Application
from seachange.pipeline.spark_options import SparkOptions
from tests.support.databases import MakePlace, catalog_kind, place, place_for

__all__ = ["MakePlace", "catalog_kind", "place", "place_for"]

MASTER = "local[2]"


@pytest.fixture(scope="session")
def spark_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spark") / "spark.log"


@pytest.fixture(scope="session")
def running(spark_log: Path) -> Iterator[Application]:
    """Started once; databases of these tests ask for one like it, and get this one while it is in use."""
    # The JVM looks for Python data sources with the interpreter that the environment names.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with HOST.using(SparkOptions(MASTER, log=spark_log), lambda: None) as application:
        assert isinstance(application, Application)
        yield application
    HOST.stop()


@pytest.fixture
def application(running: Application) -> Application:
    return running


@pytest.fixture(scope="session")
def spark(running: Application) -> SparkSession:
    """A session of a program that uses Spark itself, in the same application."""
    session = SparkSession(running._context)
    session.conf.set("spark.sql.shuffle.partitions", "2")
    return session
