"""The measures, one module per topic, in the order in which they run."""

from bench.harness import Measure
from bench.measures import (
    aborts,
    builds,
    bulk,
    changes,
    commits,
    constraints,
    contention,
    foreground,
    growth,
    planner,
    points,
    processes,
    scans,
    seeks,
    server,
    statements,
    tpch,
    validations,
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
    *server.MEASURES,
    *planner.MEASURES,
    *changes.MEASURES,
    *aborts.MEASURES,
    *foreground.MEASURES,
    *builds.MEASURES,
    *validations.MEASURES,
    *growth.MEASURES,
    *tpch.MEASURES,
)
