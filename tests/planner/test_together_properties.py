"""Random statements lead to the same tables in one transaction as one after the other, with rows and without."""

from itertools import count
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from seachange.errors import Error, FeatureNotSupported
from seachange.model.schema.descriptor import Table
from seachange.planner.known_schema import KnownSchema, TableSize
from tests.planner.random_changes import BASE, make_statement
from tests.planner.world import World


def run_some(world: World, random: Random, number: int) -> list[str]:
    """Those that were not refused. What this transaction drops cannot come back by it, so nothing is brought back."""
    done = []
    for _ in range(number):
        text = make_statement(random, world.catalog)
        if text.startswith("undrop"):
            continue
        try:
            world.run(text)
        except Error:
            continue
        done.append(text)
    return done


def shape(catalog: KnownSchema) -> dict[str, Any]:
    """By names: ids depend on the way."""
    tables = [table for table in catalog.descriptors.values() if isinstance(table, Table)]
    names = {table.id: f"{table.schema}.{table.name}" for table in tables}
    found = {}
    for table in tables:
        columns = [
            (c.name, c.type.kind, c.nullable, bool(c.generated), bool(c.identity)) for c in table.visible_columns
        ]
        indexes = sorted((i.name, i.unique, len(i.key), i.constraint, i.state) for i in table.indexes)
        checks = sorted(
            (c.name, c.state, sorted(table.column_by_id[id_].name for id_ in c.columns)) for c in table.checks
        )
        keys = sorted((k.name, k.state, names[k.parent]) for k in table.foreign_keys)
        found[names[table.id]] = (columns, indexes, checks, keys)
        for key in table.foreign_keys:
            parent = catalog.descriptors[key.parent]
            assert isinstance(parent, Table)
            assert key.parent_index in parent.index_by_id
    return found


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_together_or_one_by_one(seed: int, empty: bool) -> None:
    random = Random(seed)
    apart, together = World(), World()
    apart.run_each(BASE)
    run_some(apart, random, random.randrange(8))
    sizes = {id_: TableSize() for id_, d in apart.catalog.descriptors.items() if isinstance(d, Table) and empty}
    apart.catalog = KnownSchema(apart.catalog.descriptors, sizes, apart.catalog.dropped)
    together.catalog, together.ids = apart.catalog, count(10_000)
    statements = run_some(apart, random, random.randrange(2, 8))
    try:
        together.run("; ".join(statements))
    except FeatureNotSupported:
        # Some things take two transactions, and say so.
        return
    assert shape(together.catalog) == shape(apart.catalog), statements
