"""EXPLAIN (DDL, VERIFY): the model checker on the plan of a statement."""

import json
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from seachange import errors
from seachange.engine.session.session import Session
from seachange.planner.plan import plan_statements
from seachange.sql.change.explain_check import explain_check
from seachange.sql.parsing.parse import parse_script
from seachange.verify.model.mutants import MUTANTS
from seachange.verify.model.plan_check import check_plan
from seachange.verify.model.program import set_up
from seachange.verify.model.scenario import Protocol, release_of

parse: Any = parse_script
SETUP = "create table t (id int primary key, a int, b text)"


@pytest.fixture
def session(node):
    with closing(Session(node)) as session:
        session.execute("create table parent (id int primary key)")
        session.execute("create table t (id int primary key, a int, b text, up int)")
        session.execute("insert into t values (1, 1, 'x')")
        yield session


def lines(session, text):
    return [line for (line,) in session.execute(text).rows]


@pytest.mark.parametrize(
    ("change", "subject"),
    [
        ("create index on t (a)", "index t_a_idx+: consistent"),
        ("create unique index on t (a, b)", "unique index t_a_b_idx+: consistent"),
        ("alter table t add constraint k check (a > 0)", "check k+: consistent"),
        ("alter table t drop column a", "column a-: consistent"),
        ("truncate parent", "primary index parent_pkey"),
    ],
)
def test_what_was_proven_is_said_with_the_states(session, change, subject):
    found = lines(session, f"explain (ddl, verify 3600) {change}")
    assert any(line.startswith(subject) for line in found)
    assert found[-1].startswith("Proven: all of the ")


def change_id(session):
    return session.execute("select max(id) from seachange.changes").rows[0][0]


def test_table_that_comes_back_with_rows_is_proven(session):
    session.execute("alter table t add foreign key (up) references parent")
    session.execute("drop table t")
    for change in (f"revert change {change_id(session)}", "undrop table t"):
        found = lines(session, f"explain (ddl, verify 3600) {change}")
        assert "column a+ of t+: consistent, 208 states" in found or "column a+: consistent, 208 states" in found
        assert found[-1].startswith("Proven: all of the ")


def test_column_that_comes_back_is_proven(session):
    session.execute("alter table t drop column b")
    found = lines(session, f"explain (ddl, verify 3600) revert change {change_id(session)}")
    assert any(line.startswith("column b+: consistent") for line in found)
    assert found[-1].startswith("Proven: all of the ")


def test_nothing_is_claimed_of_what_is_not_covered(session):
    assert lines(session, "explain (ddl, verify) comment on table t is 'x'")[-1].startswith("Not covered")
    found = lines(session, "explain (ddl, verify) alter table t add foreign key (a) references t")
    assert "foreign key t_a_fkey+: not covered by a model" in found
    assert found[-1].startswith("Nothing is proven")


def test_options_are_combined(session):
    found = lines(session, "explain (ddl, cost, verify 3600) create index on t (a)")
    assert found[0].startswith("Strategy: build index")
    assert found[-1].startswith("Proven")
    both = lines(session, "explain (ddl, verbose, cost) create index on t (a)")
    assert both[0].startswith("3 stages")
    assert any(line.startswith("Strategy") for line in both)
    ((text,),) = session.execute("explain (ddl, cost, verify 3600, format json) create index on t (a)").rows
    assert set(json.loads(text)) == {"remarks", "cost", "verify"}


@pytest.mark.parametrize("options", ["verify 0", "verify 9999", "sideways", "cost, format xml"])
def test_options_that_are_refused(session, options):
    with pytest.raises(errors.Error):
        session.execute(f"explain (ddl, {options}) create index on t (a)")


# A planner without one of its safeguards.


def plan_by(mutant, change):
    release = release_of(Protocol.SEACHANGE, (MUTANTS[mutant],))
    ids = count(100)
    catalog = set_up(parse, SETUP, ids)
    return plan_statements(catalog, parse(change), ids, release=release), catalog, release


@pytest.mark.parametrize(
    ("mutant", "change"),
    [
        ("skip-write-only", "create index on t (a)"),
        ("early-backfill", "create index on t (a, b)"),
        ("skip-enforced", "create unique index on t (b)"),
    ],
)
def test_plan_of_a_mutated_planner_is_caught(mutant, change):
    plan, catalog, release = plan_by(mutant, change)
    (*_, last) = check_plan(plan, catalog, lambda: False, release)
    assert last.result is not None
    assert last.result.problem is not None
    assert last.result.trace


def port(left: int) -> Any:
    return Statement(left)


@dataclass
class Statement:
    """The part of a port that gives time."""

    left: int

    @property
    def statement(self):
        return self

    def deadline(self, seconds):
        def is_over():
            self.left -= 1
            return self.left < 0

        return is_over


def test_trace_of_a_mutated_planner_is_printed():
    plan, catalog, _ = plan_by("early-backfill", "create index i on t (a)")
    found = explain_check(plan, catalog, 10, port(1_000_000))
    assert "NOT consistent" in found[0]
    assert found[1].startswith("  1. ")
    assert found[-1].startswith("  Then ")


def test_time_that_is_up_leaves_nothing_proven():
    ids = count(100)
    catalog = set_up(parse, SETUP, ids)
    plan = plan_statements(catalog, parse("create unique index on t (a); create index on t (b)"), ids)
    found = explain_check(plan, catalog, 10, port(2))
    assert "there are more: nothing is proven" in found[0]
    assert found[1].endswith("not explored within 10 s")
    assert found[-1].startswith("Nothing is proven of the change as a whole")
