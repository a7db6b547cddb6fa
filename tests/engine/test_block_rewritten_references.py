"""Constraints over rows that a change rewrites, in a block that has written such rows before: they are validated over
the rows that the block leaves, with the values that the change computes for them."""

from dataclasses import dataclass

import pytest

from seachange.engine.session.session import Session
from tests.engine.blocks import LEVELS, begin, refused, rows
from tests.support.judge import inspect

pytestmark = pytest.mark.either_catalog

# More rows than a block keeps in memory are staged as files.
SOME, MANY = 5, 6000
SIZES = {"few rows": SOME, "many rows": MANY}
SETUP = (
    "create table p (id int primary key, k text unique, v int)",
    "create table c (id int primary key, p int references p on update cascade, k text references p (k) match full)",
    "create table t (id int primary key, k text unique, r text, v int)",
    "create table label (id int primary key, name text unique, alias text references label (name))",
)
FILL = {
    "p": "insert into p select i, 'k' || i, i from generate_series(1, {n}) g (i)",
    "c": "insert into c select i, i, 'k' || i from generate_series(1, {n}) g (i)",
    "t": "insert into t select i, 'k' || i, 'k1', i from generate_series(1, {n}) g (i)",
    "label": "insert into label select i, 'n' || i, 'n' || i from generate_series(1, {n}) g (i)",
}
REFER = "alter table t alter k type varchar(9) using k || '', add foreign key (r) references t (k)"


@dataclass(frozen=True, slots=True)
class Case:
    """Tables that are filled before the block, and by it; then its statements. `sqlstate` is that of the last one."""

    committed: tuple[str, ...]
    own: tuple[str, ...]
    statements: tuple[str, ...]
    sqlstate: str = ""


CASES = {
    "own rows that refer to each other": Case((), ("label",), ("alter table label alter name type varchar(20)",)),
    "own parents and children": Case((), ("p", "c"), ("alter table p alter k type varchar(20)",)),
    "the key and what refers to it": Case(
        (),
        ("label",),
        ("alter table label alter name type varchar(9) using 'x' || name, alter alias type text using 'x' || alias",),
    ),
    "own rows that refer to a key that changes": Case(
        (), ("label",), ("alter table label alter name type varchar(20) using 'x' || name",), "23503"
    ),
    "own rows of which only the other side is converted": Case(
        (), ("label",), ("alter table label alter alias type varchar(20) using 'x' || alias",), "23503"
    ),
    "another value for each key": Case((), ("p", "c"), ("alter table p alter id type bigint using id * -1",), "23503"),
    "own parents beside committed ones": Case(
        ("p", "c"),
        (),
        (
            "insert into p values (10001, 'own', 1)",
            "insert into c values (10001, 10001, 'own'), (10002, null, null)",
            "update p set id = -1 where id = 1",
            "delete from c where id = 2",
            "delete from p where id = 2",
            "alter table p alter id type bigint using id::bigint, alter k type varchar(9)",
        ),
    ),
    "committed rows that refer to an own parent": Case(
        ("t",), (), ("update t set k = 'x' where id = 1", "insert into t values (10001, 'k1', null, 0)", REFER)
    ),
    "committed rows that refer to a deleted parent": Case(("t",), (), ("delete from t where id = 1", REFER), "23503"),
    "committed rows that refer to many deleted parents": Case(
        ("t",), (), ("delete from t where id < (select max(id) from t)", REFER), "23503"
    ),
    "rows that are corrected before they refer": Case(
        ("t",), (), ("update t set k = 'x' || id", "update t set r = k", REFER)
    ),
    "own rows that break a new check": Case(
        ("t",),
        (),
        (
            "update t set v = -1",
            "alter table t alter v type text using v::text, add check (v > '0')",
        ),
        "23514",
    ),
    "rows that are corrected before a new check": Case(
        ("t",), (), ("update t set v = -1", "alter table t alter v type text using v::text, add check (v < '0')")
    ),
    "rows that are corrected before NOT NULL, with another primary key": Case(
        ("t",),
        (),
        (
            "update t set v = null",
            "update t set v = id",
            "alter table t alter id type bigint using id * 2, alter v set not null",
        ),
    ),
    "rows that are corrected before drawn values come with a check": Case(
        ("t",),
        (),
        (
            "update t set v = -1",
            "alter table t add n uuid default gen_random_uuid(), add check (v < 0), alter v set not null",
        ),
    ),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_own_rows_are_validated_with_the_values_that_they_get(
    sessions: tuple[Session, Session], case: Case, size: int, level: str
):
    block, other = sessions
    for name in case.committed:
        other.execute(FILL[name].format(n=size))
    begin(block, level)
    rows(block, "select count(*) from t")
    for name in case.own:
        block.execute(FILL[name].format(n=size))
    *before, last = case.statements
    for sql in before:
        block.execute(sql)
    if case.sqlstate:
        with refused(case.sqlstate):
            block.execute(last)
        block.execute("rollback")
    else:
        block.execute(last)
        block.execute("commit")
    assert inspect(block.node) == []


@pytest.mark.parametrize("level", LEVELS)
def test_rows_of_others_refer_to_converted_own_parents_only_from_commit_on(
    sessions: tuple[Session, Session], level: str
):
    """The parent that a row of another session refers to is deleted by the block, and comes back."""
    block, other = sessions
    for name in ("p", "c"):
        other.execute(FILL[name].format(n=SOME))
    begin(block, level)
    block.execute("delete from c where id = 1")
    block.execute("delete from p where id = 1")
    block.execute("alter table p alter k type varchar(20)")
    other.execute("insert into c values (20, null, null)")
    block.execute("insert into p values (1, 'k1', 1)")
    block.execute("insert into c values (21, 1, 'k1')")
    block.execute("commit")
    with refused("23503"):
        other.execute("delete from p where k = 'k1'")
    assert rows(other, "select count(*) from c") == [(SOME + 1,)]
    assert inspect(block.node) == []


AGAIN = {
    "a key that was converted": ("alter id type int using id + 0", "alter v type text using v::text"),
    "a column whose expression fails for NULL": (
        "alter v type text using case when v is null then (1 / v)::text else 'v' || v end",
        "alter r type varchar(9)",
    ),
    "a key that others refer to": ("alter k type varchar(9) using 'x' || k", "alter k type text using k || 'y'"),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("changes", AGAIN.values(), ids=AGAIN)
def test_own_rows_are_rewritten_again(sessions: tuple[Session, Session], changes: tuple[str, ...], level: str):
    """They have no values of the columns that those of the first time were computed from."""
    block, other = sessions
    other.execute(FILL["t"].format(n=SOME))
    begin(block, level)
    rows(block, "select count(*) from t")
    block.execute("update t set v = null where id = 1")
    block.execute("update t set v = 7 where id = 1")
    for number, change in enumerate(changes):
        block.execute(f"alter table t {change}")
        block.execute(f"insert into t (id, k) values ({100 + number}, 'own{number}')")
        block.execute("update t set r = 'changed' where id = 2")
    other.execute("insert into t (id, k, r, v) values (200, 'other', 'r', 1)")
    block.execute("commit")
    assert rows(other, "select id, r from t where id in (1, 2, 100, 200) order by id") == [
        (1, "k1"),
        (2, "changed"),
        (100, None),
        (200, "r"),
    ]
    assert rows(other, "select count(*), count(distinct k) from t") == [(SOME + 3,) * 2]
    assert inspect(block.node) == []
