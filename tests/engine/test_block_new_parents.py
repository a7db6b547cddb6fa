"""Foreign keys from a table with rows to one that the same transaction block has created or emptied: other sessions do
not know the parent, so that their rows are recorded, and looked at again by the COMMIT of the block."""

from contextlib import closing

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.engine.blocks import LEVELS, Sessions, begin, is_valid, refused, rows, run_until_killed
from tests.engine.test_block_foreign_key import children, fails_for, keys
from tests.support.judge import inspect
from tests.support.nodes import Place

pytestmark = pytest.mark.either_catalog

SETUP = (
    "create table c (id int primary key, p int)",
    "create table old (id int primary key, u int unique)",
    "insert into c values (1, 1), (2, 2)",
    "insert into old values (1, 10), (8, 80)",
)
NEW = "create table p (id int primary key, u int unique)"
PARENTS = "insert into p values (1, 10), (2, 20), (3, 30)"
ADD = "alter table c add constraint f foreign key (p) references p"
BULK = 3_000
# That it reads rows of the child would be a conflict of its own.
ALL_LEVELS = [*LEVELS, "serializable"]


def create_again(session: Session) -> None:
    for table in ("p", "c", "old"):
        session.execute(f"drop table if exists {table} cascade")
    for statement in SETUP:
        session.execute(statement)


def start(block: Session, level: str = LEVELS[0]) -> None:
    """Up to the foreign key, by a block that has read before."""
    begin(block, level)
    assert rows(block, "select id from old order by id") == [(1,), (8,)]
    for statement in (NEW, PARENTS, ADD):
        block.execute(statement)


def at_rest(session: Session) -> bool:
    """Nothing is left of the block: neither the foreign key nor a job."""
    return keys(session) == [] and rows(session, "select count(*) from seachange.jobs where status = 'running'") == [
        (0,)
    ]


FORMS = {
    "key": [NEW, PARENTS, ADD],
    "key of an index that was added": [
        "create table p (id int primary key, u int)",
        PARENTS,
        "alter table p add unique (u)",
        "update c set p = 10 * p",
        "alter table c add constraint f foreign key (p) references p (u)",
    ],
    "new column": [
        NEW,
        PARENTS,
        "alter table c add column q int",
        "update c set q = p",
        "alter table c add constraint f foreign key (q) references p",
    ],
    "new column with a default": [NEW, PARENTS, "alter table c add column q int default 3 constraint f references p"],
    "validated later": [NEW, PARENTS, f"{ADD} not valid", "alter table c validate constraint f"],
    "renamed parent": [
        NEW.replace("table p", "table before"),
        PARENTS.replace("into p", "into before"),
        "alter table before rename to p",
        ADD,
    ],
    "two keys": [NEW, PARENTS, ADD, "alter table c add constraint g foreign key (p) references p on delete cascade"],
    "renamed after": [
        NEW.replace("table p", "table before"),
        PARENTS.replace("into p", "into before"),
        ADD.replace("references p", "references before"),
        "alter table before rename to p",
        "alter table p add note text default 'n'",
        "create index on p (note)",
        "create index on c (p)",
        "alter table c add note text",
    ],
    "emptied parent": [
        "alter table old rename to p",
        "truncate p",
        PARENTS,
        ADD,
    ],
    "parents inserted after": [NEW, "insert into p values (1, 1), (2, 2)", ADD, "insert into p values (3, 30)"],
}


@pytest.mark.parametrize("level", LEVELS)
def test_forms(sessions: Sessions, level: str):
    for form in FORMS:
        run_form(*sessions, form, level)
        assert inspect(sessions[0].node) == [], form
        create_again(sessions[0])


def run_form(block: Session, other: Session, form: str, level: str) -> None:
    begin(block, level)
    assert len(children(block)) == 2
    for statement in FORMS[form]:
        block.execute(statement)
    column, good = "q" if "new column" in form else "p", 30 if "index" in form else 3
    block.execute("savepoint s")
    for bad in (f"insert into c (id, {column}) values (50, 50)", f"update c set {column} = 50"):
        with refused("23503"):
            block.execute(bad)
        block.execute("rollback to s")
    block.execute(f"insert into c (id, {column}) values (3, {good})")
    assert keys(other)[0][0] == "f"
    assert rows(other, "select conname from pg_constraint where contype = 'f'") == []
    other.execute("insert into c (id) values (4)")
    block.execute("commit")
    assert rows(other, f"select {column} from c where id = 3") == [(good,)]
    assert is_valid(other, "f")
    with refused("23503"):
        other.execute(f"insert into c (id, {column}) values (50, 50)")
    if form != "two keys":
        with refused("23503"):
            other.execute("delete from p where id = 3")


