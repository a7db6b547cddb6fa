"""UPDATE and DELETE of many rows by segments: what they do is what they do row by row."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.sql.duck import stream
from seachange.sql.write import update
from seachange.verify.consistency import check
from tests.engine.database import open_quiet
from tests.engine.test_seek_properties import SCHEMA, changes, compact, opened
from tests.engine.test_seek_properties import change as apply
from tests.sql.test_slt import FILES, run_file
from tests.support.examples import examples


@contextmanager
def in_bulk(rows_max: int = 0) -> Iterator[None]:
    """As if any change of more rows than that were a large one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(update, "ROWS_MAX", rows_max)
        yield


CHANGING = ("check", "foreign_key", "index", "join", "nulls_not_distinct", "update_delete")


@pytest.mark.parametrize("path", [p for p in FILES if p.stem in CHANGING], ids=lambda path: path.stem)
def test_files_of_dml(path: Path, tmp_path: Path):
    with in_bulk():
        run_file(path, tmp_path, None)
    with closing(open_quiet(tmp_path)) as node:
        assert check(node) == []


# The same statements on two databases.

steps = changes().filter(lambda step: step[0] in {"insert", "bulk", "update", "delete"})


def contents(session: Session) -> list[str]:
    return sorted(map(repr, session.execute("select * from t").rows))


def attempt(session: Session, kind: str, what: Any) -> str:
    session.execute("savepoint s")
    try:
        apply(session, kind, what)
        return "ok"
    except errors.Error as problem:
        session.execute("rollback to s")
        return problem.sqlstate


@settings(max_examples=examples(6), deadline=None)
@given(
    before=st.lists(changes(), min_size=1, max_size=5),
    transactions=st.lists(st.lists(steps, min_size=1, max_size=4), min_size=1, max_size=3),
    ends=st.sampled_from(["commit", "rollback"]),
)
def test_large_changes_are_what_small_ones_are(before, transactions, ends):
    with opened() as one, opened() as other, closing(Session(one)) as small, closing(Session(other)) as large:
        for session in (small, large):
            for statement in SCHEMA:
                session.execute(statement)
        for kind, what in before:
            if kind == "compact":
                compact(one, what)
                compact(other, what)
            elif kind != "open":
                for session in (small, large):
                    session.execute("begin")
                    attempt(session, kind, what)
                    session.execute("commit")
        for statements in transactions:
            small.execute("begin")
            large.execute("begin")
            for kind, what in statements:
                outcome = attempt(small, kind, what)
                with in_bulk():
                    assert attempt(large, kind, what) == outcome
                assert contents(large) == contents(small)
            small.execute(ends)
            large.execute(ends)
            assert contents(large) == contents(small)
        assert check(other) == []
        compact(other, True)
        assert contents(large) == contents(small)


# Several sessions.


@pytest.fixture
def two(node: Node, other: Node) -> Iterator[tuple[Session, Session]]:
    with closing(Session(node)) as one, closing(Session(other)) as two:
        one.execute("create table p (id int primary key, code text unique, n int check (n < 1000))")
        one.execute("create table c (id int primary key, p int references p, code text references p (code))")
        one.execute("insert into p select i, 'c' || i, i from generate_series(1, 100) g(i)")
        yield one, two


LARGE = ("update p set n = n + 1", "delete from p", "update p set code = code || '!'", "update p set id = -id")
SMALL = (
    "update p set n = 0 where id = 7",
    "delete from p where id = 7",
    "select * from p where id = 7 for update",
    "select * from p where id = 7 for share",
)


@pytest.mark.parametrize("large_first", [True, False])
@pytest.mark.parametrize("small", SMALL)
@pytest.mark.parametrize("large", LARGE)
def test_one_of_two_changes_of_a_row_gets_through(two, large: str, small: str, large_first: bool):
    one, other = two
    for session in two:
        session.execute("begin isolation level repeatable read")
        # It may wait for a lock of the other node, in vain.
        session.execute("set local lock_timeout = '10ms'")
    with in_bulk():
        one.execute(large)
    ending = [one, other] if large_first else [other, one]
    if not (gets_through(other, small) and gets_through(other, "insert into c values (1000, null, null)")):
        ending.remove(other)
    assert [gets_through(session, "commit") for session in ending].count(True) == 1


