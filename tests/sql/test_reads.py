"""What the text of a statement tells of the columns that it reads, and by which it may skip rows."""

import pytest

from seachange.sql.compile.template import columns_read, columns_sought
from seachange.sql.parsing.parse import TreeStatement, parse_script


def parsed(text):
    (statement,) = parse_script(text)
    assert isinstance(statement, TreeStatement)
    return statement.tree


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("select a, t.b from t", {"a", "b"}),
        ('select "A" from t', {"a"}),
        ("select count(*) from t", set()),
        ("select count(*) from t where a > 1", {"a"}),
        ("select a as x from t order by b", {"a", "x", "b"}),
        ("select x.a from t as x join u using (k)", {"a", "k"}),
        ("select sum(a) over (partition by b order by c) from t", {"a", "b", "c"}),
        ("select (select max(b) from u where u.c = t.d) from t", {"b", "c", "d"}),
        ("select * from t", None),
        ("select t.* from t", None),
        ("select count(t.*) from t", None),
        ("select a from t natural join u", None),
        ("select t from t", None),
        ("select x from t as x", None),
        ("select p from t as x(p)", None),
        ("select p from (select a from t) as x(p)", {"a", "p"}),
        ("with x(p) as (select a from t) select p from x", {"a", "p"}),
        ("with x as (select * from t) select p from x as y(p)", None),
        ("select p from (t cross join u) as x(p, q)", None),
        ("select a from t where exists (select * from u where u.c = t.d)", {"a", "c", "d"}),
        ("select a from t where exists (select distinct * from u)", None),
        ("select a from t where exists (select * from u order by 2)", None),
        ("select a from t where exists (select * from u union select * from v)", None),
        ("select a from t where exists (select * from (select * from u) x)", None),
        ("select exists (select t.* from t)", None),
        ("with x as (select * from t) select a from x", None),
    ],
)
def test_columns_read(text, columns):
    assert columns_read(parsed(text)) == columns


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("select sum(a) from t", set()),
        ("select sum(a) filter (where b > 1) from t", set()),
        ("select a from t where b > 1 group by a having sum(c) > 1", {"b"}),
        ("select a from (select a from t where b > 1) x where a > 1", {"a", "b"}),
        ("select a from t limit 1", None),
        ("select a from t fetch first row only", None),
        ("select a from t, u", set()),
        ("select a from t, u where b = c", {"b", "c"}),
        ("select a from t join u using (b)", {"b"}),
        ("select a from t left join u on t.b = u.c and d > 1", {"b", "c", "d"}),
        ("select a from t where b in (select c from u where d > 1)", {"b", "c", "d"}),
        ("select a from t natural join u", None),
    ],
)
def test_columns_sought(text, columns):
    assert columns_sought(parsed(text)) == columns
