"""Two jobs of one table at the same time: the second runs from its beginning to its end at every stage of the first."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from seachange import errors
from seachange.changer.job import Job
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobStatus
from seachange.verify.consistency import check
from tests.changer.changing import BROKEN, UNIQUE, ask, begin, run, run_between
from tests.support.nodes import Place

pytestmark = pytest.mark.either_catalog

# The first, the second and the name of what it adds; the second fails with this SQLSTATE.
PAIRS = [
    (UNIQUE, "create index {name} on item (category)", ""),
    (UNIQUE, "create unique index {name} on item (code, category)", ""),
    (UNIQUE, "create unique index {name} on item (category)", "23505"),
    (BROKEN, "create unique index {name} on item (code)", ""),
    (BROKEN, "alter table item add constraint {name} check (id > 0)", ""),
    (
        "alter table concurrently item add constraint positive check (id > 0)",
        "alter table item add constraint {name} check (category < 100)",
        "",
    ),
    (
        "alter table concurrently item alter code set not null",
        "create unique index {name} on item ((lower(code))) where category > 2",
        "",
    ),
    (
        "create index concurrently lowered on item ((lower(code)))",
        "alter table item add constraint {name} check (category <> 3)",
        "23514",
    ),
    ("alter table concurrently other add foreign key (id) references item", "create index {name} on item (code)", ""),
]


@pytest.fixture
def other(shop: Place, node: Node) -> Iterator[Session]:
    """A session of another node."""
    with closing(open_node(shop.data, shop.catalog, name="there")) as there, closing(Session(there)) as session:
        session.execute("set seachange.drain_timeout = '100ms'")
        yield session


def run_during(node: Node, other: Session, first: str, second: str, sqlstate: str) -> tuple[Job, list[str]]:
    """The first job, and at each of its stages another run of the second statement, with rows written in between;
    returns the notices of the second ones."""
    stages: list[str] = []

    def change(stage: str) -> None:
        number = len(stages)
        stages.append(stage)
        with closing(Session(node)) as writer:
            writer.execute(f"insert into item values ({1000 + number}, 'new{number}', {-1 - number})")
            # While the first one is at work, it rejects new duplicates.
            writer.execute(f"update item set code = code || 'x', category = {-20 - number} where id = {10 + number}")
            writer.execute(f"delete from item where id = {200 + number}")
        try:
            other.execute(second.format(name=f"second_{number}"))
        except errors.Error as problem:
            assert problem.sqlstate == sqlstate  # noqa: PT017 - of every run
        else:
            assert sqlstate == ""

    job = run_between(node, begin(node, first), change)
    assert len(stages) > 3
    return job, other.notices


@pytest.mark.parametrize(("first", "second", "sqlstate"), PAIRS)
def test_changes_that_build_run_side_by_side(node: Node, other: Session, first: str, second: str, sqlstate: str):
    job, notices = run_during(node, other, first, second, sqlstate)
    assert job.status is (JobStatus.FAILED if first is BROKEN else JobStatus.SUCCEEDED)
    # Once the first is finished, which is its last stage, it cannot be waited for either.
    assert not [notice for notice in notices if f"waits for job {job.id}" in notice]
    assert check(node) == []
    assert ask(node, "select count(*) from seachange.jobs where status not in ('succeeded', 'failed')") == [(0,)]


def test_jobs_that_return_at_once_are_not_queued_behind_each_other(node: Node, other: Session):
    first, second = begin(node, UNIQUE), begin(node, "create index concurrently item_category on item (category)")
    third = begin(node, "alter table concurrently item alter code type text using code || ''")
    waiting = ask(node, "select id from seachange.jobs where status = 'pending' and waiting_for like '%to finish%'")
    assert waiting == [(third,)]
    run(node, second)
    run(node, first)
    assert check(node) == []


def test_change_that_adds_the_same_waits(node: Node, other: Session):
    job_id = begin(node, "alter table concurrently item alter code set not null")
    other.execute("set lock_timeout = '50ms'")
    for sql in ("alter code set not null", "alter code drop not null", "drop column code"):
        with pytest.raises(errors.LockNotAvailable, match=f"job {job_id}"):
            other.execute(f"alter table item {sql}")
    run(node, job_id)


def test_block_excludes_jobs_of_its_table(node: Node, other: Session):
    job_id = begin(node, UNIQUE)
    other.execute("set lock_timeout = '50ms'")
    other.execute("begin")
    with pytest.raises(errors.LockNotAvailable, match=f"job {job_id}"):
        other.execute("create index on item (category)")
    other.execute("rollback")
    run(node, job_id)
    # The block drains: the other node has to see its versions, which takes longer.
    other.execute("set lock_timeout = 0")
    other.execute("begin")
    other.execute("create index by_category on item (category)")
    with closing(Session(node)) as session:
        session.execute("set lock_timeout = '50ms'")
        with pytest.raises(errors.LockNotAvailable):
            session.execute("create index on item (code, category)")
    other.execute("commit")
    assert check(node) == []