def gets_through(session: Session, statement: str) -> bool:
    try:
        session.execute(statement)
    except (errors.SerializationFailure, errors.LockNotAvailable):
        return False
    return True


@pytest.mark.parametrize("large_first", [True, False])
@pytest.mark.parametrize(
    ("large", "child", "refused"),
    [
        ("delete from p", "insert into c values (1, 7, null)", True),
        ("delete from p", "insert into c values (1, null, 'c7')", True),
        ("update p set id = -id", "insert into c values (1, 7, null)", True),
        ("update p set code = code || '!'", "insert into c values (1, null, 'c7')", True),
        ("update p set code = code || '!'", "insert into c values (1, 7, null)", False),
        ("update p set n = n + 1", "insert into c values (1, 7, 'c7')", False),
        ("update p set code = code || '!'", "insert into p values (101, 'c7!', 0)", True),
        ("update p set code = code || '!'", "insert into p values (101, 'c8', 0)", None),
        ("update p set id = id + 100", "insert into p values (101, 'x', 0)", True),
    ],
)
def test_references_and_keys(two, large: str, child: str, refused: bool | None, large_first: bool):
    one, other = two
    for session in two:
        session.execute("begin isolation level repeatable read")
    with in_bulk():
        one.execute(large)
    try:
        other.execute(child)
    except errors.UniqueViolation:
        assert refused is None
        return
    first, second = (one, other) if large_first else (other, one)
    first.execute("commit")
    if refused:
        with pytest.raises(errors.SerializationFailure):
            second.execute("commit")
    else:
        second.execute("commit")


def test_a_statement_meets_the_newest_version(two):
    """At READ COMMITTED a row that changed since the statement began makes it run again."""
    one, other = two
    one.execute("begin")
    one.execute("select 1 from p")
    other.execute("update p set n = 500 where id = 7")
    with in_bulk():
        one.execute("update p set n = n + 1")
    one.execute("commit")
    assert one.execute("select n from p where id = 7").rows == [(501,)]


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("update p set n = n + 900", "23514"),
        ("update p set n = 9000 where id = 50", "23514"),
        ("update p set id = null", "23502"),
        ("update p set id = id / 2", "23505"),
        ("update p set code = 'same'", "23505"),
        ("update p set code = 'c1' where id = 50", "23505"),
        ("update p set id = 51 where id = 50", "23505"),
        ("delete from p where id > 1", "23503"),
        ("update p set code = code || 'x'", "23503"),
        ("update c set p = p + 99", "23503"),
        ("update p set n = 3000000000 + n", "22003"),
        ("update p set n = n / 0", "22012"),
    ],
)
def test_a_large_change_that_fails_leaves_nothing(two, statement: str, sqlstate: str):
    one, _ = two
    one.execute("insert into c values (1, 7, 'c7'), (2, null, 'c1')")
    before = one.execute("select * from p order by id").rows
    one.execute("begin")
    one.execute("savepoint s")
    with in_bulk(), pytest.raises(errors.Error) as failed:
        one.execute(statement)
    assert failed.value.sqlstate == sqlstate
    one.execute("rollback to s")
    assert one.execute("select * from p order by id").rows == before
    one.execute("commit")


def test_keys_are_shifted_and_exchanged(two):
    one, _ = two
    with in_bulk():
        one.execute("update p set id = id + 1, code = 'c' || (id + 1)")
        one.execute("update p set id = 103 - id")
        one.execute("update p set code = case id when 2 then 'c100' when 3 then 'c101' else code end where id < 5")
    assert one.execute("select min(id), max(id), count(*) from p").rows == [(2, 101, 100)]
    assert one.execute("select id from p where code = 'c100'").rows == [(2,)]


def test_what_refers_to_deleted_keys_goes_too(two):
    one, _ = two
    one.execute("create table d (id int primary key, p int references p on delete cascade, up int references d)")
    one.execute("create table e (id int primary key, code text references p (code) on delete set null)")
    one.execute("insert into d select i, i, nullif(i - 1, 0) from generate_series(1, 100) g(i)")
    one.execute("insert into e select i, 'c' || i from generate_series(1, 100) g(i)")
    with in_bulk():
        one.execute("delete from p where id > 50")
    assert one.execute("select count(*), max(id) from d").rows == [(50, 50)]
    assert one.execute("select count(*), count(code) from e").rows == [(100, 50)]


