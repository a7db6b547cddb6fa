"""Quotients and averages of random numerics are those of PostgreSQL, digit by digit."""

import random
from collections.abc import Iterator
from decimal import Decimal

import pytest

from tests.differential.both import Both, open_both
from tests.support.postgres import LocalPostgres

SEED = 20261116
ROWS = 60
COLUMNS = {"i": "integer", "g": "bigint", "m": "numeric(10,2)", "p": "numeric(15,6)", "n": "numeric"}
_SCALES = {"i": 0, "g": 0, "m": 2, "p": 6, "n": 5}
# Below this a quotient has more digits in PostgreSQL than there is room for.
SMALL, LEAST = Decimal("0.0002"), Decimal("1e-21")


def random_number(source: random.Random, scale: int) -> str:
    digits = source.randint(1, 8)
    return f"{Decimal(source.randint(-(10**digits), 10**digits) or 7).scaleb(-scale):f}"


@pytest.fixture(scope="module")
def both(postgres_server: LocalPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    source = random.Random(SEED)
    with open_both(postgres_server, tmp_path_factory.mktemp("data")) as opened:
        opened.run("CREATE TABLE v (id integer, " + ", ".join(f"{n} {t}" for n, t in COLUMNS.items()) + ")")
        for id_ in range(ROWS):
            written = ", ".join(random_number(source, _SCALES[name]) for name in COLUMNS)
            opened.run(f"INSERT INTO v VALUES ({id_}, {written})")
        opened.run(
            "CREATE VIEW totals AS SELECT id % 7 AS k, sum(m) AS s, count(*) AS n, max(i) AS i FROM v GROUP BY 1"
        )
        yield opened


def shown(value: object) -> object:
    """With all of its zeros, but for those of a value whose first group of four digits is a one: what they depend on is
    lost."""
    if not isinstance(value, Decimal):
        return value
    is_open = value.as_tuple().digits[0] == 1 and value.adjusted() % 4 == 0
    return f"{value.normalize() if is_open else value:f}"


def compare(both: Both, query: str, zeros: bool = True) -> None:
    expected, found = both.ask_postgres(query), both.ask_ours(query)
    assert expected.sqlstate is None, query
    assert found.sqlstate is None, query
    for ours, theirs in zip(sorted(found.rows or ()), sorted(expected.rows or ()), strict=True):
        assert [*map(type, ours)] == [*map(type, theirs)], query
        for one, other in zip(ours, theirs, strict=True):
            if isinstance(one, Decimal) and abs(other) < SMALL:
                assert abs(one - other) <= LEAST, query
            else:
                # As numbers they are the same in any case.
                assert one == other, query
                assert not zeros or shown(one) == shown(other), query


def test_quotients_of_columns(both: Both) -> None:
    pairs = [(one, other) for one in COLUMNS for other in COLUMNS if not {one, other} <= {"i", "g"}]
    for are_declared in (True, False):
        asked = [f"{one} / {other}" for one, other in pairs if ("n" not in (one, other)) is are_declared]
        # How many zeros a numeric without declared digits was given is not known.
        compare(both, f"SELECT id, {', '.join(asked)} FROM v", zeros=are_declared)
    nested = (
        "SELECT x / y, x / y * 100, (x + 1.5) / y FROM (SELECT sum(m) AS x, count(*) AS y FROM v GROUP BY id % 7) s"
    )
    compare(both, nested, zeros=False)


def test_averages_have_the_digits_of_postgresql(both: Both) -> None:
    averages = ", ".join(f"avg({name}), avg({name}) FILTER (WHERE id > 9), avg(DISTINCT {name})" for name in COLUMNS)
    for count in (1, 7, 60):
        compare(both, f"SELECT id % {count}, {averages} FROM v GROUP BY 1")
    compare(both, "SELECT id, avg(m) OVER (ORDER BY id ROWS 4 PRECEDING) FROM v")


def test_quotients_of_constants(both: Both) -> None:
    source = random.Random(SEED)
    constants = [
        (random_number(source, source.randint(0, 7)), random_number(source, source.randint(0, 7))) for _ in range(150)
    ]
    compare(both, "SELECT " + ", ".join(f"({one})::numeric / ({other})::numeric" for one, other in constants))


def test_variances_and_deviations_have_the_digits_of_postgresql(both: Both) -> None:
    for functions in (("variance", "var_pop", "var_samp"), ("stddev", "stddev_pop", "stddev_samp")):
        asked = ", ".join(f"{function}({name})" for name in ("i", "m", "p") for function in functions)
        for count in (1, 7, 60):
            compare(both, f"SELECT id % {count}, {asked} FROM v GROUP BY 1", zeros="variance" in functions)


def test_roots_and_powers(both: Both) -> None:
    """In double precision, of numerics too: 15 digits are those of PostgreSQL."""
    functions = ("sqrt", "ln", "log")
    asked = [f"{function}(abs({name}) + 0.5)" for name in ("m", "p", "n") for function in functions]
    asked += ["exp(m % 10)", "power(abs(p) + 1, 1.5)", "power(m, 2)", "p ^ 2.0"]
    query = f"SELECT {', '.join(asked)} FROM v ORDER BY id"
    for ours, theirs in zip(both.ask_ours(query).rows or (), both.ask_postgres(query).rows or (), strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert isinstance(one, float), query
            assert one == pytest.approx(float(other), rel=1e-15, abs=1e-15), query


@pytest.mark.parametrize("power", ["power(-8.0, 0.5)", "(m - m - 1) ^ 0.5", "power(m - m, -1.5)"])
def test_powers_that_have_no_value(both: Both, power: str) -> None:
    query = f"SELECT {power} FROM v"
    assert both.ask_ours(query).sqlstate == both.ask_postgres(query).sqlstate == "2201F"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1.10::numeric, '1.500'::numeric, 0::numeric, 1.10::numeric::text, (1.10 + 1.20)::text, 12e2::numeric",
        "SELECT 1e-9::numeric / 3, 10000.0 / 1, 1.0 / 10000, 1 / 1.0, 0 / 3.0, -7 / 2.0",
        "SELECT round(10 / 3.0, 4), trunc(10 / 3.0, 4), ceil(10 / 3.0), (10 / 3.0)::numeric(6,2), abs(-10 / 3.0)",
        "SELECT sum(q), max(q), count(q) FROM (SELECT m / 7 AS q FROM v) s",
        "SELECT k, s / n, s / 7, i / 7.0 FROM totals",
        "SELECT x / 7 FROM (VALUES (1.5), (22.75)) w(x)",
        "SELECT x / 7 FROM (SELECT m AS x FROM v UNION ALL SELECT 1) s",
        "WITH a AS (SELECT m AS x FROM v), b AS (SELECT x / 3 AS y FROM a) SELECT y, y / 3 FROM b",
    ],
)
def test_numeric_expressions_print_as_in_postgresql(both: Both, query: str) -> None:
    compare(both, query)


