"""What a transaction sees of others and of itself, and what a failed statement leaves behind."""

from dataclasses import replace

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.shapes.shaped_port import shaped
from seachange.model.ids import ColumnId
from seachange.model.isolation import Isolation
from seachange.model.schema.descriptor import Column, Table
from seachange.values.types import BIGINT
from tests.engine.database import COLUMNS, add_column, arrow, bulk, create, insert, new_table, rows, scan

UNIQUE_V = [("t_v_key", (2,), True)]


def test_own_writes_are_visible_by_scan_and_by_key(node: Node):
    create(node)
    insert(node, (1, "a", 1), (2, "b", 2), (3, "c", 3))
    txn = node.begin()
    table = txn.schema.table(None, "t")
    txn.writes.insert(table, [(4, "d", 4)])
    txn.writes.update(table, [(1, "a", 1)], [(1, "A", 1)])
    txn.writes.update(table, [(2, "b", 2)], [(20, "b", 2)])
    txn.writes.delete(table, [(3, "c", 3)])
    expected = [(1, "A", 1), (20, "b", 2), (4, "d", 4)]
    assert scan(node, txn, table) == sorted(expected, key=repr)
    assert [txn.reads.get(table, (i,)) for i in (1, 2, 3, 4, 20)] == [
        (1, "A", 1),
        None,
        None,
        (4, "d", 4),
        (20, "b", 2),
    ]
    assert rows(node) == [(1, "a", 1), (2, "b", 2), (3, "c", 3)]
    txn.commit()
    assert rows(node) == sorted(expected, key=repr)


def test_own_bulk_rows_are_visible_and_can_be_changed(node: Node, other: Node):
    create(node, indexes=UNIQUE_V)
    insert(node, (1, "one", 1))
    txn = node.begin()
    table = txn.schema.table(None, "t")
    txn.writes.insert_arrow(table, arrow(table, [(i, f"v{i}", i) for i in range(10, 20)]))
    txn.writes.update(table, [(10, "v10", 10)], [(10, "changed", 10)])
    txn.writes.delete(table, [(11, "v11", 11)])
    txn.writes.update(table, [(12, "v12", 12)], [(120, "v12", 12)])
    expected = [(1, "one", 1), (10, "changed", 10), (120, "v12", 12), *((i, f"v{i}", i) for i in range(13, 20))]
    assert scan(node, txn, table) == sorted(expected, key=repr)
    assert [txn.reads.get(table, (i,)) for i in (10, 11, 12, 13, 120)] == [
        (10, "changed", 10),
        None,
        None,
        (13, "v13", 13),
        (120, "v12", 12),
    ]
    for taken in ((13, "new", 0), (99, "v14", 0)):
        mark = txn.undo.mark()
        with pytest.raises(errors.UniqueViolation):
            txn.writes.insert(table, [taken])
        txn.undo.reset(mark)
    txn.commit()
    assert rows(node) == rows(other) == sorted(expected, key=repr)


def test_a_bulk_insert_may_bring_back_what_the_transaction_deleted(node: Node, other: Node):
    create(node, indexes=UNIQUE_V)
    insert(node, (1, "a", 1), (2, "b", 2))
    txn = node.begin()
    table = txn.schema.table(None, "t")
    txn.writes.delete(table, [(1, "a", 1)])
    txn.writes.insert(table, [(3, "c", 3)])
    txn.writes.delete(table, [(3, "c", 3)])
    txn.writes.insert_arrow(table, arrow(table, [(1, "a", 10), (3, "c", 30), (4, "d", 40)]))
    expected = [(1, "a", 10), (2, "b", 2), (3, "c", 30), (4, "d", 40)]
    assert scan(node, txn, table) == expected
    assert [txn.reads.get(table, row[:1]) for row in expected] == expected
    txn.commit()
    for reader in (node, other):
        after = reader.begin()
        assert scan(reader, after, table) == expected
        assert [after.reads.get(table, row[:1]) for row in expected] == expected
        after.rollback()


