"""Keys that a block adds and drops again: what others do to them meanwhile does not concern its COMMIT."""

import pytest

from seachange.verify.consistency import check
from tests.engine.blocks import Sessions, begin, refused

SETUP = (
    "create table p (id int primary key)",
    "insert into p select i from generate_series(1, 5) i",
    "create table a (id int primary key, x int, p int)",
    "insert into a select i, i, 1 from generate_series(1, 20) i",
)
BUILD, OWN = "create unique index u on a (x)", "insert into a values (60, 777, 1)"
MANY = "insert into a select i, i, 1 from generate_series(700, 3700) i"
TAKEN = "insert into a values (50, 777, 1)"
REFER, CHILD = "alter table a add constraint f foreign key (p) references p", "insert into a values (60, 1, 3)"

# What the block does, what the other session does, and what drops the key again.
CASES = {
    "own row before": ([OWN, BUILD], TAKEN, "drop index u"),
    "own row after": ([BUILD, OWN], TAKEN, "drop index u"),
    "own file": ([BUILD, MANY], TAKEN, "drop index u"),
    "constraint": (["alter table a add constraint u unique (x)", OWN], TAKEN, "alter table a drop constraint u"),
    "column": ([BUILD, OWN], TAKEN, "alter table a drop column x"),
    "parent gone": ([REFER, CHILD], "delete from p where id = 3", "alter table a drop constraint f"),
    "parent given up": ([REFER, "delete from p where id = 3"], CHILD, "alter table a drop constraint f"),
}


@pytest.mark.parametrize(("own", "others", "drop"), CASES.values(), ids=CASES)
def test_a_key_that_is_dropped_again_conflicts_with_nothing(sessions: Sessions, own: list[str], others: str, drop: str):
    block, other = sessions
    begin(block)
    for sql in own:
        block.execute(sql)
    other.execute(others)
    block.execute(drop)
    block.execute("commit")
    block.node.read_head()
    assert check(block.node) == []


@pytest.mark.parametrize(("own", "others", "drop"), CASES.values(), ids=CASES)
def test_a_key_whose_drop_is_undone_is_compared(sessions: Sessions, own: list[str], others: str, drop: str):
    block, other = sessions
    begin(block)
    for sql in own:
        block.execute(sql)
    other.execute(others)
    for sql in ("savepoint s", drop, "rollback to s"):
        block.execute(sql)
    with refused("40001"):
        block.execute("commit")


def test_a_parent_stays_needed_by_another_foreign_key(sessions: Sessions):
    block, other = sessions
    other.execute("create table b (id int primary key references p)")
    begin(block)
    for sql in (REFER, CHILD, "insert into b values (3)", "alter table a drop constraint f"):
        block.execute(sql)
    other.execute("delete from p where id = 3")
    with refused("40001"):
        block.execute("commit")


def test_a_foreign_key_that_is_added_once_more_is_compared(sessions: Sessions):
    block, other = sessions
    begin(block)
    for sql in (REFER, CHILD, "alter table a drop constraint f", REFER):
        block.execute(sql)
    other.execute("delete from p where id = 3")
    with refused("40001"):
        block.execute("commit")
