"""Databases that live no longer than their connection."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import seachange
from seachange.runtime.memory_folder import MemoryFolder

OPEN = """
import sys, time
from pathlib import Path
from seachange.runtime.memory_folder import MemoryFolder
folder = MemoryFolder(Path(sys.argv[1]))
folder.data.mkdir()
print("open", flush=True)
sys.stdin.read()
"""


def test_a_folder_is_private_and_removed(tmp_path: Path):
    folder = MemoryFolder(tmp_path)
    assert folder.data.parent.stat().st_mode & 0o077 == 0
    folder.remove()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next_one(tmp_path: Path):
    command = [sys.executable, "-c", OPEN, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        (left,) = tmp_path.iterdir()
        mine = MemoryFolder(tmp_path)
        assert left.exists(), "its process still runs"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    other = MemoryFolder(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([mine.data.parent, other.data.parent])


def test_a_memory_database_works_and_is_gone_when_it_is_closed():
    with seachange.connect(":memory:", autocommit=True) as one, seachange.connect(":memory:", autocommit=True) as two:
        one.execute("create table t (a int)")
        two.execute("create table t (b text)")
        one.execute("insert into t values (1)")
        assert one.execute("select a from t").fetchall() == [(1,)]
        assert two.execute("select b from t").fetchall() == []
        folder = one.session.node.parts.data
        assert folder.exists()
    assert not folder.parent.exists()


def test_a_memory_database_takes_no_catalog(postgres_catalog_url: str):
    with pytest.raises(seachange.Error, match="neither a catalog"):
        seachange.connect(":memory:", catalog=postgres_catalog_url)
