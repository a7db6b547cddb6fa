"""A copy of a table as of any commit, to which its change feed is applied, is the table at any later commit: over
random changes of rows and schema on two nodes, compaction and garbage collection."""

import random

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.ids import Seq
from tests.engine.blocks import Sessions
from tests.engine.feed_copy import Copy, by_commit, read_documents, read_events

STEPS = 14
INLINE_ROWS_MAX = 40
SETUP = (
    "create table t (id int primary key, n int, s text)",
    "insert into t select i, i, 'r' || i from generate_series(1, 60) g (i)",
)


class Writers:
    """Random statements; `names` are the columns besides the key, by kind."""

    def __init__(self, sessions: Sessions, nodes: tuple[Node, Node], rng: random.Random) -> None:
        self.sessions, self.nodes, self.rng = sessions, nodes, rng
        self.names = {"n": "int", "s": "text"}
        self.number = 0
        self.floor = 0

    def name(self, kind: str) -> str | None:
        found = [name for name, of in self.names.items() if of == kind]
        return self.rng.choice(found) if found else None

    def rows(self) -> str:
        """A statement that changes rows."""
        rng, number = self.rng, self.name("int")
        key = rng.randint(1, 90)
        match rng.randint(0, 8):
            case 0:
                return f"insert into t (id) values ({key}) on conflict (id) do nothing"
            case 1 if number:
                upsert = f"on conflict (id) do update set {number} = t.{number} + 1"
                return f"insert into t (id, {number}) values ({key}, 1) {upsert}"
            case 2:
                return f"delete from t where id = {key}"
            case 3:
                is_free = f"not exists (select from t where id = {key + 1000})"
                return f"update t set id = id + 1000 where id = {key} and {is_free}"
            case 4:
                series = f"generate_series({key * 100}, {key * 100 + 90}) g (i)"
                return f"insert into t (id) select i from {series} on conflict (id) do nothing"
            case 5 if number:
                return f"update t set {number} = coalesce({number}, 0) + 1 where id % 2 = {key % 2}"
            case 6:
                return f"delete from t where id between {key} and {key + 60}"
            case _:
                text = self.name("text")
                return f"update t set {text} = 'x\"{key}' where id between {key} and {key + 3}" if text else "select 1"

    def definition(self) -> str:
        """A statement that changes the schema."""
        rng = self.rng
        self.number += 1
        column = rng.choice([*self.names]) if self.names else None
        match rng.randint(0, 6):
            case 0:
                self.names[f"a{self.number}"] = "int"
                return f"alter table t add column a{self.number} int default {self.number}"
            case 1:
                self.names[f"a{self.number}"] = "text"
                return f"alter table t add column a{self.number} text default 'd{self.number}'"
            case 2 if column is not None and len(self.names) > 1:
                del self.names[column]
                return f"alter table t drop column {column}"
            case 3 if column is not None:
                self.names[f"r{self.number}"] = self.names.pop(column)
                return f"alter table t rename column {column} to r{self.number}"
            case 4 if column is not None and self.names[column] == "int":
                self.names[column] = "text"
                return f"alter table t alter column {column} type text using 'c' || {column}"
            case 5 if column is not None:
                return f"create index on t ({column})"
            case _ if rng.random() < 0.5:
                return "truncate t"
            case _:
                return "vacuum full t"

    def step(self) -> None:
        rng = self.rng
        session = rng.choice(self.sessions)
        match rng.randint(0, 9):
            case 0 | 1:
                session.execute(self.definition())
            case 2:
                self.block(session)
            case 3:
                session.execute("vacuum t")
            case 4 if rng.random() < 0.5:
                for node in self.nodes:
                    node.collect_garbage(retention_us=0)
            case _:
                for _ in range(rng.randint(1, 4)):
                    self.sessions[rng.randint(0, 1)].execute(self.rows())

    def block(self, session: Session) -> None:
        names = dict(self.names)
        session.execute("begin")
        try:
            for _ in range(self.rng.randint(1, 4)):
                is_definition = self.rng.random() < 0.4
                sql = self.definition() if is_definition else self.rows()
                if not sql.startswith("vacuum"):
                    session.execute(sql)
            if self.rng.random() < 0.3:
                session.execute("rollback")
                self.names = names
            else:
                session.execute("commit")
        except errors.FeatureNotSupported:
            session.execute("rollback")
            self.names = names


def check(session: Session, node: Node, rng: random.Random) -> None:
    head = node.epoch.catch_up()
    floor = node.parts.catalog.floor()
    since = Seq(rng.randint(floor, head))
    until = Seq(rng.randint(since, head))
    table = node.epoch.schema(since).within().by_name.get(("public", "t"))
    columns = {int(c.id): c.name for c in table.visible_columns} if table is not None else {}
    copy = Copy(session, columns, read_documents(session, "t", since) if table is not None else None)
    for events in by_commit(read_events(session, ["t"], since, until)):
        copy.apply(events)
    if ("public", "t") not in node.epoch.schema(until).within().by_name:
        assert copy.rows is None
        return
    assert copy.rows is not None
    assert +copy.rows == read_documents(session, "t", until)


# In one of them a change was given up, and what it had built was collected above the floor.
_SEEDS = (0, 1, 26)


@pytest.mark.parametrize(
    "seed", [*_SEEDS, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(60) if seed not in _SEEDS)]
)
@pytest.mark.either_catalog
def test_feed_keeps_a_copy_up_to_date(sessions: Sessions, nodes: tuple[Node, Node], seed: int):
    rng = random.Random(seed)
    for node in nodes:
        node.parts.inline_rows_max = INLINE_ROWS_MAX
    writers = Writers(sessions, nodes, rng)
    for _ in range(STEPS):
        writers.step()
        check(sessions[0], nodes[0], rng)
