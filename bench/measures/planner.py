"""How planning grows with the change: a thousand of something, over a hundred."""

import gc
from collections.abc import Iterable, Sequence
from itertools import count
from time import process_time

from bench.bounds import bounds_of
from bench.harness import Context, Measure, Reading, Sample, interleave
from seachange.model.statements.table_statements import DdlStatement
from seachange.planner.known_schema import KnownSchema, apply_ops
from seachange.planner.plan import plan_statements
from seachange.sql.parsing.parse import parse_script

MANY = 1_000
TIMES = 10
TABLE = "create table t (id bigint primary key, a int, b int)"
# By name: what is there before, the script, what is repeated in it, and what stands between.
SHAPES = {
    "columns": (TABLE, "alter table t {}", "add column c{n} int default 1", ", "),
    "table": ("", "create table t (id bigint primary key, {})", "c{n} int", ", "),
    "indexes": (TABLE, "{}", "create index i{n} on t (a, b)", "; "),
    "checks": (TABLE, "alter table t {}", "add constraint k{n} check (a > {n})", ", "),
    "unique_columns": (TABLE, "alter table t {}", "add column u{n} int unique", ", "),
}
# Of what has many elements, as many as make about a thousand targets.
SIZES = {"unique_columns": 150}


def script(shape: str, size: int) -> Sequence[DdlStatement]:
    _, whole, part, between = SHAPES[shape]
    return parse_script(whole.format(between.join(part.format(n=n) for n in range(size))))  # type: ignore[return-value]


def catalog_of(sql: str) -> KnownSchema:
    catalog = KnownSchema()
    if sql:
        plan = plan_statements(catalog, parse_script(sql), count(1))  # type: ignore[arg-type]
        for stage in plan.stages:
            catalog = apply_ops(catalog, plan.ops(stage))
    return catalog


def plan_time(catalog: KnownSchema, statements: Sequence[DdlStatement]) -> float:
    """Milliseconds of one plan, by the clock of the process: other processes may be busy."""
    gc.collect()
    start = process_time()
    plan = plan_statements(catalog, statements, count(MANY))
    taken = process_time() - start
    assert plan.stages, "nothing was planned"
    return taken * 1000


def planner(context: Context) -> Iterable[Reading]:
    for shape, (before, *_) in SHAPES.items():
        catalog = catalog_of(before)
        size = SIZES.get(shape, MANY)
        few, many = script(shape, size // TIMES), script(shape, size)
        ours, theirs = interleave(
            context.scale.rounds,
            lambda _, catalog=catalog, many=many: plan_time(catalog, many),  # type: ignore[misc]
            lambda _, catalog=catalog, few=few: min(plan_time(catalog, few) for _ in range(3)),  # type: ignore[misc]
        )
        yield Reading(f"planner.{shape}", "ms", ours, theirs, f"{size} over {size // TIMES}")
        if shape == "table":
            seconds = Sample(tuple(value / 1000 for value in ours.values))
            yield Reading("planner.wide_table", "s", seconds, note=f"CREATE TABLE with {MANY} columns")


MEASURES = (Measure("planner", planner, bounds_of("planner")),)
