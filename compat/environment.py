"""Environments of the clients, installed under `.compat` on demand with pinned versions; separate from the project's
own."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tests.support.postgres import Account, PostgresFailed, find_binaries

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".compat"
HERE = Path(__file__).resolve().parent
PSQL_VERSION = 18
# The oldest Java that runs a program from its source.
JAVA_VERSION_MIN = 11
INSTALL_SECONDS_MAX = 300


class Unavailable(Exception):
    """A client is not available on this machine: it is skipped, and the table gives the reason."""


@cache
def python() -> Path:
    """The interpreter with the drivers and tools written in Python."""
    folder = HOME / "python"
    _make_once(folder, HERE / "requirements.txt", _create_python)
    return folder / "bin" / "python"


@cache
def dbt() -> Path:
    """The interpreter with dbt."""
    folder = HOME / "dbt"
    _make_once(folder, HERE / "dbt-requirements.txt", _create_python)
    return folder / "bin" / "python"


@cache
def iceberg() -> Path:
    """The interpreter with DuckDB and its extensions for Iceberg."""
    folder = HOME / "iceberg"
    _make_once(folder, HERE / "iceberg-requirements.txt", _create_python)
    return folder / "bin" / "python"


@cache
def iceberg_spark() -> Path:
    """The interpreter with Spark 3.5 and Iceberg's classes for it."""
    folder = HOME / "iceberg-spark"
    _make_once(folder, HERE / "iceberg-spark-requirements.txt", _create_python)
    return folder / "bin" / "python"


def _create_python(folder: Path, requirements: Path) -> None:
    venv.create(folder, clear=True, with_pip=True)
    _run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", requirements])


@cache
def node() -> Path:
    """The folder of npm's packages."""
    return _packages(HOME / "node", HERE / "package.json")


@cache
def azurite() -> Path:
    """The program that serves Azure Blob Storage."""
    return _packages(HOME / "azurite", HERE / "azurite.json") / ".bin" / "azurite-blob"


def _packages(folder: Path, package: Path) -> Path:
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise Unavailable("there is no Node.js here")
    _make_once(folder, package, _create_node)
    return folder / "node_modules"


def _create_node(folder: Path, package: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(package, folder / "package.json")
    # What is pinned is pinned by package.json; scripts of packages have nothing to do here.
    options = ("--no-package-lock", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--silent")
    _run(["npm", "install", *options], folder)


@cache
def java() -> Path:
    found = shutil.which("java")
    if found is None:
        raise Unavailable("there is no Java here")
    shown = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    version = shown.partition('"')[2].partition(".")[0]
    if not version.isdecimal() or int(version) < JAVA_VERSION_MIN:
        raise Unavailable(f"Java {JAVA_VERSION_MIN} or newer is needed")
    return Path(found)


@cache
def jars() -> Path:
    """The folder of Liquibase's libraries, including PostgreSQL's JDBC driver."""
    return node() / "liquibase" / "dist" / "liquibase" / "internal" / "lib"


@cache
def psql() -> Path:
    try:
        return find_binaries(PSQL_VERSION, HOME, Account()) / "psql"
    except PostgresFailed as problem:
        raise Unavailable(str(problem)) from problem


@cache
def pgbench() -> Path:
    found = shutil.which("pgbench")
    if found is None:
        raise Unavailable("there is no pgbench here (Debian: postgresql-contrib)")
    return Path(found)


def _make_once(folder: Path, pins: Path, create: Callable[[Path, Path], None]) -> None:
    """Creates an environment if it is missing or its pins have changed."""
    wanted = hashlib.sha256(pins.read_bytes() + sys.version.encode()).hexdigest()
    stamp = folder / ".stamp"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    HOME.mkdir(exist_ok=True)
    # The folder hides itself from git.
    (HOME / ".gitignore").write_text("*\n")
    create(folder, pins)
    stamp.write_text(wanted)


def _run(command: list[str | Path], folder: Path | None = None) -> None:
    # Pins of the project are not those of the clients.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_CONSTRAINT")}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=INSTALL_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable("its packages cannot be installed in time") from None
    if done.returncode != 0:
        raise Unavailable(f"its packages cannot be installed: {' '.join(done.stderr.split()[-30:])}")
