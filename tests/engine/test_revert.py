"""REVERT CHANGE: a published change is reverted while rows are written, and what was written since stays."""

import random
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.support.databases import MakePlace, catalog_kind, place_for
from tests.support.judge import inspect
from tests.support.nodes import Place
from tests.support.workers import wait_until

__all__ = ["MakePlace", "catalog_kind", "place_for"]

pytestmark = pytest.mark.either_catalog

DEFINITIONS = (
    """select table_name, column_name, data_type, column_default, is_nullable from information_schema.columns
       where table_schema = 'public' order by table_name, ordinal_position""",
    "select indexname, indexdef from pg_indexes where schemaname = 'public' order by 1",
    "select conname, contype, pg_get_constraintdef(oid) from pg_constraint order by 1, 2",
    "select relname, relkind, obj_description(oid), col_description(oid, 2) from pg_class where relnamespace = 2200"
    " order by 1",
    "select typname from pg_type where typnamespace = 2200 order by 1",
    "select grantee, table_name, privilege_type from information_schema.table_privileges order by 1, 2, 3",
)
# Each is reverted over rows; the table, its view and its parent are as before then.
REVERTED = [
    "alter table item rename column a to amount",
    "alter table item rename to thing",
    "alter table item alter column a set default 5",
    "alter table item alter column b drop default",
    "alter table item alter column a set not null",
    "alter table item alter column b drop not null",
    "create index item_a on item (a)",
    "create unique index item_u on item (id, b)",
    "drop index item_low",
    "alter table item add constraint big check (a < 100000)",
    "alter table item drop constraint positive",
    "alter table item drop constraint item_parent_fkey",
    "alter table parent drop constraint parent_code_key cascade",
    "alter table item add column z int default 7",
    "alter table item add column z int, add constraint z_one check (z is null or z = 1)",
    "comment on column item.a is 'the amount'",
    "grant select on item to public",
    "drop view seen",
    "create view other as select b from item",
    "create sequence numbers",
    "create table fresh (id int primary key)",
    "drop table alone",
    "create type mood as enum ('sad', 'ok')",
    "alter table item drop column a cascade",
    "alter table item drop column b",
    "alter table item drop column parent, add column parent text default 'none'",
    "alter table parent drop column code cascade",
    "alter table alone alter column id type bigint",
    "alter table alone alter column id type text",
    "alter table alone alter column v type int using length(v)",
    "alter table alone alter column v type text using ('<' || v) down using (substr(v, 2))",
    "alter table alone alter column v type bigint using (substr(v, 2)::bigint), add column w int default 3",
    "alter table item alter primary key using columns (id, b)",
    "alter table alone drop constraint alone_pkey",
    "alter table alone drop column id",
    "alter table keyless add primary key (n)",
    "alter table item add column r double precision default random()",
    "alter table item add column s serial",
    "alter table item add column g int generated always as (a + 1) stored",
    "alter type kind add value 'other'",
    "alter table item alter column double drop expression",
    "alter table item alter column double set expression as (a * 3)",
    "alter table item drop column double",
    "alter sequence counter restart with 50",
]


def prepare(place: Place) -> None:
    with closing(open_node(place.data, place.catalog)) as node, closing(Session(node)) as session:
        for sql in (
            "create table parent (id int primary key, code int unique)",
            """create table item (id int primary key, a int, b text not null default 'none', parent int references
               parent (code), double int generated always as (a * 2) stored, constraint positive check (a >= 0))""",
            "create table alone (id int primary key, v text)",
            "create table keyless (n int)",
            "insert into keyless select i from generate_series(1, 20) g(i)",
            "create type kind as enum ('one', 'two')",
            "create table kinds (k kind)",
            "create sequence counter",
            "insert into parent select i, i from generate_series(1, 9) g(i)",
            "insert into item select i, i * 10, 'b' || i, i % 9 + 1 from generate_series(1, 60) g(i)",
            "insert into alone select i, 'v' || i from generate_series(1, 30) g(i)",
            "create index item_low on item (lower(b)) where a > 0",
            "create view seen as select id, a from item",
            "comment on constraint positive on item is 'never less'",
        ):
            session.execute(sql)


