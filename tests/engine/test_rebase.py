"""A commit whose plan is older than its tables allow is rebased, not rejected."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import ColumnId, ConstraintId
from seachange.model.isolation import Isolation
from seachange.model.schema.constraint import Action, Check, ForeignKey
from seachange.model.schema.descriptor import Column, Table
from seachange.model.states import State
from seachange.values.types import TEXT
from seachange.verify.consistency import check
from tests.engine.changing import attach, fence, new_index, publish, with_index
from tests.engine.database import add_column, arrow, create, insert, rows, with_columns
from tests.engine.test_states import ROWS, V, converted, converting

pytestmark = pytest.mark.either_catalog


def _come_and_go(txn: Transaction, table: Table) -> None:
    txn.writes.insert(table, [(4, "x", 4)])
    txn.writes.delete(table, [(4, "x", 4)])
    txn.writes.delete(table, [ROWS[0]])


WRITES: dict[str, tuple[Callable[[Transaction, Table], object], Sequence[tuple[object, ...]]]] = {
    "insert": (lambda txn, t: txn.writes.insert(t, [(4, "four", 4)]), [*ROWS, (4, "four", 4)]),
    "update": (lambda txn, t: txn.writes.update(t, [ROWS[0]], [(1, "new", 1)]), [(1, "new", 1), *ROWS[1:]]),
    "move": (lambda txn, t: txn.writes.update(t, [ROWS[0]], [(7, "one", 1)]), [*ROWS[1:], (7, "one", 1)]),
    "delete": (lambda txn, t: txn.writes.delete(t, [ROWS[0]]), ROWS[1:]),
    "load": (
        lambda txn, t: txn.writes.insert_arrow(t, arrow(t, [(4, "four", 4), (5, "five", 5)])),
        [*ROWS, (4, "four", 4), (5, "five", 5)],
    ),
    "nothing left": (_come_and_go, ROWS[1:]),
}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    url = request.getfixturevalue("postgres_server").create_database() if request.param == "postgres" else None
    with closing(open_node(tmp_path_factory.mktemp("rebase"), url, "one")) as node:
        node.maintenance.paused = True
        yield node


@pytest.fixture
def node(opened: Node) -> Iterator[Node]:
    """A node over a database without tables."""
    inline_rows_max = opened.parts.inline_rows_max
    yield opened
    opened.parts.inline_rows_max = inline_rows_max
    with closing(Session(opened)) as session:
        for _, name in opened.epoch.schemas.newest.within().by_name:
            session.execute(f"drop table if exists {name} cascade")


@pytest.fixture
def table(node: Node) -> Table:
    table = create(node)
    insert(node, *ROWS)
    return table


def begun(
    node: Node, write: Callable[[Transaction, Table], object], isolation: Isolation = Isolation.READ_COMMITTED
) -> Transaction:
    txn = node.begin(isolation)
    write(txn, txn.schema.table(None, "t"))
    return txn


@pytest.mark.parametrize("isolation", list(Isolation))
@pytest.mark.parametrize("how", WRITES)
@pytest.mark.parametrize("rows_inline_max", [5_000, 0])
def test_an_index_that_came_gets_its_entries(
    node: Node, table: Table, how: str, isolation: Isolation, rows_inline_max: int
):
    node.parts.inline_rows_max = rows_inline_max
    write, expected = WRITES[how]
    txn = begun(node, write, isolation)
    index = new_index(node, "t_v", [V], unique=True)
    table = with_index(node, table, index)
    at = fence(node, table)
    txn.commit()
    assert rows(node) == sorted(expected)
    attach(node, table, index, at)
    assert check(node) == []
    with_index(node, table, replace(index, state=State.PUBLIC))
    assert check(node) == []


@pytest.mark.parametrize("how", WRITES)
def test_a_primary_index_to_come_and_a_converted_column(node: Node, how: str):
    table = create(node)
    insert(node, *[(id_, str(id_), n) for id_, _, n in ROWS])
    old = (1, "1", 1)
    txn = begun(
        node,
        {
            "insert": lambda txn, t: txn.writes.insert(t, [(4, "4", 4)]),
            "update": lambda txn, t: txn.writes.update(t, [old], [(1, "11", 1)]),
            "move": lambda txn, t: txn.writes.update(t, [old], [(7, "1", 1)]),
            "delete": lambda txn, t: txn.writes.delete(t, [old]),
            "load": lambda txn, t: txn.writes.insert_arrow(t, arrow(t, [(4, "4", 4)])),
            "nothing left": lambda txn, t: txn.writes.update(t, [old], [old]),
        }[how],
    )
    table, index = converting(node, table)
    assert table.next_primary is not None
    at = fence(node, table)
    txn.commit()
    before = [(id_, int(v), n) for id_, v, n in rows(node)]
    attach(node, table, table.next_primary, at)
    attach(node, table, index, at)
    assert check(node) == []
    converted(node, table)
    assert rows(node) == before
    assert check(node) == []


def test_fenced_again_and_again(node: Node, table: Table):
    txn = begun(node, WRITES["update"][0])
    index = new_index(node, "t_v", [V], unique=True)
    table = with_index(node, table, index)
    at = fence(node, table)
    attach(node, table, index, at)
    table = with_index(node, table, replace(index, state=State.ENFORCED))
    fence(node, table)
    txn.commit()
    assert check(node) == []


def test_what_is_enforced_now_is_checked_at_commit(node: Node, table: Table):
    def twice(how: Callable[[Transaction, Table], object], change: Callable[[Table], Table]) -> None:
        nonlocal table
        txn = begun(node, how)
        table = change(table)
        fence(node, table)
        txn.commit()

    rule = Check(ConstraintId(1), "t_check", '"c3" < 100', (ColumnId(3),), State.ENFORCED)
    with pytest.raises(errors.CheckViolation):
        twice(lambda txn, t: txn.writes.insert(t, [(4, "x", 100)]), lambda t: publish(node, t, checks=(rule,)))
    strict = replace(table.columns[1], nullable=False, not_null=State.ENFORCED)
    columns = (table.columns[0], strict, table.columns[2])
    with pytest.raises(errors.NotNullViolation):
        twice(lambda txn, t: txn.writes.insert(t, [(4, None, 1)]), lambda t: publish(node, t, columns=columns))
    index = new_index(node, "t_v", [V], unique=True)
    table = with_index(node, table, index)
    attach(node, table, index, fence(node, table))
    enforced = replace(index, state=State.ENFORCED)
    with pytest.raises(errors.UniqueViolation):
        twice(lambda txn, t: txn.writes.insert(t, [(4, "one", 1)]), lambda t: with_index(node, t, enforced))
    assert rows(node) == sorted(ROWS)
    assert check(node) == []


def test_a_load_is_no_duplicate_of_itself(node: Node, table: Table):
    index = new_index(node, "t_v", [V], unique=True)
    table = with_index(node, table, index)
    attach(node, table, index, fence(node, table))
    distinct = begun(node, WRITES["load"][0])
    twice = begun(node, lambda txn, t: txn.writes.insert_arrow(t, arrow(t, [(8, "same", 8), (9, "same", 9)])))
    table = with_index(node, table, replace(index, state=State.ENFORCED))
    fence(node, table)
    distinct.commit()
    with pytest.raises(errors.UniqueViolation):
        twice.commit()
    assert rows(node) == sorted(WRITES["load"][1])
    assert check(node) == []


def test_two_that_were_fenced_do_not_bring_the_same_key(node: Node, table: Table):
    first = begun(node, lambda txn, t: txn.writes.insert(t, [(8, "same", 1)]))
    second = begun(node, lambda txn, t: txn.writes.insert(t, [(9, "same", 1)]))
    index = new_index(node, "t_v", [V], unique=True)
    table = with_index(node, table, index)
    attach(node, table, index, fence(node, table))
    table = with_index(node, table, replace(index, state=State.ENFORCED))
    fence(node, table)
    first.commit()
    with pytest.raises((errors.UniqueViolation, errors.SerializationFailure)):
        second.commit()
    assert check(node) == []


@pytest.mark.parametrize("action", [Action.NO_ACTION, Action.CASCADE])
def test_a_foreign_key_that_came(node: Node, table: Table, action: Action):
    child = create(node, name="c", columns=(table.columns[0], replace(table.columns[0], id=V, name="p", nullable=True)))
    insert(node, (1, 2), table="c")
    orphan, whole = node.begin(), node.begin()
    orphan.writes.insert(orphan.schema.table(None, "c"), [(2, 77)])
    whole.writes.insert(whole.schema.table(None, "c"), [(3, 3)])
    referred, free = node.begin(), node.begin()
    referred.writes.delete(referred.schema.table(None, "t"), [ROWS[1]])
    free.writes.delete(free.schema.table(None, "t"), [ROWS[0]])
    key = ForeignKey(ConstraintId(1), "c_p", (V,), table.id, table.primary.id, action, action, state=State.ENFORCED)
    child, table = publish(node, child, foreign_keys=(key,)), publish(node, table)
    fence(node, child, table)
    with pytest.raises(errors.MissingParent):
        orphan.commit()
    whole.commit()
    free.commit()
    with pytest.raises(errors.StillReferenced if action is Action.NO_ACTION else errors.SerializationFailure):
        referred.commit()
    assert rows(node, "c") == [(1, 2), (3, 3)]
    assert check(node) == []


def test_commit_that_cannot_be_rebased_is_a_conflict(node: Node, table: Table):
    txn = begun(node, WRITES["insert"][0])
    other = begun(node, WRITES["delete"][0])
    changed = node.begin()
    changed.definitions.publish(table, None)
    changed.commit()
    for refused in (txn, other):
        with pytest.raises(errors.SerializationFailure):
            refused.commit()


def test_what_a_column_to_come_has_no_value_for(node: Node, table: Table):
    """As on an empty table: nothing is kept for rows that were written without it, so they get the default."""
    txn = begun(node, WRITES["insert"][0])
    came = add_column(table, "extra")
    withdrawn = replace(came, columns=(*came.columns[:3], replace(came.columns[3], default="'5'::integer")))
    changed = node.begin()
    changed.definitions.publish(table, withdrawn)
    changed.commit()
    fence(node, withdrawn)
    txn.commit()
    assert rows(node) == [*((*row, None) for row in sorted(ROWS)), (4, "four", 4, 5)]
    other = node.begin()
    other.writes.insert(withdrawn, [(9, "nine", 9, 5)])
    replaced = with_columns(withdrawn, (*withdrawn.columns[:3], Column(ColumnId(9), "extra", TEXT)))
    changed = node.begin()
    changed.definitions.publish(withdrawn, replaced)
    changed.commit()
    fence(node, replaced)
    # It stands before the change, which took away what there was under the same name.
    other.commit()
    assert rows(node)[-1] == (9, "nine", 9, None)


def test_rows_keep_their_layout(node: Node, table: Table):
    txn = begun(node, WRITES["update"][0])
    after = add_column(table, "extra", frozen="5")
    changed = node.begin()
    changed.definitions.publish(table, after)
    changed.commit()
    fence(node, after)
    txn.commit()
    assert rows(node) == [(1, "new", 1, 5), (2, "two", 2, 5), (3, "three", 3, 5)]
    assert check(node) == []


def test_a_row_that_a_newer_version_wrote_is_a_conflict(node: Node, table: Table):
    txn = begun(node, WRITES["update"][0])
    index = new_index(node, "t_v", [V], unique=False)
    table = with_index(node, table, index)
    at = fence(node, table)
    begun(node, lambda txn, t: txn.writes.update(t, [ROWS[0]], [(1, "newer", 1)])).commit()
    with pytest.raises(errors.SerializationFailure):
        txn.commit()
    attach(node, table, index, at)
    assert check(node) == []
