"""Which changes wait for which."""

import re
from pathlib import Path

import pytest

from seachange.model.ids import DescriptorId
from seachange.planner.exclusion import EXCLUSIONS, CancelJob, ChangeKind, ExclusionDecision, classify, decide
from tests.planner.world import World

SETUP = """
create table t (id bigint primary key, a int);
create table u (id bigint primary key, t_id bigint);
create type mood as enum ('sad', 'happy')
"""
DOCS = Path(__file__).parents[2] / "docs" / "schema-changes.md"
JOBS = (ChangeKind.WORK,)


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
    """Whichever comes first: never do both proceed."""
    heavy = [kind for kind in ChangeKind if kind is not ChangeKind.LABEL]
    for one in heavy:
        for other in heavy:
            assert decide(one, other).answer is not ExclusionDecision.PROCEED
            assert decide(other, one).answer is not ExclusionDecision.PROCEED


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
        ("create index on t (a)", ChangeKind.WORK),
        ("alter table t add check (a > 0)", ChangeKind.WORK),
        ("alter table t alter column a set not null", ChangeKind.WORK),
        ("alter table t add column r double precision default random()", ChangeKind.WORK),
        ("alter table u add foreign key (t_id) references t", ChangeKind.WORK),
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
    lines = [f"| under way \\ new | {' | '.join(kind.name for kind in ChangeKind)} |", "| --- " * 6 + "|"]
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
