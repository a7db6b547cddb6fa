"""What the text of a statement demands of the rows of its tables."""

import pytest
from sqlglot import exp

from seachange.model.condition import Above, Among, Below, IsNull, StartsWith
from seachange.model.ids import ColumnId, IndexId, LayoutId, TableId
from seachange.model.schema.descriptor import Column, Index, Layout, Table
from seachange.sql.compile.seek import DEMANDS, bind_demands, note_demands
from seachange.sql.parsing.parse import TreeStatement, parse_script
from seachange.values.types import TEXT, Kind, SqlType

COLUMNS = (
    Column(ColumnId(1), "i", SqlType(Kind.INTEGER)),
    Column(ColumnId(2), "s", TEXT),
    Column(ColumnId(3), "n", SqlType(Kind.NUMERIC, 6, 2)),
    Column(ColumnId(4), "e", SqlType(Kind.DATE)),
)
TABLE = Table(
    id=TableId(1),
    version=1,
    schema="public",
    name="t",
    columns=COLUMNS,
    primary=Index(IndexId(2), "t_pkey", (ColumnId(1),), True),
    secondary=(),
    layouts=(Layout(LayoutId(1), tuple((c.id, c.type) for c in COLUMNS)),),
    next_column_id=ColumnId(5),
)


def noted(text):
    """The demands on columns noted at each table that has some."""
    return noted_of(text, lambda demand: demand.form is None and f"{demand.column} {demand.comparison}")


def noted_of(text, show):
    (statement,) = parse_script(text)
    assert isinstance(statement, TreeStatement)
    tables = note_demands(statement.tree.copy()).find_all(exp.Table)
    found = {t.alias_or_name: sorted(filter(None, map(show, t.meta.get(DEMANDS, ())))) for t in tables}
    return {name: demands for name, demands in found.items() if demands}


@pytest.mark.parametrize(
    ("text", "demands"),
    [
        ("select * from t where a = 1", {"t": ["a in"]}),
        ("select * from t where 1 < a and (b in (1, $1) and x.c = 1)", {"t": ["a >", "b in"]}),
        ("select * from t where a between 1 and 2 and b like 'x%'", {"t": ["a <=", "a >=", "b like"]}),
        ("select * from t where a = 1 or b = 2", {}),
        ("select * from t where not a = 1", {}),
        ("select * from t where a not like 'x%' and b not in (1) and c not between 1 and 2", {}),
        ("select * from t where a = b", {}),
        ("select * from t where a in (select 1)", {}),
        ("select * from t where a + 1 = 2 and a is not null and lower(b) = 'x'", {}),
        ("select * from t where a is null and b is true", {"t": ["a is null"]}),
        ("select * from t join u on u.b is null where t.a is null", {"t": ["a is null"], "u": ["b is null"]}),
        ("select * from t left join u on u.b is null where u.a is null", {}),
        ("select * from t, u where t.a = 1 and b = 2", {"t": ["a in"]}),
        ("select * from t join u on u.b = 1 and t.a = 2", {"t": ["a in"], "u": ["b in"]}),
        ("select * from t left join u on u.b = 1 and t.a = 2", {"u": ["b in"]}),
        ("select * from t right join u on u.b = 1 and t.a = 2 where t.c = 3", {"t": ["c in"]}),
        ("select * from t full join u on u.b = 1 where u.c = 3", {"u": ["c in"]}),
        ("select * from t natural join u where t.a = 1", {}),
        ("select * from t as x(a) where a = 1", {}),
        ("select * from t where exists (select 1 from u where u.a = 1 and t.a = 2)", {"u": ["a in"]}),
        ("select * from t x join t y on x.a = y.a where x.a = 1", {"x": ["a in"]}),
    ],
)
def test_conditions_on_columns_are_noted(text, demands):
    assert noted(text) == demands


@pytest.mark.parametrize(
    ("text", "demands"),
    [
        ("select * from t where lower(a) = 'x' and 2 < t.b + 1", {"t": ["LOWER(a) in", "b + 1 >"]}),
        ("select * from t where a + $1 = 2 and (select 1) = 1 and a + t.b = 1", {}),
        ("select * from t join u on u.x = t.x where lower(t.a) in ('x', $1)", {"t": ["LOWER(a) in"]}),
        ("select * from t join u on true where t.a + u.a = 1", {}),
        # What is added for lack of a match might meet it.
        ("select * from t left join u on u.x = t.x where coalesce(u.a, 0) = 0", {}),
    ],
)
def test_demands_of_expressions(text, demands):
    def show(demand):
        if demand.form is None or demand.comparison == "holds":
            return None
        names = [*demand.form.columns, ""]
        text = "".join(piece + name for piece, name in zip(demand.form.pieces, names, strict=True))
        return f"{text} {demand.comparison}"

    assert noted_of(text, show) == demands


@pytest.mark.parametrize(
    ("where", "values", "conditions"),
    [
        ("i = 1", (), (Among(ColumnId(1), (1,)),)),
        ("i in (1, $1, null)", ("7",), (Among(ColumnId(1), (1, 7)),)),
        ("i is null and s = 'x'", (), (IsNull(ColumnId(1)), Among(ColumnId(2), ("x",)))),
        ("i = 3000000000", (), (Among(ColumnId(1), ()),)),
        ("i < 3000000000", (), ()),
        ("i = 1.5", (), ()),
        ("i = 'x'", (), ()),
        ("i > $1", (None,), ()),
        ("i > 1 and i <= 5", (), (Above(ColumnId(1), 1, False), Below(ColumnId(1), 5, True))),
        ("s = 1", (), ()),
        ("s like 'a%b'", (), (StartsWith(ColumnId(2), "a"),)),
        ("s like '%b'", (), ()),
        ("s like 'a\\%'", (), ()),
        ("n = 1.001", (), (Among(ColumnId(3), ()),)),
        ("n < 1.001", (), ()),
        ("e = '2024-01-01'", (), ()),
        ("unknown = 1", (), ()),
    ],
)
def test_where_clause_becomes_conditions_on_columns(where, values, conditions):
    (statement,) = parse_script(f"select * from t where {where}")
    assert isinstance(statement, TreeStatement)
    table = note_demands(statement.tree.copy()).find(exp.Table)
    assert table is not None
    assert bind_demands(table.meta.get(DEMANDS, ()), TABLE, values) == conditions
