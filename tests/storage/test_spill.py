"""The DuckDB instances of statements and of sorts."""

import shutil
from contextlib import ExitStack
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from seachange.runtime.process import resident_bytes
from seachange.storage import spill
from seachange.storage.duck import Duck
from seachange.storage.sorter import Sorter
from seachange.storage.spill import IDLE_MAX, KeptInstance, SortLimits, SortPool, sorting_connection, temporary_folder
from tests.storage.samples import Store
from tests.support.workers import wait_until


def test_no_progress_bar_is_drawn(tmp_path: Path):
    """DuckDB draws one over what a command line prints when a query takes long."""
    shown = "select current_setting('enable_progress_bar') and current_setting('enable_progress_bar_print')"
    with sorting_connection(tmp_path) as connection:
        assert connection.execute(shown).fetchall() == [(False,)]
    duck = Duck(tmp_path)
    assert duck.cursor().execute(shown).fetchall() == [(False,)]
    duck.close()


@pytest.fixture
def kept():
    instance = KeptInstance()
    yield instance
    instance.close()


def test_a_kept_instance_is_used_again_and_keeps_nothing(kept: KeptInstance, tmp_path: Path):
    rows = pa.table({"a": [1]})
    for _ in range(2):
        with kept.connect(tmp_path, SortLimits()) as connection:
            connection.execute("create temp table held as select 1")
            connection.register("given", rows)
            (folder,) = tmp_path.glob("sort-*")
    assert list(tmp_path.glob("sort-*")) == [folder]
    with kept.connect(tmp_path, SortLimits()) as connection:
        for name in ("held", "given"):
            with pytest.raises(duckdb.CatalogException):
                connection.execute(f"from {name}")
    kept.close()
    assert not folder.exists()


def test_a_kept_instance_is_as_a_sort_needs_it(kept: KeptInstance, tmp_path: Path):
    settings = "select current_setting('threads'), current_setting('TimeZone'), current_setting('integer_division')"
    for threads in (1, 2):
        with kept.connect(tmp_path, SortLimits(threads=threads)) as connection:
            assert connection.execute(settings).fetchall() == [(threads, "UTC", True)]
    assert len(list(tmp_path.glob("sort-*"))) == 1


@pytest.fixture
def pool():
    made = SortPool()
    yield made
    made.close()


def folders(spill: Path) -> set[Path]:
    return set(spill.glob("sort-*"))


def test_sorts_one_after_the_other_share_a_database(pool: SortPool, tmp_path: Path):
    seen = []
    for _ in range(3):
        with pool.connect(tmp_path) as connection:
            connection.execute("create temp table held as select 1")
            seen.append(folders(tmp_path))
    assert len(seen[0]) == 1
    assert seen == [seen[0]] * 3


def test_sorts_at_the_same_time_do_not(pool: SortPool, tmp_path: Path):
    with ExitStack() as stack:
        for number in range(1, IDLE_MAX + 2):
            stack.enter_context(pool.connect(tmp_path))
            assert len(folders(tmp_path)) == number
    # Of all of them a few are kept.
    assert len(folders(tmp_path)) == IDLE_MAX


def test_failed_instance_is_not_reused(pool: SortPool, tmp_path: Path):
    with pytest.raises(duckdb.Error), pool.connect(tmp_path) as connection:
        connection.execute("select error('no')")
    assert not folders(tmp_path)


def test_instance_with_failed_sorter_is_not_reused(pool: SortPool, tmp_path: Path):
    store = Store(tmp_path / "warehouse")
    with (
        pytest.raises(duckdb.Error),
        Sorter(store.files, tmp_path, store.reserve, connect=pool.connect) as sorter,
    ):
        sorter.ask("select error('no')")
    assert not folders(tmp_path)


def test_failed_kept_instance_is_replaced(kept: KeptInstance, tmp_path: Path):
    with pytest.raises(duckdb.Error), kept.connect(tmp_path, SortLimits()) as connection:
        connection.execute("select error('no')")
    assert not folders(tmp_path)
    with kept.connect(tmp_path, SortLimits()) as connection:
        assert connection.execute("select 1").fetchall() == [(1,)]


def test_failed_open_leaves_nothing(pool: SortPool, tmp_path: Path):
    with pytest.raises(duckdb.Error), pool.connect(tmp_path, SortLimits(threads=-1)):
        pass
    assert not folders(tmp_path)


def test_closed_pool_keeps_no_instance(pool: SortPool, tmp_path: Path):
    with pool.connect(tmp_path):
        pool.close()
    assert not folders(tmp_path)


def test_kept_instance_survives_removal_of_its_folder(kept: KeptInstance, tmp_path: Path):
    """A database may be removed and recreated during the lifetime of a process that sorts for it."""
    limits = SortLimits(memory_bytes_max=32 << 20, threads=1)
    for _ in range(2):
        with kept.connect(tmp_path / "spill", limits) as connection:
            connection.execute(
                "create temp table large as select hash(i) as h, hash(i + 1) as g from range(4000000) r(i)"
            )
            assert connection.execute("select count(*) from (from large order by h, g)").fetchall() == [(4_000_000,)]
        shutil.rmtree(tmp_path / "spill")


def test_ending_sort_does_not_disturb_cleanup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its folder was seen, and is gone when it is looked into."""
    ending = tmp_path / "sort-ending"
    ending.mkdir()
    opened = spill._open_lock

    def end_first(path: Path) -> int:
        if path.parent == ending:
            ending.rmdir()
        return opened(path)

    monkeypatch.setattr(spill, "_open_lock", end_first)
    with temporary_folder(tmp_path) as folder:
        assert folder.exists()


def test_freed_memory_returns_to_the_system(pool: SortPool, tmp_path: Path):
    """DuckDB counts it as free, and would keep it as long as the instance exists."""
    before = resident_bytes()
    with pool.connect(tmp_path) as connection:
        connection.execute("create temp table large as select hash(i) as h, hash(i + 1) as g from range(6000000) r(i)")
        held = resident_bytes() - before
    assert held > 64 << 20
    wait_until(lambda: resident_bytes() - before < held // 2, "memory given back")
