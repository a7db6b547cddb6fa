"""Changes that rewrite the rows of a table inside a transaction block that keeps its snapshot: it sees the old rows in
the new shape."""

from collections.abc import Callable

import pytest

from seachange.engine.session.session import Session
from tests.engine.blocks import ROWS, begin, ids, indexes, jobs, refused, rows
from tests.engine.test_block_conversions import TO_TEXT, column_type, is_at_rest
from tests.support.judge import inspect

pytestmark = pytest.mark.either_catalog

LEVELS = ["repeatable read", "serializable"]
Begin = Callable[[Session, str], None]


def take_snapshot(block: Session, level: str = LEVELS[0]) -> None:
    begin(block, level)
    assert rows(block, "select count(*) from a where id = 0") == [(0,)]


@pytest.mark.parametrize("bulk", [False, True], ids=["few rows", "many rows"])
@pytest.mark.parametrize("level", LEVELS)
def test_old_rows_are_seen_in_the_new_shape(sessions: tuple[Session, Session], level: str, bulk: bool):
    block, other = sessions
    other.execute("create index known on a (x)")
    take_snapshot(block, level)
    # Before the change, and after it: neither is seen.
    other.execute("update a set x = 9 where id in (60, 61)")
    other.execute("delete from a where id = 70")
    other.execute("insert into a values (300, 8, 'other')")
    block.execute("update a set x = x * 2 where id < 10")
    block.execute("delete from a where id = 4")
    block.execute("insert into a values (200, 7, 'own')")
    if bulk:
        block.execute("insert into a select i, 3, 'bulk' from generate_series(1000, 9000) g (i)")
    block.execute(TO_TEXT)
    other.execute("update a set x = 9 where id = 62")
    other.execute("delete from a where id = 71")
    other.execute("insert into a values (301, 8, 'other')")
    wanted = "select id, x from a where id in (1, 4, 5, 55, 60, 61, 62, 70, 71, 200, 300, 301) order by id"
    assert rows(block, wanted) == [
        *[(1, "v2"), (5, "v10"), (55, "v5"), (60, "v0"), (61, "v1"), (62, "v2"), (70, "v0"), (71, "v1")],
        (200, "v7"),
    ]
    count = ROWS + (8001 if bulk else 0)
    assert rows(block, "select count(*) from a") == [(count,)]
    assert ids(block, "x = 'v10'") == [5]
    assert rows(block, "select x from a where id = 60") == [("v0",)]
    assert (column_type(block), column_type(other)) == ("text", "integer")
    block.execute("update a set x = x || '!' where id in (5, 55)")
    block.execute("insert into a values (201, 'text', 'own')")
    block.execute("delete from a where id = 6")
    if bulk:
        block.execute("update a set y = 'all' where id > 80 and id < 200 or id >= 1000")
    assert ids(block, "x in ('v10!', 'v5!', 'text')") == [5, 55, 201]
    if level == "serializable":
        # It has read rows that others have changed.
        with refused("40001"):
            block.execute("commit")
        assert column_type(block) == "integer"
        assert ids(other, "x = 9")[6:9] == [60, 61, 62]
        assert is_at_rest(other)
        assert inspect(block.node) == []
        return
    block.execute("commit")
    for session in sessions:
        assert rows(session, wanted) == [
            *[(1, "v2"), (5, "v10!"), (55, "v5!"), (60, "v9"), (61, "v9"), (62, "v9"), (200, "v7"), (300, "v8")],
            (301, "v8"),
        ]
        assert ids(session, "x = 'v9'") == [19, 29, 39, 49, 59, 60, 61, 62, 69, 79, 89, 99]
        assert rows(session, "select count(*) from a") == [(count,)]
        assert rows(session, "select count(*) from a where y = 'all'") == [(20 + 8001 if bulk else 0,)]
    assert indexes(other) == {"known"}
    assert jobs(other) == [("succeeded", ""), ("succeeded", "")]
    assert is_at_rest(other)
    assert inspect(block.node) == []