@pytest.fixture
def node(place_for: MakePlace) -> Iterator[Node]:
    place = place_for("data", prepare)
    with closing(open_node(place.data, place.catalog)) as opened:
        yield opened


@pytest.fixture
def session(node: Node) -> Iterator[Session]:
    with closing(Session(node)) as opened:
        yield opened


def ask(session: Session, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in session.execute(sql).rows]


def last_change(session: Session) -> int:
    return int(ask(session, "select max(id) from seachange.changes")[0][0])


def change(session: Session, sql: str) -> int:
    session.execute(sql)
    return last_change(session)


def definitions(session: Session) -> list[list[tuple[Any, ...]]]:
    return [ask(session, sql) for sql in DEFINITIONS]


def contents(session: Session) -> list[list[tuple[Any, ...]]]:
    tables = ("item", "alone", "parent", "keyless")
    return [sorted(ask(session, f"select * from {table}"), key=repr) for table in tables]


def refuse(session: Session, sql: str, error: type[errors.Error]) -> errors.Error:
    with pytest.raises(error) as caught:
        session.execute(sql)
    return caught.value


@pytest.mark.parametrize("sql", REVERTED)
def test_reverted_change_leaves_the_definitions_and_rows_as_they_were(session: Session, node: Node, sql: str):
    before, rows = definitions(session), contents(session)
    id_ = change(session, sql)
    changed = definitions(session)
    session.execute(f"explain (ddl) revert change {id_}")
    assert definitions(session) == changed
    session.execute(f"revert change {id_}")
    assert definitions(session) == before
    assert contents(session) == rows
    assert inspect(node) == []
    # The revert is a change itself.
    assert ask(session, f"select statement from seachange.changes where id = {last_change(session)}") == [
        (f"revert change {id_}",)
    ]
    session.execute(f"revert change {last_change(session)}")
    assert definitions(session) == changed
    assert inspect(node) == []


class Writer:
    """Writes rows of its own with a session of its own, until it is stopped; `rows` are those that it should find."""

    def __init__(self, node: Node, first: int, seed: int) -> None:
        self.rows: dict[int, str] = {}
        self.written = 0
        self._first = first
        self._dice = random.Random(seed)
        self._session = Session(node)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._problem: Exception | None = None

    def __enter__(self) -> "Writer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._session.close()
        if self._problem is not None:
            raise self._problem

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._write()
                self.written += 1
        except Exception as problem:  # noqa: BLE001 - raised where the writer ends
            self._problem = problem

    def _write(self) -> None:
        """The columns that every version has."""
        key, text = self._first + self._dice.randrange(40), f"w{self.written}"
        if key not in self.rows:
            self._session.execute(f"insert into item (id, b) values ({key}, '{text}')")
            self.rows[key] = text
        elif self._dice.random() < 0.6:
            self._session.execute(f"update item set b = '{text}' where id = {key}")
            self.rows[key] = text
        else:
            self._session.execute(f"delete from item where id = {key}")
            del self.rows[key]


@pytest.mark.parametrize("seed", range(3))
def test_rows_written_by_two_sessions_meanwhile_are_kept(node: Node, session: Session, seed: int):
    dice = random.Random(seed)
    before, own = definitions(session), dict(ask(session, "select id, b from item"))
    kept = [
        sql for sql in REVERTED if "rename to" not in sql and "(a < 100000)" not in sql and "set not null" not in sql
    ]
    with Writer(node, 1000, seed) as one, Writer(node, 2000, seed + 100) as two:
        for sql in dice.sample(kept, 4):
            written = one.written, two.written
            id_ = change(session, sql)
            wait_until(lambda: one.written > written[0] and two.written > written[1], "both to have written")  # noqa: B023
            session.execute(f"revert change {id_}")
            assert definitions(session) == before, sql
    assert dict(ask(session, "select id, b from item")) == own | one.rows | two.rows
    assert inspect(node) == []


