"""A transaction block around a schema change, run by a process that dies, and what it leaves behind.

The change is one of the cases of `tests/schemachange`, so that a new kind of change is tried here too, and the fault
points are those that a run without a fault passes.
"""

import signal
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.cluster.sqlprocess import SqlProcess
from tests.schemachange.case import Case
from tests.schemachange.description import describe
from tests.support.judge import inspect, judge_garbage
from tests.support.nodes import HOUR_MS, Place
from tests.support.patience import PATIENCE_S

# A point that no block passes: with it armed, passages are counted.
COUNTING = "identity.proposed:1"
BEFORE = (
    "insert into t (id, a, b, c, n) select 80001, 800010, 'b80001', c, 800010 from t where id = 3",
    "update t set b = 'b70005' where id = 5",
    "delete from t where id = 6",
)
AFTER = ("insert into w (id, a, b, c, n) values (80001, 800010, 'b80001', 1, 1)",)
# The next change of the table waits for no expiry: it would take longer than the test.
EXPIRY_MS = HOUR_MS
NEXT = f"set lock_timeout = '{PATIENCE_S}s'"


class Ending(StrEnum):
    COMMIT = "commit"
    ROLLBACK = "rollback"
    ROLLBACK_TO = "rollback to"


@dataclass(frozen=True, slots=True)
class Fault:
    """The n-th passage of a point since the block began."""

    point: str
    occurrence: int

    def __str__(self) -> str:
        return f"{self.point}:{self.occurrence}"


