"""Every way to write obeys the state of every element of the version that it was planned with."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import ColumnId, ConstraintId, LayoutId, Seq
from seachange.model.log import Committed, Conflict
from seachange.model.schema.constraint import Check, ForeignKey
from seachange.model.schema.descriptor import Column, Index, Layout, Table
from seachange.model.schema.expression import Expression
from seachange.model.states import State
from seachange.storage.arrow import arrow_type
from seachange.storage.keys import conversion_hash
from seachange.verify.consistency import check
from tests.engine.changing import attach, fence, new_index, publish, submit, with_index
from tests.engine.database import INTEGER, arrow, create, insert, rows

ROWS = [(1, "one", 1), (2, "two", 2), (3, "three", 3)]
V, N = ColumnId(2), ColumnId(3)
Write = Callable[[Transaction, Table], object]


def _load(txn: Transaction, table: Table) -> None:
    txn.writes.insert_arrow(table, arrow(table, [(9, "one", 9)]))


def _change(txn: Transaction, table: Table) -> None:
    old = [tuple(r) for r in ROWS[1:2]]
    width = len(table.columns) - 3
    names = {f"o{c.id}": [(*row, *[None] * width)[i] for row in old] for i, c in enumerate(table.columns)}
    names["n2"] = ["one"]
    schema = pa.schema(
        [(f"o{c.id}", arrow_type(c.type)) for c in table.columns] + [("n2", arrow_type(table.columns[1].type))]
    )
    batch = pa.table([pa.array(names[f.name], f.type) for f in schema], schema=schema)
    txn.writes.change_arrow(table, batch.to_reader(), [table.columns[1]])


# Ways to bring a second row with v = 'one'.
DUPLICATES: dict[str, Write] = {
    "insert": lambda txn, table: txn.writes.insert(table, [(9, "one", 9)]),
    "update": lambda txn, table: txn.writes.update(table, [ROWS[1]], [(2, "one", 2)]),
    "load": _load,
    "change": _change,
}


@pytest.fixture
def table(node: Node) -> Table:
    table = create(node)
    insert(node, *ROWS)
    return table


def write(node: Node, how: Write) -> None:
    txn = node.begin()
    try:
        how(txn, txn.schema.table(None, "t"))
        txn.commit()
    finally:
        txn.rollback()


def run(node: Node, sql: str) -> list[tuple[object, ...]]:
    with closing(Session(node)) as session:
        return list(map(tuple, session.execute(sql).rows))


# Unique indexes.


def built(node: Node, table: Table, state: State, key: ColumnId = V) -> tuple[Table, Index]:
    index = new_index(node, "t_v", [key], unique=True)
    table = with_index(node, table, index)
    attach(node, table, index, fence(node, table))
    if state is not State.WRITE_ONLY:
        index = replace(index, state=state)
        table = with_index(node, table, index)
    return table, index


@pytest.mark.parametrize("how", DUPLICATES)
@pytest.mark.parametrize("state", [State.WRITE_ONLY, State.ENFORCED, State.PUBLIC])
def test_a_unique_key_is_refused_once_it_is_enforced(node: Node, table: Table, how: str, state: State):
    built(node, table, state)
    if state is State.WRITE_ONLY:
        write(node, DUPLICATES[how])
        assert sum(row[1] == "one" for row in rows(node)) == 2
    else:
        with pytest.raises(errors.UniqueViolation):
            write(node, DUPLICATES[how])
    assert check(node) == []


@pytest.mark.parametrize("first", DUPLICATES)
@pytest.mark.parametrize("second", DUPLICATES)
def test_keys_are_declared_before_anybody_checks(node: Node, table: Table, first: str, second: str):
    """Of a writer that does not check yet and one that does, at most one commits the same key."""
    write(node, lambda txn, t: txn.writes.update(t, [ROWS[0]], [(1, "gone", 1)]))
    table, index = built(node, table, State.WRITE_ONLY)
    early = node.begin()
    DUPLICATES[first](early, early.schema.table(None, "t"))
    with_index(node, table, replace(index, state=State.ENFORCED))
    late = node.begin()
    changed = [(2, "one", 2), (9, "one", 9)]
    DUPLICATES[second](late, late.schema.table(None, "t"))
    early.commit()
    with pytest.raises(errors.SerializationFailure):
        late.commit()
    assert sum(row in changed for row in rows(node)) == 1
    assert check(node) == []


@pytest.mark.parametrize("state", [State.WRITE_ONLY, State.ENFORCED])
def test_what_is_not_public_is_not_read(node: Node, table: Table, state: State):
    index = new_index(node, "t_v", [V], unique=True, state=state)
    with_index(node, table, index)
    # It has no generation: a lookup in it would find nothing.
    assert run(node, "select id from t where v = 'two'") == [(2,)]
    assert "t_v" not in str(run(node, "explain select id from t where v = 'two'"))
    with pytest.raises(errors.InvalidConflictTarget):
        run(node, "insert into t values (1, 'x', 1) on conflict (v) do nothing")
    run(node, "insert into t values (1, 'x', 1) on conflict do nothing")
    run(node, "insert into t values (1, 'y', 1) on conflict (id) do update set v = excluded.v")
    assert (1, "y", 1) in rows(node)


def test_entries_of_older_rows_are_removed_before_there_is_a_base(node: Node, table: Table):
    index = new_index(node, "t_v", [V], unique=False)
    table = with_index(node, table, index)
    at = fence(node, table)
    write(node, lambda txn, t: txn.writes.delete(t, [ROWS[0]]))
    write(node, lambda txn, t: txn.writes.update(t, [ROWS[1]], [(2, "deux", 2)]))
    write(node, lambda txn, t: txn.writes.insert(t, [(4, "four", 4)]))
    # The rows, and not the index: a generation made of its deltas would hide the one that is being built.
    assert node.compact(table) == 1
    attach(node, table, index, at)
    assert check(node) == []
    with_index(node, table, replace(index, state=State.PUBLIC))
    assert run(node, "select id from t where v in ('one', 'two', 'deux', 'four') order by id") == [(2,), (4,)]
    assert check(node) == []


# Constraints of single rows.


@pytest.mark.parametrize("how", ["insert", "load", "change", "update"])
@pytest.mark.parametrize("state", [State.WRITE_ONLY, State.ENFORCED])
def test_a_check(node: Node, table: Table, how: str, state: State):
    rule = Check(ConstraintId(1), "t_check", "\"c2\" <> 'one'", (V,), state)
    publish(node, table, checks=(rule,))
    if state is State.WRITE_ONLY:
        write(node, DUPLICATES[how])
    else:
        with pytest.raises(errors.CheckViolation):
            write(node, DUPLICATES[how])
    # The row that was there is not found fault with as long as the check is only enforced.
    assert check(node) == []


@pytest.mark.parametrize("state", [State.WRITE_ONLY, State.ENFORCED])
def test_not_null(node: Node, table: Table, state: State):
    insert(node, (7, None, 7))
    strict = (table.columns[0], replace(table.columns[1], nullable=False, not_null=state), table.columns[2])
    publish(node, table, columns=strict)
    sources = ["insert into t values (8, null, 8)", "update t set v = null where id = 1"]
    for sql in sources:
        if state is State.WRITE_ONLY:
            run(node, sql)
        else:
            with pytest.raises(errors.NotNullViolation):
                run(node, sql)
    assert check(node) == []
    assert (7,) in run(node, "select id from t where v is null")


# Foreign keys.


@pytest.fixture
def child(node: Node, table: Table) -> Table:
    child = create(node, name="c")
    insert(node, (1, "", 1), table="c")
    return child


def referring(node: Node, table: Table, child: Table, state: State) -> tuple[Table, Table]:
    key = ForeignKey(ConstraintId(1), "c_n", (N,), table.id, table.primary.id, state=state)
    whole = Column(N, "n", table.columns[0].type)
    layout = Layout(LayoutId(2), tuple((c.id, c.type) for c in (*child.columns[:2], whole)))
    layouts = child.layouts if child.columns[2] == whole else (*child.layouts, layout)
    child = publish(node, child, columns=(*child.columns[:2], whole), foreign_keys=(key,), layouts=layouts)
    return publish(node, table), child


@pytest.mark.parametrize("in_bulk", [False, True])
def test_a_foreign_key_is_checked_at_both_ends_once_enforced(node: Node, table: Table, child: Table, in_bulk: bool):
    def refer(txn: Transaction, n: int) -> None:
        own = txn.schema.table(None, "c")
        if in_bulk:
            txn.writes.insert_arrow(own, arrow(own, [(n, "", n)]))
        else:
            txn.writes.insert(own, [(n, "", n)])

    table, child = referring(node, table, child, State.WRITE_ONLY)
    write(node, lambda txn, _: refer(txn, 77))
    write(node, lambda txn, t: txn.writes.delete(t, [ROWS[0]]))
    # Who does not check leaves the keys that it relies on to those who do.
    early = node.begin()
    refer(early, 2)
    table, child = referring(node, table, child, State.ENFORCED)
    late = node.begin()
    late.writes.delete(late.schema.table(None, "t"), [ROWS[1]])
    late.commit()
    with pytest.raises(errors.SerializationFailure):
        early.commit()
    with pytest.raises(errors.MissingParent):
        write(node, lambda txn, _: refer(txn, 78))
    write(node, lambda txn, _: refer(txn, 3))
    with pytest.raises(errors.StillReferenced):
        write(node, lambda txn, t: txn.writes.delete(t, [ROWS[2]]))
    assert check(node) == []


# Columns.


def coming(table: Table, column: Column) -> dict[str, object]:
    layout = Layout(LayoutId(table.layout.id + 1), (*table.layout.columns, (column.id, column.type)))
    return {"columns": (*table.columns, column), "layouts": (*table.layouts, layout), "next_column_id": column.id + 1}


def test_a_column_to_come_is_filled_and_not_seen(node: Node, table: Table):
    column = Column(ColumnId(4), "extra", INTEGER, default="'5'::integer", frozen="3", state=State.WRITE_ONLY)
    table = publish(node, table, **coming(table, column))
    assert run(node, "select * from t where id = 1") == [(1, "one", 1)]
    for sql in ["select extra from t", "insert into t (id, extra) values (9, 9)", "update t set extra = 1"]:
        with pytest.raises(errors.Error) as refused:
            run(node, sql)
        assert refused.value.sqlstate == "42703"
    run(node, "insert into t values (4, 'four', 4)")
    run(node, "insert into t select 5, 'five', 5")
    run(node, "insert into t values (1, 'x', 1) on conflict (id) do update set v = excluded.v")
    assert run(node, "update t set n = 22 where id = 2 returning *") == [(2, "two", 22)]
    write(node, lambda txn, t: txn.writes.insert_arrow(t, arrow(t, [(6, "six", 6)])))
    shown = replace(column, state=State.PUBLIC)
    publish(node, table, columns=(*table.columns[:3], shown))
    assert run(node, "select id, extra from t order by id") == [(1, 3), (2, 3), (3, 3), (4, 5), (5, 5), (6, 5)]
    assert check(node) == []


def converting(node: Node, table: Table) -> tuple[Table, Index]:
    """v becomes an integer, its values taken from n's text, in a new primary index; with an index on it."""
    text = Expression('CAST("c2" AS INTEGER)', (V,))
    column = Column(ColumnId(4), "v", INTEGER, state=State.VALIDATING, conversion=text)
    primary = replace(new_index(node, "t_pkey", [ColumnId(1)], unique=True), constraint=True)
    index = replace(new_index(node, "t_v", [ColumnId(4)], unique=False), source=primary.id)
    table = publish(node, table, next_primary=primary, secondary=(index,), **coming(table, column))
    return table, index


