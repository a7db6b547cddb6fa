"""READ COMMITTED while others change the tables: every statement sees the head in the shape that its block first used.

The judge is a PostgreSQL that runs the same statements in the same order without the change of the schema.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import psycopg
import pytest

from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.runtime.faults import FAULTS
from seachange.verify.consistency import check
from tests.support.postgres import LocalPostgres

SEED = 11
ROUNDS = 20
GIVEN = (
    "create table parent (id int primary key)",
    "insert into parent values (1), (2)",
    "create table t (id int primary key, n int not null, v varchar(20), c int default 5, g int)",
    "create index by_v on t (v)",
    "insert into t select i, i, 'v' || i, i, 1 from generate_series(1, 9) as s(i)",
)
CHANGES = {
    "comment": "comment on table t is 'changed'",
    "grant": "grant select on t to public",
    "add column": "alter table t add column extra int",
    "add column with default": "alter table t add column extra int not null default 7",
    "add generated column": "alter table t add column twice int generated always as (id * 2) stored",
    "add drawn column": "alter table t add column drawn uuid default gen_random_uuid()",
    "drop column": "alter table t drop column c",
    "rename column": "alter table t rename column n to number",
    "rename table": "alter table t rename to other",
    "set schema": "alter table t set schema elsewhere",
    "set default": "alter table t alter column c set default 6",
    "widen": "alter table t alter column n type bigint",
    "widen text": "alter table t alter column v type text",
    "widen key": "alter table t alter column id type bigint",
    "convert unused column": "alter table t alter column c type text using 'c' || c",
    "create index": "create index by_n on t (n)",
    "create unique index": "create unique index by_both on t (v, id)",
    "drop index": "drop index by_v",
    "add check": "alter table t add check (n >= 0)",
    "set not null": "alter table t alter column v set not null",
    "add foreign key": "alter table t add foreign key (g) references parent",
    "refer to it": "alter table child add foreign key (t) references t",
    "change primary key": "alter table t alter primary key using columns (id, n)",
}
# Where a job passes by that publishes or relies on a version.
POINTS = ("job.created", "job.published", "job.drained", "job.raised", "job.built", "job.attached", "job.validated")

Rows = list[tuple[Any, ...]]


@dataclass(slots=True)
class Script:
    """The statements of the block, and before each of them a statement of another session."""

    block: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def make_script(generator: random.Random) -> Script:
    """The block writes rows 1 to 3 and those from 100 on, the others rows 4 to 9 and those from 200 on."""
    script = Script()
    inserted: list[int] = []
    for step in range(9):
        key = generator.randint(1, 3)
        kinds = [
            "select id, n, v from t order by id",
            "select count(*), sum(n) from t",
            f"select n from t where id = {generator.randint(1, 9)}",
            f"select id from t where v = 'v{generator.randint(1, 9)}' or n > 200 order by id",
            f"update t set n = n + 1 where id = {key}",
            f"update t set v = 'w' || n where id = {key}",
            f"update t set n = n + (select count(*) from t) where id = {key}",
            f"insert into t (id, n, v) values ({100 + step}, {step}, 'new')",
            f"select n from t where id = {key} for update",
        ]
        if inserted:
            kinds += [f"delete from t where id = {inserted[-1]}", f"update t set v = 'moved' where id = {inserted[0]}"]
        if step == 2:
            kinds = ["savepoint s"]
        if step == 6 and generator.random() < 0.5:
            kinds = ["rollback to s"]
        chosen = generator.choice(kinds)
        if chosen.startswith("insert"):
            inserted.append(100 + step)
        script.block.append(chosen)
        other = generator.randint(4, 9)
        script.others.append(
            generator.choice(
                [
                    f"update t set n = n + 10 where id = {other}",
                    f"insert into t (id, n, v) values ({200 + step}, {200 + step}, 'v{other}')",
                    f"delete from t where id = {200 + step - 1}",
                    f"update t set v = 'v' || id, n = n where id = {other}",
                ]
            )
        )
    return script


Judge = Callable[[Script], tuple[list[Rows], Rows]]


@pytest.fixture(scope="module")
def judge(postgres_server: LocalPostgres) -> Iterator[Judge]:
    """What PostgreSQL answers to the block's statements, and the rows in the end."""
    url = postgres_server.create_database()
    with psycopg.connect(url, autocommit=True) as other, psycopg.connect(url) as block:
        yield partial(_judge, other, block)
    postgres_server.drop_database(url)


