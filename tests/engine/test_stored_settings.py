"""What sessions of a role, or of a database, begin with."""

from contextlib import closing

import pytest

import seachange
from seachange import errors


def shown(tmp_path, name: str, **who: str) -> str:
    with closing(seachange.connect(tmp_path, autocommit=True, **who)) as session:
        ((value,),) = session.execute(f"show {name}").fetchall()
        return str(value)


def test_the_nearest_counts(tmp_path):
    with closing(seachange.connect(tmp_path, autocommit=True)) as root:
        for statement in (
            "create database shop",
            "create role ann login",
            "alter database shop set statement_timeout = '1s'",
            "alter database shop set search_path = a, public",
            "alter database seachange set lock_timeout to '7s'",
            "alter role ann set statement_timeout to '2s'",
            "alter role ann in database shop set timezone = 'Europe/Berlin'",
        ):
            root.execute(statement)
        assert shown(tmp_path, "lock_timeout") == "7s"
        assert shown(tmp_path, "lock_timeout", database="shop") == "0"
        assert shown(tmp_path, "statement_timeout", database="shop") == "1s"
        assert shown(tmp_path, "statement_timeout", database="shop", user="ann") == "2s"
        assert shown(tmp_path, "search_path", database="shop", user="ann") == "a, public"
        assert shown(tmp_path, "timezone", user="ann") == "UTC"
        assert shown(tmp_path, "timezone", database="shop", user="ann") == "Europe/Berlin"
        listed = root.execute(
            "select setdatabase <> 0, setrole <> 0, setconfig from pg_db_role_setting order by 1, 2, 3"
        )
        assert listed.fetchall() == [
            (False, True, ["statement_timeout=2s"]),
            (True, False, ["lock_timeout=7s"]),
            (True, False, ["statement_timeout=1s", "search_path=a, public"]),
            (True, True, ["timezone=Europe/Berlin"]),
        ]
        # They follow the database under its new name, and outlive other changes of it.
        root.execute("alter database shop rename to store")
        root.execute("alter database store owner to ann")
        assert shown(tmp_path, "timezone", database="store", user="ann") == "Europe/Berlin"
        root.execute("alter database store reset all")
        root.execute("alter role ann reset statement_timeout")
        assert shown(tmp_path, "statement_timeout", database="store", user="ann") == "0"


def test_reset_leads_back_to_them(tmp_path):
    with closing(seachange.connect(tmp_path, autocommit=True)) as root:
        root.execute("set lock_timeout = '3s'")
        root.execute("alter role seachange set lock_timeout from current")
    with closing(seachange.connect(tmp_path, autocommit=True)) as root:
        for way_back in ("reset lock_timeout", "reset all", "discard all", "set lock_timeout to default"):
            root.execute("set lock_timeout = '9s'")
            root.execute(way_back)
            assert root.execute("show lock_timeout").fetchall() == [("3s",)]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("alter database shop set lock_timeout = '1s'", errors.InvalidDatabaseName),
        ("alter role missing set lock_timeout = '1s'", errors.UndefinedObject),
        ("alter role ann set nosuch = 1", errors.UndefinedObject),
        ("alter role ann set lock_timeout = 'long'", errors.InvalidSetting),
        ("alter role ann set role = 'seachange'", errors.SettingFixed),
        ("alter role ann set seachange.node_expiry = '1s'", errors.SettingFixed),
        ("alter role all set lock_timeout = 1", errors.FeatureNotSupported),
    ],
)
def test_what_cannot_be_kept(tmp_path, statement, error):
    with closing(seachange.connect(tmp_path, autocommit=True)) as root:
        root.execute("create role ann login")
        with pytest.raises(error):
            root.execute(statement)


def test_only_owners_store_settings_of_roles_and_databases(tmp_path):
    with closing(seachange.connect(tmp_path, autocommit=True)) as root:
        for statement in ("create role ann login", "create role bob login", "create database shop owner ann"):
            root.execute(statement)
    with closing(seachange.connect(tmp_path, user="ann", autocommit=True)) as ann:
        ann.execute("alter role ann set lock_timeout = '1s'")
        ann.execute("alter database shop set lock_timeout = '1s'")
        for statement in ("alter role bob set lock_timeout = '1s'", "alter database seachange set lock_timeout = '1s'"):
            with pytest.raises(errors.InsufficientPrivilege):
                ann.execute(statement)


def test_a_role_that_reads_the_past(tmp_path):
    with closing(seachange.connect(tmp_path, autocommit=True)) as root:
        root.execute("create role auditor login superuser")
        root.execute("create table t (a int)")
        before = root.session.in_transaction(lambda transaction: transaction.state.snapshot.seq)
        root.execute("insert into t values (1)")
        root.execute(f"alter role auditor set seachange.as_of = {before}")
    with closing(seachange.connect(tmp_path, user="auditor", autocommit=True)) as auditor:
        assert auditor.execute("select * from t").fetchall() == []
        with pytest.raises(errors.ReadOnlyTransaction):
            auditor.execute("insert into t values (2)")
        auditor.execute("set seachange.as_of = ''")
        assert auditor.execute("select * from t").fetchall() == [(1,)]