@pytest.mark.parametrize(
    "query",
    [
        # Where numerics meet that have no type of 38 digits in common.
        "SELECT sum(m) FROM v UNION ALL SELECT avg(m) FROM v",
        "SELECT x / 3 FROM (SELECT sum(m) AS x FROM v UNION ALL SELECT sum(p) FROM v) s",
        "SELECT coalesce(sum(p), sum(m)), greatest(avg(m), sum(p)), least(sum(m), avg(p)) FROM v",
        "SELECT CASE WHEN id < 9 THEN sum(m) OVER () ELSE p END, sum(p) OVER () % m FROM v",
        "SELECT count(*) FROM v WHERE p IN (SELECT sum(m) FROM v UNION SELECT trunc(p) FROM v)",
        "SELECT count(*) FROM v WHERE p IN (SELECT sum(trunc(p)) FROM v GROUP BY id)",
        # What rounds, and what gives a value of another row.
        "SELECT round(p, 2) / 3, round(m) / 7, trunc(p) / 7, floor(m) / 7, ceil(p) / 7, sign(m) / 3 FROM v",
        "SELECT avg(round(p, 3)), avg(trunc(m)), sum(floor(p)) / 7 FROM v",
        "SELECT round(i) / 2, trunc(i) / 2, floor(g) / 2, sign(i) / 2, abs(i) / 2 FROM v",
        "SELECT id, lag(m) OVER (ORDER BY id) / 3, first_value(p) OVER (ORDER BY id) / 7 FROM v",
        "SELECT nullif(i, 1.5) / 7, 5 / 12345678901234567890 = 0 FROM v",
        # Columns of what others have listed.
        "SELECT x.m / 3, q / 7 FROM (SELECT *, p AS q FROM v) x",
        "WITH c(y) AS (SELECT m FROM v) SELECT y / 3 FROM c",
        "SELECT l.x / 3 FROM v, LATERAL (SELECT v.m * 2 AS x) l",
        # Only rows that FILTER lets through are divided.
        "SELECT sum(10 / (id % 3)) FILTER (WHERE id % 3 > 0), avg(m / (id % 3)) FILTER (WHERE id % 3 > 0) FROM v",
        "SELECT id, sum(m / (id % 3)) FILTER (WHERE id % 3 > 0) OVER (ORDER BY id) FROM v",
    ],
)
def test_numeric_queries_have_the_values_of_postgresql(both: Both, query: str) -> None:
    compare(both, query, zeros=False)