def _judge(other: psycopg.Connection[Any], block: psycopg.Connection[Any], script: Script) -> tuple[list[Rows], Rows]:
    other.execute("drop table if exists t, parent")
    for given in GIVEN:
        other.execute(given)
    answers: list[Rows] = []
    for statement, before in zip(script.block, script.others, strict=True):
        other.execute(before)
        cursor = block.execute(statement)
        answers.append(list(cursor.fetchall()) if cursor.description is not None else [])
    block.commit()
    return answers, list(other.execute("select id, n, v from t order by id").fetchall())


@dataclass(slots=True)
class Play:
    """The script on our side, statement by statement, at moments that a schema change chooses."""

    block: Session
    other: Session
    script: Script
    answers: list[Rows] = field(default_factory=list)

    def step(self) -> None:
        place = len(self.answers)
        if place < len(self.script.block):
            self.other.execute(self.script.others[place])
            self.answers.append(list(self.block.execute(self.script.block[place]).rows))


def at_all_points(step: Callable[[], None], change: Callable[[], object]) -> None:
    """Steps at each point that the change passes, every time."""
    for point in POINTS:
        FAULTS.arm(point, _again(point, step))
    try:
        change()
    finally:
        FAULTS.disarm()


def _again(point: str, step: Callable[[], None]) -> Callable[[], None]:
    def act() -> None:
        step()
        FAULTS.arm(point, act)

    return act


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def nodes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Node]]:
    url = request.getfixturevalue("postgres_server").create_database() if request.param == "postgres" else None
    folder = tmp_path_factory.mktemp("changed")
    with closing(open_node(folder, url, "one")) as one, closing(open_node(folder, url, "two")) as two:
        one.maintenance.paused = two.maintenance.paused = True
        yield one, two


@pytest.fixture
def sessions(nodes: tuple[Node, Node]) -> Iterator[Callable[[int], Session]]:
    """Makes sessions on either node; the tables are dropped in the end."""
    made: list[Session] = []

    def make(node: int) -> Session:
        made.append(Session(nodes[node]))
        made[-1].execute("set seachange.drain_timeout = '1ms'")
        return made[-1]

    yield make
    for session in made:
        session.close()
    with closing(Session(nodes[0])) as session:
        drop_all(session)


def begin(sessions: Callable[[int], Session], node: int, script: Script) -> tuple[Session, Play]:
    """The changer, and the others on its node, who know the shape that there was."""
    changer = sessions(node)
    for statement in (*GIVEN, "create table child (t int)", "create schema elsewhere"):
        changer.execute(statement)
    other = sessions(node)
    other.execute(f"set seachange.layout = {changer.node.epoch.catch_up()}")
    block = sessions(0)
    block.execute("begin")
    return changer, Play(block, other, script)


@pytest.mark.parametrize("name", CHANGES)
def test_a_block_reads_the_head_in_its_first_shape(
    nodes: tuple[Node, Node], sessions: Callable[[int], Session], judge: Judge, name: str
) -> None:
    play_round(nodes[0], sessions, judge, name, 0)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", CHANGES)
def test_a_block_reads_the_head_whenever_the_change_comes(
    nodes: tuple[Node, Node], sessions: Callable[[int], Session], judge: Judge, name: str
) -> None:
    for number in range(1, ROUNDS):
        play_round(nodes[0], sessions, judge, name, number)


def play_round(node: Node, sessions: Callable[[int], Session], judge: Judge, name: str, number: int) -> None:
    seed = f"{SEED}-{name}-{number}"
    print(f"seed {seed}")
    generator = random.Random(seed)
    script = make_script(generator)
    expected, end = judge(script)
    changer, play = begin(sessions, generator.randint(0, 1), script)
    for _ in range(generator.randint(1, 5)):
        play.step()
    at_all_points(play.step, partial(changer.execute, CHANGES[name]))
    while len(play.answers) < len(script.block):
        play.step()
    play.block.execute("commit")
    assert play.answers == expected
    assert list(play.other.execute("select id, n, v from t order by id").rows) == end
    assert check(node) == []
    drop_all(changer)


def drop_all(session: Session) -> None:
    tables: Sequence[tuple[str, str]] = list(session.node.epoch.schemas.newest.within().by_name)
    for schema, name in tables:
        session.execute(f"drop table if exists {schema}.{name} cascade")
    session.execute("drop schema if exists elsewhere cascade")
