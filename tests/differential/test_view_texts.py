"""The texts of views after what they read was renamed or has got more columns: PostgreSQL makes a view of each text
that gives the same rows under the same names as its own view, and so does Seachange."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.differential.both import Both, open_both
from tests.support.postgres import LocalPostgres

_SETUP = """
CREATE TABLE p (id int PRIMARY KEY, a int, n text, t text DEFAULT 'd');
CREATE TABLE q (id int PRIMARY KEY, a int, m text);
CREATE SEQUENCE drawn;
CREATE VIEW inner_view AS SELECT id, a FROM p;
INSERT INTO p VALUES (1, 10, 'x'), (2, 20, 'y'), (3, 10, NULL);
INSERT INTO q VALUES (1, 10, 'one'), (2, 7, 'two'), (4, 20, 'four');
"""
_CHANGES = """
ALTER TABLE p RENAME a TO "A b";
ALTER TABLE p RENAME n TO m;
ALTER TABLE q RENAME m TO a_new;
ALTER TABLE q RENAME a TO m;
ALTER TABLE p ADD COLUMN a text DEFAULT 'added';
ALTER TABLE q ADD COLUMN t text DEFAULT 'added';
ALTER TABLE q RENAME TO "Q";
ALTER SEQUENCE drawn RENAME TO taken;
"""
_QUERIES = {
    "star": "SELECT * FROM p",
    "star_of_one": "SELECT p.*, q.m FROM p JOIN q ON p.id = q.id",
    "star_of_view": "SELECT *, 'last' AS j FROM inner_view",
    "item": "SELECT a, id FROM p WHERE n = 'x' OR p.a > 10",
    "alias": "SELECT a AS n, n AS a FROM p ORDER BY a",
    "group": "SELECT max(id), a FROM p GROUP BY a HAVING a > 5 ORDER BY a",
    "group_by_key": "SELECT id, n, count(*) FROM p GROUP BY id",
    "order_by_result": "SELECT a AS x, id AS n FROM p ORDER BY n, p.n",
    "distinct": "SELECT DISTINCT ON (a) id AS n, a FROM p ORDER BY a, id",
    "join": "SELECT b.a, c.a AS other, m FROM p b JOIN q c ON b.a = c.a AND b.id <> c.id",
    "using": "SELECT p.n, q.m, id FROM p JOIN q USING (id)",
    "using_renamed": "SELECT a, p.n, q.m FROM p JOIN q USING (a)",
    "natural": "SELECT * FROM p NATURAL JOIN q",
    "using_in_turn": "SELECT * FROM (SELECT id, a, n FROM p) b JOIN (SELECT id, m FROM q) c USING (id)"
    " JOIN (SELECT a AS e, n FROM p) d USING (n)",
    "using_in_order": "SELECT * FROM (SELECT id, n, a FROM p) b JOIN (SELECT id, a FROM p) c USING (a, id)",
    "scalar": "SELECT (SELECT n FROM p b WHERE b.id = q.id), a FROM q",
    "derived": "SELECT x.a, x.n FROM (SELECT a, upper(n) AS n FROM p) x",
    "derived_star": "SELECT x.a, x.n FROM (SELECT * FROM p) x",
    "unnamed_cast": "SELECT a::text, n FROM p",
    "unnamed_cast_inside": "SELECT x.a FROM (SELECT a::text FROM p) x",
    "with": "WITH w AS (SELECT a, id FROM p) SELECT w.a, p.n FROM w JOIN p ON p.id = w.id",
    "same_name": "WITH p AS (SELECT m AS a FROM q) SELECT a FROM p",
    "exists": "SELECT a FROM p WHERE EXISTS (SELECT 1 FROM q WHERE q.a = p.a)",
    "correlated": "SELECT m FROM q WHERE a IN (SELECT a FROM p WHERE p.id = q.id)",
    "window": "SELECT id, sum(a) OVER w FROM p WINDOW w AS (PARTITION BY a ORDER BY n)",
    "union": "SELECT a FROM p UNION SELECT a FROM q",
    "aliased_columns": "SELECT b.n, x.v FROM p b JOIN p AS x(k, v) ON x.k = b.id",
    "lateral": "SELECT p.n, l.a FROM p, LATERAL (SELECT a FROM q WHERE q.id = p.id) l",
    "case": "SELECT CASE WHEN a > 10 THEN n ELSE 'small' END FROM p",
    "qualified": "SELECT public.p.a FROM public.p",
    "capitals": 'SELECT P.A AS "B", Id FROM P',
    "sequence": "SELECT nextval('drawn') > 0 AS is_drawn, m FROM q",
    "sequence_class": "SELECT nextval('public.drawn'::regclass) > 0 AS is_drawn",
    "listed(u, v, w)": "SELECT a, n AS z, id + 1 FROM p",
    "listed_simple(u, v)": "SELECT a, n AS z FROM p",
    "listed_values(u, v)": "VALUES (1, 'a')",
}


@pytest.fixture(scope="module")
def both(postgres_server: LocalPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder: Path = tmp_path_factory.mktemp("views")
    with open_both(postgres_server, folder) as opened:
        opened.run(_SETUP)
        for name, query in _QUERIES.items():
            plain, bracket, columns = name.partition("(")
            opened.run(f'CREATE VIEW "{plain}" {bracket}{columns} AS {query}')
        for change in _CHANGES.strip().split("\n"):
            opened.run(change)
        yield opened


@pytest.mark.parametrize("name", [each.partition("(")[0] for each in _QUERIES])
def test_text_of_view_makes_the_same_view(name: str, both: Both) -> None:
    (text,) = both.ask_ours(f"SELECT pg_get_viewdef('\"{name}\"'::regclass)").rows[0]  # type: ignore[index]
    both.run(f'CREATE VIEW "{name} again" AS {text}')
    shown = f'SELECT * FROM "{name}"'
    again = f'SELECT * FROM "{name} again"'
    expected = both.ask_postgres(shown)
    assert expected.rows, "the query finds nothing"
    for answer in (both.ask_ours(shown), both.ask_postgres(again), both.ask_ours(again)):
        assert [column for column, _ in answer.columns] == [column for column, _ in expected.columns], text
        assert sorted(map(repr, answer.rows or ())) == sorted(map(repr, expected.rows)), text
