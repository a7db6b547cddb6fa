"""Backfills by Spark give the entries that an oracle gives, whatever the rows are and wherever they lie."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from seachange.model.change.work import UnitDone
from seachange.pipeline.kernels.backfill import backfill
from seachange.pipeline.spark.host import Application
from seachange.pipeline.spark.packed_task import Site
from seachange.pipeline.spark.spark_executor import SparkExecutor
from seachange.sql.translate.duck_errors import translate_error
from seachange.storage.spill import SortLimits
from tests.pipeline.test_backfill_properties import SIZES, build_world, has_entry, worlds
from tests.pipeline.worlds import World, assert_generation


def executor(world: World, application: Application) -> SparkExecutor:
    site = Site(str(world.folder / "files"), str(world.folder / "spill"), SortLimits(threads=1), translate_error)
    return SparkExecutor(application, site, world.kernel_context, lambda rows: None, lambda _: None, fixed=SIZES)


@given(worlds())
@settings(
    max_examples=3,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_generations_are_those_of_the_oracle(
    tmp_path_factory: pytest.TempPathFactory, application: Application, drawn: Any
) -> None:
    world, rows = build_world(tmp_path_factory.mktemp("w"), *drawn)
    targets = world.targets()
    units: list[UnitDone] = []
    team = executor(world, application)
    built = backfill(world.source, targets, team, world.store.warehouse, (), units.append)
    for target, generation in zip(targets, built, strict=True):
        assert_generation(world, target, generation, [row for row in rows if has_entry(target.index, row)])
    assert sum(unit.rows for unit in units) == len(rows)
    # This process goes on with what Spark has done.
    again: list[UnitDone] = []
    assert world.backfill(targets, units, again.append, SIZES) == built
    assert not again
