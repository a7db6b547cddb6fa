"""Drawn values for rows of a block that keeps its snapshot: they are those that the rows have got in the new primary
index."""

import pytest

from seachange.engine.session.session import Session
from tests.engine.blocks import Sessions, refused, rows
from tests.engine.test_block_drawn_keys import ADDED, LOST, ROWS, SETUP, write_own
from tests.support.judge import inspect

__all__ = ["SETUP"]

pytestmark = pytest.mark.either_catalog

BULK = 3_000


def begin(block: Session) -> None:
    """The snapshot is taken."""
    block.execute("begin isolation level repeatable read")
    assert rows(block, "select count(*) from a") == [(ROWS,)]


def write_others(other: Session, first: int, bulk: bool = False) -> None:
    """Changes, deletes and inserts rows that the block has not written."""
    other.execute(f"update a set y = 'other' where x = {first}")
    other.execute(f"delete from a where x = {first + 1}")
    other.execute(f"insert into a values ({first + 200}, {first + 200}, 'other')")
    if bulk:
        other.execute(f"insert into a select i, i, 'other' from generate_series(5000, {5000 + BULK}) g (i)")


@pytest.mark.parametrize(
    ("added", "bulk"), [*((added, False) for added in ADDED), ("serial unique", True)], ids=[*ADDED, "many rows"]
)
def test_values_of_rows_that_are_still_there_are_the_committed_ones(sessions: Sessions, added: str, bulk: bool):
    block, other = sessions
    begin(block)
    write_own(block, bulk=False)
    write_others(other, 10, bulk)
    for statement in ADDED[added]:
        block.execute(statement)
    write_others(other, 20)
    seen = rows(block, "select x, y, n from a order by x")
    # Own rows, and those of the snapshot.
    assert [(x, y) for x, y, _ in seen] == [
        *((x, "own" if x == 3 else f"r{x}") for x in range(1, ROWS + 1) if x != 4),
        (100, "own"),
    ]
    assert len({n for _, _, n in seen}) == len(seen)
    block.execute("update a set y = 'found' where x = 7")
    block.execute("insert into a (id, x, y) values (101, 101, 'own')")
    block.execute("commit")
    values = {x: n for x, _, n in seen if x not in (11, 21)}
    found = dict(rows(other, "select x, n from a"))
    assert {x: found[x] for x in values} == values
    assert len(set(found.values())) == len(found) == ROWS + 2 - 1 - 2 + 2 + (BULK + 1 if bulk else 0)
    assert rows(other, "select x, y from a where x in (7, 10, 20, 101) order by x") == [
        (7, "found"),
        (10, "other"),
        (20, "other"),
        (101, "own"),
    ]
    assert inspect(block.node) == []


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("change", [ADDED["serial unique"][0], LOST[0]])
def test_row_that_another_session_has_changed_since_the_snapshot_is_a_conflict(
    sessions: Sessions, change: str, moment: str
):
    block, other = sessions
    for write in ("update a set y = 'own' where x = 10", "delete from a where x = 11"):
        begin(block)
        if moment == "before":
            write_others(other, 10)
        block.execute(change)
        if moment == "after":
            write_others(other, 10)
        with refused("40001"):
            block.execute(f"{write}; commit")
        block.execute("rollback")
        other.execute("delete from a where id = 210")
        other.execute("insert into a values (11, 11, 'r11')")
    assert inspect(block.node) == []


@pytest.mark.parametrize("lost", LOST)
def test_table_loses_its_primary_key(sessions: Sessions, lost: str):
    block, other = sessions
    begin(block)
    write_own(block, bulk=False)
    write_others(other, 10)
    block.execute(lost)
    write_others(other, 20)
    assert rows(block, "select x, y from a where x in (3, 4, 10, 11, 20, 21, 210, 220) order by x") == [
        (3, "own"),
        (10, "r10"),
        (11, "r11"),
        (20, "r20"),
        (21, "r21"),
    ]
    block.execute("update a set y = 'found' where x = 7")
    block.execute("commit")
    assert rows(other, "select x, y from a where x in (3, 4, 7, 10, 11, 20, 21, 210, 220) order by x") == [
        (3, "own"),
        (7, "found"),
        (10, "other"),
        (20, "other"),
        (210, "other"),
        (220, "other"),
    ]
    assert inspect(block.node) == []


def test_sequence_moves_on_only_for_rows_that_have_gone(sessions: Sessions):
    block, other = sessions
    begin(block)
    block.execute("alter table a add n serial")
    block.execute("insert into a values (100, 100, 'own')")
    block.execute("commit")
    assert rows(other, "select n from a where id = 100") == [(ROWS + 1,)]


def test_drawn_values_together_with_another_key_are_rejected(sessions: Sessions):
    block, other = sessions
    begin(block)
    with refused("0A000"):
        block.execute("alter table c alter id type text, add column n serial")
    block.execute("rollback")
    other.execute("alter table c alter id type text, add column n serial")
    assert inspect(block.node) == []
