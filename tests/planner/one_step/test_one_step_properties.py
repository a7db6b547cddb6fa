"""Whatever is done to a table: ids are never reused, layouts are only appended, versions go up one by one."""

from hypothesis import given
from hypothesis import strategies as st

from seachange.errors import Error
from seachange.model.codecs.descriptor_json import decode_table, encode_table
from seachange.model.relation import RelationName
from seachange.model.schema.descriptor import Table
from seachange.model.statements.table_statements import (
    AddColumn,
    AlterColumnType,
    AlterTable,
    ColumnDefinition,
    ConstantDefault,
    CreateIndex,
    DropColumn,
    DropIndex,
    DropNotNull,
    RenameColumn,
    SetDefault,
    SetNotNull,
)
from seachange.values.types import BIGINT, TEXT, Kind, SqlType
from tests.planner.one_step.schema import NAME, schema_with_table

NAMES = st.sampled_from(["id", "a", "b", "c", "d", "e"])
TYPES = st.sampled_from([SqlType(Kind.SMALLINT), SqlType(Kind.INTEGER), BIGINT, TEXT, SqlType(Kind.REAL)])
CONSTANTS = st.one_of(st.none(), st.just(ConstantDefault("1")), st.just(ConstantDefault(None)))

ACTIONS = st.one_of(
    st.builds(AddColumn, st.builds(ColumnDefinition, NAMES, TYPES, st.booleans(), CONSTANTS), st.booleans()),
    st.builds(DropColumn, NAMES, st.booleans()),
    st.builds(RenameColumn, NAMES, NAMES),
    st.builds(AlterColumnType, NAMES, TYPES),
    st.builds(SetDefault, NAMES, CONSTANTS),
    st.builds(SetNotNull, NAMES),
    st.builds(DropNotNull, NAMES),
)
STATEMENTS = st.one_of(
    st.builds(AlterTable, st.just(NAME), st.lists(ACTIONS, min_size=1, max_size=3).map(tuple)),
    st.builds(CreateIndex, st.just(NAME), st.lists(NAMES, min_size=1, max_size=2, unique=True).map(tuple)),
    st.builds(DropIndex, st.sampled_from(["t_a_key", "t_b_idx", "t_c_idx"]).map(lambda n: (RelationName(None, n),))),
)


@given(st.lists(STATEMENTS, max_size=12))
def test_a_table_keeps_its_promises(statements):
    schema = schema_with_table()
    used: dict[int, str] = {c.id: c.type.kind for c in schema.table.columns}
    for statement in statements:
        before = schema.table
        try:
            plan = schema.run(statement)
        except Error:
            assert schema.table is before
            continue
        after = schema.table
        if not plan.changes:
            assert after is before
            continue
        check_change(before, after)
        for column in after.columns:
            assert column.id < after.next_column_id
            if column.id not in {c.id for c in before.columns}:
                assert column.id not in used
            used[column.id] = column.type.kind


def check_change(before: Table, after: Table) -> None:
    assert (after.id, after.version) == (before.id, before.version + 1)
    assert after.layouts[: len(before.layouts)] == before.layouts
    assert len(after.layouts) <= len(before.layouts) + 1
    assert [layout.id for layout in after.layouts] == list(range(1, len(after.layouts) + 1))
    assert after.layout.columns == tuple((c.id, c.type) for c in after.columns)
    assert after.next_column_id >= before.next_column_id
    assert len({c.name.lower() for c in after.columns}) == len(after.columns)
    present = {c.id for c in after.columns}
    assert all(column in present for index in after.indexes for column in (*index.key, *index.include))
    assert decode_table(encode_table(after)) == after
