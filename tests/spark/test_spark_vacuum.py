"""Compaction, migration of layouts and deletion of files on Spark: as in-process, resumed, whole after failures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from seachange.changer.job import Job
from seachange.changer.ports import Stopped
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.database.opening import open_node
from seachange.engine.jobs.job_manager import Conditions
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.change.work import Built, UnitDone
from seachange.model.jobs import JobStatus
from seachange.pipeline.compaction.generations import choose_compaction, rewrite
from seachange.pipeline.kernels.executor import Sizes, Task
from seachange.pipeline.spark.host import Application
from seachange.pipeline.spark.spark_executor import SparkExecutor
from seachange.verify.consistency import inspect
from tests.changer.changing import ask, prepare
from tests.changer.test_vacuum import begin, clutter
from tests.pipeline.test_compaction import generation_of, scattered
from tests.pipeline.worlds import assert_generation
from tests.spark import flaky
from tests.spark.flaky import FailsOnce
from tests.spark.test_backfill import executor
from tests.support.nodes import Place

pytestmark = pytest.mark.either_catalog

ROWS = "select id, code, category, added from item order by id"
ON_SPARK = (("seachange.local_rows", "0"), ("seachange.pipeline_unit_rows", "200"))


@pytest.fixture
def node(place: Place) -> Iterator[Node]:
    prepare(place)
    opened = open_node(place.data, place.catalog)
    opened.maintenance.paused = opened.jobs.paused = True
    clutter(opened)
    yield opened
    opened.close()


def test_a_job_is_resumed_and_names_the_application(node: Node, application: Application) -> None:
    before = ask(node, ROWS)
    # Something to delete: what no snapshot can read since it was folded.
    node.compact(node.epoch.schemas.newest.within().by_name["public", "other"])
    session = Session(node)
    session.execute("set seachange.retention = 0")
    job_id = begin(node, True, *ON_SPARK)
    units: list[str] = []

    def run(told: Any) -> Job:
        with node.jobs.holding(job_id):
            return node.jobs.run(job_id, Conditions(lambda seconds: None, SessionInterrupts(), told, 100))

    def stop(job: Job) -> None:
        units.extend(unit.unit for _, unit in job.units[len(units) :])
        if len(units) == 2:
            raise Stopped

    with pytest.raises(Stopped):
        run(stop)
    node.follow()
    node.beat()
    done = run(lambda job: None)
    assert done.status is JobStatus.SUCCEEDED
    # Each row was read once, in both attempts together.
    assert [stage.rows for stage in done.stages[:2]] == [len(before)] * 2
    assert ask(node, ROWS) == before
    assert not inspect(node).anomalies
    newest = node.epoch.schemas.newest.within().by_name["public", "item"].layout.id
    assert ask(node, "select distinct layout_id from seachange.segments where table_name = 'item'") == [(newest,)]
    events = [e for (e,) in ask(node, f"select event from seachange.events where job_id = {job_id}")]
    told = [e for e in events if application.id in e]
    for work in ("rows of item_pkey", "rows of by_code", "delete"):
        assert any(work in e for e in told), work
    session.close()


@dataclass(frozen=True)
class Unlucky:
    """A crew whose tasks fail, each at its first attempt, after they have written their files."""

    executor: SparkExecutor
    marks: Path
    parallelism: int = 2

    def sizes(self, rows: int) -> Sizes:
        return self.executor.sizes(rows)

    def run(self, tasks: Sequence[Task[Any]], done: Any, rows: Sequence[int] = ()) -> None:
        self.executor.run([FailsOnce(task, self.marks) for task in tasks], done, rows)


def test_tasks_that_fail_after_they_have_written_double_nothing(tmp_path: Path, application: Application) -> None:
    cloudpickle.register_pickle_by_value(flaky)
    try:
        marks = tmp_path / "marks"
        marks.mkdir()
        world, rows = scattered(tmp_path)
        fold = choose_compaction(world.source, generation_of(world), True)
        assert fold is not None
        left: list[Any] = []
        sound = executor(world, application)
        watched = replace(sound, kernel_context=replace(sound.kernel_context, leave=left.extend))
        units: list[UnitDone] = []
        made = rewrite(fold, Unlucky(watched, marks), world.store.warehouse, (), units.append)
        assert_generation(world, fold.target, Built(made.index_id, made.members), rows)
        # The files of the failed attempts have no owner.
        used = {member.segment.id for member in made.members}
        assert len(list(marks.iterdir())) >= len(units) >= 2
        assert left
        assert not used & set(left)
        assert sum(unit.rows for unit in units) == len(rows)
    finally:
        cloudpickle.unregister_pickle_by_value(flaky)
