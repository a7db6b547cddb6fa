"""Table locks over the wire: what waits is not answered in haste, and errors carry their details."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from seachange.catalog.port import Catalog
from tests.support.serving import serving
from tests.support.workers import wait_until


def test_readers_wait_for_access_exclusive_and_see_what_was_written(tmp_path: Path):
    with serving(tmp_path) as served, ThreadPoolExecutor() as pool:
        catalog = served.node.parts.catalog
        with (
            psycopg.connect(served.url) as locker,
            psycopg.connect(served.url, autocommit=True) as reader,
        ):
            reader.execute("create table t (id int primary key, n int)")
            reader.execute("insert into t values (1, 1)")
            # Answered by the loop itself when it comes again.
            assert [_read_by_key(reader) for _ in range(3)] == [1, 1, 1]
            for read in (_read_by_key, _read_greatest, _copy):
                before = _read_by_key(reader)
                locker.execute("lock table t")
                reading = pool.submit(read, reader)
                _await_wait(catalog, reading)
                locker.execute("update t set n = n + 10")
                locker.commit()
                assert reading.result(60) == before + 10
            locker.execute("lock table t")
            with pytest.raises(psycopg.errors.LockNotAvailable) as caught:
                reader.execute("set lock_timeout = 1; select * from t")
            assert caught.value.diag.message_detail == f"Process holding the lock: {locker.info.backend_pid}."


def _await_wait(catalog: Catalog, reading: Future[int]) -> None:
    wait_until(lambda: catalog.lock_queues().waits or reading.done(), "the reader to wait")
    assert not reading.done()


def _read_by_key(reader: psycopg.Connection) -> int:
    return _number(reader.execute("select n from t where id = %s", (1,), prepare=True).fetchone())


def _read_greatest(reader: psycopg.Connection) -> int:
    return _number(reader.execute("select max(n) + %s from t", (0,), prepare=True).fetchone())


def _number(row: Sequence[Any] | None) -> int:
    assert row is not None
    return int(row[0])


def _copy(reader: psycopg.Connection) -> int:
    with reader.cursor().copy("copy t to stdout") as copy:
        return int(b"".join(map(bytes, copy)).split()[1])
