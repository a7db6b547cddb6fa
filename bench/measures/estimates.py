"""What EXPLAIN (DDL, COST) expects of each statement of the catalogue beside what the statement then took, on tables of
random texts and numbers, of sequential ones, and of few distinct ones."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import seachange
from bench.bounds import bounds_of
from bench.harness import Context, Measure, Reading, Sample
from tests.ddl_operations.operations import OPERATIONS
from tests.ddl_operations.schema import SETUP

TAKEN = """
    select estimated_rows, rows, estimated_bytes, bytes, estimated_ms, duration_ms from seachange.changes where id > %s
"""
# What cannot be made of the values of a set, such as a unique index on few distinct ones.
REFUSED = ("22", "23", "42")


@dataclass(frozen=True, slots=True)
class Values:
    """SQL for the values of row `i` of `rows`: numbers and texts of any kind, and those that a unique key takes."""

    number: str
    text: str
    digits: str
    unique_number: str
    unique_text: str


DATA = {
    "random": Values(
        "(abs(hashtext(i::text)::bigint) % 1000000000)::int",
        "md5(i::text)",
        "(abs(hashtext(i::text)::bigint) % 1000000000)::text",
        "((i::bigint * 7919) % {prime})::int",
        "md5(i::text)",
    ),
    "sequential": Values("i", "'b' || i", "i::text", "i", "'b' || i"),
    "few": Values("i % 5", "'b' || (i % 5)", "(i % 5)::text", "i", "'b' || i"),
}


def fill(data: Values, rows: int) -> Iterator[str]:
    numbers = f"generate_series(1, {rows}) g (i)"
    # All numbers below a prime are different multiples of another one.
    unique = data.unique_number.format(prime=next_prime(rows))
    few = f"({data.number}) % 1000"
    yield f"insert into parent select i, {data.unique_text} from generate_series(0, {next_prime(rows)}) g (i)"
    columns = f"i, {data.number}, {data.text}, {few}, {data.text}, {unique}, {few}, 'ok'"
    yield f"insert into t select {columns} from {numbers}"
    yield f"insert into child select i, i, now() from {numbers}"
    yield f"insert into bag select {unique}, {data.digits} from {numbers}"
    yield f"insert into total (id, net) select i, ({data.number}) % 1000000 from {numbers}"
    yield f"insert into label select i, {data.unique_text}, {data.unique_text} from {numbers}"
    yield f"insert into archive.old select i, i from {numbers}"


def next_prime(number: int) -> int:
    """
    >>> next_prime(100)
    101
    """
    while any(number % factor == 0 for factor in range(2, int(number**0.5) + 1)):
        number += 1
    return number


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a statement was expected to take over what it took; None if it took nothing and was expected to."""

    statement: str
    rows: float | None
    bytes: float | None
    time: float | None


def compare(base: Path, statement: str, scratch: Path) -> Comparison | None:
    """On a copy of the database; None if the statement cannot be made there."""
    copy = scratch / "copy"
    shutil.copytree(base, copy)
    try:
        with closing(seachange.connect(data=str(copy))) as db, closing(db.cursor()) as cursor:
            db.autocommit = True
            cursor.execute("select coalesce(max(id), 0) from seachange.changes")
            newest = cursor.fetchall()[0][0]
            cursor.execute(statement)
            cursor.execute(TAKEN, (newest,))
            found = cursor.fetchall()
    except seachange.Error as problem:
        if problem.sqlstate[:2] not in REFUSED:
            raise
        return None
    finally:
        shutil.rmtree(copy)
    sums = [sum(row[place] or 0 for row in found) for place in range(6)]
    rows, sizes, times = (over(*sums[place : place + 2]) for place in (0, 2, 4))
    return Comparison(statement, rows, sizes, times)


def over(expected: float, taken: float) -> float | None:
    return max(expected, 1) / max(taken, 1) if expected or taken else None


def estimates(name: str, context: Context) -> Iterable[Reading]:
    """Rows and bytes do not depend on the load of the machine."""
    compared = compare_all(name, context)
    for what in ("rows", "bytes"):
        yield farthest(f"estimates.{name}.{what}", ratios_of(compared, what))


def times(context: Context) -> Iterable[Reading]:
    """Of the statements that read or write rows."""
    compared = [each for each in compare_all("random", context) if each.rows is not None]
    yield farthest("estimates.time", ratios_of(compared, "time"))


def compare_all(name: str, context: Context) -> list[Comparison]:
    base = context.folder(name) / "db"
    with closing(seachange.connect(data=str(base))) as db, closing(db.cursor()) as cursor:
        db.autocommit = True
        for sql in (*SETUP, *fill(DATA[name], context.scale.rows_estimated)):
            cursor.execute(sql)
    statements = [statement for operation in OPERATIONS for statement in operation.statements]
    found = [compare(base, statement, base.parent) for statement in statements]
    return [each for each in found if each is not None]


def ratios_of(compared: Iterable[Comparison], what: str) -> dict[str, float]:
    return {each.statement: ratio for each in compared if (ratio := getattr(each, what)) is not None}


def farthest(name: str, ratios: dict[str, float]) -> Reading:
    """How many times too much or too little the worst estimate is."""
    times = {statement: max(ratio, 1 / ratio) for statement, ratio in ratios.items()}
    worst = max(times, key=lambda statement: times[statement])
    close = sum(each <= 2 for each in times.values())
    note = f"worst of {len(times)} statements (median {median(times.values()):.2f}, {close} within 2): {worst}"
    facts = {statement: round(ratio, 3) for statement, ratio in ratios.items()}
    return Reading(name, "x", Sample((times[worst],)), note=note, facts=facts)


NAMES = {name: f"estimates.{name}" for name in DATA}
MEASURES = (
    *(Measure(full, partial(estimates, name), bounds_of(full)) for name, full in NAMES.items()),
    Measure("estimates.time", times, bounds_of("estimates.time")),
)