def converted(node: Node, table: Table) -> Table:
    kept = (table.columns[0], replace(table.columns[3], state=State.PUBLIC, conversion=None), table.columns[2])
    layout = Layout(LayoutId(table.layout.id + 1), tuple((c.id, c.type) for c in kept))
    assert table.next_primary is not None
    (index,) = table.secondary
    return publish(
        node,
        table,
        columns=kept,
        layouts=(*table.layouts, layout),
        primary=replace(table.next_primary, state=State.PUBLIC),
        next_primary=None,
        secondary=(replace(index, state=State.PUBLIC, source=None),),
    )


def test_a_converted_column_and_the_primary_index_to_come(node: Node):
    table = create(node)
    insert(node, (1, "10", 1), (2, "20", 2), (3, "30", 3), (4, "40", 4))
    table, index = converting(node, table)
    assert table.next_primary is not None
    at = fence(node, table)
    run(node, "insert into t values (5, '50', 5)")
    run(node, "insert into t select 6, '60', 6")
    run(node, "update t set v = '21' where id = 2")
    run(node, "update t set n = 33 where v = '30'")
    run(node, "delete from t where id = 4")
    run(node, "insert into t values (5, '51', 5) on conflict (id) do update set v = excluded.v")
    write(node, lambda txn, t: txn.writes.insert_arrow(t, arrow(t, [(7, "70", 7)])))
    assert run(node, "select * from t where id = 2") == [(2, "21", 2)]
    attach(node, table, table.next_primary, at)
    attach(node, table, index, at)
    assert check(node) == []
    old = node.begin()
    old.writes.update(old.schema.table(None, "t"), [(1, "10", 1, None)], [(1, "11", 1, None)])
    converted(node, table)
    new = node.begin()
    new.writes.update(new.schema.table(None, "t"), [(1, 10, 1)], [(1, 12, 1)])
    old.commit()
    # They know the row by different indexes, and yet conflict.
    with pytest.raises(errors.SerializationFailure):
        new.commit()
    assert rows(node) == [(1, 11, 1), (2, 21, 2), (3, 30, 33), (5, 51, 5), (6, 60, 6), (7, 70, 7)]
    assert run(node, "select id from t where v = 51") == [(5,)]
    assert check(node) == []


