"""Rolling upgrade: nodes of two releases on one database, jobs of older rules, catalogs of older formats."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import psycopg
import pytest

from seachange import errors
from seachange.catalog.port import FORMAT
from seachange.changer.job import Job, read_job
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.model.change import elements
from seachange.model.change.targets import Status
from seachange.model.jobs import JobId, JobStatus
from seachange.planner.lifecycles.lifecycle import Lifecycle
from seachange.planner.plan import plan_statements
from seachange.planner.rules.release import CURRENT, RELEASES
from seachange.sql.parsing.parse import parse_script
from seachange.verify.consistency import inspect
from tests.changer.changing import ROWS, UNIQUE, ask, begin, judge, run
from tests.planner.world import World
from tests.support.nodes import Place, open_ported_node

OLD, NEW = CURRENT.number, CURRENT.number + 1


@pytest.fixture(autouse=True)
def next_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that knows one more release than this one: by its rules a unique index is never ENFORCED."""
    known = CURRENT.lifecycles[elements.UniqueIndex]
    shorter = Lifecycle(tuple(step for step in known.add if step.to is not Status.ENFORCED), known.drop)
    lifecycles = {**CURRENT.lifecycles, elements.UniqueIndex: shorter}
    monkeypatch.setitem(RELEASES, NEW, replace(CURRENT, number=NEW, lifecycles=lifecycles))


@pytest.fixture
def newer(shop: Place) -> Iterator[Node]:
    with closing(open_ported_node(shop, "newer", release=NEW)) as node:
        node.jobs.paused = True
        yield node


def read(node: Node, job_id: JobId) -> Job:
    record = node.parts.catalog.job(job_id)
    assert record is not None
    return read_job(record)


def stages(job: Job) -> list[str]:
    return [stage.what for stage in job.stages if stage.what != "drain"]


BY_OLD_RULES = ["backfill", "mutation", "validation", "mutation"]


def test_changes_are_planned_by_what_all_live_nodes_know(shop: Place, newer: Node):
    older = open_ported_node(shop, "older", release=OLD)
    assert ask(newer, "select name, release from seachange.nodes where live order by name") == [
        ("newer", NEW),
        ("older", OLD),
    ]
    job_id = begin(newer, UNIQUE)
    assert read(newer, job_id).change.release == OLD
    older.close()
    # A job that was planned by older rules is finished by them, even after all nodes are upgraded.
    assert stages(run(newer, job_id)) == BY_OLD_RULES
    judge(newer, job_id, JobStatus.SUCCEEDED)
    ask(newer, "drop index item_code")
    job_id = begin(newer, UNIQUE)
    assert read(newer, job_id).change.release == NEW
    assert stages(run(newer, job_id)) != BY_OLD_RULES


def test_job_is_reverted_by_the_rules_that_planned_it(shop: Place, newer: Node):
    with closing(open_ported_node(shop, "older", release=OLD)) as older:
        older.jobs.paused = True
        job_id = begin(older, UNIQUE.replace("(code)", "(category)"))
    assert run(newer, job_id).status is JobStatus.FAILED
    judge(newer, job_id, JobStatus.FAILED)


def test_node_without_the_agreed_rules_cannot_register(shop: Place, newer: Node):
    older = open_ported_node(shop, "older", release=OLD)
    newer.parts.catalog.end_node(older.epoch.epoch)
    begin(newer, UNIQUE)
    # It was stopped, and wakes up.
    with pytest.raises(errors.ReleaseTooOld):
        ask(older, "insert into item values (7001, 'new', 1)")
    older.close()
    with pytest.raises(errors.ReleaseTooOld):
        open_ported_node(shop, "older", release=OLD)


def test_change_that_older_nodes_do_not_know_waits_for_their_upgrade(
    shop: Place, newer: Node, monkeypatch: pytest.MonkeyPatch
):
    without = {k: v for k, v in CURRENT.lifecycles.items() if k is not elements.CheckConstraint}
    monkeypatch.setitem(RELEASES, OLD, replace(CURRENT, lifecycles=without))
    monkeypatch.setitem(RELEASES, NEW, replace(CURRENT, number=NEW))
    change = "alter table item add check (category < 7)"
    with closing(open_ported_node(shop, "older", release=OLD)), pytest.raises(errors.FeatureNotSupported) as caught:
        ask(newer, change)
    assert "seachange.nodes" in str(caught.value.hint)
    ask(newer, change)


