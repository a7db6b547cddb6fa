"""CREATE, ALTER and DROP VIEW, and what the query of a view depends on."""

import pytest

from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.model.statements import (
    ChangeOwner,
    CommentOn,
    CreateMaterializedView,
    CreateView,
    DropObjects,
    MoveObject,
    RefreshView,
    RenameObject,
)
from tests.sql.ddl.parsing import ST, T, U, code, name, parse

V = name("v")
W = name("w")


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("create view v as select 1", CreateView(V, "select 1", ())),
        ("create or replace view s.t (a, b) as values (1, 2)",
         CreateView(ST, "values (1, 2)", (), (), ("a", "b"), True)),
        ("alter view if exists v rename to w", RenameObject(ObjectKind.VIEW, V, "w", True)),
        ("alter view v set schema s", MoveObject(ObjectKind.VIEW, V, "s")),
        ("alter view v owner to r", ChangeOwner(ObjectKind.VIEW, V, "r")),
        ("create materialized view if not exists v (a) as select 1 with no data",
         CreateMaterializedView(CreateView(V, "select 1", (), columns=("a",)), True, with_data=False)),
        ("create materialized view v as table t", CreateMaterializedView(
            CreateView(V, "table t", (T,), ((T, None),)))),
        ("refresh materialized view concurrently s.t", RefreshView(ST, concurrently=True)),
        ("refresh materialized view v with no data", RefreshView(V, with_data=False)),
        ("alter materialized view v rename to w", RenameObject(ObjectKind.MATERIALIZED_VIEW, V, "w")),
        ("drop materialized view v restrict", DropObjects(ObjectKind.MATERIALIZED_VIEW, (V,))),
        ("comment on materialized view v is 'x'", CommentOn(ObjectKind.MATERIALIZED_VIEW, V, None, "x")),
        ("drop view if exists v, s.t cascade", DropObjects(ObjectKind.VIEW, (V, ST), True, True)),
    ],
)  # fmt: skip
def test_view_statement_is_read(text, statement):
    assert parse(text) == statement


@pytest.mark.parametrize(
    ("query", "relations", "used"),
    [
        ("select a, T.b, \"C\" from t", {T}, {(T, "a"), (T, "b"), (T, "C")}),
        ("select t.a from s.t", {ST}, {(ST, "a")}),
        ("select x.a from t as x", {T}, {(T, "a")}),
        ('select a from s."T"', {RelationName("s", "T")}, {(RelationName("s", "T"), "a")}),
        ("table t", {T}, {(T, None)}),
        ("select * from t, u", {T, U}, {(T, None), (U, None)}),
        ("select t.*, u.a from t, u", {T, U}, {(T, None), (U, "a")}),
        ("select count(*) from t", {T}, set()),
        ("select t from t", {T}, {(T, None), (None, "t")}),
        ("select a from t join u on t.x = u.y", {T, U}, {(None, "a"), (T, "x"), (U, "y")}),
        ("select 1 from t join u using (k)", {T, U}, {(None, "k")}),
        ("select 1 from t natural join u", {T, U}, {(T, None), (U, None)}),
        ("select x.p from t as x (p)", {T}, {(T, None)}),
        ("select a as x from t order by x", {T}, {(T, "a"), (None, "x")}),
        ("select a from t union select b from u order by a", {T, U}, {(T, "a"), (U, "b"), (None, "a")}),
        ("select q.x from (select a as x, b from t) q", {T}, {(T, "a"), (T, "b")}),
        ("with u as (select a from t) select a, u.a, x.a from u, u as x", {T}, {(T, "a"), (None, "a")}),
        ("with q as (select a from q) select 1 from q", {name("q")}, {(name("q"), "a")}),
        ("select a from t where exists (select 1 from u where u.k = t.k and z > 1)",
         {T, U}, {(T, "a"), (U, "k"), (T, "k"), (None, "z")}),
        ("select 1 from t, lateral (select t.a, b from u) x", {T, U}, {(T, "a"), (None, "b")}),
        ("select 1 from (t join u on t.a = u.a) join w on w.b = t.b",
         {T, U, W}, {(T, "a"), (U, "a"), (W, "b"), (T, "b")}),
        ("select g from generate_series(1, 3) as g", set(), set()),
        ("select nowhere.a from t", {T}, {(None, "a")}),
    ],
)  # fmt: skip
def test_what_a_query_reads(query, relations, used):
    view = parse(f"create view v as {query}")
    assert isinstance(view, CreateView)
    assert view.query == query
    assert set(view.relations) == relations
    assert set(view.used) == used


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("create view v", "42601"),
        ("create view v as", "42601"),
        ("create view v as from t", "42601"),
        ("create view v as delete from t", "42601"),
        ("create view v as with q as (select 1) delete from t", "42601"),
        ("create view v as select a from where", "42601"),
        ("create view v as select $1", "42601"),
        ("create view v as select * from read_csv('x')", "42501"),
        ("create view v as select nosuch(1)", "42883"),
        ("create view v as select * from t for update", "0A000"),
        ("create view v with (security_barrier) as select 1", "0A000"),
        ("create view v as select 1 with local check option", "0A000"),
        ("create materialized view v with (fillfactor = 70) as select 1", "0A000"),
        ("create materialized view v as delete from t", "42601"),
        ("create or replace materialized view v as select 1", "42601"),
        ("refresh materialized view concurrently v with no data", "42601"),
        ("alter materialized view v set (fillfactor = 70)", "0A000"),
        ("create recursive view v (a) as select 1", "0A000"),
        ("create temp view public.v as select 1", "42P16"),
        ("alter view v alter a set default 1", "0A000"),
        ("alter view v oops", "42601"),
    ],
)
def test_invalid_view_statement_is_rejected_with_its_code(text, expected):
    assert code(text) == expected
