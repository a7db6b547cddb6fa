"""Keys on columns whose values are drawn in the same transaction block, and tables that lose their primary key."""

import pytest

from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.schema.descriptor import Table
from tests.engine.blocks import Sessions, begin, refused, rows, run_until_killed
from tests.support.judge import inspect
from tests.support.nodes import Place
from tests.support.workers import wait_until

pytestmark = pytest.mark.either_catalog

ROWS = 50
BULK = 5_000
SETUP = (
    "create table a (id int primary key, x int, y text)",
    "create table c (id int primary key, a int references a)",
    "create index a_x on a (x)",
    f"insert into a select i, i, 'r' || i from generate_series(1, {ROWS}) g (i)",
    "insert into c values (1, 1), (2, 2)",
)
# Statements that take two changes, and those that do the same one by one.
ADDED = {
    "uuid unique": ("alter table a add n uuid unique default gen_random_uuid()",),
    "serial unique": ("alter table a add n serial unique",),
    "identity, then index": (
        "alter table a add n bigint generated always as identity",
        "create index on a (x)",
        "create unique index on a (n)",
    ),
    "primary key in the place of another": (
        "alter table a drop constraint a_pkey cascade, add column n uuid primary key default gen_random_uuid()",
    ),
}
LOST = ["alter table a drop constraint a_pkey cascade", "alter table a drop column id cascade"]


def write_own(block: Session, bulk: bool) -> None:
    block.execute("insert into a values (100, 100, 'own')")
    block.execute("update a set y = 'own' where id = 3")
    block.execute("delete from a where id = 4")
    if bulk:
        block.execute(f"insert into a select i, i, 'own' from generate_series(1001, {1000 + BULK}) g (i)")


def write_others(other: Session) -> None:
    other.execute("insert into a values (200, 200, 'other')")
    other.execute("update a set y = 'other' where id = 5")
    other.execute("update a set x = -x where id between 20 and 30")
    other.execute("delete from a where id = 6")
    other.execute("insert into c values (3, 7)")


def table(session: Session) -> Table:
    """The published version."""
    session.node.read_head()
    return next(t for t in session.node.epoch.schemas.newest.by_id.values() if t.name == "a")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("bulk", [False, True], ids=["few rows", "many rows"])
@pytest.mark.parametrize("added", ADDED)
def test_key_on_drawn_values(sessions: Sessions, added: str, bulk: bool):
    block, other = sessions
    begin(block)
    write_own(block, bulk)
    for statement in ADDED[added]:
        block.execute(statement)
    write_others(other)
    block.execute("insert into a values (101, 101, 'own')")
    ((n,),) = rows(block, "select n from a where x = 7")
    block.execute(f"update a set y = 'found' where n = '{n}'")
    assert rows(other, "select column_name from information_schema.columns where table_name = 'a'") == [
        ("id",),
        ("x",),
        ("y",),
    ]
    kept = rows(block, "select x, n from a where x between 8 and 15 order by x")
    block.execute("commit")
    count = ROWS + 1 + (BULK if bulk else 0)
    for session in sessions:
        assert rows(session, "select count(*), count(distinct n) from a") == [(count, count)]
        assert rows(session, f"select x, y from a where n = '{n}'") == [(7, "found")]
        assert rows(session, "select x, n from a where x between 8 and 15 order by x") == kept
        assert rows(session, "select x, y from a where x in (3, 4, 5, 6, 200) order by x") == [
            (3, "own"),
            (5, "other"),
            (200, "other"),
        ]
    with refused("428C9" if "identity" in added else "23505"):
        other.execute(f"insert into a (id, n) values (300, '{n}')")
    assert inspect(block.node) == []


def test_values_of_rows_that_others_change_are_kept(sessions: Sessions):
    block, other = sessions
    begin(block)
    block.execute("alter table a add n serial")
    before = rows(block, "select id, n from a order by id")
    other.execute("update a set y = 'other' where id < 10")
    other.execute("update a set x = x + 1000")
    assert rows(block, "select id, n from a order by id") == before
    block.execute("commit")
    assert rows(other, "select id, n from a order by id") == before
    assert inspect(block.node) == []


@pytest.mark.parametrize("bulk", [False, True], ids=["few rows", "many rows"])
@pytest.mark.parametrize("lost", LOST)
def test_table_loses_its_primary_key(sessions: Sessions, lost: str, bulk: bool):
    block, other = sessions
    begin(block)
    write_own(block, bulk)
    block.execute(lost)
    write_others(other)
    with refused("23505"):
        other.execute("insert into a values (200, 1, 'other')")
    columns, x = ("x, y", "") if "column" in lost else ("id, x, y", "100, ")
    block.execute(f"insert into a ({columns}) values ({x}100, 'twice')")
    assert rows(block, "select count(*) from a where x = 100") == [(2,)]
    block.execute("commit")
    assert rows(other, "select count(*) from a") == [(ROWS + 1 + (BULK if bulk else 0),)]
    other.execute(f"insert into a ({columns}) values ({x}200, 'twice')")
    assert rows(other, "select y from a where x in (3, 4, 5, 6, 200) order by y") == [
        ("other",),
        ("other",),
        ("own",),
        ("twice",),
    ]
    assert rows(other, "select conname from pg_constraint where conname in ('a_pkey', 'c_a_fkey')") == []
    assert inspect(block.node) == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize("change", [*(first for first, *_ in ADDED.values()), *LOST])