def test_block_publishes_no_states_while_nodes_do_not_know_them():
    world = World()
    world.run_each("create table t (id int primary key, a int)")
    statements = parse_script("alter table t add check (a > 0)")
    with pytest.raises(errors.FeatureNotSupported) as caught:
        plan_statements(world.catalog, statements, world.ids, release=RELEASES[1], in_block=True)  # type: ignore[arg-type]
    assert "release 1" in str(caught.value)
    assert "seachange.nodes" in str(caught.value.hint)


def test_a_program_without_the_rules_leaves_the_job_to_others(newer: Node, monkeypatch: pytest.MonkeyPatch):
    job_id = begin(newer, UNIQUE)
    known = RELEASES[NEW]
    monkeypatch.delitem(RELEASES, NEW)
    assert newer.jobs.find_orphans() == []
    assert newer.jobs.find_orphans() == []
    for attempt in (lambda: run(newer, job_id), lambda: ask(newer, "create index on item (category)")):
        with pytest.raises(errors.UnknownRelease) as caught:
            attempt()
        assert caught.value.sqlstate == "55000"
    events = [event for (event,) in ask(newer, "select event from seachange.events")]
    assert sum("will be retried later" in event for event in events) == 1
    assert ask(newer, "select count(*) from item") == [(ROWS,)]
    monkeypatch.setitem(RELEASES, NEW, known)
    assert [record.id for record in newer.jobs.find_orphans()] == [job_id]


# Statements that downgrade a catalog to an older format, newest first.
STEPS_BACK = {
    11: (
        "drop table {}feed",
        "drop table {}change",
        "drop table {}secret",
        "drop table {}export",
        "alter table {}index_owner drop column public",
        "alter table {}node drop column asked",
    ),
    10: ("drop table {}violation",),
    9: ("alter table {}descriptor_version drop column checksum",),
    8: ("alter table {}batch drop column checksum", "alter table {}sequencer drop column database_id"),
    7: (
        "drop index {}lock_table",
        "alter table {}node drop column answered",
        "alter table {}sequencer drop column lock_requests",
    ),
    6: ("alter table {}node drop column usual_us", "alter table {}node drop column latency_us"),
    4: ("alter table {}node drop column release", "alter table {}sequencer drop column release"),
    3: ("drop table {}sequence",),
    2: (
        "drop table {}event",
        "drop table {}job_file",
        "drop table {}job",
        "alter table {}sequencer drop column next_job",
        "alter table {}node drop column holders",
        "alter table {}node drop column write_mark",
    ),
    1: ("drop table {}lock_wait", "drop table {}lock"),
}


def take_back(place: Place, found: int) -> None:
    schema = "seachange." if place.catalog else ""
    statements = [text for number, texts in STEPS_BACK.items() if number >= found for text in texts]
    if found <= 8:
        # That was not in the folder either.
        (place.data / "segments" / "database.id").unlink()
    statements += [f"update {{}}sequencer set format = {found}", f"update {{}}node set format = {found}"]
    if place.catalog:
        with psycopg.connect(place.catalog) as server:
            for text in statements:
                server.execute(text.format(schema).encode())
        return
    with closing(sqlite3.connect(place.data / "catalog.sqlite")) as file, file:
        for text in statements:
            file.execute(text.format(schema))


@pytest.mark.either_catalog
@pytest.mark.parametrize("found", range(1, FORMAT))
def test_an_older_catalog_is_upgraded_with_its_data(shop: Place, found: int):
    with closing(open_node(shop.data, shop.catalog, "older")) as node:
        ask(node, "create unique index item_code on item (code)")
        before = ask(node, "select * from item order by id")
    take_back(shop, found)
    with closing(open_node(shop.data, shop.catalog, "newer")) as node:
        assert {each.format for each in node.parts.catalog.nodes() if each.live} == {FORMAT}
        assert ask(node, "select * from item order by id") == before
        ask(node, "insert into item values (9001, 'new', 1)")
        with pytest.raises(errors.UniqueViolation):
            ask(node, "insert into item values (9002, 'new', 1)")
        ask(node, "create index item_category on item (category)")
        assert not inspect(node).anomalies