def test_later_changes_that_depend_on_it_are_named_and_reverted_by_cascade(session: Session):
    before = definitions(session)
    first = change(session, "alter table item add column z int")
    change(session, "alter table item alter column a set default 9")
    indexed = change(session, "create index item_z on item (z)")
    seen = change(session, "create view zs as select z from item")
    problem = refuse(session, f"revert change {first}", errors.DependentChanges)
    assert problem.sqlstate == "2BP01"
    named = str(problem.detail)
    assert f"change {indexed} (create index item_z on item (z))" in named
    assert f"change {seen} (create view" in named
    assert "set default" not in named
    session.execute(f"revert change {first} cascade")
    # What does not depend on it stays.
    session.execute("alter table item alter column a drop default")
    assert definitions(session) == before


def test_rename_that_was_renamed_again_depends(session: Session):
    before = definitions(session)
    first = change(session, "alter table item rename column a to amount")
    second = change(session, "alter table item rename column amount to total")
    assert f"change {second} " in str(refuse(session, f"revert change {first}", errors.DependentChanges).detail)
    session.execute(f"revert change {first} cascade")
    assert definitions(session) == before


def test_name_that_was_given_to_another_column_since_depends(session: Session):
    first = change(session, "alter table item rename column a to amount")
    second = change(session, "alter table item add column a int")
    assert f"change {second} " in str(refuse(session, f"revert change {first}", errors.DependentChanges).detail)


def test_block_is_reverted_as_one_change_and_in_a_block(session: Session):
    before = definitions(session)
    session.execute("begin")
    session.execute("alter table item rename column b to name")
    session.execute("create index item_name on item (name)")
    session.execute("drop view seen")
    session.execute("commit")
    id_ = last_change(session)
    session.execute("begin")
    session.execute(f"revert change {id_}")
    assert definitions(session) == before
    session.execute("rollback")
    assert definitions(session) != before
    session.execute(f"revert change {id_}")
    assert definitions(session) == before


def test_constraint_is_validated_again(session: Session):
    id_ = change(session, "alter table item drop constraint positive")
    session.execute("insert into item (id, a) values (100, -1)")
    refuse(session, f"revert change {id_}", errors.Error)
    assert ask(session, "select count(*) from pg_constraint where conname = 'positive'") == [(0,)]
    session.execute("delete from item where id = 100")
    session.execute(f"revert change {id_}")
    assert refuse(session, "insert into item (id, a) values (100, -1)", errors.CheckViolation).sqlstate == "23514"


def test_database_is_not_reverted(session: Session):
    id_ = change(session, "create database elsewhere")
    assert refuse(session, f"revert change {id_}", errors.FeatureNotSupported).hint


def test_only_the_owner_reverts_a_change(session: Session):
    id_ = change(session, "alter table item add column z int")
    session.execute("create role guest")
    session.execute("grant select on item to guest")
    session.execute("set role guest")
    assert refuse(session, f"revert change {id_}", errors.InsufficientPrivilege).sqlstate == "42501"


def test_change_that_does_not_exist_or_is_no_longer_kept(session: Session, node: Node):
    assert refuse(session, "revert change 999999", errors.UndefinedObject).sqlstate == "42704"
    id_ = change(session, "alter table item add column z int")
    session.execute("insert into item (id) values (200)")
    node.collect_garbage(retention_us=0)
    assert refuse(session, f"revert change {id_}", errors.Error).sqlstate == "72000"


# Values.


