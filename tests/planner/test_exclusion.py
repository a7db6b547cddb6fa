"""Which changes wait for which."""

import re
from pathlib import Path

import pytest

from seachange.model.change.ops import Validate
from seachange.model.ids import DescriptorId
from seachange.planner.exclusion import (
    EXCLUSIONS,
    CancelJob,
    ChangeKind,
    ExclusionDecision,
    are_disjoint,
    classify,
    decide,
)
from tests.planner.world import World, apply_stages

SETUP = """
create table t (id bigint primary key, a int);
create table u (id bigint primary key, t_id bigint);
create type mood as enum ('sad', 'happy')
"""
DOCS = Path(__file__).parents[2] / "docs" / "schema-changes.md"
JOBS = (ChangeKind.BUILD, ChangeKind.WORK)


def test_every_pair_is_decided_with_a_reason():
    assert set(EXCLUSIONS) == set(ChangeKind)
    for row in EXCLUSIONS.values():
        assert set(row) == set(ChangeKind)
        assert all(len(exclusion.reason) > 10 for exclusion in row.values())


def test_a_label_neither_waits_nor_blocks():
    for kind in ChangeKind:
        assert decide(kind, ChangeKind.LABEL).answer is ExclusionDecision.PROCEED
        assert decide(ChangeKind.LABEL, kind).answer is ExclusionDecision.PROCEED


def test_of_two_changes_that_are_planned_from_the_same_one_waits_or_goes():
    """Whichever comes first: never do both proceed, but if both only add what nothing is planned from yet."""
    heavy = [kind for kind in ChangeKind if kind is not ChangeKind.LABEL]
    for one in heavy:
        for other in heavy:
            beside = one is other is ChangeKind.BUILD
            assert (decide(one, other).answer is ExclusionDecision.PROCEED) is beside
            assert decide(one, other, independent=False).answer is not ExclusionDecision.PROCEED


def test_only_jobs_are_cancelled_by_other_changes():
    for running, row in EXCLUSIONS.items():
        if running not in JOBS:
            assert all(exclusion.answer is not ExclusionDecision.CANCEL for exclusion in row.values())


def test_only_a_drop_cancels_the_job_of_another_change():
    cancelling = [new for new in ChangeKind if decide(ChangeKind.WORK, new).answer is ExclusionDecision.CANCEL]
    assert cancelling == [ChangeKind.DROP]


@pytest.mark.parametrize("running", ChangeKind)
def test_cancel_is_always_heard_but_after_the_point_of_no_return(running: ChangeKind):
    assert decide(running, CancelJob()).answer is ExclusionDecision.CANCEL
    assert decide(running, CancelJob(), cancellable=False).answer is ExclusionDecision.WAIT


def test_nothing_is_cancelled_after_the_point_of_no_return():
    for running in ChangeKind:
        for new in ChangeKind:
            assert decide(running, new, cancellable=False).answer is not ExclusionDecision.CANCEL


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("comment on table t is 'x'", ChangeKind.LABEL),
        ("grant select on t to someone", ChangeKind.LABEL),
        ("alter table t owner to someone", ChangeKind.LABEL),
        ("comment on column t.a is 'x'; grant select on t to someone", ChangeKind.LABEL),
        ("alter table t rename to v", ChangeKind.METADATA),
        ("alter table t add column b int default 1", ChangeKind.METADATA),
        ("alter table t drop column a", ChangeKind.METADATA),
        ("comment on table t is 'x'; alter table t drop column a", ChangeKind.METADATA),
        ("alter table u add column c bigint references t", ChangeKind.METADATA),
        ("create table v (id bigint references t)", ChangeKind.METADATA),
        ("create index on t (a)", ChangeKind.BUILD),
        ("alter table t add check (a > 0)", ChangeKind.BUILD),
        ("alter table t alter column a set not null", ChangeKind.BUILD),
        ("alter table t add column r double precision default random()", ChangeKind.WORK),
        ("alter table u add foreign key (t_id) references t", ChangeKind.BUILD),
        ("alter table t add constraint k check (id > 0), drop column a", ChangeKind.WORK),
        ("create index on t (a); create unique index on t (id, a)", ChangeKind.BUILD),
        ("create index on t ((a + 1)) where a > 3", ChangeKind.BUILD),
        ("alter table t alter primary key using columns (id, a)", ChangeKind.WORK),
        ("alter table t add column m mood; alter table t add check (a > 0)", ChangeKind.WORK),
        ("truncate t", ChangeKind.TRUNCATE),
        ("truncate t; alter table t add check (a > 0)", ChangeKind.TRUNCATE),
        ("drop table t", ChangeKind.DROP),
        ("truncate t; drop table t", ChangeKind.DROP),
        ("alter table u rename to w", None),
    ],
)
def test_what_a_change_is_to_a_table(sql: str, kind: ChangeKind | None):
    world = World()
    world.run_each(SETUP)
    table = next(d.id for d in world.catalog.descriptors.values() if d.name == "t")
    assert classify(world.plan(sql).change, DescriptorId(table)) is kind


