"""The process that reverts a change is killed at every point of it; another node finishes the revert."""

import signal
from contextlib import closing

import pytest

from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.cluster.sqlprocess import SqlProcess
from tests.support.databases import MakePlace, catalog_kind, place_for
from tests.support.judge import inspect
from tests.support.nodes import HOUR_MS, Place
from tests.support.workers import wait_until

__all__ = ["MakePlace", "catalog_kind", "place_for"]

pytestmark = pytest.mark.either_catalog

POINTS = [
    "job.created",
    "job.drained",
    "job.raised",
    "restore.written",
    "restore.done",
    "job.published",
    "job.attached",
]


def prepare(place: Place) -> None:
    with closing(open_node(place.data, place.catalog)) as node, closing(Session(node)) as session:
        for sql in (
            "create table item (id int primary key, a int not null, b text)",
            "insert into item select i, i * 10, 'b' || i from generate_series(1, 200) g(i)",
            "create index item_a on item (a)",
            "alter table item drop column a",
            "update item set b = 'changed' where id <= 50",
        ):
            session.execute(sql)


@pytest.mark.parametrize("fault", POINTS)
def test_another_node_finishes_the_revert(place_for: MakePlace, fault: str):
    place = place_for("data", prepare)
    with closing(open_node(place.data, place.catalog)) as node, closing(Session(node)) as session:
        ((number,),) = session.execute("select max(id) from seachange.changes").rows
    with SqlProcess(place, HOUR_MS, fault) as process:
        process.send(f"revert change {number}")
        assert process.wait() == -signal.SIGKILL, "the fault point was not reached"
    with closing(open_node(place.data, place.catalog, name="survivor")) as node, closing(Session(node)) as session:
        wait_until(lambda: _is_over(node), "the survivor to finish the job")
        found = [tuple(row) for row in session.execute("select id, a from item order by id").rows]
        assert found == [(i, i * 10) for i in range(1, 201)]
        assert [tuple(row) for row in session.execute("select id from item where a = 330").rows] == [(33,)]
        assert inspect(node) == []


def _is_over(node: Node) -> bool:
    return not node.parts.catalog.jobs(unfinished=True)
