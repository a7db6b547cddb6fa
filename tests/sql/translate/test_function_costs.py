"""A survey of all functions: what each costs, and that no call takes much longer or makes much more than its arguments.

`testdata/costs.txt` has a line for every function of the allow-list. A function that is not linear has an example here:
a call that would take hours, or memory without end, and is refused at once.
"""

import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session
from seachange.sql.translate.functions import FUNCTIONS
from seachange.sql.translate.size_limits import MATCHED_BYTES_MAX, is_linear

SURVEY = Path(__file__).parent / "testdata" / "costs.txt"
CPU_S_MAX = 20
GROWTH_KB_MAX = 1_000_000
LONG = f"repeat('a', {MATCHED_BYTES_MAX + 1})"
DEEP = "(repeat('[', 300) || repeat(']', 300))::jsonb"
MANY = "(select jsonb_agg(jsonb_build_array(i)) from generate_series(1, 5000) g(i))"

# The cost of a function by the words of the survey: its result may be large, its time may be a product of two lengths,
# or all matches of a regular expression may take the square of the length of a text.
EXAMPLES: dict[str, dict[str, tuple[str, str]]] = {
    "result": {
        "repeat": ("repeat('x', 4000000000)", "54000"),
        "pad": ("lpad('x', 2000000000, 'ab')", "54000"),
        "space": ("space(4000000000)", "54000"),
        "replace": ("replace(repeat('x', 1000000), 'x', repeat('y', 1000))", "54000"),
        "format": ("format('%4000000000s', 'x')", "54000"),
        "generate_series": ("(select count(*) from (select generate_series(1, 4000000000)) q)", "54000"),
        "exploding_generate_series": ("(select count(*) from (select generate_series(1, 5000000000)) q)", "54000"),
        "array_to_string": ("array_to_string(array_fill(1, array[1000000]), repeat('x', 1000))", "54000"),
        "array_fill": ("array_fill(1, array[2000000000])", "54000"),
        "factorial": ("factorial(100000)", "22003"),
    },
    "product": {
        "levenshtein": ("levenshtein(repeat('a', 150000), repeat('b', 150000))", "22023"),
        "normalize": (r"normalize('a' || repeat(U&'\0301\0316', 100000))", "54000"),
        "to_char": ("to_char(1.5, repeat('9', 100000))", "54000"),
        "number_to_str": ("to_char(2.5, repeat('9', 100000))", "54000"),
        "time_to_str": ("to_char(timestamp '2020-01-01', repeat('Y', 100000))", "54000"),
        "pg_to_char": ("to_char(interval '1 day', repeat('Y', 100000))", "54000"),
        "to_number": ("to_number('1', repeat('9', 100000))", "54000"),
        "pg_to_number": ("to_number('2', repeat('9', 100000))", "54000"),
        "to_date": ("to_date('2020', repeat('Y', 100000))", "54000"),
        "pg_to_date": ("to_date('2021', repeat('Y', 100000))", "54000"),
        "str_to_date": ("to_date('2022', repeat('Y', 100000))", "54000"),
        "str_to_time": ("to_timestamp('2020', repeat('Y', 100000))", "54000"),
        "to_timestamp": ("to_timestamp('2021', repeat('Y', 100000))", "54000"),
        "pg_to_timestamp": ("to_timestamp('2022', repeat('Y', 100000))", "54000"),
        "regexp_like": ("regexp_like(repeat('a', 40000), repeat('a', 40000))", "54000"),
        "regexp_i_like": ("repeat('a', 40000) ~* repeat('a', 40000)", "54000"),
        "pg_size_bytes": ("pg_size_bytes(repeat('9', 1000000))", "22023"),
        "array_contains_all": (f"{MANY} @> {MANY}", "54000"),
        "jsonb_path_exists": (f"jsonb_path_exists({DEEP}, '$.**.**.** ? (@ == 7)')", "54000"),
        "j_s_o_n_b_path_exists": (f"{DEEP} @? '$.**.**.** ? (@ == 7)'", "54000"),
        "jsonb_path_match": (f"jsonb_path_match({DEEP}, 'exists($.**.**.** ? (@ == 7))')", "54000"),
        "match_against": (f"{DEEP} @@ 'exists($.**.**.** ? (@ == 7))'", "54000"),
        "jsonb_path_query": (f"(select count(*) from jsonb_path_query({DEEP}, '$.**.**.**'))", "54000"),
        "jsonb_path_query_array": (f"jsonb_path_query_array({DEEP}, '$.**.**.**')", "54000"),
        "jsonb_path_query_first": (f"jsonb_path_query_first({DEEP}, '$.**.**.**')", "54000"),
    },
    "matches": {
        "regexp_count": (f"regexp_count({LONG}, 'a*b|a')", "54000"),
        "regexp_instr": (f"regexp_instr({LONG}, 'a*b|a')", "54000"),
        "regexp_matches": (f"(select count(*) from regexp_matches({LONG}, 'a*b|a', 'g'))", "54000"),
        "regexp_replace": (f"regexp_replace({LONG}, 'a*b|a', 'x', 'g')", "54000"),
        "regexp_split": (f"regexp_split_to_array({LONG}, 'b*c|a')", "54000"),
        "regexp_split_to_array": (f"regexp_split_to_array({LONG}, 'a*b|a')", "54000"),
        "regexp_split_to_table": (f"(select count(*) from regexp_split_to_table({LONG}, 'a*b|a'))", "54000"),
        "regexp_substr": (f"regexp_substr({LONG}, 'a*b|a')", "54000"),
    },
}


