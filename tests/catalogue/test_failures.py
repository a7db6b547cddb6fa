"""A change that fails for the rows leaves the database as it was, and can be sent again when its cause is gone.

The bench does the same with cancels, kills and writers at every step; here it is every form of failure, once.
"""

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.node import Node
from seachange.engine.opening import open_node
from seachange.engine.session import Session
from seachange.model.descriptor import Table
from seachange.model.ids import DescriptorId
from tests.bench_cases.description import describe, settled
from tests.catalogue.schema import FILL, SETUP


@dataclass(frozen=True, slots=True)
class Failing:
    """`cause` stands against the statement, and `cure` takes it away."""

    statement: str
    sqlstate: str
    cause: str
    cure: str
    # What has drawn values for rows before it fails leaves them in another index.
    in_two: bool = False


_DUPLICATE = ("update t set a = 10 where id = 2", "update t set a = 20 where id = 2")
_NULL = ("update t set c = null where id = 2", "update t set c = 2 where id = 2")
_WORD = ("update bag set y = 'word' where x = 2", "update bag set y = '2' where x = 2")

FAILING = (
    Failing("create unique index if not exists i on t (a)", "23505", *_DUPLICATE),
    Failing("alter table t add constraint u unique (a)", "23505", *_DUPLICATE),
    Failing("alter table t alter primary key using columns (a)", "23505", *_DUPLICATE),
    Failing("alter table t alter c set not null", "23502", *_NULL),
    Failing("alter table t add constraint k check (c is not null)", "23514", *_NULL),
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
    ),
    Failing("alter table bag alter y type int using y::int", "22P02", *_WORD),
    Failing("alter table bag add column if not exists n int generated always as (y::int) stored", "22P02", *_WORD),
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
        in_two=True,
    ),
    Failing("alter type mood drop value 'ok'", "23514", "select 1", "update t set state = 'sad'"),
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("failures") / "db"
    with closing(open_node(folder)) as node, closing(Session(node)) as session:
        for sql in (*SETUP, *FILL):
            session.execute(sql)
    return folder


@pytest.fixture
def node(filled: Path, tmp_path: Path) -> Iterator[Node]:
    shutil.copytree(filled, tmp_path / "db")
    with closing(open_node(tmp_path / "db")) as opened:
        yield opened


def tables(node: Node) -> dict[DescriptorId, Table]:
    node.epoch.catch_up()
    return dict(node.epoch.schemas.newest.by_id)


def relations(node: Node) -> set[str]:
    return {name for _, name in node.epoch.schemas.newest.within().relations}


@pytest.mark.parametrize("failing", FAILING, ids=lambda failing: failing.statement)
def test_what_fails_leaves_nothing_and_can_be_sent_again(failing: Failing, node: Node):
    with closing(Session(node)) as session:
        for cause in failing.cause.split("; "):
            session.execute(cause)
        before, names = tables(node), relations(node)
        with pytest.raises(errors.Error) as problem:
            session.execute(failing.statement)
        assert problem.value.sqlstate == failing.sqlstate
        after = tables(node)
        assert after.keys() == before.keys()
        for id_, table in before.items():
            assert settled(after[id_], failing.in_two) == settled(table, failing.in_two), describe(after[id_])
        assert relations(node) == names
        for cure in failing.cure.split("; "):
            session.execute(cure)
        session.execute(failing.statement)
