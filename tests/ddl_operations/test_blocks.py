"""Statements of the catalogue, one after the other in a transaction block, do what they do in autocommit mode."""

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.ddl_operations.blocks import (
    CONCURRENT,
    NOT_SUPPORTED,
    STATEMENTS,
    Rows,
    Sequel,
    Twins,
    pairs,
    triples,
)

SEED = 7
PAIRS = 15
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


BEGINNINGS = {
    "read committed": ("begin",),
    "repeatable read": ("begin isolation level repeatable read", "select count(*) from t"),
}


@pytest.mark.parametrize("begin", BEGINNINGS.values(), ids=BEGINNINGS)
def test_every_statement_over_rows(begin: tuple[str, ...], node: Node):
    """Whatever works alone works in a block; `test_all_statements` compares what it does."""
    found = {}
    with closing(Session(node)) as session:
        for sql in (*STATEMENTS, *CONCURRENT):
            try:
                for statement in (*begin, *sql.split("; ")):
                    session.execute(statement)
            except errors.Error as error:
                found[sql] = error.sqlstate
            session.execute("rollback")
    assert found == CONCURRENT


@pytest.mark.slow
def test_all_statements(twins: Twins):
    for sequel in (Sequel((sql,), Rows.COMMITTED) for sql in STATEMENTS):
        alone, together = twins.compare(sequel)
        assert together == alone, alone.describe(together)
        alone, together = twins.compare_after_query(sequel)
        assert together == alone, alone.describe(together)


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
