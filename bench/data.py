"""The bulk rows, a function of their number alone: the same on every machine and on both sides.

The stream is unsorted: ids come in the order of an affine permutation, so that
every run of rows spans the whole range of ids and no statistics help a look-up.
"""

import random
from math import gcd
from pathlib import Path

import duckdb

from bench.rows import MODULUS, MULTIPLIER

COLUMNS = "id bigint, a integer, b double precision, t text, k text"

STEP = 7_368_787
SEED = 20_240_601


def rows_sql(rows: int) -> str:
    """A query that yields the rows, unsorted."""
    assert gcd(STEP, rows) == 1, "the step must visit every id"
    return f"""
        select id::bigint as id, (mixed % 10000)::integer as a, mixed / 1000 as b,
               'text-' || (mixed % 100000) as t, 'k' || lpad(lower(hex(mixed)), 8, '0') as k
        from (select id, (id * {MULTIPLIER}) % {MODULUS} as mixed
              from (select (i * {STEP} + 1) % {rows} as id from range({rows}) as r(i)))
    """


def write_source(folder: Path, rows: int) -> Path:
    """The unsorted rows as one plain Parquet file, written once per run."""
    path = folder / f"unsorted-{rows}.parquet"
    if not path.exists():
        with duckdb.connect() as connection:
            connection.execute("set preserve_insertion_order = true")
            connection.execute(f"copy ({rows_sql(rows)}) to '{path}' (format parquet)")
    return path


def sample_ids(first: int, last: int, count: int) -> list[int]:
    """`count` distinct ids of the half-open range, in a random order that is always the same."""
    return random.Random(SEED).sample(range(first, last), count)
