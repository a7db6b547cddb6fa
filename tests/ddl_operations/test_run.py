"""Each statement of the catalogue, carried out over rows while another session writes."""

from contextlib import closing, nullcontext

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobStatus
from seachange.verify.consistency import check
from tests.ddl_operations.operations import OPERATIONS

STATEMENTS = tuple(sql for operation in OPERATIONS for sql in operation.statements)
# Of a transaction that has written before, and commits when the change is done.
WRITES = (
    "insert into t (id, a, b, c, e, parent_id) values (1001, 1, 'late', 1, 70, 1)",
    "update t set b = 'changed' where id = 7",
    "delete from child where id = 9",
    "insert into bag values (1001, '1001')",
)
# These remove its rows, and wait for it.
GONE = ("drop table bag", "truncate child", "truncate t cascade")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_statement_of_the_catalogue_is_carried_out(sql: str, node: Node):
    with closing(Session(node)) as writer, closing(Session(node)) as session:
        writer.execute("begin")
        for write in WRITES:
            writer.execute(write)
        session.execute("set seachange.drain_timeout = 0; set lock_timeout = 1")
        for statement in sql.split("; "):
            with pytest.raises(errors.LockNotAvailable) if sql in GONE else nullcontext():
                session.execute(statement)
        assert writer.execute("select count(*) from t where id = 1001").rows == [(1,)]
        writer.execute("commit")
        if sql in GONE:
            session.execute("reset lock_timeout")
            session.execute(sql)
    jobs = node.parts.catalog.jobs()
    assert all(job.status is JobStatus.SUCCEEDED for job in jobs)
    # What was published by its COMMIT has moved nothing.
    assert not jobs or check(node) == []
