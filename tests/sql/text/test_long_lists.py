"""Long lists are taken out of a text where, and only where, they are lists of constants or parameters."""

import pytest

from seachange.sql.parsing.parse import TreeStatement
from seachange.sql.run.execute import prepare
from seachange.sql.text.long_lists import ITEMS_MIN, ROWS_MIN, take_lists

INTEGERS = ", ".join(map(str, range(ITEMS_MIN)))
STRINGS = ",".join(f"'it''s {number}, ('" for number in range(ITEMS_MIN))
PARAMETERS = ",".join(f"${number}" for number in range(1, ITEMS_MIN + 1))
ROWS = ",".join(f"({number}, 'a{number}', default)" for number in range(ROWS_MIN))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"select * from t where a in ({INTEGERS})", "select * from t where a in ($1)"),
        (f"select * from t where a in ({STRINGS}) and b = $3", "select * from t where a in ($4) and b = $3"),
        (f"select * from t where a in ({PARAMETERS})", f"select * from t where a in (${ITEMS_MIN + 1})"),
        (f"select 1 where 2 in ( {INTEGERS} )/* ({INTEGERS}) */", f"select 1 where 2 in ($1)/* ({INTEGERS}) */"),
        (f"insert into t values {ROWS}", "insert into t values ($1, $2, default)"),
        (
            "select 1 where a in (" + INTEGERS.replace(",", "::bigint,") + "::bigint)",
            "select 1 where a in ($1::bigint)",
        ),
    ],
)
def test_a_long_list_becomes_one_parameter(text, left):
    taken = take_lists(text)
    assert taken is not None
    assert taken.text == left


@pytest.mark.parametrize(
    "text",
    [
        f"insert into t values ({INTEGERS})",
        f"insert into t values /* one row */\n({PARAMETERS})",
        f"select * from (values({STRINGS})) t",
        f"select '({INTEGERS})'",
        f'select "({INTEGERS})"',
        f"select $a$({INTEGERS})$a$",
        f"select E'\\'({INTEGERS})'",
        f"select 1 -- ({INTEGERS})",
        f"select 1 /* /* */ ({INTEGERS}) */",
        f"select ({INTEGERS}, now())",
        f"select ({INTEGERS}, 'a')",
        f"select ({INTEGERS}, 1::bigint)",
        f"select ({PARAMETERS}, $1)",
        f"select ({PARAMETERS}), $1",
        "select (1, 2, 3)",
    ],
)
def test_other_texts_are_left_as_they_are(text):
    assert take_lists(text) is None


def test_a_list_of_any_length_is_one_node():
    sizes = set()
    for count in (ITEMS_MIN, 10_000):
        (prepared,) = prepare(f"select count(*) from t where a in ({', '.join(map(str, range(count)))})")
        assert isinstance(prepared.parsed, TreeStatement)
        sizes.add(sum(1 for _ in prepared.parsed.tree.walk()))
    assert len(sizes) == 1


def test_texts_that_differ_only_in_their_lists_are_parsed_once():
    first, second = (
        prepare(f"delete from kept where a in ({', '.join(map(str, range(start, start + 100)))})")[0]
        for start in (0, 1_000)
    )
    assert first.parsed is second.parsed
    assert first.text != second.text