@pytest.mark.parametrize("level", LEVELS)
def test_row_without_a_parent_fails_the_statement(sessions: Sessions, level: str):
    block, other = sessions
    begin(block, level)
    block.execute(NEW)
    block.execute("savepoint s")
    with refused("23503"):
        block.execute(ADD)
    block.execute("rollback to s")
    block.execute("insert into p values (1, 10)")
    block.execute("delete from c where p = 2")
    block.execute(ADD)
    block.execute("commit")
    assert children(other) == [(1, 1)]
    assert inspect(block.node) == []


OTHERS = {
    "row": "insert into c values ({id}, {p})",
    "changed row": "update c set p = {p} where id = 1",
    "rows": f"insert into c select i, {{p}} from generate_series({{id}}, {{id}} + {BULK}) g (i)",
}


@pytest.mark.parametrize("level", ALL_LEVELS)
def test_rows_of_others_are_looked_at_again(sessions: Sessions, level: str):
    """They refer to a parent that only the block knows, and that was inserted before the foreign key or after it."""
    block, other = sessions
    for sql in OTHERS.values():
        start(block, level)
        block.execute("insert into p values (4, 40)")
        for parent in (3, 4):
            other.execute(sql.format(id=10_000 * parent, p=parent))
        block.execute("commit")
        assert rows(other, "select count(*) from c left join p on c.p = p.id where p.id is null") == [(0,)]
        with refused("23503"):
            other.execute(sql.format(id=90_000, p=9))
        assert inspect(block.node) == []
        create_again(block)


@pytest.mark.parametrize("level", ALL_LEVELS)
def test_rows_of_others_without_a_parent_fail_the_block(sessions: Sessions, level: str):
    block, other = sessions
    for sql in OTHERS.values():
        start(block, level)
        other.execute(sql.format(id=10_000, p=3))
        other.execute(sql.format(id=90_000, p=9))
        fails_for(block, "commit", "(p)=(9)")
        assert at_rest(other)
        create_again(block)
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
def test_violation_that_is_gone_again_is_none(sessions: Sessions, level: str):
    block, other = sessions
    start(block, level)
    other.execute("insert into c values (9, 9), (8, 8)")
    other.execute("delete from c where id = 9")
    other.execute("update c set p = 1 where id = 8")
    block.execute("commit")
    assert children(other) == [(1, 1), (2, 2), (8, 1)]
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("others", LEVELS)
def test_open_writer_is_checked_after_the_commit(sessions: Sessions, level: str, others: str):
    """Its row was recorded when the parent was not known to it."""
    block, other = sessions
    for parent, code in ((3, None), (9, "23503")):
        begin(block, level)
        block.execute(NEW)
        block.execute(PARENTS)
        begin(other, others)
        # The block does not wait for it: it has not used the table.
        other.execute("select 1")
        block.execute(ADD)
        other.execute(f"insert into c values ({parent}, {parent})")
        block.execute("commit")
        if code is None:
            other.execute("commit")
        else:
            with refused(code):
                other.execute("commit")
            other.execute("rollback")
        assert children(block) == [(1, 1), (2, 2), (3, 3)]
        block.execute("drop table p cascade")
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
def test_writer_that_began_before_is_checked_after_the_commit(sessions: Sessions, level: str):
    block, other = sessions
    block.execute("set seachange.drain_timeout = '50ms'")
    for parent, code in ((3, None), (9, "23503")):
        begin(other)
        other.execute(f"insert into c values ({parent}, {parent})")
        start(block, level)
        block.execute("commit")
        if code is None:
            other.execute("commit")
        else:
            with refused(code):
                other.execute("commit")
            other.execute("rollback")
        block.execute("drop table p cascade")
    assert children(other) == [(1, 1), (2, 2), (3, 3)]
    assert inspect(block.node) == []


