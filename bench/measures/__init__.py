"""The measures, one module per topic, in the order in which they run."""

from bench.harness import Measure
from bench.measures import (
    aborts,
    bulk,
    changes,
    commits,
    constraints,
    contention,
    foreground,
    planner,
    points,
    processes,
    scans,
    seeks,
    statements,
    tpch,
)

MEASURES: tuple[Measure, ...] = (
    *commits.MEASURES,
    *processes.MEASURES,
    *contention.MEASURES,
    *scans.MEASURES,
    *points.MEASURES,
    *seeks.MEASURES,
    *bulk.MEASURES,
    *constraints.MEASURES,
    *statements.MEASURES,
    *planner.MEASURES,
    *changes.MEASURES,
    *aborts.MEASURES,
    *foreground.MEASURES,
    *tpch.MEASURES,
)
