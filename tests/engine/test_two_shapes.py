"""UP and DOWN: two programs read and write one table in two shapes at the same time."""

from contextlib import closing

import pytest

from seachange import errors
from seachange.engine.session.session import Session


@pytest.fixture
def new(node):
    with closing(Session(node)) as session:
        session.execute("create table p (id int primary key, name text not null, n int, note text)")
        session.execute("insert into p values (1, 'Ann Lee', 10, 'x'), (2, 'Bob Ray', 20, 'y')")
        yield session


@pytest.fixture
def old(new, node):
    """Pinned to before whatever a test changes."""
    with closing(Session(node)) as session:
        seq = new.in_transaction(lambda transaction: transaction.state.snapshot.seq)
        session.execute(f"set seachange.layout = {seq}")
        yield session


SPLIT = (
    "alter table p add column first text not null up using (split_part(name, ' ', 1)), "
    "add column last text up using (split_part(name, ' ', 2)), "
    "drop column name down using (first || ' ' || last)"
)
DOLLARS = "alter table p alter column n type text using ('$' || n) down using (cast(substr(n, 2) as int))"


def rows(session, text, *values):
    return list(session.execute(text, values).rows)


def test_split_column_is_read_and_written_in_both_shapes(new, old):
    new.execute(SPLIT)
    assert rows(new, "select id, first, last from p order by id") == [(1, "Ann", "Lee"), (2, "Bob", "Ray")]
    assert rows(old, "select id, name from p order by id") == [(1, "Ann Lee"), (2, "Bob Ray")]
    old.execute("insert into p values (3, 'Cy Fox', 30, 'z')")
    new.execute("insert into p (id, first, last) values (4, 'Di', 'Sun')")
    old.execute("update p set name = 'Ann Ray' where name = 'Ann Lee'")
    assert rows(new, "select id, first, last from p where id <> 2 order by id") == [
        (1, "Ann", "Ray"),
        (3, "Cy", "Fox"),
        (4, "Di", "Sun"),
    ]
    assert rows(old, "select name from p where id = 4") == [("Di Sun",)]
    assert rows(old, "delete from p where name = 'Di Sun' returning id, name") == [(4, "Di Sun")]


def test_merged_columns_are_read_and_written_in_both_shapes(new, old, node):
    new.execute("create table q (id int primary key, first text, last text)")
    new.execute("insert into q values (1, 'Ann', 'Lee')")
    seq = new.in_transaction(lambda transaction: transaction.state.snapshot.seq)
    old.execute(f"set seachange.layout = {seq}")
    new.execute(
        "alter table q add column name text up using (first || ' ' || last), "
        "drop column first down using (split_part(name, ' ', 1)), "
        "drop column last down using (split_part(name, ' ', 2))"
    )
    old.execute("update q set last = 'Ray' where id = 1")
    assert rows(new, "select * from q") == [(1, "Ann Ray")]
    new.execute("insert into q values (2, 'Bob Fox')")
    assert rows(old, "select * from q order by id") == [(1, "Ann", "Ray"), (2, "Bob", "Fox")]


def test_converted_column_is_read_and_written_in_both_shapes(new, old):
    new.execute(DOLLARS)
    old.execute("insert into p values (3, 'Cy', 30, null)")
    old.execute("update p set n = n + 1 where n = 10")
    assert rows(new, "select id, n from p order by id") == [(1, "$11"), (2, "$20"), (3, "$30")]
    assert rows(old, "select n from p where n > 10 order by n") == [(11,), (20,), (30,)]
    assert rows(old, "insert into p values (3, 'Cy', 31, null) on conflict (id) do update set n = 7 returning n") == [
        (7,)
    ]
    assert rows(new, "select n from p where id = 3") == [("$7",)]


def test_value_without_counterpart_is_an_error_only_where_it_is_read(new, old):
    new.execute(DOLLARS)
    new.execute("update p set n = 'free' where id = 1")
    assert rows(old, "select n from p where id = 2") == [(20,)]
    assert rows(old, "select id, name from p where id = 1") == [(1, "Ann Lee")]
    old.execute("update p set name = 'Ann' where id = 1")
    for text in ("select n from p", "select * from p where id = 1", "update p set n = n + 1 where id = 1"):
        with pytest.raises(errors.InvalidTextRepresentation):
            old.execute(text)
    assert rows(new, "select name, n from p where id = 1") == [("Ann", "free")]