def test_a_bulk_insert_does_not_repeat_a_key(node: Node):
    create(node, indexes=UNIQUE_V)
    bulk(node, (1, "a", 1))
    insert(node, (2, "b", 2))
    txn = node.begin()
    table = txn.schema.table(None, "t")
    txn.writes.insert(table, [(3, "c", 3)])
    txn.writes.insert_arrow(table, arrow(table, [(4, "d", 4)]))
    taken = [(1, "x", 0), (2, "x", 0), (3, "x", 0), (4, "x", 0), (9, "a", 0), (9, "b", 0), (9, "c", 0), (9, "d", 0)]
    for row in taken:
        mark = txn.undo.mark()
        with pytest.raises(errors.UniqueViolation):
            txn.writes.insert_arrow(table, arrow(table, [(50, "fine", 0), row]))
        txn.undo.reset(mark)
    with pytest.raises(errors.UniqueViolation):
        txn.writes.insert_arrow(table, arrow(table, [(60, "x", 0), (60, "y", 0)]))
    txn.commit()
    assert [row[0] for row in rows(node)] == [1, 2, 3, 4]


def test_a_failed_statement_is_rolled_back_as_a_whole(node: Node):
    create(node, indexes=UNIQUE_V)
    bulk(node, *[(i, f"v{i}", i) for i in range(5)])
    txn = node.begin()
    table = txn.schema.table(None, "t")
    txn.writes.insert(table, [(10, "ten", 0)])
    before = scan(node, txn, table)
    mark = txn.undo.mark()
    txn.writes.update(table, [(10, "ten", 0), (1, "v1", 1)], [(11, "ten", 0), (1, "V1", 1)])
    txn.writes.insert_arrow(table, arrow(table, [(20, "twenty", 0), (21, "x", 0)]))
    txn.writes.update(table, [(20, "twenty", 0)], [(22, "twenty", 0)])
    txn.writes.delete(table, [(2, "v2", 2), (21, "x", 0)])
    assert scan(node, txn, table) != before
    txn.undo.reset(mark)
    assert scan(node, txn, table) == before
    assert [txn.reads.get(table, (i,)) for i in (1, 10, 11, 20, 22)] == [(1, "v1", 1), (10, "ten", 0), None, None, None]
    # The unique keys that were taken and given back can be taken again.
    txn.writes.insert(table, [(30, "twenty", 0), (31, "V1", 0)])
    txn.commit()
    assert rows(node) == sorted([*before, (30, "twenty", 0), (31, "V1", 0)], key=repr)


def test_a_failed_statement_leaves_nothing(node: Node):
    create(node)
    insert(node, (1, "a", 1))
    txn = node.begin()
    table = txn.schema.table(None, "t")
    mark = txn.undo.mark()
    with pytest.raises(errors.UniqueViolation):
        txn.writes.insert(table, [(2, "b", 2), (1, "again", 1)])
    txn.undo.reset(mark)
    txn.writes.insert(table, [(3, "c", 3)])
    txn.commit()
    assert rows(node) == [(1, "a", 1), (3, "c", 3)]


def test_a_rolled_back_transaction_leaves_nothing(node: Node):
    create(node)
    txn = node.begin()
    table = txn.schema.table(None, "t")
    txn.writes.insert(table, [(1, "a", 1)])
    txn.writes.insert_arrow(table, arrow(table, [(2, "b", 2)]))
    txn.rollback()
    assert rows(node) == []
    assert node.collect_garbage(retention_us=0) == 1
    assert node.parts.files.names() == []


def test_what_comes_and_goes_is_no_commit(node: Node):
    create(node)
    txn = node.begin()
    table = txn.schema.table(None, "t")
    txn.writes.insert(table, [(1, "a", 1)])
    txn.writes.delete(table, [(1, "a", 1)])
    assert txn.commit() is None


def test_read_committed_sees_each_statement_s_present(node: Node, other: Node):
    create(node)
    reader = node.begin(Isolation.READ_COMMITTED)
    table = reader.schema.table(None, "t")
    insert(other, (1, "a", 1))
    assert scan(node, reader, table) == []
    reader.start_statement()
    assert scan(node, reader, table) == [(1, "a", 1)]


