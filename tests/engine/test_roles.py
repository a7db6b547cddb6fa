"""Connections of roles, and the ways into a table that no statement takes."""

from contextlib import closing

import pyarrow as pa
import pytest

import seachange
from seachange import errors
from seachange.model.actor import find_roles
from seachange.model.scram import is_password, is_verifier


def test_who_may_connect_and_load(tmp_path):
    with closing(seachange.connect(tmp_path, autocommit=True)) as root:
        root.execute("create table t (id int primary key)")
        root.execute("create role group_only")
        root.execute("create user ann password 'secret'")
        for user in ("nobody", "group_only"):
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
        assert is_password("secret", verifier)
        assert not is_password("Secret", verifier)