# What becomes of a row of another session that refers to a parent which the block deletes, by the action: an error, or
# what is left of the row.
DELETED = {
    "": "23503",
    " on delete cascade": [(1, 1), (2, 2)],
    " on delete set null": [(1, 1), (2, 2), (9, None)],
}


@pytest.mark.parametrize("action", DELETED)
def test_parent_that_the_block_deletes_after_a_row_of_others(sessions: Sessions, action: str):
    block, other = sessions
    begin(block)
    for statement in (NEW, PARENTS, f"{ADD}{action}"):
        block.execute(statement)
    other.execute("insert into c values (9, 3)")
    expected = DELETED[action]
    if isinstance(expected, str):
        with refused(expected):
            block.execute("delete from p where id = 3")
        block.execute("rollback")
        assert at_rest(other)
        return
    block.execute("delete from p where id = 3")
    block.execute("commit")
    assert children(other) == expected
    assert inspect(block.node) == []


@pytest.mark.parametrize("action", DELETED)
def test_parent_that_the_block_deletes_under_a_row_that_it_does_not_see(sessions: Sessions, action: str):
    block, other = sessions
    begin(block, "repeatable read")
    assert len(children(block)) == 2
    for statement in (NEW, PARENTS, f"{ADD}{action}"):
        block.execute(statement)
    other.execute("insert into c values (9, 3)")
    block.execute("savepoint s")
    fails_for(block, "delete from p where id = 3", "(id)=(3)")
    block.execute("rollback to s")
    block.execute("commit")
    assert children(other) == [(1, 1), (2, 2), (9, 3)]
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("action", DELETED)
def test_parent_that_the_block_deletes_before_a_row_of_others(sessions: Sessions, action: str, level: str):
    block, other = sessions
    begin(block, level)
    for statement in (NEW, PARENTS, f"{ADD}{action}", "delete from p where id = 3"):
        block.execute(statement)
    other.execute("insert into c values (9, 3)")
    fails_for(block, "commit", "(p)=(3)")
    assert children(other) == [(1, 1), (2, 2), (9, 3)]
    assert at_rest(other)
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
def test_own_rows_are_moved_under_the_key(sessions: Sessions, level: str):
    block, other = sessions
    start(block, level)
    block.execute("savepoint s")
    for bad in ("delete from p where id = 2", "update p set id = 5 where id = 2", "truncate p"):
        with pytest.raises(errors.Error):
            block.execute(bad)
        block.execute("rollback to s")
    block.execute("delete from c where p = 2")
    block.execute("delete from p where id = 2")
    block.execute("update p set id = 7 where id = 3")
    block.execute("insert into c values (7, 7)")
    block.execute("commit")
    assert children(other) == [(1, 1), (7, 7)]
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
def test_savepoints(sessions: Sessions, level: str):
    block, other = sessions
    begin(block, level)
    block.execute("savepoint a")
    block.execute(NEW)
    block.execute("savepoint b")
    block.execute(PARENTS)
    block.execute(ADD)
    for name in ("b", "a"):
        block.execute(f"rollback to {name}")
        assert at_rest(other)
        other.execute("insert into c values (9, 9)")
        other.execute("delete from c where id = 9")
        if name == "a":
            block.execute(NEW)
        block.execute(PARENTS)
        block.execute(ADD)
    block.execute("savepoint c")
    block.execute("insert into p values (9, 90)")
    other.execute("insert into c values (9, 9)")
    block.execute("drop table p cascade")
    block.execute("rollback to c")
    fails_for(block, "commit", "(p)=(9)")
    assert children(other) == [(1, 1), (2, 2), (9, 9)]
    assert at_rest(other)
    assert inspect(block.node) == []


def test_rollback_leaves_nothing(sessions: Sessions):
    block, other = sessions
    for form in FORMS.values():
        begin(block)
        for statement in form:
            block.execute(statement)
        other.execute("insert into c (id, p) values (9, 9)")
        block.execute("rollback")
        assert at_rest(other)
        other.execute("delete from c where id = 9")
        assert rows(other, "select id from old order by id") == [(1,), (8,)]
        with refused("42P01"):
            other.execute("select * from p")
    other.execute("alter table c add constraint f check (id < 100)")
    assert inspect(block.node) == []