def test_dropped_column_without_down_is_accepted_and_never_made_up(new, old):
    new.execute("alter table p drop column note")
    old.execute("insert into p values (3, 'Cy', 30, 'z')")
    old.execute("update p set n = 1 where id = 1 returning id, n")
    assert rows(old, "select id, n from p order by id") == [(1, 1), (2, 20), (3, 30)]
    for text in ("select note from p where id = 3", "select * from p", "update p set n = 2 returning *"):
        with pytest.raises(errors.NoCounterpart):
            old.execute(text)
    new.execute("delete from p")
    assert rows(old, "select * from p") == []


def test_what_is_written_back_leaves_the_row_as_it_was(new, old):
    """DOWN joins the names, UP would part them at another place."""
    new.execute(SPLIT)
    new.execute("update p set first = 'Ann Maria', last = 'Lee' where id = 1")
    old.execute("update p set n = 5 where id = 1")
    old.execute("update p set name = name, n = 6 where id = 1")
    assert rows(new, "select first, last, n from p where id = 1") == [("Ann Maria", "Lee", 6)]


def test_change_computes_only_what_depends_on_it(new, old):
    """The other column has no counterpart in this row."""
    new.execute(SPLIT)
    new.execute(DOLLARS)
    new.execute("update p set n = 'free' where id = 1")
    old.execute("update p set name = 'Al Ray' where id = 1")
    assert rows(new, "select first, last, n from p where id = 1") == [("Al", "Ray", "free")]


def test_null_that_was_not_read_is_written(new, old):
    new.execute(DOLLARS)
    old.execute("update p set n = null where id = 1")
    assert rows(new, "select n from p where id = 1") == [(None,)]


def test_shapes_of_many_changes_are_computed_one_after_the_other(new, old):
    new.execute("alter table p add column code text up using (upper(name)), drop column name down using (lower(code))")
    new.execute(
        "alter table p alter column code type bytea using (code::bytea) down using (convert_from(code, 'UTF8'))"
    )
    old.execute("insert into p values (3, 'cy', 1, null)")
    assert rows(new, "select code from p where id = 3") == [(b"CY",)]
    assert rows(old, "select name from p order by id") == [("ann lee",), ("bob ray",), ("cy",)]
    new.execute("alter table p drop column code down using (('id ' || id)::bytea)")
    assert rows(old, "select name from p where id = 3") == [("id 3",)]


def test_up_reads_a_column_that_the_statement_does_not(new, old):
    new.execute("alter table p add column both text up using (name || n), drop column n down using (length(both))")
    new.execute("alter table p drop column name down using (left(both, 2))")
    old.execute("update p set name = 'Zed' where id = 1")
    assert rows(new, "select both from p where id = 1") == [("Zed9",)]


def test_many_rows_are_written_in_both_shapes(new, old):
    new.execute(SPLIT)
    new.execute(DOLLARS)
    old.execute("insert into p select i, 'F' || i || ' L' || i, i from generate_series(101, 20100) g(i)")
    old.execute("update p set name = name || 'y', n = n + 1 where id > 100")
    found = "select count(*), min(first), max(last), min(n) from p where id > 100"
    assert rows(new, found) == [(20_000, "F1000", "L999y", "$1000")]
    assert rows(old, "select count(*), sum(n), min(name) from p where id > 100") == [
        (20_000, sum(range(102, 20_102)), "F1000 L1000y")
    ]
    old.execute("delete from p where id > 100")
    assert rows(new, "select count(*) from p") == [(2,)]


def test_constraints_and_indexes_of_now_apply(new, old):
    new.execute(SPLIT)
    new.execute("create unique index on p (last)")
    new.execute("alter table p add constraint short check (length(first) < 5)")
    with pytest.raises(errors.UniqueViolation):
        old.execute("insert into p values (3, 'Cy Lee')")
    with pytest.raises(errors.CheckViolation):
        old.execute("update p set name = 'Annabel Lee' where id = 1")
    with pytest.raises(errors.NotNullViolation):
        old.execute("update p set name = null where id = 1")


def test_key_may_be_converted(new, old):
    new.execute("alter table p alter column id type text using ('k' || id) down using (cast(substr(id, 2) as int))")
    old.execute("insert into p values (3, 'Cy', 30, 'z')")
    assert rows(old, "update p set n = 31 where id = 3 returning id, n") == [(3, 31)]
    assert rows(new, "select id, n from p where id = 'k3'") == [("k3", 31)]
    with pytest.raises(errors.UniqueViolation):
        old.execute("insert into p values (3, 'Cy', 30, 'z')")


