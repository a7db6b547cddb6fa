"""Expressions in DDL: their text, their columns, their volatility, and what each use refuses."""

import pytest

from seachange.errors import Error
from seachange.model.relation import RelationName
from seachange.model.statements.table_statements import ExpressionDefinition, Volatility, sequence_call
from seachange.sql.ddl.expression import CHECK, DEFAULT, GENERATED, TRANSFORM, VOLATILITIES, compile_expression
from seachange.sql.translate.functions import FUNCTIONS, SEQUENCE_FUNCTIONS
from tests.sql.ddl.parsing import name


@pytest.mark.parametrize(
    ("text", "definition"),
    [
        ("a", ExpressionDefinition(("(", ")"), ("a",))),
        ("((a))", ExpressionDefinition(("(", ")"), ("a",))),
        ('"A" || lower(b) || A', ExpressionDefinition(("(", " || LOWER(", ") || ", ")"), ("A", "b", "a"))),
        ("a::numeric(10,2)", ExpressionDefinition(("(CAST(", " AS DECIMAL(10, 2)))"), ("a",))),
        ("random()", ExpressionDefinition(("(RANDOM())",), volatility=Volatility.VOLATILE)),
        ("current_date - a", ExpressionDefinition(("(CURRENT_DATE - ", ")"), ("a",), Volatility.STABLE)),
        ("now() + random() * interval '1 day'",
         ExpressionDefinition(
             ("(NOW() + RANDOM() * CAST('0 months 1 days 0 microseconds' AS INTERVAL))",),
             (),
             Volatility.VOLATILE,
         )),
        ("nextval('Q')",
         ExpressionDefinition(("(nextval('\"q\"'))",), (), Volatility.VOLATILE, (name("q"),))),
        ("nextval('s.\"Q\"'::regclass) + nextval('r') + nextval('r')",
         ExpressionDefinition(
             ("(nextval('\"s\".\"Q\"') + nextval('\"r\"') + nextval('\"r\"'))",),
             (), Volatility.VOLATILE, (RelationName("s", "Q"), name("r")),
         )),
        ("'nextval(''q'')'", ExpressionDefinition(("('nextval(''q'')')",))),
    ],
)  # fmt: skip
def test_expression_is_compiled_to_pieces_and_columns(text, definition):
    found = compile_expression(text, TRANSFORM)
    assert (found.pieces, found.columns, found.volatility) == (
        definition.pieces,
        definition.columns,
        definition.volatility,
    )
    assert set(found.sequences) == set(definition.sequences)


@pytest.mark.parametrize("use", [CHECK, DEFAULT, GENERATED, TRANSFORM], ids=lambda use: use.name)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(select 1)", "0A000"),
        ("exists (select 1)", "0A000"),
        ("sum(1)", "42803"),
        ("rank() over ()", "42P20"),
        ("generate_series(1, 2)", "0A000"),
        ("$1", "42601"),
        ("1 from t", "42601"),
        ("1; drop table t", "42601"),
        ("1 as x", "42601"),
        ("*", "42601"),
        ("", "42601"),
        ("1) + (1", "42601"),
        ("\x01c0\x01", "42601"),
        ("1 ? ", "42601"),
        ("date()", "42601"),
        ("glob('x')", "42501"),
        ("nosuch(1)", "42883"),
        ("read_text('x')", "42501"),
        ("1::nosuch", "0A000"),
        ("(" * 5000 + "1" + ")" * 5000, "54001"),
    ],
)
def test_refused_everywhere(text, expected, use):
    with pytest.raises(Error) as caught:
        compile_expression(text, use)
    assert caught.value.sqlstate == expected


@pytest.mark.parametrize(
    ("text", "refusals"),
    [
        ("a + 1", {DEFAULT: "0A000"}),
        ("now()", {CHECK: "0A000", GENERATED: "42P17"}),
        ("random()", {CHECK: "0A000", GENERATED: "42P17"}),
        ("nextval('q')", {CHECK: "0A000", GENERATED: "42P17"}),
        ("nextval(lower('q'))", {CHECK: "0A000", GENERATED: "42P17", DEFAULT: "0A000", TRANSFORM: "0A000"}),
        ("current_user", {CHECK: "0A000", GENERATED: "42P17", DEFAULT: "0A000", TRANSFORM: "0A000"}),
        ("t.a", {DEFAULT: "0A000"}),
        ("upper('a')", {}),
    ],
)
def test_what_each_use_refuses(text, refusals):
    found = {}
    for use in (CHECK, DEFAULT, GENERATED, TRANSFORM):
        try:
            compile_expression(text, use)
        except Error as error:
            found[use] = error.sqlstate
    assert found == refusals


def test_volatilities_are_of_functions_that_exist():
    assert set(VOLATILITIES) - FUNCTIONS == SEQUENCE_FUNCTIONS


@pytest.mark.parametrize(("use", "expected"), [(CHECK, "0A000"), (DEFAULT, "0A000"), (GENERATED, "42P17")])
def test_setting_a_sequence_is_refused(use, expected):
    with pytest.raises(Error) as caught:
        compile_expression("setval('q', 1)", use)
    assert caught.value.sqlstate == expected


def test_a_call_of_a_sequence_is_found_only_where_it_is_meant():
    call = sequence_call(RelationName("s", 'it\'s "q"'))
    text = 'nextval(\'s."it\'\'s ""q"""\')'
    found = compile_expression(f"concat({text}, '{text.replace(chr(39), chr(39) * 2)}')", DEFAULT)
    assert found.pieces[0].count(call) == 1
