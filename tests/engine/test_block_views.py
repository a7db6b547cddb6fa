"""What operators see of an open block that changes a table, in `seachange.jobs` and `seachange.leases`, and what a
session that waits for it sees."""

import pytest

from seachange import errors
from seachange.engine.replica.open_sessions import ClientLink
from seachange.engine.session.session import Session
from tests.engine.blocks import begin, rows, sent

WORK = "select age_ms, written_bytes, hidden_indexes, hidden_entries from seachange.jobs order by id desc limit 1"
CHANGERS = "select node, session, job_id is not null, statement from seachange.leases where is_changing order by node"
INDEX, COLUMN = "create index i on a (x)", "alter table a add column m int"


def test_job_of_an_open_block_shows_its_age_and_what_it_costs(sessions: tuple[Session, Session]):
    block, other = sessions
    begin(block)
    block.execute("insert into a values (200, 1, 'own')")
    block.execute(INDEX)
    ((age_ms, written_bytes, *cost),) = rows(other, WORK)
    assert age_ms >= 0
    built = "select sum(size_bytes) from seachange.segments where index_name = 'i' and is_base"
    assert rows(other, built) == [(written_bytes,)]
    assert written_bytes > 0
    # Own rows of the block are not in the index before its COMMIT.
    assert cost == [1, 0]
    other.execute("insert into a values (300, 1, 'other'), (301, 2, 'other')")
    # The old entry goes and a new one comes.
    other.execute("update a set x = 77 where id = 7")
    ((_, _, *cost),) = rows(other, WORK)
    assert cost == [1, 4]
    ((later_ms, *_),) = rows(other, WORK)
    assert later_ms >= age_ms
    block.execute("commit")
    assert rows(other, WORK) == [(None, None, None, None)]


@pytest.mark.parametrize(("sql", "has_job"), [(INDEX, True), (COLUMN, False)])
def test_holder_of_a_table_is_listed_at_once(sessions: tuple[Session, Session], sql: str, has_job: bool):
    block, other = sessions
    begin(block)
    block.execute(sql)
    name = block.client.name
    # The statement of a change without a job is known to other nodes with the next heartbeat.
    block.node.beat()
    for session in sessions:
        assert rows(session, CHANGERS) == [("here", name, has_job, sql)]
    block.execute("rollback")
    assert rows(other, CHANGERS) == []


def test_holder_is_listed_before_the_heartbeat_of_its_node(sessions: tuple[Session, Session]):
    block, other = sessions
    begin(block)
    block.execute(COLUMN)
    found = rows(other, CHANGERS)
    assert [row[:3] for row in found] == [("here", block.client.name, False)]
    assert rows(block, CHANGERS) == [("here", block.client.name, False, COLUMN)]
    block.execute("rollback")


def test_statements_in_leases_are_private(sessions: tuple[Session, Session]):
    block, other = sessions
    other.execute("create role reader")
    other.execute("grant select on a to reader")
    begin(block)
    block.execute(INDEX)
    other.execute("set role reader")
    ((*_, statement),) = rows(other, CHANGERS)
    assert statement == "<insufficient privilege>"
    block.execute("rollback")


@pytest.mark.parametrize("sql", [INDEX, COLUMN])
@pytest.mark.parametrize("there", [False, True], ids=["one node", "two nodes"])
def test_notice_names_at_once_what_a_session_waits_for(sessions: tuple[Session, Session], sql: str, there: bool):
    block, _ = sessions
    told: list[str] = []

    def report(notice: str) -> bool:
        told.append(notice)
        return True

    other = Session(sessions[there].node, link=ClientLink(report))
    begin(block)
    block.execute(sql)
    begin(other)
    with sent(other, "alter table a add column z int"):
        (notice,) = told
        assert notice.startswith("waits for ")
        assert str(block.client.actor) in notice
        block.execute("rollback")
    assert other.notices == []
    other.execute("rollback")
    other.close()


@pytest.mark.parametrize("sql", [INDEX, COLUMN])
def test_lock_timeout_names_the_holder(sessions: tuple[Session, Session], sql: str):
    block, other = sessions
    begin(block)
    block.execute(sql)
    begin(other)
    other.execute("set lock_timeout = 1")
    with pytest.raises(errors.LockNotAvailable) as refused:
        other.execute("alter table a add column z int")
    assert str(block.client.actor) in f"{refused.value} {refused.value.detail}"
    other.execute("rollback")
    block.execute("rollback")
