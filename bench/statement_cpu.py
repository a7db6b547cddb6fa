"""CPU time of single statements of an embedded session: `python -m bench.statement_cpu`.

It is the least of many runs, which depends little on what else the machine does; with another `src` on PYTHONPATH it
measures that one, and `bench.side_by_side --cpu` compares both by alternating runs.
"""

import gc
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import seachange

KEYS = 1_000
# How often short statements, and changes of the schema, are repeated in a row; and how often that is done.
STATEMENTS, CHANGES, ROUNDS = 200, 10, 5
COLUMNS_MANY = 10

Execute = Callable[..., Any]


def short_statements(execute: Execute) -> dict[str, Callable[[], object]]:
    fresh, known = count(10 * KEYS), count()

    def select() -> None:
        execute("select v from t where id = %s", (next(known) % KEYS,)).fetchall()

    def block() -> None:
        execute("begin")
        select()
        execute("commit")

    return {
        "select": select,
        "insert": lambda: execute("insert into t values (%s, %s)", (next(fresh), "x")),
        "update": lambda: execute("update t set v = %s where id = %s", ("y", next(known) % KEYS)),
        "begin_select_commit": block,
    }


def long_statements(execute: Execute) -> dict[str, Callable[[], object]]:
    """Texts with thousands of constants or parameters; no two have the same constants."""
    first = count()

    def numbers(size: int) -> range:
        start = next(first)
        return range(start, start + size)

    def constants(size: int) -> None:
        execute(f"select count(*) from t where id in ({', '.join(map(str, numbers(size)))})").fetchall()

    def parameters(size: int) -> None:
        execute(f"select count(*) from t where id in ({', '.join(['%s'] * size)})", list(numbers(size))).fetchall()

    def rows(size: int) -> None:
        listed = ", ".join(f"({number}, 'x{number}')" for number in numbers(size))
        execute(f"select count(*) from (values {listed}) v").fetchall()

    def cases(size: int) -> None:
        branches = " ".join(f"when id = {number} then 'x{number}'" for number in numbers(size))
        execute(f"update t set v = case {branches} else v end where id < 10")

    def conditions(size: int) -> None:
        execute(f"select count(*) from t where {' or '.join(f'id = {n}' for n in numbers(size))}").fetchall()

    return {
        "in_10000_constants": lambda: constants(10_000),
        "in_65535_parameters": lambda: parameters(65_535),
        "values_10000_rows": lambda: rows(10_000),
        "update_2000_cases": lambda: cases(2_000),
        "or_200_conditions": lambda: conditions(200),
    }


def compilations(execute: Execute) -> dict[str, Callable[[], object]]:
    """The first and the repeated execution of a join of three tables."""
    first = count()
    text = "select a.v, c.n from t a join j b on b.n = a.id join j c on c.n = b.n where a.id = %s"

    return {
        "join_first": lambda: execute(f"{text} and c.n > -{next(first)}.5", (1,)).fetchall(),
        "join_repeated": lambda: execute(text, (next(first) % KEYS,)).fetchall(),
    }


def schema_changes(execute: Execute) -> dict[str, Callable[[], object]]:
    columns, lengths = count(), count()

    def add_columns(number: int) -> None:
        for _ in range(number):
            execute(f"alter table d add column c{next(columns)} integer default 7")

    def block(number: int) -> None:
        execute("begin")
        add_columns(number)
        execute("commit")

    return {
        "add_column": lambda: add_columns(1),
        "block_of_one_column": lambda: block(1),
        "block_of_ten_columns": lambda: block(COLUMNS_MANY),
        "alter_type": lambda: execute(f"alter table d alter column v type varchar({90 + next(lengths) % 7})"),
    }


def measure() -> Iterator[tuple[str, float]]:
    """Names, and microseconds of CPU."""
    with tempfile.TemporaryDirectory() as folder:
        connection = seachange.connect(f"{folder}/data", autocommit=True)
        execute = connection.execute
        execute("create table t (id bigint primary key, v text)")
        execute(f"insert into t select n, n::text from generate_series(0, {KEYS - 1}) s(n)")
        gc.disable()
        yield from _least(short_statements(execute), STATEMENTS, lambda: None)
        yield from _least(long_statements(execute), 1, lambda: None)
        execute("create table j (n bigint primary key)")
        execute("insert into j values (1), (2), (3)")
        yield from _least(compilations(execute), CHANGES, lambda: None)

        def begin_anew() -> None:
            """Every column that comes leaves a layout behind."""
            execute("drop table if exists d")
            execute("create table d (id bigint primary key, v text)")
            execute("insert into d values (1, 'x')")

        yield from _least(schema_changes(execute), CHANGES, begin_anew)
        connection.close()


def _least(
    work: dict[str, Callable[[], object]], times: int, prepare: Callable[[], None]
) -> Iterator[tuple[str, float]]:
    least = dict.fromkeys(work, float("inf"))
    for _ in range(ROUNDS):
        for name, run in work.items():
            prepare()
            run()
            before = time.thread_time()
            for _ in range(times):
                run()
            least[name] = min(least[name], (time.thread_time() - before) / times * 1e6)
    yield from least.items()


def main() -> None:
    for name, took_us in measure():
        print(f"cpu.{name} {took_us:.1f}")


if __name__ == "__main__":
    main()
