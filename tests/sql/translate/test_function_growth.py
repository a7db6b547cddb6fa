"""What functions cost, measured: arguments of four times the size take about four times as long, not sixteen times.

Every function and operator of PostgreSQL that exists here is tried, with arguments that are large where their types can
be. `test_function_costs.py` has the survey, and the functions that are bounded instead.
"""

import time
from collections.abc import Iterator
from itertools import islice, product

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
PAIRS = "(select jsonb_agg(jsonb_build_object('a', i)) from generate_series(1, {n} / 8) as g(i))"
LIST = TEXTS[1]
# Functions that take no argument of any text, or have a syntax of their own.
SPECIAL: dict[str, str] = {
    "encode": "select length(encode(convert_to({text}, 'UTF8'), 'hex'))",
    "decode": "select decode(encode(convert_to({text}, 'UTF8'), 'base64'), 'base64') is null",
    "escape": "select encode(convert_to({text}, 'UTF8'), 'escape') is null",
    "normalize": "select normalize({list}) is null",
    "is normalized": "select {list} is normalized",
    "parse_ident": "select cardinality(parse_ident(replace({list}, ',', '.')))",
    "percentile_cont": "select percentile_cont(0.5) within group (order by i) from {rows}",
    "percentile_disc": "select percentile_disc(array[0.1, 0.5]) within group (order by i) from {rows}",
    "mode": "select mode() within group (order by i % 7) from {rows}",
    "string_agg": "select length(string_agg('k' || i, ',' order by i desc)) from {rows}",
    "distinct": "select array_agg(distinct i % 100) is null from {rows}",
    "regexp_match": "select regexp_match({list}, 'k9+,') is null",
    "regexp backtracking": "select {text} ~ '(a|aa)*b'",
    "like": "select {text} like repeat('a%', 1000) || 'b'",
    "similar to": "select {list} similar to 'k%(1|2),%'",
    "position": "select position(repeat('a', 5000) || 'b' in {text})",
    "split_part": "select split_part({list}, ',', -2)",
    "string_to_array": "select cardinality(string_to_array({text}, null))",
    "jsonb_set_lax": "select jsonb_set_lax({document}, '{k1}', null, true, 'delete_key') is null",
    "json_to_recordset": "select count(*) from json_to_recordset({pairs}::json) as x(a int)",
    "jsonb_to_recordset": "select count(*) from jsonb_to_recordset({pairs}) as x(a int)",
    "jsonb_path_query": "select jsonb_path_query_array({pairs}, '$[*].a ? (@ > 7)') is null",
    "jsonb text": "select ({pairs})::text::jsonb = {pairs}",
    "jsonb number": "select repeat('9', {n})::jsonb",
    "numeric": "select repeat('9', {n})::numeric",
    "interval": "select repeat('1 day ', {n} / 6)::interval",
    "array bounds": "select ({array})[5:{n}] is null",
    "unnest": "select count(*) from unnest({array}) with ordinality",
    "width_bucket": "select width_bucket(7, {array})",
    "not in": "select count(*) from {rows} where i not in (select i from {rows})",
    "running sum": "select max(s) from (select sum(i) over (order by i) as s from {rows}) as q",
    "moving distinct": """select max(x) from (
        select count(distinct i % 9) over (order by i rows 9 preceding) as x from {rows}) as q""",
}
# The largest and the smallest value of a type.
EXTREMES: dict[str, tuple[str, ...]] = {
    "int2": ("32767::smallint", "1::smallint"),
    "int4": ("2147483647", "1"),
    "int8": ("9223372036854775807", "1::bigint"),
    "float4": ("3e38::real",),
    "float8": ("1e308::double precision", "1e-300::double precision"),
    "numeric": ("99999999999999999999999999999999999999", "0.00000000000000000000000000000000000001"),
    "date": ("date '9999-12-31'", "date '0001-01-01'"),
    "timestamp": ("timestamp '9999-12-31 23:59:59'", "timestamp '0001-01-01'"),
    "timestamptz": ("timestamptz '9999-12-31 00:00+00'", "timestamptz '0001-01-01 00:00+00'"),
    "interval": ("interval '178000000 years'", "interval '1 microsecond'"),
    "inet": ("inet 'ffff::1/1'",),
    "cidr": ("cidr '::/0'",),
    "text": ("'9999999999'", "'x'"),
    "bytea": (r"'\xff'::bytea",),
    "jsonb": ("'99999999999999999999999999'::jsonb",),
    "json": ("'[9999999999999999999]'::json",),
    "_text": ("array['2147483647']",),
    "_int4": ("array[2147483647]",),
    "anyarray": ("array[2147483647]",),
    "anycompatiblearray": ("array[2147483647]",),
    "anyelement": ("2147483647",),
    "anycompatible": ("2147483647",),
}
CHOICES_MAX = 16
GREAT_CPU_S_MAX = 1.0
# They wait, or make as many rows as asked for, one after the other.
UNLIMITED = {"pg_sleep", "pg_sleep_for", "pg_sleep_until", "pg_advisory_lock", "generate_series"}
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
    parts = {
        "text": TEXTS[0],
        "list": LIST,
        "document": DOCUMENTS[0],
        "pairs": PAIRS,
        "array": ARRAY.replace("{item}", "i"),
        "rows": ROWS,
    }
    for name, query in SPECIAL.items():
        for part, text in parts.items():
            query = query.replace(f"{{{part}}}", text)
        yield name, query.replace("{n}", str(n))


def great_calls() -> Iterator[str]:
    """Calls with the largest and smallest values of their types."""
    for name, signatures in functions().items():
        for signature in signatures if name not in UNLIMITED else ():
            given = [EXTREMES.get(type_, values(type_, 1)) for type_ in signature.arguments]
            if signature.kind == "f" and given and all(given):
                form = "select count(*) from {}({})" if signature.returns_set else "select {}({}) is null"
                yield from (form.format(name, ", ".join(each)) for each in islice(product(*given), CHOICES_MAX))
    for name, signatures in operators().items():
        for signature in signatures:
            given = [EXTREMES.get(type_, values(type_, 1)) for type_ in signature.arguments]
            if len(given) == 2 and all(given):
                yield from (
                    f"select ({f' {name} '.join(each)}) is null" for each in islice(product(*given), CHOICES_MAX)
                )


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


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_great_values_cost_no_more_than_others(session: Session):
    costly = []
    for query in great_calls():
        taken = cost_s(session, query)
        if taken is not None and taken > GREAT_CPU_S_MAX:
            costly.append(f"{taken:.2f} s: {query}")
    assert not costly, "\n".join(costly)
