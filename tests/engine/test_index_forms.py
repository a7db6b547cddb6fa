"""Every form of index: queries find through them what they find by scanning, whatever was written before."""

from random import Random

import pytest

from seachange.engine.session.session import Session
from seachange.verify.consistency import check
from tests.engine.test_seek_properties import bulk, compact, found, opened, population, scanned
from tests.support.examples import examples

INDEXES = (
    "create index t_lower on t (lower(b), a desc)",
    "create index t_sum on t ((a + id)) include (c)",
    "create index t_true on t (a) where f",
    "create index t_false on t (a, id desc) where not f",
    "create index t_above on t (b) where a > 2",
    "create index t_between on t (b desc) where a between 1 and 4 and c is not null",
    "create index t_listed on t (e) where b in ('a', 'ab', 'abc')",
    "create unique index t_some on t (lower(b), id) where a >= 0 and length(b) > 1",
)
TEXTS = ("", "a", "A", "ab", "AB", "abc", "b", "ä")
TERMS = (
    ("a = ?", "number"),
    ("a > ?", "number"),
    ("a >= ?", "number"),
    ("a in (?, ?)", "number"),
    ("a between ? and 4", "number"),
    ("a <= ?", "number"),
    ("b = ?", "text"),
    ("b >= ?", "text"),
    ("b in (?, ?)", "text"),
    ("lower(b) = ?", "text"),
    ("lower(b) >= ?", "text"),
    ("length(b) > 1", ""),
    ("a + id = ?", "sum"),
    ("a + id < ?", "sum"),
    ("e is not null", ""),
    ("e >= '2024-01-02'", ""),
    ("c is not null", ""),
    ("c > ?", "number"),
    ("f", ""),
    ("not f", ""),
    ("f = true", ""),
    ("b is null", ""),
)
CHANGES = (
    "update t set a = a + 1 where id % 3 = ?",
    "update t set f = not f where id % 4 = ?",
    "update t set b = upper(b) where id % 5 = ?",
    "update t set a = null, c = 1 where id % 7 = ?",
    "update t set b = 'abc', f = null where id % 6 = ?",
    "update t set c = null where id % 5 = ?",
    "delete from t where id % 9 = ?",
)


def filled(session, seed):
    session.execute(
        "create table t (id bigint primary key, a int, b text, c numeric(8, 2), d double precision, e date, f boolean,"
        " g text, h uuid)"
    )
    for statement in INDEXES:
        session.execute(statement)
    rows, _ = population(seed)
    bulk(session, rows[:10])
    for row in rows[10:]:
        session.execute("insert into t values ($1, $2, $3, $4, $5, $6, $7, $8, $9)", row)


def query(chance):
    values: list[object] = []
    terms = []
    for text, kind in chance.sample(TERMS, chance.choice((1, 2, 2, 3))):
        terms.append(text)
        for _ in range(text.count("?")):
            given = {"number": chance.randint(-1, 6), "text": chance.choice(TEXTS), "sum": chance.randint(0, 44)}
            values.append(given[kind])
    return f"select id, b from t where {' and '.join(terms)}", values


def look(node, session, chance):
    used = 0
    for _ in range(60):
        asked = query(chance)
        assert found(session, asked) == scanned(node, session, asked), asked
        text, values = asked
        numbered = "".join(part + (f"${n}" if n <= len(values) else "") for n, part in enumerate(text.split("?"), 1))
        plan = session.execute(f"explain {numbered}", values).rows
        used += any("look-up: t_" in line and "t_pkey" not in line for (line,) in plan)
    return used


@pytest.mark.parametrize("seed", range(examples(2)))
def test_what_is_found_is_what_is_there(seed):
    chance = Random(seed)
    with opened() as node:
        session = Session(node)
        filled(session, seed)
        used = look(node, session, chance)
        for number, change in enumerate(chance.sample(CHANGES, 4)):
            session.execute(change.replace("?", "$1"), [chance.randint(0, 3)])
            if number == 2:
                compact(node, full=chance.random() < 0.5)
        assert check(node) == []
        used += look(node, session, chance)
        # In a transaction, over what was committed.
        session.execute("begin")
        for change in chance.sample(CHANGES, 3):
            session.execute(change.replace("?", "$1"), [chance.randint(0, 3)])
        used += look(node, session, chance)
        session.execute("commit")
        assert check(node) == []
        session.close()
        # Otherwise it would show nothing.
        assert used > 40