def test_repeatable_read_sees_one_past(node: Node, other: Node):
    create(node)
    insert(node, (1, "a", 1))
    reader = node.begin(Isolation.REPEATABLE_READ)
    table = reader.schema.table(None, "t")
    bulk(other, (2, "b", 2))
    txn = other.begin()
    txn.writes.delete(table, [(1, "a", 1)])
    txn.commit()
    reader.start_statement()
    assert scan(node, reader, table) == [(1, "a", 1)]
    assert reader.reads.get(table, (1,)) == (1, "a", 1)
    assert reader.reads.get(table, (2,)) is None


def test_a_transaction_plans_with_the_schema_of_its_snapshot(node: Node, other: Node):
    create(node)
    insert(node, (1, "a", 1))
    old = node.begin(Isolation.REPEATABLE_READ)
    txn = other.begin()
    before = txn.schema.table(None, "t")
    txn.definitions.publish(before, add_column(before, "extra", frozen="7"))
    txn.commit()
    assert rows(node) == [(1, "a", 1, 7)]
    old.start_statement()
    assert old.schema.table(None, "t").version == 1
    assert scan(node, old, old.schema.table(None, "t")) == [(1, "a", 1)]
    # A version that moves no bytes fences no writer.
    old.writes.insert(old.schema.table(None, "t"), [(2, "b", 2)])
    old.commit()
    assert rows(node) == rows(other) == [(1, "a", 1, 7), (2, "b", 2, 7)]


def test_read_committed_shows_the_newest_version_of_a_table_in_the_shape_of_its_first_use(node: Node, other: Node):
    create(node)
    insert(node, (1, "a", 1))
    reader = node.begin(Isolation.READ_COMMITTED)
    assert scan(node, reader, reader.schema.table(None, "t")) == [(1, "a", 1)]
    txn = other.begin()
    before = txn.schema.table(None, "t")
    txn.definitions.publish(before, add_column(before, "extra"))
    txn.commit()
    insert(node, (2, "b", 2, 3))
    reader.start_statement()
    assert scan(node, reader, reader.schema.table(None, "t")) == [(1, "a", 1, None), (2, "b", 2, 3)]
    assert [column.name for column in shaped(reader).names.table(None, "t").visible_columns] == ["id", "v", "n"]


def test_own_rows_take_the_shape_that_the_transaction_gives_the_table(node: Node, other: Node):
    create(node)
    insert(node, (1, "a", 1))
    txn = node.begin()
    table = txn.schema.table(None, "t")
    txn.writes.insert(table, [(2, "b", 2)])
    txn.writes.insert_arrow(table, arrow(table, [(3, "c", 3), (4, "d", 4)]))
    wider = add_column(table, "extra", frozen="7")
    txn.definitions.publish(table, wider)
    txn.writes.delete(wider, [(4, "d", 4, 7)])
    expected = [(1, "a", 1, 7), (2, "b", 2, 7), (3, "c", 3, 7)]
    assert scan(node, txn, wider) == expected
    assert [txn.reads.get(wider, (i,)) for i in (1, 2, 3, 4)] == [*expected, None]
    txn.commit()
    assert rows(node) == rows(other) == expected


def test_relying_on_emptiness_conflicts_with_an_insert_before(node: Node, other: Node):
    create(node)
    changer = node.begin()
    table = changer.schema.table(None, "t")
    assert changer.definitions.is_empty(table)
    changer.definitions.rely_on_empty(table)
    changer.definitions.fence([table.id])
    insert(other, (1, "a", None))
    strict = (*table.columns[:2], replace(table.columns[2], nullable=False))
    changer.definitions.publish(table, replace(table, version=2, columns=strict))
    with pytest.raises(errors.SerializationFailure):
        changer.commit()
    assert rows(node) == [(1, "a", None)]