def test_without_rows_there_is_no_work():
    world = World()
    world.run_each(SETUP)
    world.resize("t", rows=0)
    table = next(d.id for d in world.catalog.descriptors.values() if d.name == "t")
    assert classify(world.plan("create index on t (a)").change, DescriptorId(table)) is ChangeKind.METADATA


@pytest.mark.golden
def test_the_documentation_shows_the_table(rewrite: bool):
    names = " | ".join(kind.name for kind in ChangeKind)
    lines = [f"| under way \\ new | {names} |", "| --- " * (len(ChangeKind) + 1) + "|"]
    for running in ChangeKind:
        answers = [decide(running, new).answer.value for new in ChangeKind]
        lines.append(f"| {running.name}: {running.value} | {' | '.join(answers)} |")
    table = "\n".join(lines)
    text = DOCS.read_text()
    begin, end = "<!-- printed: exclusions -->\n", "\n<!-- end exclusions -->"
    after = re.sub(f"{begin}.*?{end}", lambda _: begin + table + end, text, flags=re.DOTALL)
    if rewrite:
        DOCS.write_text(after)
    assert begin in text
    assert rewrite or after == text


DISJOINT = [
    ("create index on t (a)", "create unique index on t (a)", True),
    ("alter table t add check (a > 0)", "alter table t add check (a < 9)", False),
    ("alter table t add constraint x check (a > 0)", "alter table t add constraint y check (a < 9)", True),
    ("alter table t alter a set not null", "alter table t alter a set not null", False),
    ("alter table t alter a set not null", "create unique index on t (a, id)", True),
]


@pytest.mark.parametrize(("one", "other", "expected"), DISJOINT)
def test_changes_that_add_different_things_are_disjoint(one: str, other: str, expected: bool):
    """The second is planned while the first is under way."""
    world = World()
    world.run_each(SETUP)
    first = world.plan(one)
    world.catalog = apply_stages(world.catalog, first, first.stages[:1])
    assert are_disjoint(first.change, world.plan(other).change) is expected


def test_changes_that_take_the_same_id_are_not_disjoint():
    """Ids of constraints are counted per table: neither plan knows the other."""
    world = World()
    world.run_each(SETUP)
    one, other = (world.plan(f"alter table t add constraint {name} check (a > 0)") for name in "xy")
    assert not are_disjoint(one.change, other.change)


def test_nothing_is_planned_from_a_constraint_that_may_still_fail():
    world = World()
    world.run_each("create table v (a int, b int); create unique index on v (a)")
    first = world.plan("alter table v alter a set not null")
    world.catalog = apply_stages(world.catalog, first, first.stages[:1])
    plan = world.plan("create unique index both on v (a, b) nulls not distinct")
    assert any(isinstance(op, Validate) for stage in plan.stages for op in plan.ops(stage))