def test_a_large_change_while_a_column_is_converted(node: Node):
    table = create(node)
    write(node, lambda txn, t: txn.writes.insert_arrow(t, arrow(t, [(i, str(i), i) for i in range(12_000)])))
    table, index = converting(node, table)
    assert table.next_primary is not None
    at = fence(node, table)
    run(node, "update t set v = v || '0' where n >= 500")
    run(node, "delete from t where n < 11000")
    attach(node, table, table.next_primary, at)
    attach(node, table, index, at)
    assert check(node) == []
    converted(node, table)
    assert run(node, "select count(*), min(v), max(v) from t") == [(1000, 110000, 119990)]


@pytest.mark.parametrize("in_bulk", [False, True])
def test_a_row_that_cannot_be_converted_fails_the_change_and_not_the_writer(node: Node, in_bulk: bool):
    table = create(node)
    table, _ = converting(node, table)
    at = fence(node, table)
    key = conversion_hash(table.id, ColumnId(4))
    assert isinstance(submit(node, validated=at, oldest=at, writes=(key,)), Committed)
    at = Seq(node.epoch.applied)
    row = (1, "no number", 1)
    write(
        node,
        lambda txn, t: txn.writes.insert_arrow(t, arrow(t, [row])) if in_bulk else txn.writes.insert(t, [(*row, None)]),
    )
    assert rows(node) == [row]
    assert isinstance(submit(node, validated=at, oldest=at, writes=(key,)), Conflict)
