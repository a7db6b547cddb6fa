"""Iceberg's REST catalog: what readers get, and what is refused to everyone else."""

import http.client
import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
import pytest

from seachange import connect, errors
from seachange.server.limits import FREE_FAILURES
from seachange.server.tokens import TOKEN_SECONDS, Tokens
from tests.support.patience import PATIENCE_S
from tests.support.serving import HOST, Served, serving

PASSWORDS = {"seachange": "root secret"}
SETUP = """
create table shop (id int primary key, name text);
insert into shop select i, 'item ' || i from generate_series(1, 6000) i;
update shop set name = 'changed' where id < 4;
create table secret (id int primary key);
create schema hidden;
create table hidden.thing (id int primary key);
create role reader login password 'reader secret';
grant select on shop to reader;
grant select on hidden.thing to reader;
create role idle nologin password 'idle secret';
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served"), PASSWORDS) as served:
        sql(served, *filter(None, map(str.strip, SETUP.split(";"))))
        yield served


def sql(served: Served, *statements: str) -> list[Any]:
    with psycopg.connect(served.url, autocommit=True, password=PASSWORDS["seachange"]) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def ask(
    served: Served, path: str, token: str | None = None, method: str = "GET", body: str | None = None, **headers: str
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(HOST, served.http_port, timeout=PATIENCE_S)
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    try:
        connection.request(method, f"/iceberg{path}", body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        return answer.status, json.loads(text) if text else None
    finally:
        connection.close()


def log_in(served: Served, user: str, password: str) -> tuple[int, Any]:
    form = {"grant_type": "client_credentials", "client_id": user, "client_secret": password, "scope": "catalog"}
    return ask(served, "/v1/oauth/tokens", method="POST", body=urlencode(form))


def token_of(served: Served, user: str, password: str) -> str:
    status, answer = log_in(served, user, password)
    assert status == 200, answer
    return str(answer["access_token"])


@pytest.fixture
def root(served: Served) -> str:
    return token_of(served, "seachange", "root secret")


@pytest.fixture
def reader(served: Served) -> str:
    return token_of(served, "reader", "reader secret")


def test_pyiceberg_reads_through_the_catalog(served: Served):
    rest = pytest.importorskip("pyiceberg.catalog.rest", reason="pyiceberg is not installed (make setup)")
    uri = f"http://{HOST}:{served.http_port}/iceberg"
    login = {"credential": "reader:reader secret", "oauth2-server-uri": f"{uri}/v1/oauth/tokens"}
    catalog = rest.RestCatalog("x", uri=uri, warehouse="seachange", **login)
    assert catalog.list_namespaces() == [("public",)]
    assert catalog.list_tables("public") == [("public", "shop")]
    assert catalog.table_exists("public.shop")
    assert not catalog.table_exists("public.secret")
    rows = catalog.load_table("public.shop").scan(row_filter="id < 5").to_arrow().to_pylist()
    assert sorted((row["id"], row["name"]) for row in rows) == sql(
        served, "select * from shop where id < 5 order by id"
    )
    sql(served, "insert into shop values (7001, 'new')")
    assert catalog.load_table("public.shop").scan(row_filter="id > 7000").to_arrow().num_rows == 1


def test_a_role_sees_what_it_may_select_from(served: Served, root: str, reader: str):
    assert ask(served, "/v1/namespaces", reader) == (200, {"namespaces": [["public"]]})
    assert ask(served, "/v1/namespaces", root)[1] == {"namespaces": [["hidden"], ["public"]]}
    tables = "/v1/seachange/namespaces/public/tables"
    assert [each["name"] for each in ask(served, tables, reader)[1]["identifiers"]] == ["shop"]
    assert [each["name"] for each in ask(served, tables, root)[1]["identifiers"]] == ["secret", "shop"]
    assert ask(served, f"{tables}/shop", reader)[0] == 200


def test_what_a_role_may_not_see_looks_like_what_does_not_exist(served: Served, reader: str):
    tables = "/v1/seachange/namespaces/public/tables"
    secret, missing = ask(served, f"{tables}/secret", reader), ask(served, f"{tables}/missing", reader)
    assert secret[0] == missing[0] == 404
    assert json.loads(json.dumps(secret[1]).replace("secret", "missing")) == missing[1]
    # The role may select from the table, but not use its schema.
    hidden = ask(served, "/v1/namespaces/hidden/tables/thing", reader)
    assert hidden[0] == 404
    assert ask(served, "/v1/namespaces/hidden/tables", reader)[0] == 404
    assert ask(served, "/v1/other/namespaces", reader)[0] == 404
    assert ask(served, "/v1/config?warehouse=other", reader)[0] == 404


def test_rights_are_those_of_now(served: Served):
    sql(served, "create role passing login password 'p'", "grant select on shop to passing")
    token, shop = token_of(served, "passing", "p"), "/v1/namespaces/public/tables/shop"
    assert ask(served, shop, token)[0] == 200
    sql(served, "revoke select on shop from passing")
    assert ask(served, shop, token)[0] == 404
    sql(served, "alter role passing password 'q'")
    assert ask(served, shop, token)[0] == 401
    token = token_of(served, "passing", "q")
    sql(served, "drop role passing")
    assert ask(served, shop, token)[0] == 401


def test_a_token_is_good_on_every_node_of_the_database(served: Served, reader: str):
    """Also that of the superuser, whose password both nodes have from their environment."""
    root = token_of(served, "seachange", "root secret")
    with serving(served.node.parts.data, PASSWORDS) as other:
        for token in (reader, root):
            assert ask(other, "/v1/namespaces/public/tables/shop", token)[0] == 200
        assert ask(served, "/v1/namespaces/public/tables/shop", token_of(other, "reader", "reader secret"))[0] == 200


def test_a_client_may_ask_for_the_newest_snapshot_only(served: Served, reader: str):
    path = "/v1/namespaces/public/tables/shop"
    ask(served, path, reader)
    sql(served, "insert into shop values (7002, 'newer')")
    newest = ask(served, f"{path}?snapshots=refs", reader)[1]["metadata"]
    whole = ask(served, f"{path}?snapshots=all", reader)[1]["metadata"]
    assert [s["snapshot-id"] for s in newest["snapshots"]] == [whole["current-snapshot-id"]]
    assert len(whole["snapshots"]) > 1
    assert newest | {"snapshots": whole["snapshots"]} == whole


def test_a_changed_token_is_refused(served: Served, reader: str, root: str):
    ends, name, signature = reader.split(".")
    user = root.split(".")[1]
    forged = [f"{ends}.{user}.{signature}", f"{int(ends) + 1}.{name}.{signature}", f"{ends}.{name}.{signature[1:]}0"]
    forged += [
        f"{ends}.{name}.{root.split('.')[2]}",
        f"{ends}.{name}.",
        f"x.{name}.{signature}",
        f"{ends}.zz.{signature}",
    ]
    for token in forged:
        assert ask(served, "/v1/config", token)[0] == 401, token


def test_a_token_ends(served: Served):
    clock = SetClock(10_000_000_000)
    tokens = Tokens(served.server.auth_config, clock)
    token = tokens.issue("reader", "reader secret")
    assert token is not None
    assert tokens.find_user(token) == "reader"
    clock.now_us += TOKEN_SECONDS * 1_000_000
    assert tokens.find_user(token) is None


class SetClock:
    def __init__(self, now_us: int) -> None:
        self.now_us = now_us

    def wall_us(self) -> int:
        return self.now_us

    def steady_us(self) -> int:
        return self.now_us


@pytest.mark.parametrize("token", [None, "None", "", "x" * 64, "0" * 64, "reader secret", "ä"])
def test_requests_without_a_token_are_refused(served: Served, token: str | None):
    for path in ("/v1/config", "/v1/namespaces", "/v1/namespaces/public/tables/shop", "/v1/nothing", "/", ""):
        for method in ("GET", "POST", "DELETE"):
            status, answer = ask(served, path, token.encode().decode("latin-1") if token else token, method)
            assert status == 401, (path, method, answer)


def test_other_ways_to_log_in_are_refused(served: Served):
    for user, password in [("reader", ""), ("reader", "wrong"), ("unknown", "x"), ("idle", "wrong"), ("", "x")]:
        status, answer = log_in(served, user, password)
        assert status in (400, 401), (user, answer)
        assert "access_token" not in answer
    forms = ["", "grant_type=password&client_id=reader&client_secret=reader+secret", "%ff", "=&=&=", "client_id=reader"]
    for form in forms:
        assert ask(served, "/v1/oauth/tokens", method="POST", body=form)[0] == 400
    assert ask(served, "/v1/oauth/tokens", method="GET")[0] == 405
    served.server.throttle._by_address.clear()


@pytest.mark.parametrize(
    ("given", "status"),
    [("reader:reader secret", 200), ("reader:wrong", 401), ("reader", 401), (":", 400), ("", 400), (None, 400)],
)
def test_credentials_in_a_header(served: Served, given: str | None, status: int):
    """As DuckDB sends them."""
    encoded = "no base64!" if given is None else b64encode(given.encode()).decode()
    form = "grant_type=client_credentials&scope=PRINCIPAL_ROLE%3AALL"
    found, answer = ask(served, "/v1/oauth/tokens", method="POST", body=form, Authorization=f"Basic {encoded}")
    assert found == status, answer
    assert ("access_token" in answer) == (status == 200)
    served.server.throttle._by_address.clear()


def test_a_role_that_may_not_log_in_gets_nothing(served: Served):
    token = token_of(served, "idle", "idle secret")
    for path in ("/v1/config", "/v1/namespaces", "/v1/namespaces/public/tables/shop"):
        assert ask(served, path, token)[0] == 401


def test_guessing_is_slowed_down_together_with_the_protocol(served: Served):
    try:
        for _ in range(FREE_FAILURES):
            assert log_in(served, "reader", "guess")[0] == 401
        record = served.server.throttle._by_address[HOST]
        record.next_us = served.node.parts.clock.steady_us() + 60_000_000
        assert log_in(served, "reader", "reader secret")[0] == 429
        with pytest.raises(psycopg.OperationalError, match="too many"):
            psycopg.connect(served.url, user="seachange", password="root secret", connect_timeout=60)
    finally:
        served.server.throttle._by_address.clear()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Length": "99999999"}, 413),
        ({"Content-Length": "-1"}, 411),
        ({"Content-Length": "9" * 30}, 411),
        ({"Transfer-Encoding": "chunked"}, 411),
    ],
)
def test_bodies_that_cannot_be_read_are_refused(served: Served, headers: dict[str, str], status: int):
    connection = http.client.HTTPConnection(HOST, served.http_port, timeout=PATIENCE_S)
    try:
        connection.putrequest("POST", "/iceberg/v1/oauth/tokens")
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        assert connection.getresponse().status == status
    finally:
        connection.close()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_every_write_is_refused(served: Served, root: str, method: str):
    before = sql(served, "select count(*) from shop")
    for path in ("namespaces", "namespaces/public/tables", "namespaces/public/tables/shop", "tables/rename"):
        status, answer = ask(served, f"/v1/seachange/{path}", root, method, body="{}")
        assert (status, answer["error"]["type"]) == (403, "ForbiddenException")
    assert sql(served, "select count(*) from shop") == before


@pytest.mark.parametrize(
    "path",
    [
        "/v1/namespaces/public/tables/..%2F..%2Fsegments",
        "/v1/namespaces/public/tables/shop/../../../../etc/passwd",
        "/v1/namespaces/public%1Fx/tables",
        "/v1/namespaces/%00/tables/%FF",
        "/v1/namespaces/public/tables/" + quote("shop'; drop table shop; --"),
        "/v2/namespaces",
    ],
)
def test_odd_paths_find_nothing(served: Served, root: str, path: str):
    status, answer = ask(served, path, root)
    assert (status, set(answer)) == (404, {"error"})


def test_a_header_given_twice_is_refused(served: Served, root: str):
    connection = http.client.HTTPConnection(HOST, served.http_port, timeout=PATIENCE_S)
    try:
        connection.putrequest("GET", "/iceberg/v1/namespaces")
        connection.putheader("Authorization", f"Bearer {root}")
        connection.putheader("Authorization", "Bearer None")
        connection.endheaders()
        assert connection.getresponse().status == 400
    finally:
        connection.close()


def test_a_table_that_cannot_be_mapped_is_refused_with_its_reason(served: Served, root: str):
    sql(served, "create type mood as enum ('a', 'b')", "create table moods (id int primary key, m mood)")
    sql(served, "alter type mood rename value 'a' to 'c'")
    status, answer = ask(served, "/v1/namespaces/public/tables/moods", root)
    assert (status, answer["error"]["type"]) == (406, "UnsupportedOperationException")
    assert "labels were renamed" in answer["error"]["message"]
    sql(served, "drop table moods")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8433", "127.0.0.1.evil.example", "", "[::1"])
def test_where_everyone_is_trusted_other_names_are_refused(tmp_path_factory, host: str):
    """A page of a browser may reach this machine through a name that its author controls."""
    with serving(tmp_path_factory.mktemp("trusting")) as served:
        assert ask(served, "/v1/oauth/tokens", method="POST", body="", Host=host)[0] == 403
        assert ask(served, "/v1/namespaces", "x", Host=host)[0] == 403
        token = token_of(served, "seachange", "whatever")
        assert ask(served, "/v1/namespaces", token)[0] == 200
        assert ask(served, "/v1/namespaces", token, Host=f"localhost:{served.http_port}")[0] == 200


def test_a_table_is_imported_from_the_catalog(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The credential is that of pyiceberg's configuration, not of the statement."""
    pytest.importorskip("pyiceberg.catalog.rest", reason="pyiceberg is not installed (make setup)")
    catalog = f"http://{HOST}:{served.http_port}/iceberg"
    address = f"{catalog}/v1/seachange/namespaces/public/tables"
    monkeypatch.setenv("PYICEBERG_CATALOG__SEACHANGE__CREDENTIAL", "reader:reader secret")
    monkeypatch.setenv("PYICEBERG_CATALOG__SEACHANGE__OAUTH2_SERVER_URI", f"{catalog}/v1/oauth/tokens")
    folders = f"{catalog}, {served.node.parts.data}"
    (tmp_path / "seachange.toml").write_text(f'"seachange.import_folders" = "{folders}"\n')
    with connect(data=tmp_path) as db:
        cursor = db.cursor()
        cursor.execute(f"call seachange.import_table('shop', 'iceberg', '{address}/shop', 'id')")
        cursor.execute("select * from shop order by id")
        assert cursor.fetchall() == sql(served, "select * from shop order by id")
        for name in ("secret", "missing"):
            with pytest.raises(errors.ImportFailed):
                cursor.execute(f"call seachange.import_table('x', 'iceberg', '{address}/{name}')")
            db.rollback()