@pytest.mark.parametrize("end", ["rollback", "rollback to s"])
def test_nothing_shows_after_rollback(sessions: Sessions, change: str, end: str):
    block, other = sessions
    begin(block)
    write_own(block, bulk=False)
    block.execute("savepoint s")
    block.execute(change)
    write_others(other)
    block.execute(end)
    left = table(other)
    assert [column.name for column in left.columns] == ["id", "x", "y"]
    assert [index.name for index in (*left.indexes, *left.coming)] == ["a_pkey", "a_x"]
    is_kept = end == "rollback to s"
    if is_kept:
        block.execute("update a set y = y || '!' where id in (3, 5)")
        block.execute("commit")
    own = "own!" if is_kept else "r3"
    assert rows(other, "select id, y from a where id in (3, 5) order by id") == [
        (3, own),
        (5, "other!" if is_kept else "other"),
    ]
    with refused("23505"):
        other.execute("insert into a values (200, 1, 'other')")
    with refused("23503"):
        other.execute("delete from a where id = 1")
    other.execute(change)
    assert inspect(block.node) == []


@pytest.mark.parametrize("change", [*(first for first, *_ in ADDED.values()), LOST[0]])
def test_rows_of_the_block_stay_locked(sessions: Sessions, change: str):
    """Also those that were written before the rows were moved to another index."""
    block, other = sessions
    begin(block)
    block.execute("update a set y = 'own' where id = 3")
    block.execute("select 1 from a where id = 4 for update")
    block.execute(change)
    for id_ in (3, 4):
        other.execute("set lock_timeout = '50ms'")
        with refused("55P03"):
            other.execute(f"update a set y = 'other' where id = {id_}")
    block.execute("commit")
    other.execute("update a set y = y || ' other' where id = 3")
    assert rows(other, "select y from a where x = 3") == [("own other",)]
    assert inspect(block.node) == []


@pytest.mark.parametrize("fault", ["job.attached", "job.published", "block.built"])
@pytest.mark.parametrize("change", [ADDED["serial unique"][0], LOST[0]])
def test_killed_change_leaves_nothing(place: Place, nodes: tuple[Node, Node], change: str, fault: str):
    """Before, at and after the point from which on the rewritten rows stay."""
    run_until_killed(place, fault, f"begin; update a set y = 'own' where id = 3; {change}; commit")
    other = Session(nodes[1])
    wait_until(lambda: len(table(other).columns) == 3 and not table(other).coming, "the change to be reverted")
    assert rows(other, "select count(*), max(y) from a where id between 1 and 50") == [(ROWS, "r9")]
    other.execute(change)
    assert rows(other, "select count(*) from a") == [(ROWS,)]
    other.close()
    assert inspect(nodes[0]) == []


def test_second_column_after_a_lost_key_has_no_key(sessions: Sessions):
    """The rows are on their way to another primary index, so that others do not find the values of the column."""
    block, other = sessions
    begin(block)
    block.execute(LOST[0])
    with refused("0A000"):
        block.execute("alter table a add n serial unique")
    block.execute("rollback")
    other.execute(LOST[0])
    assert inspect(block.node) == []


EARLIER = {
    "column": "alter table a add m int default 5",
    "index": "create index on a (x, y)",
    "foreign key": "alter table a add foreign key (x) references p",
    "child": "alter table c add m int default 5",
}


def change_before(block: Session, earlier: str) -> None:
    """The table, or one that refers to it, is changed, then rows, then a savepoint is set."""
    block.execute("create table p (id int primary key)")
    block.execute("insert into p select i from generate_series(1, 300) g (i)")
    begin(block)
    block.execute(EARLIER[earlier])
    write_own(block, bulk=False)
    block.execute("insert into c values (3, 9)")
    block.execute("savepoint s")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("change", [ADDED["serial unique"][0], LOST[0]])
@pytest.mark.parametrize("earlier", EARLIER)
def test_values_are_drawn_after_other_changes_and_a_savepoint(sessions: Sessions, earlier: str, change: str):
    block, other = sessions
    change_before(block, earlier)
    block.execute(change)
    block.execute("update a set y = 'late' where x = 8")
    other.execute("update a set y = 'other' where x = 5")
    block.execute("commit")
    assert rows(other, "select x, y from a where x in (3, 4, 5, 8, 100) order by x") == [
        (3, "own"),
        (5, "other"),
        (8, "late"),
        (100, "own"),
    ]
    if "serial" in change:
        assert rows(other, "select count(distinct n) from a") == [(ROWS,)]
    assert inspect(block.node) == []