def read_survey() -> dict[str, str]:
    lines = [line.split() for line in SURVEY.read_text().splitlines() if not line.startswith("#")]
    return {name: cost for name, cost in lines}  # noqa: C416 - checks that each line has two words


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    node = open_node(tmp_path_factory.mktemp("costs"))
    session = Session(node)
    yield session
    session.close()
    node.close()


def test_every_function_is_in_the_survey():
    survey = read_survey()
    assert set(survey) == FUNCTIONS
    examples = {name: cost for cost, calls in EXAMPLES.items() for name in calls}
    assert {name: cost for name, cost in survey.items() if cost != "linear"} == examples


@pytest.mark.parametrize(
    ("call", "sqlstate"),
    [
        # All of these spend the same budget of steps, for seconds.
        pytest.param(*example, id=name, marks=pytest.mark.one_in(4 if DEEP in example[0] else 1))
        for calls in EXAMPLES.values()
        for name, example in calls.items()
    ],
)
def test_a_call_that_would_not_end_is_refused_at_once(session: Session, call: str, sqlstate: str):
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(errors.Error) as failure:
        session.execute(f"select {call}")
    assert failure.value.sqlstate == sqlstate
    assert time.process_time() - started < CPU_S_MAX
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH_KB_MAX


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (f"length(regexp_replace({LONG}, 'a', 'bb', 'g'))", 2 * (MATCHED_BYTES_MAX + 1)),
        (f"regexp_count({LONG} || ' ' || {LONG}, '\\s+')", 1),
        (f"length(regexp_replace({LONG} || 'b', 'a*b', 'x'))", 1),
        ("cardinality(regexp_split_to_array(repeat('a1', 1000), '[0-9]|b*c'))", 1_001),
        ("(select count(*) from regexp_matches('foobarbequebaz', 'ba.|q*x', 'g'))", 2),
        ('\'[1, [2, "x"], {"a": 1, "b": 2}, true, null, 1.0]\'::jsonb @> \'[{"a": 1}, 1, ["x"], null, true]\'', True),
        ("'[1, true]'::jsonb @> '[\"1\"]' or '[true]'::jsonb @> '[1]' or '[[1]]'::jsonb @> '[1]'", False),
        ("pg_size_bytes('1.5 kB')", 1_536),
        ("array_positions((select array_agg(i % 2) from generate_series(1, 5) g(i)), 1)::text", "{1,3,5}"),
        ("array_positions(array['a', null, 'b', null], null)::text", "{2,4}"),
        ("to_number('12,454.8-', '99G999D9S')", -12454.8),
        ("array_to_string(array[1, null], repeat(', ', 10), 'none')", "1" + ", " * 10 + "none"),
        (f"{LONG} ~ ('^' || repeat('a', 100))", True),
    ],
)
def test_ordinary_calls_are_not_limited(session: Session, call: str, result: object):
    ((found,),) = session.execute(f"select {call}").rows
    assert found == result or float(str(found)) == result


@pytest.mark.parametrize("call", ["regexp_count(%s, %s)", "regexp_replace(%s, %s, 'x', 'g')"])
def test_a_long_pattern_is_refused_for_a_long_text(session: Session, call: str):
    text, pattern = "repeat('a', 1000000)", "repeat('(', 200) || 'b' || repeat(')', 200)"
    with pytest.raises(errors.ProgramLimitExceeded):
        session.execute(f"select {call % (text, pattern)}")
    assert session.execute(f"select {call % ('left(' + text + ', 100)', pattern)} is not null").rows == [(True,)]


def test_a_text_is_not_searched_as_an_array(session: Session):
    """Each of its characters would be looked up from the beginning."""
    with pytest.raises(errors.StatementRefused):
        session.execute(f"select array_positions({LONG}, 'b')")


KEYS = "(select jsonb_object_agg('k' || i, i) from generate_series(1, 20000) g(i))"
NAMES = "(select array_agg('x' || i) from generate_series(1, 20000) g(i))"


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (f"{KEYS} ?| {NAMES}", False),
        (f"{KEYS} ?& (select array_agg('k' || i) from generate_series(1, 20000) g(i))", True),
        (f"{KEYS} - {NAMES}::text[] = {KEYS}", True),
    ],
)
def test_a_document_is_parsed_once_for_all_keys(session: Session, call: str, result: bool):
    started = time.process_time()
    assert session.execute(f"select {call}").rows == [(result,)]
    assert time.process_time() - started < CPU_S_MAX


@pytest.mark.parametrize("depth", [500, 5_000])
def test_a_document_that_is_nested_too_deeply_is_refused(session: Session, depth: int):
    with pytest.raises(errors.StatementTooComplex):
        session.execute(f"select (repeat('[', {depth}) || repeat(']', {depth}))::jsonb")


def test_which_patterns_take_linear_time():
    assert all(map(is_linear, [",", r"\s+", "a[b-d]*", "(?s)a.c", "[^,]+", r"\.", "", "^a"]))
    assert not any(map(is_linear, ["a*b", "a|b", "(ab)+", "a{1,9}b", "a?b", r"(a)\1", None]))
