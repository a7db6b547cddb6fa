"""A bulk write succeeds on a table where another session commits between every check and the lock."""

from collections.abc import Callable, Iterator

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.runtime.faults import FAULTS
from tests.engine.database import arrow, create, insert, rows

COMMITS = 20


@pytest.fixture
def before_each_commit() -> Iterator[Callable[[Callable[[int], None]], None]]:
    """Runs an action between validation and the sequencer, for the first so many commits."""

    def arrange(action: Callable[[int], None], number: int = 0) -> None:
        def act() -> None:
            FAULTS.disarm()
            action(number)
            if number + 1 < COMMITS:
                arrange(action, number + 1)

        FAULTS.arm("commit.queued", act)

    yield arrange
    FAULTS.disarm()


def test_bulk_insert_on_a_busy_table_commits(node: Node, other: Node, before_each_commit):
    create(node)
    loader = node.begin()
    table = loader.schema.table(None, "t")
    loader.writes.insert_arrow(table, arrow(table, [(i, "bulk", 0) for i in range(100)]))
    committed = []
    before_each_commit(lambda n: committed.append(insert(other, (1_000 + n, "single", n))))
    loader.commit()
    FAULTS.disarm()
    # It took some of the interruptions, and ended long before they did.
    assert 1 < len(committed) < COMMITS
    assert len(rows(node)) == len(rows(other)) == 100 + len(committed)


def test_bulk_insert_that_lists_its_keys_still_conflicts(node: Node, other: Node, before_each_commit):
    create(node)
    loader = node.begin()
    table = loader.schema.table(None, "t")
    loader.writes.insert_arrow(table, arrow(table, [(i, "bulk", 0) for i in range(100)]))
    # The last interruption that can still come in, under the lock, takes a key of the load.
    before_each_commit(lambda n: insert(other, (1_000 + n if n < 4 else 50, "single", n)))
    with pytest.raises(errors.SerializationFailure):
        loader.commit()
    FAULTS.disarm()
    assert [row for row in rows(node) if row[0] == 50] == [(50, "single", 4)]
