"""Which statements tell their client something that depends on rows they do not name one by one."""

import pytest

from seachange.sql.run.execute import prepare


@pytest.mark.parametrize(
    "text",
    [
        "select count(*) from t",
        "update t set n = 1",
        "update t set n = 1 where id <= 3",
        "update t set n = 1 where id = 1 or id = 2",
        "update t set n = 1 where id = (select max(id) from t)",
        "update t set n = 1 from u where t.id = 1",
        "update t set n = n + 1 where id = 1 returning n",
        "delete from t using u where t.id = 1",
        "insert into t select id from u",
        "insert into t values (1) on conflict (id) do update set n = t.n + 1 returning n",
    ],
)
def test_depends_on_other_rows(text: str):
    assert prepare(text)[0].shows_rows


@pytest.mark.parametrize(
    "text",
    [
        "select 1",
        "update t set n = n + 1 where id = 1",
        "update t set n = n + 1 where id = $1 and (name = 'x')",
        "delete from t where id = '5'::bigint",
        "insert into t values (1, 2) returning id",
        "insert into t values (1) on conflict (id) do update set n = t.n + 1",
    ],
)
def test_depends_on_no_other_row(text: str):
    assert not prepare(text)[0].shows_rows
