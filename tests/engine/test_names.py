"""Names and tables that several statements want concurrently: one gets them, the other fails at once."""

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.runtime.faults import FAULTS

SETUP = tuple(
    sql
    for table in ("a", "b")
    for sql in (
        f"create table {table} (id int primary key, x int)",
        f"insert into {table} values (1, 1), (2, 2)",
        f"alter table {table} add constraint {table}_x check (x > 0) not valid",
    )
)
PAIRS = [
    ("create index n on a (x)", "create index n on b (x)", "42P07"),
    ("create unique index n on a (x)", "create table n (id int)", "42P07"),
    ("create table n (id int)", "create index n on b (x)", "42P07"),
    ("create table n (id int)", "create table n (id int)", "42P07"),
    ("alter table a rename to n", "alter table b rename to n", "42P07"),
    ("alter table a add constraint n unique (x)", "alter table b add constraint n unique (x)", "42P07"),
    ("alter table a add column n int", "alter table a add column n int", "42701"),
    ("alter table a add column n int unique", "alter table a add column n int", "42701"),
    ("alter table a add constraint n unique (x)", "alter table a add constraint n check (x > 0)", "42710"),
]


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
@pytest.mark.parametrize(("first", "second", "code"), PAIRS)
def test_of_two_that_are_planned_at_the_same_time_one_is_refused(
    nodes: tuple[Node, Node], first: str, second: str, code: str
):
    """The first is planned, the second comes in before its commit, and then the first is planned again."""
    here, there = Session(nodes[0]), Session(nodes[1])
    # The first waits for the second, and the second for the first: that long.
    there.execute("set seachange.drain_timeout = '50ms'")

    def come_in_between() -> None:
        FAULTS.disarm()
        there.execute(second)

    FAULTS.arm("commit.queued", come_in_between)
    with pytest.raises(errors.Error) as caught:
        here.execute(first)
    refused = {caught.value.sqlstate}
    assert refused <= {code, "42P07", "42710"}
    here.close()
    there.close()


def test_two_changes_that_publish_nothing_at_first_do_not_begin_together(nodes: tuple[Node, Node]):
    """VALIDATE CONSTRAINT begins with a wait: what keeps two apart is what they are about."""
    here, there = Session(nodes[0]), Session(nodes[1])

    def come_in_between() -> None:
        FAULTS.disarm()
        there.execute("alter table a drop constraint a_x")

    FAULTS.arm("commit.queued", come_in_between)
    with pytest.raises(errors.Error) as caught:
        here.execute("alter table a validate constraint a_x")
    assert caught.value.sqlstate == "42704"
    here.execute("alter table b validate constraint b_x")
    states = here.execute("select state from seachange.descriptors where name = 'b_x'").rows
    assert list(states) == [("PUBLIC",)]
    here.close()
    there.close()
