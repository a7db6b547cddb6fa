"""Who may read a data folder; that plain connections and silent changes of a fixed password are refused."""

import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import seachange
from seachange.engine.database.backup import back_up, restore

CERTIFY = (
    *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
    *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
)
PRIVATE = {"folders": {0o700}, "files": {0o600}}


def modes(folder: Path) -> dict[str, set[int]]:
    """The permissions of folders and of files, the folder's own among them."""
    found: dict[str, set[int]] = {"folders": {stat.S_IMODE(folder.stat().st_mode)}, "files": set()}
    for path in folder.rglob("*"):
        found["folders" if path.is_dir() else "files"].add(stat.S_IMODE(path.stat().st_mode))
    return found


@pytest.fixture
def wide_umask() -> Iterator[None]:
    before = os.umask(0o000)
    yield
    os.umask(before)


def fill(data: Path) -> None:
    """Rows in the catalog, in segments, and in a file that replaced others."""
    with seachange.connect(data=str(data), autocommit=True) as db:
        db.execute("create table t (id int primary key, name text)")
        db.execute("insert into t select x, 'n' || x from generate_series(1, 20000) s(x)")
        db.execute("insert into t values (0, 'zero')")
        db.execute("vacuum full t")
        assert modes(data) == PRIVATE


@contextmanager
def served(data: Path, *options: str, password: str | None = "secret") -> Iterator[tuple[str, str]]:
    """The port, and what was printed before the server was ready."""
    command = [sys.executable, "-m", "seachange.cli.main", "serve", "--data", str(data), "--listen", "127.0.0.1:0"]
    environment = {name: value for name, value in os.environ.items() if name != "SEACHANGE_PASSWORD"}
    if password is not None:
        environment["SEACHANGE_PASSWORD"] = password
    printed = ""
    with subprocess.Popen(
        [*command, "--http", "off", *options], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            while not (ready := re.search(r"is ready on 127\.0\.0\.1:(\d+)", printed)):
                line = process.stdout.readline()
                assert line, printed
                printed += line
            yield ready.group(1), printed
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def url(port: str, password: str) -> str:
    return f"postgresql://seachange:{password}@127.0.0.1:{port}/seachange"


def test_folder_files_and_backups_are_private_whatever_the_umask(tmp_path: Path, wide_umask: None):
    (tmp_path / "data").mkdir(0o777)
    fill(tmp_path / "data")
    assert modes(tmp_path / "data") == PRIVATE
    back_up(tmp_path / "data", None, tmp_path / "copy")
    assert modes(tmp_path / "copy") == PRIVATE
    restore(tmp_path / "copy", tmp_path / "again", None)
    assert modes(tmp_path / "again") == PRIVATE


def test_group_access_lets_the_group_read(tmp_path: Path, wide_umask: None):
    data = tmp_path / "data"
    with served(data, "--group-access") as (port, _), psycopg.connect(url(port, "secret"), autocommit=True) as db:
        db.execute("create table t (id int primary key)")
        db.execute("insert into t select x from generate_series(1, 20000) s(x)")
        assert modes(data) == {"folders": {0o750}, "files": {0o640}}
    # A session of another program keeps to it.
    with seachange.connect(data=str(data), autocommit=True) as db:
        db.execute("insert into t select x from generate_series(20001, 40000) s(x)")
    assert modes(data) == {"folders": {0o750}, "files": {0o640}}


@pytest.mark.parametrize("command", ["serve", "worker", "sql"])
def test_folder_that_is_open_to_others_is_noticed(tmp_path: Path, command: str):
    fill(tmp_path / "data")
    (tmp_path / "data").chmod(0o755)
    options = ["-c", "select count(*) from t"] if command == "sql" else []
    done = subprocess.run(
        [sys.executable, "-m", "seachange.cli.main", command, "--data", str(tmp_path / "data"), *options],
        capture_output=True,
        text=True,
    )
    assert "has invalid permissions" in done.stderr
    assert "chmod -R go-rwx" in done.stderr
    assert done.returncode == (0 if command == "sql" else 1)
    assert ("20001" in done.stdout) == (command == "sql")


def test_password_that_the_environment_sets_is_not_changed(tmp_path: Path):
    with served(tmp_path) as (port, _), psycopg.connect(url(port, "secret"), autocommit=True) as db:
        for statement in ("alter role seachange password 'new'", "alter role seachange password null"):
            with pytest.raises(psycopg.errors.ObjectInUse, match="environment"):
                db.execute(statement)
        db.execute("create role other login password 'old'")
        db.execute("alter role other password 'new'")


def test_generated_password_can_be_changed(tmp_path: Path):
    with served(tmp_path, password=None) as (port, printed):
        (password,) = re.findall(r"seachange:([0-9a-f]+)@", printed)
        with psycopg.connect(url(port, password), autocommit=True) as db:
            db.execute("alter role seachange password 'new'")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(url(port, password))
        psycopg.connect(url(port, "new")).close()
    assert modes(tmp_path)["files"] == {0o600}


def test_require_tls_refuses_plain_connections(tmp_path: Path):
    made = subprocess.run(
        [*CERTIFY, "-keyout", tmp_path / "key", "-out", tmp_path / "certificate"],
        capture_output=True,
    )
    if made.returncode:
        pytest.skip("there is no openssl to make a certificate")
    options = ("--require-tls", "--tls-cert", str(tmp_path / "certificate"), "--tls-key", str(tmp_path / "key"))
    with served(tmp_path / "data", *options) as (port, _):
        with pytest.raises(psycopg.OperationalError, match="requires encryption"):
            psycopg.connect(url(port, "secret"), sslmode="disable")
        with psycopg.connect(url(port, "secret"), sslmode="require") as db:
            assert db.execute("select 1").fetchone() == (1,)


def test_require_tls_needs_a_certificate(tmp_path: Path):
    command = [sys.executable, "-m", "seachange.cli.main", "serve", "--data", str(tmp_path), "--require-tls"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--tls-cert" in done.stdout