@dataclass(frozen=True, slots=True)
class Contents:
    """All tables as they are described, and their rows in the columns that t has in the beginning: others may have
    values that are drawn."""

    tables: dict[str, list[str]]
    rows: dict[str, list[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class Trace:
    """What a run without a fault passes, up to its last statement and in all, and what it leaves."""

    begun: dict[str, int]
    passages: dict[str, int]
    before: Contents
    after: Contents
    sqlstates: tuple[str, ...]

    @property
    def faults(self) -> list[Fault]:
        return [Fault(point, n) for point, count in self.passages.items() for n in range(1, count + 1)]

    @property
    def last_faults(self) -> list[Fault]:
        """Those of the last statements."""
        return [fault for fault in self.faults if fault.occurrence > self.begun.get(fault.point, 0)]

    def expected(self, fault: Fault) -> list[Contents]:
        """The block is there as soon as its COMMIT, which is the last commit, has been decided. A drain that takes long
        commits that it waits: then the last passage of this run was not the last of that one."""
        if fault.point == "block.committed":
            return [self.after]
        is_last = fault.occurrence == self.passages[fault.point]
        is_decided = is_last and fault.point in ("commit.decided", "commit.applied")
        return [self.after, self.before] if is_decided else [self.before]


def statements(case: Case, ending: Ending) -> tuple[str, ...]:
    changed = (case.statement, *AFTER)
    match ending:
        case Ending.COMMIT:
            return ("begin", *BEFORE, *changed, "commit")
        case Ending.ROLLBACK:
            return ("begin", *BEFORE, *changed, "rollback")
        case Ending.ROLLBACK_TO:
            return ("begin", *BEFORE, "savepoint s", *changed, "rollback to s", "commit")


def trace(place: Place, case: Case, ending: Ending) -> Trace:
    """Runs the block without a fault."""
    with closing(open_node(place.location, place.catalog)) as node:
        before = read_contents(node)
    with SqlProcess(place, EXPIRY_MS) as process:
        process.arm(COUNTING)
        texts = statements(case, ending)
        count = texts.index(AFTER[-1])
        answers = [process.run(sql) for sql in texts[:count]]
        begun = process.counts()
        answers += [process.run(sql) for sql in texts[count:]]
        passages = process.counts()
        process.signal(signal.SIGTERM)
    with closing(open_node(place.location, place.catalog)) as node:
        after = read_contents(node)
    passed = {point: count for point, count in passages.items() if count}
    return Trace(begun, passed, before, after, tuple(answer for answer in answers if isinstance(answer, str)))


def run_until_killed(place: Place, case: Case, ending: Ending, fault: Fault) -> None:
    with SqlProcess(place, EXPIRY_MS) as process:
        process.arm(str(fault))
        for sql in statements(case, ending):
            process.send(sql)
        assert process.wait() == -signal.SIGKILL, f"{fault} was not reached"


def read_contents(node: Node) -> Contents:
    node.read_head()
    tables = {f"{table.schema}.{table.name}": table for table in node.epoch.schemas.newest.by_id.values()}
    with closing(Session(node)) as session:
        return Contents(
            {name: describe(table) for name, table in tables.items()},
            {name: _read_rows(session, name) for name in tables},
        )


def _read_rows(session: Session, name: str) -> list[tuple[Any, ...]]:
    wanted = ("id", "a", "b", "c", "n", "p")
    result = session.execute(f"select * from {name}")
    assert result.columns is not None
    places = [place for place, column in enumerate(result.columns) if column.name in wanted]
    return sorted(tuple(str(row[place]) for place in places) for row in result.rows)


def judge_block(place: Place, case: Case, ending: Ending, trace: Trace, possible: Sequence[Contents]) -> list[str]:
    """What is wrong with a database whose block ended by a fault."""
    with closing(open_node(place.location, place.catalog, name="survivor")) as node:
        return judge_node(node, case, ending, trace, possible)


def judge_node(node: Node, case: Case, ending: Ending, trace: Trace, possible: Sequence[Contents]) -> list[str]:
    return list(_judge(node, case, ending, trace, possible))


def _judge(node: Node, case: Case, ending: Ending, trace: Trace, possible: Sequence[Contents]) -> Iterator[str]:
    try:
        with closing(Session(node)) as session:
            session.execute(NEXT)
            _change_next(session, node)
            found = read_contents(node)
            if found not in possible:
                yield f"the contents differ: {_difference(found, possible[0])}"
                return
            if found == trace.before:
                yield from _judge_again(session, case, ending, trace)
    except errors.Error as problem:
        yield f"{type(problem).__name__}: {problem}"
        return
    yield from inspect(node)
    for record in node.parts.catalog.nodes():
        if record.epoch != node.epoch.epoch and record.live:
            node.parts.catalog.end_node(record.epoch)
    yield from judge_garbage(node)


def _change_next(session: Session, node: Node) -> None:
    """A change over the rows of the same table needs nothing that the dead process holds."""
    node.read_head()
    table = next((t for t in node.epoch.schemas.newest.by_id.values() if t.name == "t"), None)
    if table is not None:
        session.execute(f'create index next_one on {table.schema}.t ("{table.visible_columns[0].name}")')
        session.execute(f"drop index {table.schema}.next_one")


def _judge_again(session: Session, case: Case, ending: Ending, trace: Trace) -> Iterator[str]:
    """The same block comes to the same end."""
    for sql in statements(case, ending):
        try:
            session.execute(sql)
        except errors.Error as problem:
            if problem.sqlstate not in trace.sqlstates:
                yield f"again: {sql}: {type(problem).__name__}: {problem}"
    found = read_contents(session.node)
    if found != trace.after:
        yield f"the contents differ when it is run again: {_difference(found, trace.after)}"


def _difference(found: Contents, expected: Contents) -> str:
    lines = []
    for name in sorted(found.tables.keys() | expected.tables.keys()):
        now, then = found.tables.get(name, []), expected.tables.get(name, [])
        lines += [f"+ {line}" for line in now if line not in then] + [f"- {line}" for line in then if line not in now]
    for name in sorted(found.rows.keys() | expected.rows.keys()):
        now_rows, then_rows = set(found.rows.get(name, [])), set(expected.rows.get(name, []))
        lines += [f"{name}: + {sorted(now_rows - then_rows)[:3]} - {sorted(then_rows - now_rows)[:3]}"]
    return "\n".join(lines)
