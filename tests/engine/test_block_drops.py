"""A block that changes a table, writes to it and drops it: what is kept of the table is what was there before."""

from contextlib import closing

import pytest

from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.verify.consistency import check

INSERT = "insert into t (id, n) values (3, 3)"
BULK = "insert into t (id, n) select i, i from generate_series(10, 3000) i"


@pytest.mark.parametrize("insert", [INSERT, BULK], ids=["rows", "files"])
@pytest.mark.parametrize(
    "change",
    [
        "alter table t alter n type text using n::text",
        "alter table t alter primary key using columns (n)",
        "alter table t add column m int default 5",
        "alter table t add column m int generated always as (n + 1) stored",
    ],
)
@pytest.mark.parametrize("is_before", [True, False], ids=["before", "after"])
def test_rows_of_a_dropped_table_go_with_its_new_shape(node: Node, change: str, insert: str, is_before: bool) -> None:
    with closing(Session(node)) as session:
        session.execute("create table t (id int primary key, n int not null); insert into t values (1, 1), (2, 2)")
        for statement in ("begin", *([insert, change] if is_before else [change, insert]), "drop table t", "commit"):
            session.execute(statement)
        node.epoch.catch_up()
        session.execute("undrop table t")
        assert list(session.execute("select * from t order by id").rows) == [(1, 1), (2, 2)]
        session.execute("alter table t add column later int default 1")
        assert len(session.execute("select * from t where later = 1").rows) == 2
    assert check(node) == []
