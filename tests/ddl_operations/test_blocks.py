"""Statements of the catalogue, one after the other in a transaction block, do what they do in autocommit mode."""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.ddl_operations.blocks import NOT_SUPPORTED, STATEMENTS, Rows, Sequel, Twins, pairs, triples

SEED = 7
PAIRS = 30
# The pairs that were found to fail, and those that migration tools send.
KNOWN = (
    Sequel(("create unique index on t (a)", "alter table t alter c set not null"), Rows.BETWEEN),
    Sequel(("alter table t alter parent_id type bigint", "alter table t validate constraint late"), Rows.BETWEEN),
    Sequel(("alter table t add column n int", "alter table t validate constraint late"), Rows.BEFORE),
    Sequel(("create table made (id int primary key, t_id int references t)", "create index on t (a)"), Rows.COMMITTED),
    Sequel(("alter table t alter primary key using columns (e)", "create index on t (a)"), Rows.BETWEEN),
    Sequel(("truncate t cascade", "create index on parent (code)"), Rows.COMMITTED),
    Sequel(("drop table child", "create index on t (a)"), Rows.COMMITTED),
    Sequel(
        ("alter type mood add value 'meh'", "alter table t add column n mood default 'meh'", "create index on t (n)"),
        Rows.COMMITTED,
    ),
    Sequel(
        (
            "create sequence numbers",
            "alter table t add column n int; alter table t alter n set default nextval('numbers')",
            "create index on t (n)",
        ),
        Rows.COMMITTED,
    ),
)


@pytest.fixture
def twins(filled: Path, empty: Path, tmp_path: Path) -> Twins:
    return Twins(filled, empty, tmp_path)


@pytest.mark.parametrize("sequel", KNOWN, ids=str)
def test_statements_in_a_block_do_what_they_do_alone(sequel: Sequel, twins: Twins):
    alone, together = twins.compare(sequel)
    assert together == alone
    assert alone.sqlstate == ""


REWRITTEN = (
    "alter table t add column n int generated always as (a + 1) stored unique",
    "alter table t alter e type text, add unique (a), add column n int references parent",
    "alter table child alter id type bigint using id * 10",
    "alter table total alter gross set expression as (net * 3)",
    "alter table bag add primary key (x)",
    "alter table child drop column id, add primary key (t_id)",
)


@pytest.mark.parametrize("sql", REWRITTEN)
def test_rows_are_rewritten_after_a_query(sql: str, twins: Twins):
    alone, together = twins.compare_after_query(Sequel((sql,), Rows.COMMITTED))
    assert together == alone
    assert alone.sqlstate == ""


@pytest.mark.slow
def test_all_statements_after_a_query(twins: Twins):
    for sql in STATEMENTS:
        alone, together = twins.compare_after_query(Sequel((sql,), Rows.COMMITTED))
        assert together == alone or together.sqlstate == NOT_SUPPORTED, alone.describe(together)


def judge(sequels: Sequence[Sequel], twins: Twins) -> Counter[str]:
    """Fails with the first ones that end otherwise than in autocommit mode, and counts those that are refused."""
    wrong: list[str] = []
    refused: Counter[str] = Counter()
    for sequel in sequels:
        alone, together = twins.compare(sequel)
        if together.sqlstate == NOT_SUPPORTED != alone.sqlstate:
            refused[together.message] += 1
        elif together.sqlstate != alone.sqlstate or together.lines != alone.lines:
            wrong.append(f"{sequel}: {alone.describe(together)}")
    assert wrong == []
    return refused


def test_pairs_of_statements(twins: Twins):
    judge(random.Random(SEED).sample(list(pairs()), PAIRS), twins)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(100))
def test_all_pairs_of_statements(part: int, twins: Twins, capsys: pytest.CaptureFixture[str]):
    refused = judge(list(pairs())[part::100], twins)
    with capsys.disabled():
        print(*(f"{count} {message}" for message, count in refused.most_common()), sep="\n")


@pytest.mark.slow
def test_triples_of_statements(twins: Twins):
    judge(list(triples(500, SEED)), twins)
