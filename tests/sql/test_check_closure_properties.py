"""CHECK expressions in Python and in DuckDB: the same answer for every row, or none in Python."""

from decimal import Decimal

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seachange.sql.ddl.constraint import compile_check
from seachange.sql.duck.check_closure import Undecided, compile_check_expression
from seachange.values.types import BIGINT, TEXT, Kind, SqlType

# The columns of every row: their names, types and values.
COLUMNS = {
    "i": (SqlType(Kind.INTEGER), st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3)),
    "j": (SqlType(Kind.INTEGER), st.integers(-3, 3)),
    "s": (SqlType(Kind.SMALLINT), st.integers(-(2**15), 2**15 - 1) | st.integers(-3, 3)),
    "b": (BIGINT, st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)),
    "n": (SqlType(Kind.NUMERIC, 6, 2), st.decimals(-999, 999, places=2) | st.integers(-3, 3).map(Decimal)),
    "f": (SqlType(Kind.DOUBLE), st.floats(width=64) | st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.0])),
    "t": (TEXT, st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=4)),
    "u": (TEXT, st.sampled_from(["", "a", "A", "b", "ab", "ä", "ß", "İ"])),
    "x": (SqlType(Kind.BOOLEAN), st.booleans()),
}
NAMES = list(COLUMNS)
POSITIONS = {f"c{number}": (number, COLUMNS[name][0]) for number, name in enumerate(NAMES)}

rows = st.tuples(*[st.none() | values for _, values in COLUMNS.values()])

integers = st.sampled_from(
    ["i", "j", "b", "s", "length(t)", "0", "1", "-2", "100000", "i + 1", "j * i", "b - j", "i * i"]
)
exact = integers | st.sampled_from(["n", "0.5", "-1.25", "2.0"])
doubles = st.sampled_from(["f"])
literals = st.sampled_from(["0", "1", "0.5", "-2", "100"])
texts = st.sampled_from(["t", "u", "''", "'a'", "'B'", "lower(u)", "upper(u)", "lower(t)"])
comparisons = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])


def compare(one, other):
    return st.tuples(one, comparisons, other).map(" ".join)


def group(operands):
    return st.one_of(
        st.tuples(operands, st.lists(operands | st.just("null"), min_size=1, max_size=3).map(", ".join)).map(
            lambda parts: f"{parts[0]} in ({parts[1]})"
        ),
        st.tuples(operands, operands, operands).map(lambda p: f"{p[0]} between {p[1]} and {p[2]}"),
    )


simple = st.one_of(
    st.just("x"),
    compare(exact, exact),
    compare(doubles, literals | doubles),
    compare(texts, texts),
    group(exact),
    group(texts),
    st.sampled_from([f"{name} is null" for name in NAMES] + [f"{name} is not null" for name in NAMES]),
    st.sampled_from(["null", "true", "false", "x = true", "i = null"]),
    st.tuples(texts, st.sampled_from(["like", "not like"]), st.text("aAbä%_.*", max_size=4)).map(
        lambda parts: f"{parts[0]} {parts[1]} '{parts[2]}'"
    ),
)
conditions = st.recursive(
    simple,
    lambda inner: st.one_of(
        inner.map(lambda c: f"not ({c})"),
        st.tuples(inner, st.sampled_from([" and ", " or "]), inner).map(lambda p: f"({p[0]}){p[1]}({p[2]})"),
    ),
    max_leaves=4,
)


def bind(text: str) -> str:
    definition = compile_check(f"({text})")
    gaps = [f'"c{NAMES.index(name)}"' for name in definition.columns]
    return "".join(piece + gap for piece, gap in zip(definition.pieces, [*gaps, ""], strict=True))


@pytest.fixture(scope="module")
def duck():
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET integer_division = true")
        yield connection


def ask(duck, expression: str, row) -> object:
    casts = ", ".join(f'CAST(? AS {type_.duckdb}) AS "{name}"' for name, (_, type_) in POSITIONS.items())
    return duck.execute(f"SELECT {expression} FROM (SELECT {casts})", list(row)).fetchone()[0]


@settings(max_examples=400)
@given(text=conditions, row=rows)
def test_python_says_what_duckdb_says(duck, text, row):
    expression = bind(text)
    evaluate = compile_check_expression(expression, POSITIONS)
    if evaluate is None:
        return
    try:
        found = evaluate(row)
    except Undecided:
        return
    assert found is ask(duck, expression, row), text


@pytest.mark.parametrize(
    "text",
    [
        "n > 0",
        "i between 1 and 5",
        "u in ('a', 'b')",
        "length(t) < 10",
        "i > j and not x",
        "lower(u) = u",
        "i + j > 0",
        "u like 'a%'",
    ],
)
def test_the_common_forms_are_compiled(text):
    assert compile_check_expression(bind(text), POSITIONS) is not None


@pytest.mark.parametrize(
    "text", ["u like 'a\\%'", "u ilike 'a'", "i / 2 > 1", "s + 1 > 0", "f + 1 > 0", "u ~ 'a'", "abs(i) > 0"]
)
def test_the_others_are_left_to_duckdb(text):
    assert compile_check_expression(bind(text), POSITIONS) is None


@pytest.mark.parametrize(
    ("text", "column", "value"),
    [("f > 0", "f", float("nan")), ("lower(u) = 'i'", "u", "İ"), ("i + 1 > 0", "i", 2**31 - 1)],
)
def test_uncertain_values_are_left_to_duckdb(text, column, value):
    evaluate = compile_check_expression(bind(text), POSITIONS)
    assert evaluate is not None
    row = [None] * len(NAMES)
    row[NAMES.index(column)] = value
    with pytest.raises(Undecided):
        evaluate(tuple(row))


def test_a_type_without_a_python_form():
    assert compile_check_expression('"c0" > "c0"', {"c0": (0, SqlType(Kind.DATE))}) is None