def test_dropped_column_comes_back_with_the_values_of_rows_that_were_written_since(session: Session, node: Node):
    id_ = change(session, "alter table item drop column a cascade, drop column b")
    session.execute("update item set parent = 1 where id <= 20")
    session.execute("delete from item where id = 7")
    session.execute("update item set id = id + 1000 where id = 8")
    session.execute("insert into item values (100, 2)")
    table = next(t for t in node.epoch.schemas.newest.by_id.values() if t.name == "item")
    node.compact(table)
    session.execute("update item set parent = 3 where id between 40 and 50")
    session.execute(f"revert change {id_}")
    expected = [(i, i * 10, f"b{i}") for i in range(1, 61) if i not in (7, 8)] + [
        (100, None, "none"),
        (1008, None, "none"),
    ]
    assert ask(session, "select id, a, b from item order by id") == expected
    assert ask(session, "select parent from item where id in (1, 45) order by id") == [(1,), (3,)]
    assert ask(session, "select id from item where lower(b) = 'b45' and a > 0") == [(45,)]
    assert inspect(node) == []


def test_set_gives_a_value_to_rows_that_were_not_there(session: Session):
    session.execute("alter table item alter column b drop default")
    id_ = change(session, "alter table item drop column b")
    session.execute("insert into item (id, a) values (100, 5), (101, 6)")
    problem = refuse(session, f"revert change {id_}", errors.Error)
    assert problem.sqlstate == "23502"
    assert "(id)=(100)" in str(problem)
    assert refuse(session, f"revert change {id_} set (item.nothing = 1)", errors.Error).sqlstate == "42703"
    session.execute(f"revert change {id_} set (item.b = 'new ' || a)")
    assert ask(session, "select b from item where id in (1, 100, 101) order by id") == [("b1",), ("new 5",), ("new 6",)]


def test_column_dropped_twice_has_its_last_values(session: Session):
    first = change(session, "alter table alone drop column v")
    session.execute(f"revert change {first}")
    session.execute("update alone set v = 'changed' where id = 3")
    second = change(session, "alter table alone drop column v")
    session.execute("update alone set id = id where id = 4")
    session.execute(f"revert change {second}")
    assert ask(session, "select v from alone where id in (2, 3, 4) order by id") == [("v2",), ("changed",), ("v4",)]


def test_value_that_was_kept_is_that_of_a_row_that_was_not_changed(session: Session):
    """Both numbers were written with zeros, which a cast back would not give."""
    session.execute("update alone set v = '00' || id")
    id_ = change(session, "alter table alone alter column v type int using (v::int)")
    session.execute("update alone set v = 77 where id = 3")
    session.execute("insert into alone values (100, 5)")
    session.execute(f"revert change {id_}")
    found = ask(session, "select id, v from alone where id in (2, 3, 4, 100) order by id")
    assert found == [(2, "002"), (3, "77"), (4, "004"), (100, "5")]


def test_row_without_a_value_of_the_earlier_type_is_named(session: Session):
    id_ = change(session, "alter table alone alter column v type text using ('<' || v) down using (substr(v, 2))")
    wide = change(session, "alter table alone alter column id type bigint")
    session.execute("insert into alone values (3000000000, '<x')")
    problem = refuse(session, f"revert change {wide}", errors.Error)
    assert problem.sqlstate == "22003"
    assert "3000000000" in str(problem)
    session.execute(f"revert change {id_}")
    assert ask(session, "select v from alone where id in (1, 3000000000) order by id") == [("v1",), ("x",)]


