"""How tables are read: through which index, or not."""

import pytest

from seachange.engine.session.session import Session
from seachange.model.condition import Above, Among, Below, Condition, StartsWith
from seachange.model.ids import ColumnId
from tests.engine.database import bulk, create, insert

ID, V, N = ColumnId(1), ColumnId(2), ColumnId(3)
INDEXES = (("t_v_n", (2, 3), False), ("t_n", (3,), True))


@pytest.fixture
def filled(node):
    create(node, indexes=INDEXES)
    bulk(node, *((i, f"v{i % 100}", i) for i in range(0, 4_000, 2)))
    insert(node, *((i, f"v{i % 100}", i) for i in range(1, 41, 2)))
    return node


def access(node, *conditions: Condition, columns=None):
    txn = node.begin()
    try:
        return txn.reads.scan(txn.schema.table(None, "t"), columns=columns, conditions=conditions).access
    finally:
        txn.rollback()


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ((Among(ID, (1, 2, 3)),), "look-up: t_pkey by id gives 3 rows"),
        ((Among(N, (7,)),), "look-up: t_n by n gives 1 rows"),
        ((Among(N, ()),), "look-up: t_n by n gives 0 rows"),
        ((Among(V, ("v2",)), Among(N, (2, 102))), "look-up: t_n by n gives 2 rows"),
        ((Among(V, ("v7",)),), "look-up: t_v_n by v gives 1 rows"),
        ((Among(V, ("v2",)), Below(N, 400, True)), "look-up: t_v_n by v, n gives 4 rows"),
        ((Above(N, 3_990, False), Below(N, 3_998, False)), "look-up: t_n by n gives 3 rows"),
        ((StartsWith(V, "v9"),), "index scan: t_v_n by v gives too many rows, but stores all columns"),
        ((Among(V, ("v2",)),), "index scan: t_v_n by v gives too many rows, but stores all columns"),
        ((Above(N, 3, True),), "full scan: t_n by n gives too many rows"),
    ],
)
def test_conditions_choose_the_index_and_its_range(filled, conditions, words):
    assert access(filled, *conditions) == words


def test_an_index_that_stores_all_columns_is_scanned_instead(filled):
    words = "index scan: t_n by n gives too many rows, but stores all columns"
    assert access(filled, Above(N, 3, True), columns=frozenset({"n", "id"})) == words


def test_rows_that_are_inline_and_in_a_file_count_once_or_are_too_many(node):
    """Of a file no more entries are read than may be found; which of them are inline too is known only afterwards."""
    create(node, indexes=INDEXES)
    bulk(node, *((i, "v", i) for i in range(15)))
    session = Session(node)
    session.execute("update t set v = 'w' where n < 8")
    assert sorted(session.execute("select id from t where n >= 0").rows) == [(i,) for i in range(15)]
    session.close()


def test_without_an_index(node):
    create(node)
    assert access(node, Among(N, (1,))) == "full scan: no index on the columns of the conditions"
    assert access(node) == "full scan"


def test_statements_are_about_the_rows_that_an_index_leads_to(filled):
    session = Session(filled)
    session.execute("begin")
    session.execute("update t set v = 'moved' where n = 2")
    session.execute("delete from t where n in (4, 5)")
    session.execute("insert into t values (-1, 'moved', -1)")
    assert sorted(session.execute("select id from t where v = 'moved'").rows) == [(-1,), (2,)]
    assert session.execute("select id from t where n in (2, 4, 5)").rows == [(2,)]
    session.execute("rollback")
    assert session.execute("select id from t where v = 'moved'").rows == []
    assert sorted(session.execute("select id from t where n in (2, 4, 5)").rows) == [(2,), (4,), (5,)]
    session.close()
