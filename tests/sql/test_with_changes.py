"""WITH whose queries change rows, and MERGE: one statement, whatever becomes of it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session


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


def test_a_block_sees_its_changes_and_rolls_them_back(session: Session) -> None:
    session.execute("begin")
    session.execute("insert into stock values ('d', 4)")
    found = session.execute("with gone as (delete from stock where held >= 3 returning sku) select sku from gone")
    assert sorted(found.rows) == [("c",), ("d",)]
    assert set(held(session)) == {"a", "b"}
    session.execute("rollback")
    assert set(held(session)) == {"a", "b", "c"}


def test_foreign_keys_act_when_all_parts_are_through(session: Session) -> None:
    session.execute("insert into child values ('a')")
    session.execute("begin")
    query = "with gone as (delete from stock returning sku) select child.sku from child join gone using (sku)"
    assert session.execute(query).rows == [("a",)]
    assert session.execute("select * from child").rows == []
    session.execute("rollback")
    session.execute("create table node (id int primary key, up int references node on delete set null, seen int)")
    session.execute("insert into node values (1, null, 0), (2, 1, 0)")
    session.execute(
        "merge into node n using (values (1), (2)) v(id) on n.id = v.id"
        " when matched and v.id = 1 then delete when matched then update set seen = up"
    )
    assert session.execute("select * from node").rows == [(2, None, 1)]


@pytest.mark.parametrize("count", [1, 10_001])
def test_foreign_keys_are_checked_when_all_parts_are_through(session: Session, count: int) -> None:
    session.execute("begin")
    numbers = f"from generate_series(1, {count}) g"
    session.execute(
        f"with c as (insert into child select 'n' || g {numbers}) insert into stock select 'n' || g, 0 {numbers}"
    )
    assert session.execute("select count(*) from child").rows == [(count,)]
    session.execute("rollback")
    with pytest.raises(errors.MissingParent):
        session.execute(
            f"with c as (insert into child select 'n' || g {numbers})"
            f" insert into stock select 'n' || g, 0 {numbers} where g > 1"
        )
    assert (session.execute("select * from child").rows, len(held(session))) == ([], 3)


def test_clauses_of_one_merge_delete_a_row_and_those_that_refer_to_it(session: Session) -> None:
    session.execute("create table tree (id int primary key, up int references tree)")
    session.execute("insert into tree values (1, null), (2, 1)")
    merged = session.execute(
        "merge into tree t using (values (1), (2)) v(id) on t.id = v.id"
        " when matched and v.id = 1 then delete when matched then delete"
    )
    assert merged.tag == "MERGE 2"


def test_a_query_that_several_parts_need_is_evaluated_once(session: Session) -> None:
    session.execute("create sequence numbers")
    session.execute(
        "with n as (select 'n' || nextval('numbers') as sku), made as (insert into stock select sku, 0 from n)"
        " insert into archive select sku, 0 from n"
    )
    assert held(session, "archive") == {"n1": 0}
    assert held(session)["n1"] == 0


def test_a_query_in_front_of_a_change_reads_the_rows_as_they_were(session: Session) -> None:
    found = session.execute(
        "with old as (select * from stock), new as (update stock set held = held + 10 where sku = 'a' returning *)"
        " select old.held, new.held from old join new using (sku)"
    )
    assert found.rows == [(1, 11)]


def test_quotients_are_handed_on_with_all_of_their_digits(session: Session) -> None:
    session.execute("create table price (id int primary key, total numeric(10,2), each numeric(38,20))")
    session.execute("begin")
    made = "with made as (insert into price values (1, 1) returning total / 3 as third, total)"
    assert session.execute(f"{made} select third, total / 7 from made").rows == [
        (Decimal("0.33333333333333333333"), Decimal("0.14285714285714285714"))
    ]
    session.execute(
        "merge into price p using (select 1 as id, 2.00 as total) v on p.id = v.id"
        " when matched then update set each = v.total / 3"
    )
    assert session.execute("select each from price").rows == [(Decimal("0.66666666666666666667"),)]
    assert session.execute("update price set total = 5 returning total / 7").rows == [
        (Decimal("0.71428571428571428571"),)
    ]
    session.execute("rollback")


def test_a_prepared_merge_follows_its_table(session: Session) -> None:
    session.execute("create type size as enum ('small', 'large')")
    session.execute("create table goods (sku text primary key, sizes size[])")
    session.execute(
        "prepare m(text) as merge into goods using (select 'a' as sku, array[]::size[] as sizes) v on goods.sku = v.sku"
        " when matched then update set sizes = array[$1]::size[] when not matched then insert values (v.sku, v.sizes)"
    )
    session.execute("execute m('small')")
    session.execute("alter table goods add column held int default 7")
    session.execute("alter type size rename value 'small' to 'tiny'")
    session.execute("execute m('tiny')")
    assert session.execute("select * from goods").rows == [("a", ["tiny"], 7)]


def test_conditions_of_what_is_not_matched_name_the_source(session: Session) -> None:
    merge = "merge into stock s using (values ('x', 7), ('y', 8)) v(sku, held) on s.sku = v.sku when not matched and"
    session.execute(f"{merge} held > 7 then insert values (v.sku, v.held)")
    assert held(session) == {"a": 1, "b": 2, "c": 3, "y": 8}
    with pytest.raises(errors.UnresolvedTable):
        session.execute(f"{merge} s.held is null then insert values (v.sku, v.held)")


@pytest.mark.parametrize(
    "clauses",
    [
        "when matched then insert values ('z', 1)",
        "when not matched then delete",
        "when not matched then update set held = 1",
        "when matched then do nothing when matched then delete",
        "when matched then truncate",
    ],
)
def test_clauses_that_cannot_be_are_no_statement(session: Session, clauses: str) -> None:
    with pytest.raises(errors.SyntaxProblem):
        session.execute(f"merge into stock s using (values ('a')) v(sku) on s.sku = v.sku {clauses}")
    assert held(session) == {"a": 1, "b": 2, "c": 3}


def test_a_name_means_one_thing(session: Session) -> None:
    for statement in (
        "with x as (delete from stock returning sku), x as (select 1) select * from x",
        "merge into stock using stock on true when matched then delete",
    ):
        with pytest.raises(errors.DuplicateAlias):
            session.execute(statement)
    assert len(held(session)) == 3


def test_what_a_plan_may_not_read_is_asked_each_time(session: Session) -> None:
    """A text means something else once the view that it names does."""
    session.execute("create view shown as select sku from archive")
    statement = "with gone as (delete from stock where held > 9 returning sku) select count(*) from shown"
    assert session.execute(statement).rows == [(0,)]
    session.execute("create or replace view shown as select sku from stock")
    with pytest.raises(errors.FeatureNotSupported):
        session.execute(statement)


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
        "merge into stock s using (values ('a')) v(sku) on s.sku = v.sku when matched then delete returning s.sku",
        "select * from (with gone as (delete from stock returning sku) select * from gone) x",
        "with gone as (delete from stock) select * from gone",
        "with a as (update stock set held = 9 where sku = 'a') insert into stock values ('a', 0)"
        " on conflict (sku) do update set held = stock.held",
        "merge into stock s using (archive a join archive b using (sku)) on true when matched then delete",
        "merge into stock s using archive a on false when not matched then insert values (a.*)",
        "merge into stock s using archive a on false when not matched then insert (held) values (default)",
    ],
)
def test_what_is_not_there_is_refused(session: Session, statement: str) -> None:
    with pytest.raises(errors.FeatureNotSupported):
        session.execute(statement)
    assert len(held(session)) == 3


def test_sessions_that_meet_the_same_row_do_each_part_once(session: Session) -> None:
    """A statement that finds a concurrently changed row is retried as a whole: the writes of its WITH are undone."""
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