def test_rows_of_truncate_come_back_beside_those_that_were_written_since(session: Session, node: Node):
    session.execute(
        "create table child (id serial primary key, item int references item, twice int "
        "generated always as (item * 2) stored)"
    )
    session.execute("insert into child (item) select id from item")
    id_ = change(session, "truncate item, child, keyless restart identity")
    session.execute("insert into item (id, a) values (5, 7), (200, 8)")
    session.execute("insert into child (item) values (5)")
    session.execute("insert into keyless values (99)")
    session.execute(f"revert change {id_}")
    assert ask(session, "select id, a from item where id in (4, 5, 200) order by id") == [(4, 40), (5, 7), (200, 8)]
    assert ask(session, "select count(*) from item where lower(b) = 'b33' and a > 0") == [(1,)]
    assert ask(session, "select id, item, twice from child where id in (1, 2) order by id") == [(1, 5, 10), (2, 2, 4)]
    assert ask(session, "insert into child (item) values (1) returning id") == [(61,)]
    assert ask(session, "select count(*), max(n) from keyless") == [(21, 99)]
    assert inspect(node) == []
    assert refuse(session, f"revert change {last_change(session)}", errors.FeatureNotSupported).hint


def test_truncate_is_not_reverted_where_its_rows_break_a_constraint(session: Session):
    id_ = change(session, "truncate item")
    session.execute("alter table item add constraint small check (a < 500)")
    assert refuse(session, f"revert change {id_}", errors.Error).sqlstate == "23514"
    assert ask(session, "select count(*) from item") == [(0,)]


def test_dropped_table_comes_back_with_the_foreign_keys_of_both_sides(session: Session, node: Node):
    session.execute("create table child (id int primary key, item int references item)")
    session.execute("insert into child select i, i from generate_series(1, 60) g(i)")
    before = definitions(session)
    id_ = change(session, "drop table item cascade")
    session.execute("insert into child values (100, 5)")
    session.execute(f"revert change {id_}")
    assert definitions(session) == before
    assert refuse(session, "insert into child values (101, 500)", errors.Error).sqlstate == "23503"
    assert refuse(session, "update item set parent = 77 where id = 1", errors.Error).sqlstate == "23503"
    assert inspect(node) == []
    session.execute(f"revert change {last_change(session)}")
    assert refuse(session, "select * from item", errors.Error).sqlstate == "42P01"


def test_dropped_table_stays_away_if_a_row_refers_to_nothing(session: Session, node: Node):
    session.execute("create table child (id int primary key, item int references item)")
    id_ = change(session, "drop table item cascade")
    changed = definitions(session)
    session.execute("insert into child values (100, 500)")
    assert refuse(session, f"revert change {id_}", errors.Error).sqlstate == "23503"
    assert definitions(session) == changed
    assert inspect(node) == []
    session.execute("delete from child")
    session.execute(f"revert change {id_}")
    assert ask(session, "select count(*) from item") == [(60,)]


def test_table_goes_although_its_columns_were_converted_there_and_back(session: Session, node: Node):
    made = change(session, "create table made (id serial primary key, v int default 0)")
    session.execute("insert into made (v) values (1), (2)")
    added = change(session, "alter table made add column w int not null default 7")
    wide = change(session, "alter table made alter column id type bigint")
    text = change(session, "alter table made alter column v type text using (v::text) down using (v::int)")
    gone = change(session, "alter table made drop column w")
    for id_ in (gone, text, wide, added, made):
        session.execute(f"revert change {id_}")
    assert refuse(session, "select * from made", errors.Error).sqlstate == "42P01"
    assert inspect(node) == []


def test_index_goes_after_its_column_has_come_back_twice(session: Session, node: Node):
    made = change(session, "create index alone_v on alone (v)")
    for _ in range(2):
        session.execute(f"revert change {change(session, 'alter table alone drop column v')}")
    session.execute(f"revert change {made}")
    assert ask(session, "select indexname from pg_indexes where tablename = 'alone'") == [("alone_pkey",)]
    assert inspect(node) == []


def test_type_goes_back_after_its_column_has_come_back(session: Session):
    made = change(
        session, "alter table alone alter column v type text using (v || '!') down using (replace(v, '!', ''))"
    )
    session.execute(f"revert change {change(session, 'alter table alone drop column v')}")
    session.execute(f"revert change {made}")
    assert ask(session, "select v from alone where id = 3") == [("v3",)]
