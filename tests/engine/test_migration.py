"""Rows of older layouts are rewritten in the background, as a storage parameter of their table says."""

from contextlib import closing

import pytest

from seachange.engine.session.session import Session

# Written to files of their own.
MANY = 12_000


@pytest.fixture
def session(node):
    with closing(Session(node)) as session:
        session.execute("create table t (id bigint primary key, n int)")
        session.execute(f"insert into t select i, i from generate_series(1, {MANY}) g(i)")
        session.execute("alter table t add column c int default 7")
        yield session


def older_rows(session):
    text = "select coalesce(sum(rows), 0) from seachange.layouts where table_name = 't' and not is_current"
    ((count,),) = session.execute(text).rows
    return count


def migrate(node):
    node.in_epoch(node.maintenance.migrate_older)


def update(session, first):
    session.execute(f"update t set n = n + 1 where id >= {first}")


@pytest.mark.parametrize(
    ("policy", "updated_from", "reads", "migrated"),
    [
        ("on_update", MANY // 20, False, True),
        ("on_update", MANY // 2, False, False),
        ("off", MANY // 20, True, False),
        ("on_read", MANY + 1, False, False),
        ("on_read", MANY + 1, True, True),
        ("background", MANY + 1, False, True),
    ],
)
def test_policy_decides_when_rows_are_migrated(session, node, policy, updated_from, reads, migrated):
    session.execute(f"alter table t set (seachange.migrate = {policy})")
    update(session, updated_from)
    before = older_rows(session)
    assert before > 0
    if reads:
        list(session.execute("select sum(c) from t").rows)
    migrate(node)
    assert (older_rows(session) == 0) is migrated
    assert list(session.execute("select count(*), sum(c) from t").rows) == [(MANY, 7 * MANY)]


def test_threshold_decides_how_much_may_be_left(session, node):
    session.execute("alter table t set (seachange.migrate_threshold = 60)")
    update(session, MANY // 2)
    migrate(node)
    assert older_rows(session) == 0
    session.execute("alter table t reset (seachange.migrate_threshold)")
    session.execute("alter table t add column d int default 8")
    update(session, MANY // 2)
    migrate(node)
    assert older_rows(session) > 0


def test_parameter_has_one_of_its_values(session):
    for text in ("seachange.migrate = sometimes", "seachange.migrate_threshold = 101"):
        with pytest.raises(Exception, match="migrate"):
            session.execute(f"alter table t set ({text})")
