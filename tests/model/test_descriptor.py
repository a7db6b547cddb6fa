"""Descriptors: what an index stores, and their text."""

import json
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from seachange.model.codecs.descriptor_json import decode_table, encode_table
from seachange.model.ids import ColumnId, ConstraintId, IndexId, LayoutId, TableId
from seachange.model.schema.constraint import Action, Check, ForeignKey
from seachange.model.schema.descriptor import Column, Index, Layout, Table
from seachange.model.states import State
from seachange.values.types import BIGINT, TEXT, Kind, SqlType, widens

A, B, C, D = (ColumnId(i) for i in range(1, 5))
TABLE = Table(
    id=TableId(1),
    version=3,
    schema="public",
    name="t",
    columns=(Column(A, "a", BIGINT), Column(B, "b", TEXT), Column(C, "c", TEXT), Column(D, "d", TEXT, hidden=True)),
    primary=Index(IndexId(2), "t_pkey", (B, A), unique=True),
    secondary=(Index(IndexId(3), "t_c", (C, B), unique=True, include=(D,)),),
    layouts=(
        Layout(LayoutId(1), ((A, SqlType(Kind.INTEGER)), (B, TEXT), (C, TEXT))),
        Layout(LayoutId(2), ((A, BIGINT), (B, TEXT), (C, TEXT), (D, TEXT))),
    ),
    next_column_id=ColumnId(5),
)

names = st.text(min_size=1, max_size=8)
texts = st.none() | st.text(max_size=8)
types = st.builds(SqlType, st.sampled_from(Kind), st.integers(0, 38), st.integers(0, 38), st.integers(0, 99))
column_ids = st.integers(1, 99).map(ColumnId)
columns = st.builds(
    Column, column_ids, names, types, st.booleans(), texts, texts, st.booleans(), st.sampled_from(State)
)
indexes = st.builds(
    Index,
    st.integers(1, 99).map(IndexId),
    names,
    st.lists(column_ids).map(tuple),
    st.booleans(),
    st.lists(column_ids).map(tuple),
    st.sampled_from(State),
)
layouts = st.builds(Layout, st.integers(1, 9).map(LayoutId), st.lists(st.tuples(column_ids, types)).map(tuple))
constraint_ids = st.integers(1, 99).map(ConstraintId)
id_lists = st.lists(column_ids).map(tuple)
checks = st.builds(Check, constraint_ids, names, names, id_lists, st.sampled_from(State))
foreign_keys = st.builds(
    ForeignKey,
    constraint_ids,
    names,
    id_lists,
    st.integers(1, 99).map(TableId),
    st.integers(1, 99).map(IndexId),
    st.sampled_from(Action),
    st.sampled_from(Action),
    st.booleans(),
    st.booleans(),
    st.sampled_from(State),
)
tables = st.builds(
    Table,
    st.integers(1, 99).map(TableId),
    st.integers(1, 99),
    names,
    names,
    st.lists(columns).map(tuple),
    indexes,
    st.lists(indexes).map(tuple),
    st.lists(layouts).map(tuple),
    column_ids,
    names,
    st.lists(checks).map(tuple),
    st.lists(foreign_keys).map(tuple),
    constraint_ids,
)


@settings(max_examples=100)
@given(tables)
def test_a_descriptor_survives_its_text(table: Table):
    assert decode_table(encode_table(table)) == table


def test_an_entry_is_known_by_its_key_and_what_is_left_of_the_primary_key():
    assert TABLE.entry_key(TABLE.primary) == (B, A)
    assert TABLE.entry_key(TABLE.secondary[0]) == (C, B, A)


def test_what_an_index_stores_in_each_layout():
    old, new = TABLE.layouts
    assert [c for c, _ in TABLE.stored_columns(TABLE.primary, old)] == [B, A, C]
    assert [c for c, _ in TABLE.stored_columns(TABLE.primary, new)] == [B, A, C, D]
    assert [c for c, _ in TABLE.stored_columns(TABLE.secondary[0], old)] == [C, B, A]
    assert TABLE.stored_columns(TABLE.secondary[0], new) == ((C, TEXT), (B, TEXT), (A, BIGINT), (D, TEXT))


def test_only_public_columns_that_are_not_hidden_are_visible():
    assert [c.name for c in TABLE.visible_columns] == ["a", "b", "c"]
    building = (replace(TABLE.columns[0], state=State.WRITE_ONLY), *TABLE.columns[1:])
    assert [c.name for c in replace(TABLE, columns=building).visible_columns] == ["b", "c"]


def test_what_may_change_without_moving_bytes():
    varchar = {length: SqlType(Kind.VARCHAR, length=length) for length in (0, 5, 9)}
    assert widens(SqlType(Kind.SMALLINT), BIGINT)
    assert not widens(BIGINT, SqlType(Kind.SMALLINT))
    assert widens(varchar[5], varchar[9])
    assert widens(varchar[5], varchar[0])
    assert not widens(varchar[9], varchar[5])
    assert not widens(varchar[0], varchar[9])
    assert widens(varchar[9], TEXT)
    assert widens(SqlType(Kind.NUMERIC, 10, 2), SqlType(Kind.NUMERIC, 12, 2))
    assert not widens(SqlType(Kind.NUMERIC, 10, 2), SqlType(Kind.NUMERIC, 12, 3))


def test_a_body_from_before_there_were_constraints_has_none():
    body = json.loads(encode_table(TABLE))
    for key in ("checks", "foreign_keys", "next_constraint_id"):
        del body[key]
    assert decode_table(json.dumps(body)) == TABLE
