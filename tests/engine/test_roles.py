"""Connections of roles, and the ways into a table that no statement takes."""

import base64
from contextlib import closing

import pyarrow as pa
import pytest

import seachange
from seachange import errors
from seachange.model.schema.actor import find_roles
from seachange.model.schema.scram import ITERATIONS, is_verifier, make_verifier


def test_who_may_connect_and_load(tmp_path):
    with closing(seachange.connect(tmp_path, autocommit=True)) as root:
        root.execute("create table t (id int primary key)")
        root.execute("create role group_only")
        root.execute("create user ann password 'secret'")
        for user in ("missing", "group_only"):
            with pytest.raises(errors.InvalidAuthorization):
                seachange.connect(tmp_path, user=user)
        with closing(seachange.connect(tmp_path, user="ann", autocommit=True)) as ann:
            assert ann.execute("select current_user, session_user").fetchall() == [("ann", "ann")]
            (tmp_path / "rows.csv").write_text("2\n")
            with pytest.raises(errors.InsufficientPrivilege):
                ann.load_arrow("t", pa.table({"id": [1]}))
            with pytest.raises(errors.InsufficientPrivilege):
                ann.copy_from("t", tmp_path / "rows.csv")
            with pytest.raises(errors.InsufficientPrivilege):
                ann.copy_to("select * from t", tmp_path / "out.csv")
            with pytest.raises(errors.InsufficientPrivilege):
                ann.execute("set role seachange")
            with pytest.raises(errors.InsufficientPrivilege):
                ann.execute("cancel job 1")
            root.execute("grant insert on t to ann")
            assert ann.load_arrow("t", pa.table({"id": [1]})) == 1
            # Heard of at once, in the middle of a session.
            root.execute("revoke insert on t from ann")
            with pytest.raises(errors.InsufficientPrivilege):
                ann.execute("insert into t values (3)")
        roles = find_roles(root.session.node.epoch.schemas.newest.objects.values())
        verifier = roles["ann"].password
        assert verifier is not None
        assert is_verifier(verifier)
        assert "secret" not in verifier
        salt = base64.b64decode(verifier.split(":")[1].split("$")[0])
        assert verifier.startswith(f"SCRAM-SHA-256${ITERATIONS}:")
        assert make_verifier("secret", salt) == verifier
        assert make_verifier("Secret", salt) != verifier


def test_how_many_sessions_a_role_may_have(tmp_path):
    with closing(seachange.connect(tmp_path, autocommit=True)) as root:
        root.execute("create role ann login connection limit 2")
        assert root.execute("select rolconnlimit from pg_roles where rolname = 'ann'").fetchall() == [(2,)]
        first = seachange.connect(tmp_path, user="ann", autocommit=True)
        with closing(seachange.connect(tmp_path, user="ann", autocommit=True)) as second:
            second.execute("select 1")
            with pytest.raises(errors.TooManyOfRole):
                seachange.connect(tmp_path, user="ann")
            first.close()
            # Its place is free.
            seachange.connect(tmp_path, user="ann").close()
        root.execute("alter role ann connection limit 0")
        with pytest.raises(errors.TooManyOfRole):
            seachange.connect(tmp_path, user="ann")
        root.execute("alter role ann superuser")
        seachange.connect(tmp_path, user="ann").close()


def test_who_may_use_a_database(tmp_path):
    with closing(seachange.connect(tmp_path, autocommit=True)) as root:
        for statement in ("create role ann login", "create database shop", "revoke all on database shop from public"):
            root.execute(statement)
        with pytest.raises(errors.InsufficientPrivilege):
            seachange.connect(tmp_path, user="ann", database="shop")
        root.execute("grant connect on database shop to ann")
        with closing(seachange.connect(tmp_path, user="ann", database="shop", autocommit=True)) as ann:
            with pytest.raises(errors.InsufficientPrivilege):
                ann.execute("create temp table own (id int)")
            with pytest.raises(errors.InsufficientPrivilege):
                ann.execute("create schema own")
            root.execute("grant temporary, create on database shop to ann")
            ann.execute("create temp table own (id int)")
            ann.execute("create schema own")


def test_temporary_tables_are_visible_to_their_session_only(tmp_path):
    with (
        closing(seachange.connect(tmp_path, autocommit=True)) as one,
        closing(seachange.connect(tmp_path, autocommit=True)) as other,
    ):
        one.execute("create temp table own (id serial)")
        told = "select relname from pg_class join pg_namespace n on n.oid = relnamespace where nspname like 'pg_temp%'"
        assert one.execute(f"{told} order by 1").fetchall() == [("own",), ("own_id_seq",)]
        assert other.execute(told).fetchall() == []
        listed = "select count(*) from information_schema.tables where table_name = 'own'"
        assert (one.execute(listed).fetchall(), other.execute(listed).fetchall()) == ([(1,)], [(0,)])


def test_who_a_session_is_and_becomes(tmp_path):
    def who() -> tuple[str, ...]:
        ((found),) = root.execute("select current_user, current_role, session_user").fetchall()
        return found

    with closing(seachange.connect(tmp_path, autocommit=True)) as root:
        for statement in (
            "create role readers",
            "create role ann login in role readers",
            "create temp table own (a int)",
        ):
            root.execute(statement)
        root.execute("set role readers")
        assert who() == ("readers", "readers", "seachange")
        root.execute("reset all")
        assert who() == ("readers", "readers", "seachange")
        root.execute("reset role")
        root.execute("set session authorization ann")
        assert who() == ("ann", "ann", "ann")
        root.execute("set role readers")
        assert who() == ("readers", "readers", "ann")
        with pytest.raises(errors.InsufficientPrivilege):
            root.execute("select * from own")
        # As what a pool does before it gives the session to another.
        root.execute("discard all")
        assert who() == ("seachange", "seachange", "seachange")
        with pytest.raises(errors.UndefinedTable):
            root.execute("select * from own")
        root.execute("unlisten *")


def test_what_cannot_be_tried_in_a_block_asks_for_rights(tmp_path):
    with closing(seachange.connect(tmp_path, autocommit=True)) as root:
        for statement in (
            "create table t (id int primary key)",
            "create role crew",
            "create role ann login",
            "create database shop",
        ):
            root.execute(statement)
        with closing(seachange.connect(tmp_path, user="ann", autocommit=True)) as ann:
            for refused, granted in (
                ("create database own", "alter role ann createdb"),
                ("create database theirs owner crew", "grant crew to ann"),
                ("alter database shop rename to store", "alter database shop owner to ann"),
                ("vacuum t", "alter table t owner to ann"),
                ("drop table t; undrop table t", "grant create on schema public to ann"),
            ):
                with pytest.raises(errors.InsufficientPrivilege):
                    ann.execute(refused)
                root.execute(granted)
                ann.execute(refused)
            root.execute("alter database store owner to ann")
            root.execute("alter role ann nocreatedb")
            with pytest.raises(errors.InsufficientPrivilege):
                ann.execute("alter database store rename to shop")
