"""A change that fails for the rows, or is cancelled, leaves the database as it was, and can be sent again.

The bench does the same with kills and writers at every step; here it is every form of failure, once.
"""

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.ids import DescriptorId
from seachange.model.jobs import JobRequest
from seachange.runtime.faults import FAULTS
from tests.schemachange.description import settled
from tests.schemachange.stored import stored_indexes
from tests.support.judge import referenced_segments
from tests.support.nodes import Place


@dataclass(frozen=True, slots=True)
class Failing:
    """`cause` stands against the statement, and `cure` takes it away. Cancelled it is when it has passed the point
    `cancel` for the n-th time, as late as is worth trying."""

    statement: str
    sqlstate: str
    cause: str
    cure: str
    cancel: tuple[str, int] = ("job.raised", 1)
    # What has drawn values for rows before it fails leaves them in another index.
    in_two: bool = False


_DUPLICATE = ("update t set a = 10 where id = 2", "update t set a = 20 where id = 2")
_NULL = ("update t set c = null where id = 2", "update t set c = 2 where id = 2")
_UNSEEN = ("update child set seen = null where id = 2", "update child set seen = now() where id = 2")
_WORD = ("update bag set y = 'word' where x = 2", "update bag set y = '2' where x = 2")

FAILING = (
    Failing("create unique index if not exists i on t (a)", "23505", *_DUPLICATE, ("job.attached", 1)),
    Failing("alter table t add constraint u unique (a)", "23505", *_DUPLICATE, ("job.built", 1)),
    Failing("alter table t alter primary key using columns (a)", "23505", *_DUPLICATE, ("job.attached", 2)),
    Failing("alter table t alter c set not null", "23502", *_NULL, ("job.drained", 1)),
    Failing("alter table t add constraint k check (c is not null)", "23514", *_NULL, ("job.validated", 1)),
    Failing("alter table child drop column id, alter seen set not null", "23502", *_UNSEEN, ("job.published", 2), True),
    Failing(
        "alter table t validate constraint late",
        "23514",
        "alter table t drop constraint late; update t set c = -2 where id = 3; "
        "alter table t add constraint late check (c > -1) not valid",
        "update t set c = 2 where id = 3",
    ),
    Failing(
        "alter table bag add foreign key (x) references parent",
        "23503",
        "update bag set x = 999 where x = 2",
        "update bag set x = 2 where x = 999",
        ("job.raised", 2),
    ),
    Failing("alter table bag alter y type int using y::int", "22P02", *_WORD, ("job.unit", 1)),
    Failing("alter table bag add column if not exists n int generated always as (y::int) stored", "22P02", *_WORD),
    Failing(
        "alter table total alter net type smallint",
        "22003",
        "update total set net = 100000 where id = 2",
        "update total set net = 2 where id = 2",
        ("job.attached", 1),
    ),
    Failing(
        "alter table bag add column if not exists n int default 7 unique",
        "23505",
        "select 1",
        "delete from bag where x > 1",
    ),
    Failing(
        "alter table bag add column n bigint default (nextval('counter') % 7) unique",
        "23505",
        "select 1",
        "delete from bag where x > 7",
        ("job.drained", 2),
        in_two=True,
    ),
    Failing("create index if not exists i on bag ((y::int))", "22P02", *_WORD, ("job.unit", 1)),
    Failing(
        "create unique index if not exists i on t ((a / 100)) where c > 2",
        "23505",
        "select 1",
        "update t set a = id * 100",
        ("job.built", 1),
    ),
    Failing(
        "alter table bag add primary key (x)",
        "23502",
        "update bag set x = null where x = 2",
        "delete from bag where x is null",
        ("job.attached", 1),
    ),
    Failing(
        "alter table child drop constraint child_pkey, add primary key (t_id)",
        "23505",
        "update child set t_id = 3 where id = 2",
        "update child set t_id = 2 where id = 2",
        ("job.built", 1),
    ),
    Failing(
        "alter table t add column if not exists n int not null default 999 references parent",
        "23503",
        "select 1",
        "insert into parent values (999, 'late')",
        ("job.published", 1),
    ),
    Failing(
        "alter table t alter b type varchar(3)",
        "22001",
        "update t set b = 'too long' where id = 2",
        "update t set b = 'b' where id = 2",
        ("job.unit", 1),
    ),
    Failing(
        "alter table total alter gross set expression as ((net * 100)::smallint)",
        "22003",
        "update total set net = 100000 where id = 2",
        "update total set net = 2 where id = 2",
        ("job.attached", 1),
    ),
    Failing(
        "alter table t add column n int default 5, drop column d, add unique (b), alter c set not null",
        "23502",
        *_NULL,
        ("job.validated", 1),
    ),
    Failing("alter type mood drop value 'ok'", "23514", "select 1", "update t set state = 'sad'"),
)


def descriptors(node: Node, in_two: bool) -> dict[DescriptorId, object]:
    """All descriptors, without the ids that a rolled-back change may have used up."""
    node.epoch.catch_up()
    schema = node.epoch.schemas.newest
    objects = {id_: replace(other, version=0) for id_, other in schema.objects.items()}
    return {**objects, **{id_: settled(table, in_two) for id_, table in schema.by_id.items()}}


def relations(node: Node) -> set[str]:
    return {name for _, name in node.epoch.schemas.newest.within().relations}


def leftovers(node: Node, place: Place) -> tuple[set[str], set[int]]:
    """Files that no reader needs once garbage is collected, and dropped indexes that still have data."""
    node.follow()
    node.beat()
    node.collect_garbage(0)
    wanted = {node.parts.warehouse.name(segment_id) for segment_id in referenced_segments(node)}
    known = {index.id for table in node.epoch.schemas.newest.by_id.values() for index in table.indexes}
    return set(node.parts.files.names()) ^ wanted, stored_indexes(place) - known


def cancel_jobs(node: Node) -> None:
    for job in node.parts.catalog.jobs(unfinished=True):
        assert node.parts.catalog.request_job(job.id, JobRequest.CANCEL)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("is_cancelled", [False, True], ids=["fails", "is cancelled"])
@pytest.mark.parametrize("failing", FAILING, ids=lambda failing: failing.statement)
def test_a_rolled_back_change_leaves_nothing_and_can_be_repeated(
    failing: Failing, is_cancelled: bool, node: Node, tmp_path: Path
):
    with closing(Session(node)) as session:
        for cause in () if is_cancelled else failing.cause.split("; "):
            session.execute(cause)
        before, names = descriptors(node, failing.in_two), relations(node)
        if is_cancelled:
            FAULTS.arm(failing.cancel[0], lambda: cancel_jobs(node), failing.cancel[1])
        try:
            with pytest.raises(errors.Error) as problem:
                session.execute(failing.statement)
        finally:
            FAULTS.disarm()
        assert problem.value.sqlstate == ("57014" if is_cancelled else failing.sqlstate)
        assert descriptors(node, failing.in_two) == before
        assert relations(node) == names
        assert leftovers(node, Place(tmp_path / "db")) == (set(), set())
        for cure in failing.cure.split("; "):
            session.execute(cure)
        session.execute(failing.statement)
