"""What functions cost, measured: arguments of four times the size take about four times as long, not sixteen times.

Every function and operator of PostgreSQL that exists here is tried, with arguments that are large where their types can
be. `test_function_costs.py` has the survey, and the functions that are bounded instead.
"""

import time
from collections.abc import Iterator

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session
from seachange.sql.bind.postgres import Signature, functions, operators

SMALL, FACTOR = 10_000, 4
# Calls that take less are not compared: measuring them is too inexact.
CPU_S_MIN = 0.5
GROWTH_MAX = 9.0
TIMEOUT = "60s"
ROWS = "generate_series(1, {n}) as g(i)"
# Values of a size, by the name of their type: several of a kind, as functions find different ones hard.
TEXTS = (
    "repeat('a', {n})",
    "(select string_agg('k' || i, ',') from generate_series(1, {n} / 8) as g(i))",
)
ARRAY = "(select array_agg({item}) from generate_series(1, {n}) as g(i))"
DOCUMENTS = (
    "(select jsonb_object_agg('k' || i, i) from generate_series(1, {n} / 8) as g(i))",
    "(select jsonb_agg(i) from generate_series(1, {n} / 4) as g(i))",
)
LARGE: dict[str, tuple[str, ...]] = {
    "text": TEXTS,
    "varchar": TEXTS[:1],
    "bpchar": TEXTS[:1],
    "bytea": ("convert_to(repeat('a', {n}), 'UTF8')",),
    "jsonb": DOCUMENTS,
    "json": tuple(f"{each}::json" for each in DOCUMENTS),
    "anyarray": (ARRAY.replace("{item}", "i"),),
    "anycompatiblearray": (ARRAY.replace("{item}", "i"), ARRAY.replace("{item}", "'k' || i")),
    "_text": (ARRAY.replace("{item}", "'k' || i"),),
    "_int4": (ARRAY.replace("{item}", "i"),),
}
PLAIN = {
    "bool": "true",
    "int2": "7::smallint",
    "int4": "7",
    "int8": "7::bigint",
    "float4": "0.5::real",
    "float8": "0.5::double precision",
    "numeric": "0.5",
    "date": "date '2020-02-29'",
    "time": "time '12:00'",
    "timestamp": "timestamp '2020-02-29 12:00'",
    "timestamptz": "timestamptz '2020-02-29 12:00+00'",
    "interval": "interval '1 day'",
    "uuid": "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
    "anyelement": "7",
    "anynonarray": "7",
    "anycompatible": "7",
    "anycompatiblenonarray": "7",
    "any": "7",
}
# Values of rows, for aggregates and window functions.
OF_ROWS = {
    "text": "'k' || i",
    "bytea": "convert_to('k' || i, 'UTF8')",
    "bool": "i % 2 = 0",
    "jsonb": "to_jsonb(i)",
    "date": "date '2020-01-01' + i % 1000",
}


def values(type_: str, n: int) -> tuple[str, ...]:
    if type_ in LARGE:
        return tuple(each.replace("{n}", str(n)) for each in LARGE[type_])
    return (PLAIN[type_],) if type_ in PLAIN else ()


def arguments(signature: Signature, n: int) -> list[list[str]]:
    """Values of all arguments, in several shapes; none if all of them are small."""
    given = [values(type_, n) for type_ in signature.arguments]
    if not all(given) or LARGE.keys().isdisjoint(signature.arguments):
        return []
    return [[each[shape % len(each)] for each in given] for shape in range(max(map(len, given)))]


def operator_calls(name: str, signature: Signature, n: int) -> list[str]:
    return [f"select ({f' {name} '.join(given)}) is null" for given in arguments(signature, n) if len(given) == 2]


def function_calls(name: str, signature: Signature, n: int) -> list[str]:
    rows = ROWS.replace("{n}", str(n))
    match signature.kind:
        case "f":
            texts = [", ".join(given) for given in arguments(signature, n)]
            form = "select count(*) from {}({})" if signature.returns_set else "select {}({}) is null"
            return [form.format(name, text) for text in texts]
        case "a":
            call = f"{name}({', '.join(map(_of_row, signature.arguments))})"
            window = f"{call} over (order by i rows 9 preceding)"
            return [
                f"select {call} is null from {rows}",
                f"select count(x) from (select {window} as x from {rows}) as q",
            ]
        case _:
            call = f"{name}({', '.join(map(_of_row, signature.arguments))}) over (order by i)"
            return [f"select count(x) from (select {call} as x from {rows}) as q"]


def _of_row(type_: str) -> str:
    if type_.startswith("any"):
        return "i" if "array" not in type_ or "non" in type_ else "array[i]"
    return OF_ROWS.get(type_, f"i::{type_}" if type_ in PLAIN else "i")


def calls(n: int) -> Iterator[tuple[str, str]]:
    """Queries with arguments of a size."""
    for made, table in ((function_calls, functions()), (operator_calls, operators())):
        for name, signatures in table.items():
            yield from ((name, query) for signature in signatures for query in made(name, signature, n))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    node = open_node(tmp_path_factory.mktemp("growth"))
    session = Session(node)
    session.execute(f"set statement_timeout = '{TIMEOUT}'")
    yield session
    session.close()
    node.close()


def cost_s(session: Session, query: str) -> float | None:
    """None if such a call is refused."""
    started = time.process_time()
    try:
        session.execute(query)
    except errors.QueryCanceled:
        return float("inf")
    except errors.Error:
        return None
    return time.process_time() - started


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_costs_grow_as_arguments_do(session: Session):
    steep, tried = [], set()
    for (name, small), (_, large) in zip(calls(SMALL), calls(SMALL * FACTOR), strict=True):
        before = cost_s(session, small)
        after = cost_s(session, large) if before is not None else None
        if before is None or after is None:
            continue
        tried.add(name)
        if after > CPU_S_MIN and after > GROWTH_MAX * before:
            steep.append(f"{name}: {before:.2f} s, {after:.2f} s: {large}")
    print(f"{len(tried)} functions and operators")
    assert not steep, "\n".join(steep)