# A change, a query of the new shape and what it finds of ten rows, and what the rows are after the COMMIT.
FORMS = {
    "type": (TO_TEXT, "select id, x, y from a", lambda id_, x, y: (id_, f"v{x}", y)),
    "generated": (
        "alter table a add n int generated always as (x * 2) stored",
        "select id, n, y from a",
        lambda id_, x, y: (id_, x * 2, y),
    ),
    "primary key": (
        "alter table a alter primary key using columns (y)",
        "select id, x, y from a",
        lambda id_, x, y: (id_, x, y),
    ),
    "type of the key": (
        "alter table a alter id type text using 'k' || id",
        "select id, x, y from a",
        lambda id_, x, y: (f"k{id_}", x, y),
    ),
    "other key": (
        "alter table a drop constraint a_pkey, add primary key (y)",
        "select id, x, y from a",
        lambda id_, x, y: (id_, x, y),
    ),
    "several": (
        "alter table a alter x type text using 'v' || x, add n int not null default 5, add unique (y)",
        "select id, x, y from a where n = 5",
        lambda id_, x, y: (id_, f"v{x}", y),
    ),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("form", FORMS)
def test_every_change_that_rewrites_rows_keeps_the_snapshot(sessions: tuple[Session, Session], form: str, level: str):
    block, other = sessions
    sql, query, shown = FORMS[form]
    take_snapshot(block, level)
    known = {i: (i, i % 10, f"r{i}") for i in range(1, ROWS + 1)}
    other.execute("update a set x = 5, y = 'new' where id = 60")
    other.execute("delete from a where id = 70")
    other.execute("insert into a values (300, 8, 'other')")
    block.execute("update a set x = 50 where id = 7")
    block.execute("delete from a where id = 8")
    block.execute(sql)
    other.execute("update a set x = 6 where id = 61")
    other.execute("delete from a where id = 71")
    other.execute("insert into a values (301, 9, 'later')")
    known[7] = (7, 50, "r7")
    del known[8]
    assert sorted(rows(block, query)) == sorted(shown(*row) for row in known.values())
    assert rows(block, f"select count(*) from ({query}) q where y = 'r61'") == [(1,)]
    block.execute("update a set y = 'mine' where y = 'r9'")
    block.execute("delete from a where y = 'r10'")
    known[9] = (9, 9, "mine")
    del known[10]
    assert sorted(rows(block, query)) == sorted(shown(*row) for row in known.values())
    if level == "serializable":
        with refused("40001"):
            block.execute("commit")
        assert rows(other, "select x, y from a where id in (7, 8, 9) order by id") == [(7, "r7"), (8, "r8"), (9, "r9")]
    else:
        block.execute("commit")
        known |= {60: (60, 5, "new"), 61: (61, 6, "r61"), 300: (300, 8, "other"), 301: (301, 9, "later")}
        del known[70], known[71]
        for session in sessions:
            assert sorted(rows(session, query)) == sorted(shown(*row) for row in known.values())
    assert is_at_rest(other)
    assert inspect(block.node) == []


# What the block does after the change, to a row that another session has changed between the snapshot and the change.
CONFLICTS = {
    "update": "update a set y = y || '!' where y = 'r60'",
    "delete": "delete from a where y = 'r60'",
    "bulk update": "update a set y = y || '!' where y like 'r%'",
    "bulk delete": "delete from a where y like 'r%'",
    "lock": "select 1 from a where y = 'r60' for update",
    "insert": "insert into a (id, y) values ({300}, 'other')",
    "bulk insert": "insert into a (id, y) select {i}, 'r' || i from generate_series(300, 30000) g (i)",
}
CHANGED = {"update": "update a set x = 5 where id = 60", "delete": "delete from a where id = 60"}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("form", ["type", "primary key", "type of the key"])
@pytest.mark.parametrize("changed", CHANGED)
@pytest.mark.parametrize("written", CONFLICTS)
def test_row_that_another_session_has_changed_is_a_conflict(
    sessions: tuple[Session, Session], form: str, changed: str, written: str
):
    block, other = sessions
    take_snapshot(block)
    other.execute(CHANGED[changed])
    other.execute("insert into a values (300, 8, 'other'), (302, 8, 'r301')")
    block.execute(FORMS[form][0])
    # Those that others have inserted have the same key; with another primary key it is not the id.
    id_ = {"type": "{}", "primary key": "{} + 100000", "type of the key": "'k' || {}"}[form]
    with refused("40001"):
        block.execute(CONFLICTS[written].replace("{300}", id_.format("300")).replace("{i}", id_.format("i")))
        block.execute(f"insert into a (id, y) values ({id_.format('99999')}, 'own')")
        block.execute("commit")
    block.execute("rollback")
    assert is_at_rest(other)
    assert rows(other, "select id from a where id >= 300 order by id") == [(300,), (302,)]
    assert inspect(block.node) == []


def test_commits_of_rows_that_were_not_read_are_no_conflict(sessions: tuple[Session, Session]):
    block, other = sessions
    take_snapshot(block, "serializable")
    other.execute("update a set x = 5 where id = 60")
    block.execute(TO_TEXT)
    other.execute("update a set x = 6 where id = 61")
    assert rows(block, "select x from a where id = 9") == [("v9",)]
    assert ids(block, "y = 'r60'") == [60]
    block.execute("update a set x = 'mine' where id = 9")
    # The row is as it was read, but for a column that the condition does not ask for.
    with refused("40001"):
        block.execute("commit")
    take_snapshot(block, "serializable")
    other.execute("update a set x = 7 where id = 60")
    block.execute(TO_TEXT)
    other.execute("update a set x = 8 where id = 61")
    assert rows(block, "select x from a where id = 9") == [("v9",)]
    block.execute("update a set x = 'mine' where id = 9")
    block.execute("commit")
    assert rows(other, "select id, x from a where id in (9, 60, 61) order by id") == [
        (9, "mine"),
        (60, "v7"),
        (61, "v8"),
    ]
    assert inspect(block.node) == []


def test_key_that_was_looked_for_in_vain_is_read(sessions: tuple[Session, Session]):
    block, other = sessions
    take_snapshot(block, "serializable")
    other.execute("insert into a values (300, 8, 'other')")
    block.execute("alter table a alter id type text using 'k' || id")
    assert rows(block, "select x from a where id = 'k300'") == []
    block.execute("update a set x = 77 where id = 'k9'")
    with refused("40001"):
        block.execute("commit")
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
def test_savepoints_and_several_changes(sessions: tuple[Session, Session], level: str):
    block, other = sessions
    take_snapshot(block, level)
    other.execute("insert into a values (300, 8, 'other')")
    block.execute("delete from a where id = 4")
    block.execute("update a set x = 50 where id = 5")
    block.execute("savepoint s")
    block.execute(TO_TEXT)
    block.execute("update a set x = x || '!' where id in (5, 6)")
    block.execute("delete from a where id = 7")
    assert rows(block, "select id, x from a where id < 9 and id > 3 order by id") == [
        (5, "v50!"),
        (6, "v6!"),
        (8, "v8"),
    ]
    block.execute("rollback to s")
    assert rows(block, "select id, x from a where id < 9 and id > 3 order by id") == [(5, 50), (6, 6), (7, 7), (8, 8)]
    block.execute(TO_TEXT)
    block.execute("delete from a where id = 7")
    block.execute("savepoint t")
    # A change without new rows, one with, a second key.
    block.execute("alter table a drop y, add column b int default 3")
    block.execute("alter table a alter x type int using substr(x, 2)::int * 2")
    block.execute("update a set x = x + 1 where id in (5, 8)")
    block.execute("alter table a alter primary key using columns (id, b)")
    other.execute("insert into a values (301, 9, 'later')")
    wanted = [(3, 6, 3), (5, 101, 3), (6, 12, 3), (8, 17, 3)]
    assert rows(block, "select id, x, b from a where id < 9 and id > 2 order by id") == wanted
    assert rows(block, "select count(*) from a") == [(ROWS - 2,)]
    block.execute("savepoint u")
    block.execute("create index i on a (x)")
    block.execute("delete from a where id = 3")
    block.execute("rollback to u")
    assert rows(block, "select id, x, b from a where id < 9 and id > 2 order by id") == wanted
    if level == "serializable":
        with refused("40001"):
            block.execute("commit")
        assert rows(other, "select id, x from a where id < 9 and id > 3 order by id") == [
            (4, 4),
            (5, 5),
            (6, 6),
            (7, 7),
            (8, 8),
        ]
    else:
        block.execute("commit")
        assert rows(other, "select id, x, b from a where id < 9 and id > 2 order by id") == wanted
        assert rows(other, "select id, x, b from a where id > 200 order by id") == [(300, 16, 3), (301, 18, 3)]
        assert rows(other, "select count(*) from a") == [(ROWS,)]
    assert is_at_rest(other)
    assert inspect(block.node) == []


# What makes all rows fit, what makes one unfit, the change, and what it says of that row.
UNFIT = {
    "value": ("update a set y = id", "y = 'bad'", "alter table a alter y type int using y::int", "22P02"),
    "null": ("update a set x = id", "x = null", "alter table a alter primary key using columns (x)", "23502"),
    "duplicate": ("update a set x = id", "x = 2", "alter table a alter primary key using columns (x)", "23505"),
}


# Two committed rows never have the same new primary key.
FITTED = [
    (unfit, corrected) for unfit in UNFIT for corrected in (False, True) if (unfit, corrected) != ("duplicate", True)
]


@pytest.mark.parametrize(("unfit", "corrected"), FITTED)
def test_rows_of_the_snapshot_have_to_fit(sessions: tuple[Session, Session], unfit: str, corrected: bool):
    block, other = sessions
    sql, unfitting, change, code = UNFIT[unfit]
    other.execute(sql)
    other.execute(f"update a set {unfitting} where id = 4")
    take_snapshot(block)
    if corrected:
        block.execute("delete from a where id = 4")
        block.execute(change)
        assert rows(block, "select count(*) from a") == [(ROWS - 1,)]
        block.execute("commit")
        assert rows(other, "select count(*) from a") == [(ROWS - 1,)]
    else:
        other.execute("update a set x = 4, y = '4' where id = 4")
        with refused(code):
            block.execute(change)
        assert jobs(other) == []
        block.execute("rollback")
    assert is_at_rest(other)
    assert inspect(block.node) == []


@pytest.mark.parametrize("begins", [take_snapshot, begin], ids=["after a query", "at first"])
@pytest.mark.parametrize("level", LEVELS)
def test_drawn_values_are_kept_by_the_next_change(sessions: tuple[Session, Session], level: str, begins: Begin):
    block, other = sessions
    begins(block, level)
    block.execute("alter table a add n float8 not null default random()")
    drawn = rows(block, "select id, n from a order by id")
    block.execute(TO_TEXT)
    assert rows(block, "select count(distinct n), max(x) from a") == [(ROWS, "v9")]
    assert rows(block, "select id, n from a order by id") == drawn
    block.execute("commit")
    assert rows(other, "select id, n from a order by id") == drawn
    assert inspect(block.node) == []


@pytest.mark.parametrize("values", ["5, 'r6'", "6, 'r5'"], ids=["primary key", "unique key"])
def test_parent_that_another_session_has_deleted_gets_no_child(sessions: tuple[Session, Session], values: str):
    block, other = sessions
    other.execute("alter table a add unique (y)")
    other.execute("create table child (id int primary key, a_id int references a, y text references a (y))")
    take_snapshot(block)
    other.execute("delete from a where id = 5")
    block.execute(TO_TEXT)
    block.execute(f"insert into child values (1, {values})")
    with refused("40001"):
        block.execute("commit")
    # One that was changed otherwise is there.
    take_snapshot(block)
    other.execute("update a set x = 99 where id = 6")
    block.execute(TO_TEXT)
    block.execute("insert into child values (1, 6, 'r6')")
    block.execute("commit")
    assert rows(other, "select a_id from child join a on a.id = a_id") == [(6,)]
    assert inspect(block.node) == []


@pytest.mark.parametrize("end", ["commit", "rollback", "rollback to s"])
def test_files_of_the_copy_go_with_the_transaction(sessions: tuple[Session, Session], end: str):
    block, other = sessions
    files = block.node.parts.files
    before = set(files.names())
    take_snapshot(block)
    block.execute("savepoint s")
    block.execute(TO_TEXT)
    during = set(files.names()) - before
    block.execute(end)
    if end == "rollback to s":
        block.execute("commit")
    block.node.collect_garbage(0)
    other.node.collect_garbage(0)
    # The new primary index, of which the block had a copy.
    assert len(during) == 2
    assert len(set(files.names()) - before) == (1 if end == "commit" else 0)
