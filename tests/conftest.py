"""Options and fixtures that every test may use."""

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from compat.environment import Unavailable, azurite
from seachange.catalog.open import open_catalog
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.runtime.entropy import SYSTEM_ENTROPY
from seachange.runtime.garbage import freeze_loaded
from tests.support import timing
from tests.support.azurite import AzuriteServer
from tests.support.models import Models
from tests.support.postgres import LocalPostgres
from tests.support.s3 import S3Server, StoreServer
from tests.support.selection import leave_out

# How long an example takes says more about the neighbours than about the code; pytest-timeout ends what hangs. What
# repeats a failure is printed. The suite draws the same examples each time, so that what passed here passes elsewhere;
# `--exhaustive` draws new ones.
settings.register_profile(
    "repeatable", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, database=None
)
settings.register_profile("exploring", settings.get_profile("repeatable"), derandomize=False, print_blob=True)

# A JVM of these tests ends after seconds: optimizing its code and collecting garbage in parallel cost more than they
# save, a third of the processor time.
for variable in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
    os.environ.setdefault(variable, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# A shell that starts the tests in the background lets them ignore Ctrl-C, and the processes that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The server is killed in tests, its machine is not: what it wrote survives without being synced. Pages are not written
# to the log in whole, and new tables not at all: a test creates a database of many small ones.
QUICK = {"full_page_writes": "off", "wal_level": "minimal", "max_wal_senders": "0"}

GARBAGE_THRESHOLDS = (10_000, 10, 50)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--exhaustive",
        action="store_true",
        help="run the exhaustive variants too (tests marked slow)",
    )
    parser.addoption(
        "--s3", action="store_true", help="put the databases of crash and cluster tests into an object store"
    )
    parser.addoption("--rewrite", action="store_true", help="rewrite golden files instead of comparing with them")
    parser.addoption("--random-statements", default="2000", help="how many random statements are compared")
    parser.addoption(timing.OPTION, action="store_true", help="print at the end what the tests of each folder cost")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption(timing.OPTION):
        config.pluginmanager.register(timing.Meter())
    if config.getoption("--exhaustive"):
        settings.load_profile("exploring")
        return
    settings.load_profile("repeatable")
    # Hypothesis also draws constants of all modules that are loaded, which are others in every process of a run.
    none = Constants()
    setattr(providers, "_get_local_constants", lambda: none)  # noqa: B010 - there is no setting for it


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--exhaustive"):
        return
    if left_out := set(leave_out(items)):
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    skip = pytest.mark.skip(reason="an exhaustive variant; run with --exhaustive")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(skip)


def pytest_collection_finish() -> None:
    """What was imported and collected stays until the end, and most of what a test makes ends with it: looking for
    garbage as often as Python does by itself took a tenth of the processor time."""
    freeze_loaded()
    gc.set_threshold(*GARBAGE_THRESHOLDS)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption(timing.OPTION):
        timing.print_times(terminalreporter)


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are rewritten."""
    return bool(request.config.getoption("--rewrite"))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[LocalPostgres]:
    """One real PostgreSQL server for the whole run, in each process that runs tests."""
    with LocalPostgres(fsync=False, settings=QUICK) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_url(postgres_server: LocalPostgres) -> str:
    """The server's maintenance database."""
    return postgres_server.url


@pytest.fixture(scope="session")
def new_catalog_url(postgres_server: LocalPostgres, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with a catalog that no node has used, to be copied: to make its tables takes longer than that."""
    postgres_server.start()
    url = postgres_server.create_database()
    open_catalog(url, tmp_path_factory.mktemp("catalog"), SYSTEM_CLOCK, SYSTEM_ENTROPY).close()
    return url


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """One real S3 server for the whole run, in each process that runs tests of object stores."""
    with S3Server() as server:
        yield server


@pytest.fixture(scope="session")
def azurite_server() -> Iterator[AzuriteServer]:
    """One real server of Azure Blob Storage; it is installed when it is needed first."""
    try:
        program = azurite()
    except Unavailable as problem:
        pytest.skip(f"Azurite: {problem}")
    with AzuriteServer(program) as server:
        yield server


@pytest.fixture(params=["s3", pytest.param("azure", marks=pytest.mark.slow)])
def store_server(request: pytest.FixtureRequest) -> StoreServer:
    """A server of each kind of object store."""
    server: StoreServer = request.getfixturevalue("s3_server" if request.param == "s3" else "azurite_server")
    return server


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    """What tests copy to begin with."""
    return Models(tmp_path_factory.mktemp("models"))


@pytest.fixture
def postgres_catalog_url(postgres_server: LocalPostgres) -> Iterator[str]:
    """A database of this test's own; the server is started again if a test left it down."""
    postgres_server.start()
    url = postgres_server.create_database()
    yield url
    postgres_server.start()
    postgres_server.drop_database(url)
