"""The pool of DuckDB instances."""

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from seachange.storage.duck import Duck
from seachange.storage.duck_instances import DuckInstances, InstanceDesign
from tests.support.patience import PATIENCE_S

SMALL = InstanceDesign((("memory_limit", "64MB"), ("threads", "1")))
OTHER = InstanceDesign((("memory_limit", "65MB"), ("threads", "1")))
LIMIT = "SELECT current_setting('memory_limit')"
SPILL_TO = "SELECT current_setting('temp_directory')"


@pytest.fixture
def instances():
    made = DuckInstances(idle_max=2)
    yield made
    made.close_idle()


def test_instance_is_used_again_by_the_next_user(instances: DuckInstances, tmp_path: Path):
    first = instances.take(SMALL, tmp_path / "it's the first")
    assert first.execute(SPILL_TO).fetchall() == [(f"{tmp_path}/it's the first",)]
    instances.give_back(SMALL, first)
    second = instances.take(SMALL, tmp_path / "second")
    assert second is first
    assert second.execute(SPILL_TO).fetchall() == [(f"{tmp_path}/second",)]
    instances.give_back(SMALL, second)


def test_instance_in_use_has_one_user(instances: DuckInstances, tmp_path: Path):
    taken = [instances.take(SMALL, tmp_path) for _ in range(3)]
    assert len({id(connection) for connection in taken}) == 3
    for connection in taken:
        instances.give_back(SMALL, connection)
    # Only the last two are kept.
    with pytest.raises(duckdb.ConnectionException):
        taken[0].execute("SELECT 1")
    assert [instances.take(SMALL, tmp_path) for _ in range(2)] == [taken[2], taken[1]]


def test_instance_of_another_design_is_not_used(instances: DuckInstances, tmp_path: Path):
    instances.give_back(SMALL, instances.take(SMALL, tmp_path))
    other = instances.take(OTHER, tmp_path)
    fresh = instances.take(SMALL, tmp_path)
    assert other.execute(LIMIT).fetchall() != fresh.execute(LIMIT).fetchall()
    for connection in (other, fresh):
        connection.close()


def test_instance_that_has_spilled_is_closed_with_its_blocks(instances: DuckInstances, tmp_path: Path):
    connection = instances.take(SMALL, tmp_path / "blocks")
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE large AS SELECT hash(i) AS h, hash(i + 1) AS g FROM range(8000000) r(i)")
        assert list((tmp_path / "blocks").iterdir())
    instances.give_back(SMALL, connection)
    with pytest.raises(duckdb.ConnectionException):
        connection.execute("SELECT 1")
    assert not list((tmp_path / "blocks").glob("*"))


def test_instance_that_holds_rows_is_closed(instances: DuckInstances, tmp_path: Path):
    design = InstanceDesign(())
    connection = instances.take(design, tmp_path)
    cursor = connection.cursor()
    cursor.execute("CREATE TEMP TABLE held AS SELECT hash(i) AS h FROM range(2000000) r(i)")
    instances.give_back(design, connection)
    assert instances.take(design, tmp_path) is not connection
    cursor.close()


def test_closed_duck_gives_no_cursor_and_its_successor_finds_the_macros(tmp_path: Path):
    for _ in range(2):
        duck = Duck(tmp_path)
        with duck.cursor() as cursor:
            assert cursor.execute("SELECT divided(7, 2), sum_as_declared(1::INTEGER)").fetchall() == [(3, 1)]
        duck.close()
        with pytest.raises(Exception, match="closed"):
            duck.cursor()
        duck.close()


FORKING = r"""
import os, sys
from pathlib import Path
from seachange.storage.duck import Duck
Duck(Path(sys.argv[1])).close()
child = os.fork()
duck = Duck(Path(sys.argv[1]))
# In one piece, since both processes write.
os.write(1, f"{duck.cursor().execute('SELECT 1').fetchall()}\n".encode())
duck.close()
sys.exit(os.waitpid(child, 0)[1] if child else 0)
"""


def test_forked_process_has_no_instance_of_its_parent(tmp_path: Path):
    """At its end it would wait for ever for threads that only the parent has."""
    program = [sys.executable, "-c", FORKING, str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (0, "[(1,)]\n" * 2), done.stderr
