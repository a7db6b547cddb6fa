"""The judge of the random load notices what it is there for."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.states import State
from tests.cluster.load.judge import Ledger, judge_rows
from tests.cluster.load.log import Entry
from tests.cluster.load.sampler import Sampler
from tests.cluster.load.schema import create_schema
from tests.support.nodes import Place, open_ported_node

# What one transaction did: a row, and one increment.
WRITTEN: list[Entry] = [
    {"what": "begin", "marker": 1},
    {"what": "commits", "marker": 1, "effects": [[2, "code 2.5", 5]], "increments": {"3": 1}},
]
COMMITTED: Entry = {"what": "committed", "marker": 1}
STATEMENTS = (
    "insert into journal values (1)",
    "insert into item values (2, 'code 2.5', 5, null, null, 'x', 5)",
    "insert into counter values (3, 1)",
)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    node = open_ported_node(Place(tmp_path))
    session = Session(node)
    create_schema(session)
    yield session
    session.close()
    node.close()


def judged(session: Session, entries: list[Entry], *statements: str) -> list[str]:
    for statement in statements:
        session.execute(statement)
    ledger = Ledger(entries)
    return [*ledger.problems, *judge_rows(session, ledger)]


def test_what_was_said_and_done_is_in_order(session: Session):
    assert judged(session, [*WRITTEN, COMMITTED], *STATEMENTS) == []


def test_unacknowledged_commit_may_be_present_or_absent(session: Session):
    assert judged(session, WRITTEN) == []
    assert judged(session, WRITTEN, *STATEMENTS) == []


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ("delete from journal", "committed, and not there"),
        ("insert into journal values (1)", "there twice"),
        ("insert into journal values (7)", "never begun"),
        ("delete from item", "row 2 is None"),
        ("update item set qty = 6", "row 2 is"),
        ("update item set size = 6", "the size of row"),
        ("insert into part values (9, 'code 9.0', 0, null, null, 'x', 0)", "row 9 is"),
        ("update counter set n = 2", "the counters are"),
        ("update account set balance = 0 where id = 1", "the accounts have"),
        ("insert into scratch values (7, 1)", "in scratch"),
    ],
)
def test_damage_is_noticed(session: Session, damage: str, complaint: str):
    problems = judged(session, [*WRITTEN, COMMITTED], *STATEMENTS, damage)
    assert any(complaint in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("sqlstate", "message", "allowed"),
    [
        ("40001", "could not serialize access", True),
        ("23505", 'duplicate key value violates unique constraint "may_item_u"', True),
        ("23505", 'duplicate key value violates unique constraint "sure_item_u1"', False),
        ("23505", 'duplicate key value violates unique constraint "item_pkey"', False),
        ("42703", 'column "code" does not exist', False),
        ("XX000", "a mistake of ours", False),
    ],
)
def test_only_some_refusals_are_allowed(sqlstate: str, message: str, allowed: bool):
    entry = {"what": "refused", "marker": 1, "sqlstate": sqlstate, "message": message, "place": "update"}
    assert bool(Ledger([entry]).problems) is not allowed


def test_three_states_of_one_element_at_a_time_are_too_many(session: Session):
    session.execute("create index item_code on item (code)")
    session.execute("create table other (id int primary key)")
    node: Node = session.node
    node.epoch.catch_up()
    table = next(t for t in node.epoch.schemas.newest.by_id.values() if t.name == "item")

    def version(number: int, state: State) -> Any:
        return replace(table, version=number, secondary=tuple(replace(i, state=state) for i in table.secondary))

    sampler = Sampler(node)
    absent = replace(table, version=1, secondary=())
    sampler._judge([absent, version(2, State.WRITE_ONLY), version(3, State.WRITE_ONLY)])
    assert not sampler.problems
    sampler._judge([absent, version(2, State.WRITE_ONLY), version(3, State.ENFORCED)])
    assert "['ABSENT', 'WRITE_ONLY', 'ENFORCED']" in sampler.problems[0]
