"""Changes of a role on one node apply to the next login on every other."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from seachange import errors
from seachange.runtime.entropy import SYSTEM_ENTROPY
from seachange.server.auth import shared_verifier
from seachange.server.login import AuthConfig, Login
from seachange.server.messages import Startup
from tests.support.serving import HOST, Served, serving

PASSWORDS = {"seachange": "right"}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Served]]:
    """The second node learns of the first's commits only by asking."""
    data: Path = tmp_path_factory.mktemp("servers")
    with serving(data, PASSWORDS) as here, serving(data, PASSWORDS) as there:
        there.node.threads["follower"].stop()
        yield here, there


def login(served: Served, user: str, password: str) -> str | None:
    """The reason for a refusal."""
    try:
        psycopg.connect(host=HOST, port=served.port, user=user, password=password, dbname="seachange").close()
    except psycopg.OperationalError as problem:
        return str(problem)
    return None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("alter role ann password 'new'", "password authentication failed"),
        ("alter role ann password null", "password authentication failed"),
        ("alter role ann valid until '2020-01-01'", "password authentication failed"),
        ("alter role ann nologin", "may not log in"),
        ("drop role ann", "password authentication failed"),
    ],
)
def test_an_old_login_is_refused_by_every_node_at_once(servers, change, reason):
    here, there = servers
    with psycopg.connect(
        host=HOST, port=here.port, user="seachange", password="right", dbname="seachange", autocommit=True
    ) as root:
        root.execute("create role ann login password 'old'")
        assert login(there, "ann", "old") is None
        root.execute(change.encode())
        assert reason in (login(there, "ann", "old") or "")
        if "'new'" in change:
            assert login(there, "ann", "new") is None
        root.execute("drop role if exists ann")


def test_a_password_that_changes_during_the_exchange_opens_nothing():
    verifiers = {"ann": shared_verifier("ann", "old", b"")}
    login = Login(AuthConfig({}, others=verifiers.get), SYSTEM_ENTROPY)
    login.start(Startup(3, 0, {"user": "ann"}))
    login.check_current()
    verifiers["ann"] = shared_verifier("ann", "new", b"")
    with pytest.raises(errors.InvalidPassword):
        login.check_current()
