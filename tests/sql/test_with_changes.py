"""WITH whose queries change rows, and MERGE: one statement, whatever becomes of it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from seachange import errors
from seachange.engine.opening import open_node
from seachange.engine.session import Session


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    node = open_node(tmp_path_factory.mktemp("with"))
    session = Session(node)
    session.execute("create table stock (sku text primary key, held int check (held >= 0))")
    session.execute("create table archive (sku text, held int)")
    session.execute("create table child (sku text references stock on delete cascade)")
    yield session
    session.close()
    node.close()


@pytest.fixture(autouse=True)
def rows(session: Session) -> None:
    session.execute("delete from stock; delete from archive; insert into stock values ('a', 1), ('b', 2), ('c', 3)")


def held(session: Session, table: str = "stock") -> dict[str, int]:
    return dict(session.execute(f"select sku, held from {table}").rows)


def test_a_part_that_fails_takes_the_others_with_it(session: Session) -> None:
    with pytest.raises(errors.DivisionByZero):
        session.execute("with gone as (delete from stock returning *) insert into archive select sku, 1 / 0 from gone")
    assert (len(held(session)), held(session, "archive")) == (3, {})
    with pytest.raises(errors.CheckViolation):
        session.execute(
            "merge into stock s using (values ('a', 5), ('b', -5)) v(sku, n) on s.sku = v.sku"
            " when matched and n > 0 then update set held = n when matched then update set held = n"
        )
    assert held(session) == {"a": 1, "b": 2, "c": 3}


def test_parameters_are_shared_by_the_parts(session: Session) -> None:
    moved = session.execute(
        "with gone as (delete from stock where held > $1 returning sku, held)"
        " insert into archive select sku, held + $2 from gone where sku <> $3 returning held",
        [1, 100, "b"],
    )
    assert (moved.rows, moved.tag) == ([(103,)], "INSERT 0 1")
    assert held(session) == {"a": 1}
    merged = session.execute(
        "merge into stock s using (select $1::text as sku, $2::int as n) v on s.sku = v.sku"
        " when matched then update set held = held + n when not matched then insert values (sku, n + $3)",
        ["z", 1, 5],
    )
    assert (merged.tag, held(session)["z"]) == ("MERGE 1", 6)


def test_in_a_block_all_of_it_is_seen_and_taken_back(session: Session) -> None:
    session.execute("begin")
    session.execute("insert into stock values ('d', 4)")
    found = session.execute("with gone as (delete from stock where held >= 3 returning sku) select sku from gone")
    assert sorted(found.rows) == [("c",), ("d",)]
    assert set(held(session)) == {"a", "b"}
    session.execute("rollback")
    assert set(held(session)) == {"a", "b", "c"}


def test_rows_that_follow_those_of_a_change_are_not_read(session: Session) -> None:
    session.execute("insert into child values ('a')")
    with pytest.raises(errors.FeatureNotSupported):
        session.execute("with gone as (delete from stock returning sku) select * from child join gone using (sku)")
    assert len(session.execute("select * from child").rows) == 1


def test_a_statement_that_changes_rows_is_none_of_a_transaction_that_only_reads(session: Session) -> None:
    session.execute("begin read only")
    with pytest.raises(errors.ReadOnlyTransaction):
        session.execute("with gone as (delete from stock returning sku) select * from gone")
    session.execute("rollback")


@pytest.mark.parametrize(
    "statement",
    [
        "explain with gone as (delete from stock returning sku) select * from gone",
        "explain merge into stock s using archive a on s.sku = a.sku when matched then delete",
        "merge into archive a using stock s on s.sku = a.sku when matched then delete",
        "merge into stock s using (values ('a')) v(sku) on s.sku = v.sku when matched then delete returning s.sku",
        "select * from (with gone as (delete from stock returning sku) select * from gone) x",
        "with gone as (delete from stock) select * from gone",
    ],
)
def test_what_is_not_there_is_refused(session: Session, statement: str) -> None:
    with pytest.raises(errors.FeatureNotSupported):
        session.execute(statement)
    assert len(held(session)) == 3


def test_sessions_that_meet_the_same_row_do_each_part_once(session: Session) -> None:
    """Whoever met a row that was changed meanwhile is run again as a whole: what its WITH wrote was taken back."""
    times, workers = 15, 2

    def change() -> None:
        own = Session(session.node)
        for _ in range(times):
            own.execute(
                "with made as (insert into archive values ('x', 0) returning sku)"
                " update stock set held = held + 1 from made where stock.sku = 'a'"
            )
        own.close()

    with ThreadPoolExecutor(workers) as pool:
        for running in [pool.submit(change) for _ in range(workers)]:
            running.result()
    assert held(session)["a"] == 1 + workers * times
    assert session.execute("select count(*) from archive").rows == [(workers * times,)]
