"""Constraints that planted rows break: each is found by both methods."""

from contextlib import closing

import pytest

from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.schema.descriptor import Table
from seachange.model.segments import Op
from seachange.verify.anomalies import AnomalyKind, AnomalyRule
from seachange.verify.consistency import check
from tests.verify.test_consistency import force_rows


@pytest.fixture
def tables(node: Node) -> dict[str, Table]:
    """A parent, and a child with every kind of constraint; sound rows, inline and in files."""
    statements = [
        "create table p (a int, b int, u text unique, primary key (a, b))",
        "create table c (id int primary key, n int not null, s text unique, x int, y int, u text references p (u), "
        "check (n / 2 > 0), check (s ~ '!$'), foreign key (x, y) references p)",
        "insert into p select i, i + 1, 'u' || i from generate_series(1, 200) g(i)",
        "insert into c select i, i + 1, i || '!', i, i + 1, 'u' || i from generate_series(1, 200) g(i)",
        "insert into c values (0, 2, null, null, 77, null), (-1, 2, null, 77, null, 'u9')",
        "update c set n = 5 where id = 7",
    ]
    with closing(Session(node)) as session:
        for statement in statements[:4]:
            session.execute(statement)
        txn = node.begin()
        found = {table.name: table for table in txn.schema.tables()}
        txn.rollback()
        for table in found.values():
            node.compact(table)
        for statement in statements[4:]:
            session.execute(statement)
    return found


def plant(node: Node, table: Table, row: tuple[object, ...]) -> None:
    """A row with all its entries, written without a look at any constraint."""
    positions = {column.id: i for i, column in enumerate(table.columns)}
    for index in table.indexes:
        stored = tuple(row[positions[c]] for c, _ in table.stored_columns(index, table.layout))
        force_rows(node, table, index, (Op.INSERT, stored))


def methods(anomalies, kind: AnomalyKind) -> int:
    """How many methods found anomalies of a kind."""
    assert {anomaly.item for anomaly in anomalies if anomaly.kind is kind} <= {
        AnomalyRule.CONSTRAINT,
        AnomalyRule.REQUIRED_VALUE,
    }
    return len({anomaly.detail for anomaly in anomalies if anomaly.kind is kind})


def test_sound_tables(node: Node, other: Node, tables):
    assert check(node) == []
    assert check(other, ["c"]) == []


@pytest.mark.parametrize(
    ("row", "kind", "name"),
    [
        ((-5, 1, None, None, None, None), AnomalyKind.CHECK_BROKEN, "c_n_check"),
        ((-5, 2, "missing", None, None, None), AnomalyKind.CHECK_BROKEN, "c_s_check"),
        ((-5, 2, None, 1, 1, None), AnomalyKind.ORPHAN_ROW, "c_x_y_fkey"),
        ((-5, 2, None, None, None, "missing"), AnomalyKind.ORPHAN_ROW, "c_u_fkey"),
        ((-5, None, None, None, None, None), AnomalyKind.NULL_VALUE, "n"),
    ],
)
def test_a_row_that_breaks_a_constraint(node: Node, tables, row, kind, name):
    plant(node, tables["c"], row)
    found = check(node, ["c"])
    assert {anomaly.kind for anomaly in found} == {kind}
    assert {str(anomaly.key) for anomaly in found} <= {"(('id', '-5'),)", "(('id', -5),)"}
    assert all(name in anomaly.detail for anomaly in found)
    assert methods(found, kind) == 2


def test_a_unique_key_that_two_rows_have(node: Node, tables):
    plant(node, tables["c"], (-5, 2, "9!", None, None, None))
    kinds = {anomaly.kind for anomaly in check(node, ["c"])}
    assert kinds == {AnomalyKind.DUPLICATE_KEY, AnomalyKind.LOOKUP_DIFFERS}


def test_nulls_that_are_not_distinct(node: Node):
    with closing(Session(node)) as session:
        session.execute("create table d (id int primary key, a int, b int, unique nulls not distinct (a, b))")
        session.execute("insert into d values (1, 1, null), (2, null, null), (3, null, 3)")
    assert check(node, ["d"]) == []
    txn = node.begin()
    table = txn.schema.table(None, "d")
    txn.rollback()
    plant(node, table, (4, 1, None))
    found = check(node, ["d"])
    assert {anomaly.kind for anomaly in found} == {AnomalyKind.DUPLICATE_KEY, AnomalyKind.LOOKUP_DIFFERS}


def test_a_generated_value_that_is_not_what_it_is_made_from(node: Node):
    with closing(Session(node)) as session:
        session.execute("create table g (id int primary key, a int, b int generated always as (a + 1) stored)")
        session.execute("insert into g values (1, 1), (2, null)")
    assert check(node, ["g"]) == []
    txn = node.begin()
    table = txn.schema.table(None, "g")
    txn.rollback()
    plant(node, table, (3, 5, 7))
    found = check(node, ["g"])
    assert {anomaly.kind for anomaly in found} == {AnomalyKind.GENERATED_WRONG}
    assert methods(found, AnomalyKind.GENERATED_WRONG) == 2


def test_a_parent_that_went(node: Node, tables):
    table = tables["p"]
    force_rows(node, table, table.primary, (Op.TOMBSTONE, (9, 10, None)))
    force_rows(node, table, table.secondary[0], (Op.TOMBSTONE, ("u9", 9, 10)))
    found = check(node)
    assert {anomaly.kind for anomaly in found} == {AnomalyKind.ORPHAN_ROW}
    # Two foreign keys, two methods.
    assert methods(found, AnomalyKind.ORPHAN_ROW) == 4