def test_large_means_more_than_a_few(two):
    """The real limit, with rows enough to be above it."""
    one, other = two
    count = 3 * stream.ROWS_MAX
    one.execute(f"insert into p select i, 'c' || i, 0 from generate_series(1000, {count + 999}) g(i)")
    assert one.execute("update p set n = 1 where id >= 1000").tag == f"UPDATE {count}"
    assert one.execute("update p set code = v.code from (values ('x')) v(code) where p.id = 1").tag == "UPDATE 1"
    joined = (
        "update p set n = p.n + q.n from p q where q.id >= 1000 and (p.id = q.id or p.id = q.id + 1) and p.id > 999"
    )
    assert one.execute(joined).tag == f"UPDATE {count}"
    assert other.execute("select sum(n) from p where id >= 1000").rows == [(2 * count,)]
    assert one.execute("delete from p where id >= 1000").tag == f"DELETE {count}"
    assert other.execute("select count(*) from p").rows == [(100,)]


@pytest.mark.parametrize(
    "assignment",
    [
        "n = n * 0.5", "n = f * 0.5", "n = -f * 0.5", "n = m / 4", "m = f / 3", "m = n / 3.0", "f = m / 3", "r = f / 3",
        "b = f * 2.5", "s = n", "s = f / 3", "s = m", "s = n > 3", "s = null", "v = 'ab  ' || '  '", "v = s || 'long'",
        "n = 1e10", "m = 1e10", "f = n / 0", "n = 'x' || n", "r = 1e300::float8", "d = z, ts = z, c = z, s = z",
        "z = d", "z = '2024-01-01'", "b = x from (select sum(n) as x from k) q", "u = gen_random_uuid()::text",
        "s = u, y = decode('ff00', 'hex')", "n = default, s = default",
    ],
)  # fmt: skip
def test_values_are_converted_alike(node: Node, assignment: str):
    with closing(Session(node)) as session:
        session.execute(
            "create table k (id int primary key, n int default 7, m numeric(8, 2), f double precision, s text, "
            "v varchar(4), r real, b bigint, z timestamptz, d date, ts timestamp, c time, u uuid, y bytea)"
        )
        session.execute("set time zone 'Europe/Berlin'")
        session.execute(
            "insert into k (id, n, m, f, s, v, r, b, z, d, u) select i, i, i, i, 'x' || i, 'v' || i, i, i, "
            "'2024-07-01 00:30', '2024-07-01', ('00000000-0000-0000-0000-00000000000' || i)::uuid "
            "from generate_series(1, 8) g(i)"
        )
        found = []
        for rows_max in (1000, 0):
            session.execute("begin")
            with in_bulk(rows_max):
                try:
                    session.execute(f"update k set {assignment}")
                    found.append(repr(session.execute("select * from k order by id").rows))
                except errors.Error as problem:
                    found.append(problem.sqlstate)
            session.execute("rollback")
        assert found[0] == found[1]


@pytest.mark.parametrize(
    ("index", "loaded", "conflicts"),
    [
        ("create index i on t (v)", 12, False),
        ("create unique index i on t (v)", 7, False),
        ("create unique index i on t (v)", 12, True),
    ],
)
def test_a_load_beside_a_change_of_other_rows(tmp_path: Path, index: str, loaded: int, conflicts: bool):
    """They conflict only if they bring the same key of a unique index."""
    with closing(open_quiet(tmp_path)) as node, closing(Session(node)) as one, closing(Session(node)) as two, in_bulk():
        one.execute("create table t (id int primary key, v int)")
        one.execute(index)
        one.execute("insert into t values (1, 1), (2, 2)")
        two.execute("begin isolation level repeatable read")
        two.execute("update t set v = v + 10 where v = 2")
        load = pa.table({"id": pa.array([7, 8], pa.int32()), "v": pa.array([loaded, 8], pa.int32())}).to_reader()
        one.in_transaction(lambda txn: txn.writes.insert_arrow(txn.schema.table(None, "t"), load))
        if conflicts:
            with pytest.raises(errors.SerializationFailure):
                two.execute("commit")
        else:
            two.execute("commit")
        assert check(node) == []
