"""Reverts of changes whose columns were converted, dropped or brought back by later changes."""

from contextlib import closing

import pytest

from seachange import errors
from seachange.engine.session.session import Session

SETUP = ("create table t (id int primary key, a int default 5)", "insert into t values (1, 10), (2, 20), (3, 30)")
TO_TEXT = "alter table t alter column a type text using (a / 10)::text"


@pytest.fixture
def session(node):
    with closing(Session(node)) as session:
        for sql in SETUP:
            session.execute(sql)
        yield session


def change(session: Session, sql: str) -> int:
    """Makes the change and gives its number."""
    session.execute(sql)
    return int(session.execute("select max(id) from seachange.changes").rows[0][0])


def rows(session: Session):
    return session.execute("select * from t order by id").rows


@pytest.mark.parametrize("sql", ["alter table t alter a drop default", "alter table t alter a set default 7"])
def test_part_of_a_column_that_was_converted_since_depends_on_the_conversion(session, sql):
    first = change(session, sql)
    session.execute("alter table t alter a drop default")
    session.execute(TO_TEXT)
    with pytest.raises(errors.DependentChanges):
        session.execute(f"revert change {first}")
    session.execute(f"revert change {first} cascade")
    session.execute("insert into t (id) values (4)")
    assert rows(session) == [(1, 10), (2, 20), (3, 30), (4, 5)]


def test_index_on_a_column_that_was_converted_since_depends_on_the_conversion(session):
    session.execute("create index i on t (a)")
    first = change(session, "drop index i")
    session.execute(TO_TEXT)
    with pytest.raises(errors.DependentChanges):
        session.execute(f"revert change {first}")
    session.execute(f"revert change {first} cascade")
    assert rows(session) == [(1, 10), (2, 20), (3, 30)]


@pytest.mark.parametrize(
    "later", ["alter table t drop column a", "alter table t alter column a type bigint using a::bigint * 2"]
)
def test_values_between_a_conversion_and_a_later_change_are_not_lost_by_cascade(session, later):
    session.execute("alter table t alter a drop default")
    first = change(session, TO_TEXT)
    session.execute("update t set a = '77' where id = 1")
    second = change(session, later)
    with pytest.raises(errors.FeatureNotSupported):
        session.execute(f"revert change {first} cascade")
    session.execute(f"revert change {second}")
    session.execute(f"revert change {first}")
    assert rows(session) == [(1, 77), (2, 20), (3, 30)]


def test_column_that_came_back_and_went_again_has_its_last_values(session):
    first = change(session, "alter table t drop column a")
    session.execute(f"revert change {first}")
    session.execute("update t set a = 77 where id = 1")
    session.execute("update t set a = null where id = 3")
    session.execute("alter table t drop column a")
    with pytest.raises(errors.DependentChanges):
        session.execute(f"revert change {first}")
    session.execute(f"revert change {first} cascade")
    assert rows(session) == [(1, 77), (2, 20), (3, None)]


def test_conversion_that_was_reverted_and_made_again_keeps_values_of_both_types(session):
    first = change(session, TO_TEXT)
    session.execute("update t set a = '77' where id = 1")
    second = change(session, f"revert change {first}")
    assert rows(session) == [(1, 77), (2, 20), (3, 30)]
    third = change(session, f"revert change {second}")
    assert rows(session) == [(1, "77"), (2, "2"), (3, "3")]
    session.execute(f"revert change {third}")
    assert rows(session) == [(1, 77), (2, 20), (3, 30)]
