"""The planner against the model that changes a descriptor in one step, for statements that both know."""

import re
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seachange.errors import Error
from seachange.model.ids import ColumnId
from seachange.model.schema.descriptor import Index, Table
from seachange.sql.parsing.parse import parse_script
from tests.planner.one_step.statement import ids_needed, plan_statement
from tests.planner.random_changes import BASE, TABLE_STATEMENTS, make_statement
from tests.planner.world import World

Tables = dict[tuple[str, str], Table]


def run_in_one_step(tables: Tables, sql: str, ids: "count[int]") -> Tables:
    after = dict(tables)
    for statement in parse_script(sql):
        fresh = [next(ids) for _ in range(ids_needed(statement))]  # type: ignore[arg-type]
        for change in plan_statement(statement, after, iter(fresh)).changes:  # type: ignore[arg-type]
            if change.before is not None:
                del after[change.before.schema, change.before.name]
            if change.after is not None:
                after[change.after.schema, change.after.name] = change.after
    return after


def by_name(table: Table, tables: dict[int, Table]) -> dict[str, Any]:
    """A table without ids, versions and layouts."""
    names = {column.id: column.name for column in table.columns}
    columns = [
        replace(c, id=ColumnId(0), frozen=None, identity=None, default_sequences=(), up=None) for c in table.columns
    ]
    return {
        "columns": columns,
        "primary": index_by_name(table.primary, names),
        "secondary": sorted(index_by_name(i, names) for i in table.secondary),
        "checks": sorted((c.name, named(c.expression, names), c.state) for c in table.checks),
        "foreign keys": sorted(
            (k.name, [names[c] for c in k.columns], tables[k.parent].name, k.on_delete, k.state)
            for k in table.foreign_keys
        ),
    }


def index_by_name(index: Index, names: dict[ColumnId, str]) -> tuple[object, ...]:
    key, include = [names[c] for c in index.key], [names[c] for c in index.include]
    return (index.name, key, include, index.unique, index.nulls_distinct, index.state)


def named(expression: str, names: dict[ColumnId, str]) -> str:
    return re.sub(r'"c(\d+)"', lambda found: names[ColumnId(int(found[1]))], expression)


def tables_by_name(tables: dict[int, Table]) -> dict[str, dict[str, Any]]:
    return {table.name: by_name(table, tables) for table in tables.values()}


@settings(max_examples=300)
@given(st.integers(0, 2**32))
def test_a_plan_leads_where_one_step_would(seed: int):
    compare(Random(seed), 6)


def compare(random: Random, statements: int) -> int:
    """How many statements both have run."""
    world, ids = World(), count(1)
    world.run_each(BASE)
    tables = run_in_one_step({}, BASE, ids)
    done = []
    for _ in range(statements):
        sql = make_statement(random, world.catalog, TABLE_STATEMENTS)
        try:
            expected = run_in_one_step(tables, sql, ids)
            plan = world.plan(sql)
        except Error:
            continue
        world.run(sql)
        tables = expected
        done.append(sql)
        found: dict[int, Table] = {t.id: t for t in world.catalog.descriptors.values() if isinstance(t, Table)}
        assert tables_by_name(found) == tables_by_name({t.id: t for t in tables.values()}), done
        assert plan.change.targets or expected == tables
    return len(done)


def test_many_statements_are_known_to_both():
    assert sum(compare(Random(seed), 6) for seed in range(50)) > 40


NOTHING = (
    "alter table t add column e int unique check (e > 0); alter table t drop column e",
    "alter table t add column e double precision not null default random(); alter table t drop column e",
    "alter table t add column e bigint generated always as identity; alter table t drop column e",
    "create index i on t (a); drop index i",
    "create unique index i on t (a) include (c); alter table t drop constraint if exists i; drop index i",
    "alter table t add constraint k check (a > 0); alter table t drop constraint k",
    "alter table t add constraint k unique (a); alter table t drop constraint k",
    "alter table t add constraint k foreign key (a) references u; alter table t drop constraint k",
    "alter table t add constraint k check (a > 0) not valid; alter table t validate constraint k;"
    " alter table t drop constraint k",
    "create table w (id bigint primary key, a int references t); create index on w (a); drop table w",
    "create table w (id serial primary key); alter table w rename to x; drop table x",
    "alter table t rename column a to e; alter table t rename column e to a",
    "alter table t rename to w; alter table w rename to t",
    "alter table t alter column a set not null; alter table t alter column a drop not null",
    "alter table t alter column a set default 7; alter table t alter column a drop default",
    "alter table t alter column b drop default; alter table t alter column b set default 1",
    "alter table t alter column b drop not null; alter table t alter column b set not null",
)


@pytest.mark.parametrize("sql", NOTHING)
def test_adding_and_removing_the_same_element_is_no_change(sql: str):
    world = World()
    world.run_each(BASE)
    plan = world.plan(sql)
    assert plan.change.targets == ()
    assert plan.stages == ()