def test_dropped_key_and_dropped_parent_do_not_count(sessions: Sessions):
    block, other = sessions
    for drop in ("alter table c drop constraint f", "drop table p cascade"):
        start(block)
        block.execute(drop)
        block.execute("insert into c values (5, 5)")
        block.execute("commit")
        assert at_rest(other)
        other.execute("drop table if exists p")
        other.execute("delete from c where id = 5")
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("parent", ["old", "p"])
def test_later_default_of_a_new_column_is_not_stored_by_others(sessions: Sessions, level: str, parent: str):
    """The foreign key was not validated, since rows without the column read as NULL."""
    block, other = sessions
    begin(block, level)
    block.execute(NEW)
    block.execute(f"alter table c add column q int references {parent}")
    block.execute("alter table c alter q set default 5")
    block.execute("create index on c (p)")
    other.execute("insert into c (id, p) values (9, 9)")
    block.execute("commit")
    assert rows(other, "select q from c where id = 9") == [(None,)]
    with refused("23503"):
        other.execute("insert into c (id, p) values (10, 10)")
    assert inspect(block.node) == []


@pytest.mark.parametrize("sql", [ADD, "create index on c (p)", "alter table c add check (p < 50)"])
def test_table_is_dropped_after_a_change_over_its_rows(sessions: Sessions, sql: str):
    block, other = sessions
    begin(block)
    for statement in (NEW, PARENTS, sql, "drop table c", "create table c as select 1 as id"):
        block.execute(statement)
    block.execute("commit")
    assert rows(other, "select * from c") == [(1,)]
    assert inspect(block.node) == []


def test_other_sessions_see_nothing_of_it(sessions: Sessions):
    block, other = sessions
    start(block)
    assert rows(other, "select count(*) from information_schema.referential_constraints") == [(0,)]
    assert rows(other, "select count(*) from pg_class where relname = 'p'") == [(0,)]
    other.execute("explain (verbose) insert into c values (9, 9)")
    other.execute("comment on table c is 'children'")
    other.execute("grant select on c to public")
    assert inspect(other.node) == []
    block.execute("commit")
    assert rows(other, "select obj_description('c'::regclass)") == [("children",)]
    assert inspect(block.node) == []


def test_key_of_several_columns(sessions: Sessions):
    """With MATCH FULL, of a new table without a key of its own, deferred to the end of a transaction."""
    block, other = sessions
    other.execute("alter table c add q text")
    other.execute("update c set q = 'r' || id")
    begin(block)
    block.execute("create table p (a text, b int, unique (b, a))")
    block.execute("insert into p select 'r' || i, i from generate_series(1, 3) g (i)")
    key = "foreign key (q, p) references p (a, b) match full deferrable initially deferred"
    block.execute(f"alter table c add constraint f {key}")
    other.execute("insert into c values (3, 3, 'r3'), (4, null, null)")
    block.execute("insert into c values (5, 5, 'r5')")
    block.execute("insert into p values ('r5', 5)")
    block.execute("commit")
    assert rows(other, "select id from c order by id") == [(1,), (2,), (3,), (4,), (5,)]
    with refused("23503"):
        other.execute("insert into c values (6, null, 'r1')")
    assert inspect(block.node) == []


@pytest.mark.parametrize(
    "point",
    ["block.built", *(pytest.param(point, marks=pytest.mark.slow) for point in ("job.created", "block.committed"))],
)
def test_killed_process_leaves_all_or_nothing(nodes: tuple[Node, Node], place: Place, point: str):
    run_until_killed(place, f"{point}:1", "begin", NEW, PARENTS, ADD, "insert into c values (3, 3)", "commit")
    with closing(Session(nodes[0])) as session:
        session.execute("set lock_timeout = '60s'")
        # The next change of the table waits for what is left of the block, and for no more.
        session.execute("alter table c add constraint g check (id < 100)")
        is_there = point == "block.committed"
        assert keys(session) == ([("f", "PUBLIC")] if is_there else [])
        assert children(session) == [(1, 1), (2, 2), *([(3, 3)] if is_there else [])]
        if not is_there:
            start(session)
            session.execute("commit")
        with refused("23503"):
            session.execute("insert into c values (9, 9)")
    assert inspect(nodes[0]) == []