@pytest.mark.parametrize("earlier", EARLIER)
def test_block_goes_back_past_rows_that_it_has_moved(sessions: Sessions, earlier: str):
    """More than once: the rewritten rows stay, and the block's own rows follow them each time."""
    block, other = sessions
    change_before(block, earlier)
    for change in (ADDED["serial unique"][0], LOST[0]):
        block.execute(change)
        block.execute("update a set y = 'undone' where x in (3, 8)")
        block.execute("rollback to s")
        assert rows(block, "select x, y from a where x in (3, 8, 100) order by x") == [
            (3, "own"),
            (8, "r8"),
            (100, "own"),
        ]
    other.execute("update a set y = 'other' where x = 5")
    with refused("23503"):
        block.execute("delete from a where id = 9")
    block.execute("rollback to s")
    block.execute("update a set y = y || '!' where x in (7, 100)")
    block.execute("commit")
    assert rows(other, "select id, y from a where x in (3, 4, 5, 7, 8, 100) order by id") == [
        (3, "own"),
        (5, "other"),
        (7, "r7!"),
        (8, "r8"),
        (100, "own!"),
    ]
    if "default 5" in EARLIER[earlier]:
        assert rows(other, f"select min(m), max(m) from {'a' if earlier == 'column' else 'c'}") == [(5, 5)]
    for bad in ("insert into a (id) values (7)", "delete from a where id = 9"):
        with refused("23505" if "insert" in bad else "23503"):
            other.execute(bad)
    assert inspect(block.node) == []


def test_parent_that_goes_after_the_rows_were_moved_fails_the_block(sessions: Sessions):
    block, other = sessions
    change_before(block, "column")
    block.execute(ADDED["serial unique"][0])
    block.execute("rollback to s")
    other.execute("delete from a where id = 9")
    with refused("40001"):
        block.execute("update a set y = 'own' where id = 7; commit")
    block.execute("rollback")
    assert rows(other, "select count(*) from a") == [(ROWS - 1,)]
    assert inspect(block.node) == []


@pytest.mark.parametrize("place_of_job", [0, 1])
def test_cancelled_job_takes_along_what_is_built_on_it(sessions: Sessions, place_of_job: int):
    """The index on the new column is a second job of the block."""
    block, other = sessions
    begin(block)
    block.execute("alter table a add n serial unique")
    unfinished = "select id from seachange.jobs where status = 'running' order by id"
    jobs = [id_ for (id_,) in rows(other, unfinished)]
    assert len(jobs) == 2
    other.execute(f"select seachange.cancel_job({jobs[place_of_job]})")
    wait_until(lambda: (jobs[place_of_job],) not in rows(other, unfinished), "the job is cancelled")
    assert rows(other, unfinished) == [(job,) for job in jobs[:place_of_job]]
    other.execute("insert into a values (100, 100, 'other')")
    with refused("40001"):
        block.execute("select count(*) from a where n = 1")
    block.execute("rollback")
    assert rows(other, unfinished) == []
    other.execute("update a set y = 'other' where id < 5")
    assert [column.name for column in table(other).columns] == ["id", "x", "y"]
    assert inspect(other.node) == []


@pytest.mark.parametrize("ends", ["before the block", "after the block"])
@pytest.mark.parametrize("bulk", [False, True], ids=["few rows", "many rows"])
@pytest.mark.parametrize("change", [*LOST, "alter table a add n serial"])
def test_writer_of_an_earlier_snapshot_finds_the_rows_that_were_rewritten(
    sessions: Sessions, change: str, bulk: bool, ends: str
):
    block, writer = sessions
    if bulk:
        block.execute(f"insert into a select i, i, 'bulk' from generate_series(1001, {1000 + BULK}) g (i)")
    begin(writer, "repeatable read")
    ((count,),) = rows(writer, "select count(*) from a")
    writer.execute("update a set y = 'early' where x = 10")
    begin(block)
    block.execute(change)
    drawn = rows(block, "select x, n from a order by x") if "serial" in change else []
    writer.execute("update a set y = 'late' where x <> 10")
    writer.execute("delete from a where x = 11")
    for session in sessions if ends == "after the block" else reversed(sessions):
        session.execute("commit")
    found = rows(block, "select count(*), count(distinct x), sum((y = 'late')::int), sum((y = 'early')::int) from a")
    assert found == [(count - 1, count - 1, count - 2, 1)]
    if drawn:
        assert rows(block, "select x, n from a order by x") == [row for row in drawn if row[0] != 11]
    assert inspect(block.node) == []


@pytest.mark.parametrize("change", LOST)
def test_serializable_block_conflicts_with_rows_that_others_write_after_the_rewrite(sessions: Sessions, change: str):
    block, other = sessions
    begin(block, "serializable")
    assert rows(block, "select count(*) from a") == [(ROWS,)]
    block.execute(change)
    block.execute("update a set y = 'own' where x = 1")
    block.execute("savepoint s")
    assert rows(block, "select count(*) from a") == [(ROWS,)]
    other.execute("insert into a values (300, 300, 'other')")
    with refused("40001"):
        block.execute("commit")
    # Without another writer it commits.
    begin(block, "serializable")
    assert rows(block, "select count(*) from a") == [(ROWS + 1,)]
    block.execute(change)
    block.execute("update a set y = 'own' where x = 1")
    block.execute("commit")
    assert rows(other, "select count(*) from a where y = 'own'") == [(1,)]