def test_rows_that_come_after_a_table_was_found_empty_are_checked(node: Node, other: Node):
    create(node)
    writer = other.begin()
    writer.writes.insert(writer.schema.table(None, "t"), [(1, "a", None)])
    fitting = other.begin()
    fitting.writes.insert(fitting.schema.table(None, "t"), [(2, "a", 2)])
    changer = node.begin()
    table = changer.schema.table(None, "t")
    assert changer.definitions.is_empty(table)
    changer.definitions.rely_on_empty(table)
    changer.definitions.fence([table.id])
    strict = (*table.columns[:2], replace(table.columns[2], nullable=False))
    changer.definitions.publish(table, replace(table, version=2, columns=strict))
    changer.commit()
    with pytest.raises(errors.NotNullViolation):
        writer.commit()
    fitting.commit()
    assert rows(node) == [(2, "a", 2)]


def test_emptiness_after_deletes_can_be_relied_on(node: Node):
    create(node)
    bulk(node, *[(i, "x", 0) for i in range(3)])
    txn = node.begin()
    table = txn.schema.table(None, "t")
    txn.writes.delete(table, [(i, "x", 0) for i in range(3)])
    assert not txn.definitions.is_empty(table)
    txn.commit()
    assert node.begin().definitions.is_empty(table)


def test_a_write_to_a_dropped_table_is_refused(node: Node, other: Node):
    create(node)
    insert(node, (1, "a", 1))
    writer = node.begin()
    writer.writes.insert(writer.schema.table(None, "t"), [(2, "b", 2)])
    dropper = other.begin()
    dropper.definitions.publish(dropper.schema.table(None, "t"), None)
    dropper.commit()
    with pytest.raises(errors.SerializationFailure):
        writer.commit()
    with pytest.raises(errors.UndefinedTable):
        rows(node)


def test_two_creators_of_one_name(node: Node, other: Node):
    first, second = node.begin(), other.begin()
    new_table(first)
    new_table(second)
    first.commit()
    with pytest.raises(errors.SerializationFailure):
        second.commit()


def test_two_changers_of_one_table(node: Node, other: Node):
    create(node)
    first, second = node.begin(), other.begin()
    for txn in (first, second):
        table = txn.schema.table(None, "t")
        txn.definitions.publish(table, add_column(table, "extra"))
    second.commit()
    with pytest.raises(errors.SerializationFailure):
        first.commit()


def test_hidden_row_ids_tell_equal_rows_apart(node: Node, other: Node):
    rowid = Column(ColumnId(4), "rowid", BIGINT, nullable=False, hidden=True)
    table = create(node, columns=(*COLUMNS, rowid), key=(4,))
    for each in (node, other):
        insert(each, (1, "same", 0, None), (1, "same", 0, None))
        bulk(each, (1, "same", 0), (1, "same", 0))
    assert rows(node) == rows(other) == [(1, "same", 0)] * 8
    txn = node.begin()
    ids = {row[3] for row in _hidden_rows(node, table)}
    txn.rollback()
    assert len(ids) == 8


def _hidden_rows(node: Node, table: Table):
    txn = node.begin()
    planned = txn.reads.scan(table, hidden=True)
    with node.duck.cursor() as cursor:
        for name, relation in planned.relations.items():
            cursor.register(name, relation)
        return cursor.execute(planned.sql, dict(planned.parameters)).fetchall()


def test_a_required_value_is_required_of_every_write(node: Node):
    strict = (COLUMNS[0], replace(COLUMNS[1], nullable=False), COLUMNS[2])
    create(node, columns=strict)
    insert(node, (1, "a", 1))
    txn = node.begin()
    table = txn.schema.table(None, "t")
    with pytest.raises(errors.NotNullViolation):
        txn.writes.insert(table, [(2, None, 2)])
    with pytest.raises(errors.NotNullViolation):
        txn.writes.update(table, [(1, "a", 1)], [(1, None, 1)])
    with pytest.raises(errors.NotNullViolation):
        txn.writes.insert_arrow(table, arrow(table, [(2, None, 2)]))
    txn.rollback()


def test_an_ended_transaction_cannot_commit_again(node: Node):
    create(node)
    txn = node.begin()
    txn.writes.insert(txn.schema.table(None, "t"), [(1, "a", 1)])
    txn.commit()
    with pytest.raises(errors.ActiveTransaction):
        txn.commit()
