"""Functions and operators give what they give in PostgreSQL, for the same inputs; and seeded random expressions.

Each line of testdata/expressions.txt, documented.txt and json_paths.txt is an expression, of aggregates.txt one over
the table below, of queries.txt a query. What differs is listed in testdata/differences.txt with a reason; what is
refused here is a difference too. testdata/column_differences.txt lists the queries whose result columns have other
names or types.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.differential.both import Answer, Both, open_both, values
from tests.differential.random_expressions import random_expressions
from tests.support.postgres import LocalPostgres

FOLDER = Path(__file__).parent / "testdata"
SAMPLE = """
CREATE TABLE sample (n integer PRIMARY KEY, t text, f double precision, d date, b boolean, m numeric(10,2));
INSERT INTO sample VALUES
  (1, 'a', 1.5, '2024-01-01', true, 1.10), (2, 'b', 2.5, '2024-01-15', true, 2.20),
  (3, NULL, NULL, '2024-02-01', false, NULL), (4, 'd', -4.25, '2024-03-01', false, 4.40), (5, 'a', 0, NULL, NULL, 5);
CREATE TABLE amounts (a numeric, b numeric, c numeric(10,2), i integer, g bigint, r real, x float8, d date);
INSERT INTO amounts VALUES
  (1000, 2000.5, 3.25, 7, 8, 1.5, 2.5, '2024-01-05'), (-12.125, 0.001, 99999999.99, 0, 9, 0, 1, NULL)
"""
SEED = 20261115
RANDOM = 300


def read_lines(name: str) -> list[str]:
    lines = (FOLDER / name).read_text().splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


QUERIES = [
    *(f"SELECT {expression}" for expression in read_lines("expressions.txt")),
    *(f"SELECT {expression}" for expression in read_lines("documented.txt")),
    *(f"SELECT {expression}" for expression in read_lines("json_paths.txt")),
    *(f"SELECT {expression} FROM sample" for expression in read_lines("aggregates.txt")),
    *read_lines("queries.txt"),
]
DIFFERENT = set(read_lines("differences.txt"))
OTHER_COLUMNS = set(read_lines("column_differences.txt"))


@pytest.fixture(scope="module")
def both(postgres_server: LocalPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with open_both(postgres_server, tmp_path_factory.mktemp("data")) as opened:
        opened.run(SAMPLE)
        yield opened


Answers = dict[str, tuple[Answer, Answer]]


def ask_both(both: Both, queries: list[str]) -> Answers:
    return {query: (both.ask_postgres(query), both.ask_ours(query)) for query in queries}


@pytest.fixture(scope="module")
def answers(both: Both) -> Answers:
    return ask_both(both, QUERIES)


def differences(answers: Answers, part: Callable[[Answer], object] = values) -> dict[str, str]:
    found = {}
    for query, (postgres, ours) in answers.items():
        expected, actual = part(postgres), part(ours)
        if expected != actual:
            found[query] = f"{query}\n    PostgreSQL {expected}\n    ours       {actual}"
    return found


def test_result_columns_are_the_same(answers: Answers) -> None:
    both_ran = {query: each for query, each in answers.items() if each[0].rows is not None and each[1].rows is not None}
    found = differences(both_ran, lambda answer: answer.columns)
    print(f"result columns: {len(both_ran)} statements compared, {len(found)} differ")
    unlisted = [how for query, how in found.items() if query not in OTHER_COLUMNS]
    assert not unlisted, "\n".join(unlisted)
    assert not OTHER_COLUMNS - set(found), f"these no longer differ: {OTHER_COLUMNS - set(found)}"


def test_expressions_give_the_same(answers: Answers) -> None:
    found = differences(answers)
    print(f"expressions: {len(QUERIES)} statements compared, {len(found)} differ")
    unlisted = [how for query, how in found.items() if query not in DIFFERENT]
    assert not unlisted, "\n".join(unlisted)
    assert not DIFFERENT - set(found), f"these no longer differ: {DIFFERENT - set(found)}"


def test_random_expressions_give_the_same(both: Both) -> None:
    queries = [f"SELECT {expression} FROM sample ORDER BY n" for expression in random_expressions(SEED, RANDOM)]
    found = differences(ask_both(both, queries))
    print(f"random expressions: {len(queries)} compared, {len(found)} differ")
    assert not found, "\n".join(found.values())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_more_random_expressions(both: Both, seed: int) -> None:
    queries = [f"SELECT {expression} FROM sample ORDER BY n" for expression in random_expressions(seed, RANDOM)]
    found = differences(ask_both(both, queries))
    assert not found, "\n".join(found.values())
