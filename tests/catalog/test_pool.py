"""The pool of connections to PostgreSQL, when several threads find out at once that it is gone."""

from typing import cast

from seachange.catalog.postgres.connections import Connection, Pool


class Idle:
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class Contended(list[Connection]):
    """Another thread takes all connections as soon as this one has seen some."""

    def __bool__(self) -> bool:
        seen = len(self) > 0
        self.clear()
        return seen


def test_idle_connections_that_another_thread_drops_meanwhile():
    pool, idle = Pool("postgresql://nowhere/none"), [Idle(), Idle()]
    vars(pool)["_idle"] = Contended(cast(list[Connection], idle))
    pool.drop_idle()
    pool.close()
    assert all(connection.closed <= 1 for connection in idle)


def test_idle_connections_are_closed():
    pool, idle = Pool("postgresql://nowhere/none"), [Idle(), Idle()]
    for connection in idle:
        pool.give(cast(Connection, connection))
    pool.drop_idle()
    assert [connection.closed for connection in idle] == [1, 1]