def test_generated_column_that_is_gone_is_computed_as_before(new, node):
    new.execute("create table g (id int primary key, a int, b int generated always as (a * 2) stored)")
    new.execute("insert into g values (1, 2)")
    seq = new.in_transaction(lambda transaction: transaction.state.snapshot.seq)
    new.execute("alter table g drop column b")
    with closing(Session(node)) as old:
        old.execute(f"set seachange.layout = {seq}")
        old.execute("insert into g values (2, 5)")
        assert rows(old, "select * from g order by id") == [(1, 2, 4), (2, 5, 10)]


def test_plain_cast_is_reversed_by_itself(new, old):
    new.execute("alter table p alter column n type text")
    old.execute("update p set n = n + 1")
    new.execute("insert into p values (3, 'Cy', 'many')")
    assert rows(old, "select n from p where id < 3 order by id") == [(11,), (21,)]
    with pytest.raises(errors.InvalidTextRepresentation):
        old.execute("select n from p")


def test_block_splits_a_column_beside_a_writer_in_the_old_shape(new, old):
    new.execute("begin")
    new.execute(SPLIT)
    new.execute("insert into p (id, first, last) values (5, 'Ed', 'Poe')")
    old.execute("insert into p values (3, 'Cy Fox', 30, 'z')")
    new.execute("commit")
    old.execute("update p set name = 'Cy Lee' where id = 3")
    assert rows(new, "select id, first, last from p where id > 2 order by id") == [(3, "Cy", "Lee"), (5, "Ed", "Poe")]
    assert rows(old, "select name from p order by id") == [("Ann Lee",), ("Bob Ray",), ("Cy Lee",), ("Ed Poe",)]


def test_column_of_an_empty_table_is_computed_for_earlier_shapes(new, old):
    new.execute("delete from p")
    new.execute(SPLIT)
    old.execute("insert into p values (3, 'Cy Fox')")
    assert rows(new, "select first, last from p") == [("Cy", "Fox")]


def test_conflicts_are_found_by_keys_that_up_computes(new, old):
    new.execute(SPLIT)
    new.execute("create unique index on p (last)")
    assert rows(old, "insert into p (id, name) values (3, 'Cy Lee') on conflict do nothing returning id") == []
    old.execute("insert into p (id, name) select 4, 'Di Lee' on conflict do nothing")
    old.execute("insert into p (id, name) values (5, 'Ed Poe'), (6, 'Fay Poe') on conflict do nothing")
    new.execute("alter table p alter column id type text using ('k' || id) down using (cast(substr(id, 2) as int))")
    old.execute("insert into p (id, name) values (5, 'Ed Fox') on conflict do nothing")
    assert rows(old, "select id, name from p order by id") == [(1, "Ann Lee"), (2, "Bob Ray"), (5, "Ed Poe")]


def test_key_of_another_value_is_not_looked_up(new, old):
    """The column of now has the same name, and is a text."""
    new.execute("alter table p alter column id type text using ('k' || id) down using (cast(substr(id, 2) as int))")
    assert rows(old, "select name from p where id = $1", "1") == [("Ann Lee",)]
    old.execute("update p set n = 11 where id = '1'")
    assert rows(old, "select n from p where id in (1, 7) for update") == [(11,)]
    old.execute("delete from p where id = '1'")
    assert rows(new, "select id from p") == [("k2",)]


def test_block_that_has_used_the_table_before_writes_what_up_computes(new, node):
    with closing(Session(node)) as block:
        block.execute("begin")
        block.execute("select * from p")
        new.execute("alter table p add column first text not null up using (split_part(name, ' ', 1))")
        block.execute("insert into p (id, name) values (3, 'Cy Fox')")
        block.execute("insert into p (id, name) values (4, 'Di Sun') on conflict do nothing")
        block.execute("update p set name = 'Al Lee' where id = 1")
        block.execute("commit")
    assert rows(new, "select first from p order by id") == [("Al",), ("Bob",), ("Cy",), ("Di",)]


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("alter table p add column a text up using name", "42601"),
        ("alter table p add column a text up using (gen_random_uuid()::text)", "42P17"),
        ("alter table p add column a text up using (missing)", "42703"),
        ("alter table p add column a text default 'x' up using (name) generated always as (id) stored", "42601"),
        ("alter table p drop column n down using (n + 1)", "42703"),
        ("alter table p drop column n down using (now())", "42P17"),
        ("alter table p drop column n down using (note::date)", "42804"),
        ("alter table p drop column n down using (name like 'a%')", "42804"),
        ("create table q (a int up using (1))", "42601"),
    ],
)
def test_expressions_that_are_refused(new, text, sqlstate):
    with pytest.raises(errors.Error) as refused:
        new.execute(text)
    assert refused.value.sqlstate == sqlstate
