"""The web console: what it shows to whom, and what an attacker would try."""

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from seachange.server.console.views import ACTIONS, VIEWS
from seachange.server.limits import FREE_FAILURES
from tests.support.patience import PATIENCE_S
from tests.support.serving import HOST, Served, serving
from tests.support.workers import wait_until

PASSWORDS = {"seachange": "root secret"}
SETUP = (
    "create table shop (id int primary key, name text)",
    "insert into shop select i, 'item ' || i from generate_series(1, 100) i",
    "create table secret (id int primary key)",
    "create role reader login password 'reader secret'",
    "grant select on shop to reader",
)
PARAMETERS = {"schema": "public", "table": "shop"}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def content(self) -> Any:
        return json.loads(self.text)


@dataclass
class Browser:
    """Keeps the cookie and the proof, as a browser and the page do."""

    served: Served
    cookie: str = ""
    proof: str = ""

    def ask(self, method: str, path: str, content: Any = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection(HOST, self.served.http_port, timeout=PATIENCE_S)
        body = None if content is None else content if isinstance(content, str) else json.dumps(content)
        sent = {"Cookie": self.cookie, "X-Seachange-Proof": self.proof, "Content-Type": "application/json", **headers}
        try:
            connection.request(method, path, body, {name: value for name, value in sent.items() if value})
            found = connection.getresponse()
            answer = Answer(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read().decode())
        finally:
            connection.close()
        return answer

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", f"/console/api/{path}", **headers)

    def post(self, path: str, content: Any, **headers: str) -> Answer:
        return self.ask("POST", f"/console/api/{path}", content, **headers)

    def log_in(self, user: str, password: str) -> Answer:
        answer = self.post("login", {"user": user, "password": password})
        if answer.status == 200:
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
            self.proof = self.get("me").content["proof"]
        return answer

    def records(self, view: str, query: str = "") -> list[dict[str, Any]]:
        found = self.get(f"view/{view}{query}").content
        return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served"), PASSWORDS) as served:
        sql(served, *SETUP)
        yield served


@pytest.fixture
def root(served: Served) -> Browser:
    browser = Browser(served)
    assert browser.log_in("seachange", "root secret").status == 200
    return browser


@pytest.fixture
def reader(served: Served) -> Browser:
    browser = Browser(served)
    assert browser.log_in("reader", "reader secret").status == 200
    return browser


def sql(served: Served, *statements: str) -> list[Any]:
    with psycopg.connect(served.url, autocommit=True, password=PASSWORDS["seachange"]) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


# What it shows.


@pytest.mark.parametrize("path", ["/", "/console", "/console/console.js", "/console/console.css", "/console/pages.js"])
def test_the_page_and_its_files_need_no_log_in_and_name_no_other_server(served: Served, path: str):
    answer = Browser(served).ask("GET", path)
    assert answer.status == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.text.replace("http://www.w3.org/2000/svg", "").count("://") == 0


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_every_view_answers(root: Browser, name: str):
    query = "&".join(f"{parameter}={PARAMETERS[parameter]}" for parameter in VIEWS[name].parameters)
    answer = root.get(f"view/{name}?{query}")
    assert answer.status == 200, answer.text
    assert answer.content["columns"]


def test_a_table_is_shown_with_its_columns_and_parts(root: Browser):
    assert "shop" in [table["table_name"] for table in root.records("tables")]
    of = "?schema=public&table=shop"
    assert [column["column_name"] for column in root.records("columns", of)] == ["id", "name"]
    assert {(e["name"], e["state"]) for e in root.records("elements", of)} >= {("id", "PUBLIC"), ("name", "PUBLIC")}


def test_a_change_is_explained_and_nothing_happens(root: Browser):
    answer = root.post("explain", {"text": "alter table shop add column price int"})
    assert answer.status == 200
    assert answer.content["cost"][0].startswith("Strategy: metadata only")
    assert any("Stage 1" in line for line in answer.content["plan"])
    assert "price" not in [c["column_name"] for c in root.records("columns", "?schema=public&table=shop")]


def test_a_change_is_run_and_reported(root: Browser, served: Served):
    answer = root.post("run", {"text": "create table made (id int)"})
    assert (answer.status, answer.content["outcome"], answer.content["failed"]) == (200, "CREATE TABLE", False)
    assert sql(served, "select count(*) from made") == [(0,)]
    root.post("run", {"text": "alter table shop add constraint few check (id < 50)"})
    wait_until(lambda: root.get("runs").content["runs"][0]["outcome"] is not None, "the change has failed")
    assert root.get("runs").content["runs"][0]["outcome"].startswith("23514")


def test_load_is_sampled(root: Browser, served: Served):
    wait_until(lambda: root.get("load").content["samples"], "the first sample")
    (sample, *_) = root.get("load").content["samples"]
    assert set(sample) == {"at", "statements", "p99_ms", "failed", "conflicts", "job_rows", "compactions"}


def test_changes_reach_an_open_page(root: Browser, served: Served):
    connection = http.client.HTTPConnection(HOST, served.http_port, timeout=PATIENCE_S)
    connection.request("GET", "/console/api/events", headers={"Cookie": root.cookie})
    stream = connection.getresponse()
    assert stream.getheader("content-type") == "text/event-stream"
    assert stream.readline() == b"event: views\n"
    sql(served, "create index on shop (name)")
    statement = ""
    while "create index" not in statement:
        line = stream.readline().decode()
        assert line, "the stream has ended"
        statement = line if line.startswith("data: {") else statement
    connection.close()


# Roles.


def test_a_role_sees_what_it_sees_in_sql(reader: Browser):
    assert [table["table_name"] for table in reader.records("tables")] == ["shop"]
    assert {session["statement"] for session in reader.records("sessions") if session["role"] != "reader"} <= {
        None,
        "<insufficient privilege>",
    }


def test_a_role_does_what_it_may_do_in_sql(reader: Browser, served: Served):
    refused = reader.post("run", {"text": "drop table shop"})
    assert (refused.status, refused.content["sqlstate"]) == (422, "42501")
    with psycopg.connect(served.url, password=PASSWORDS["seachange"]) as other:
        for action in ("cancel_statement", "end_session"):
            refused = reader.post(f"action/{action}", {"id": other.info.backend_pid})
            assert (refused.status, refused.content["sqlstate"]) == (422, "42501")
        assert other.execute("select 1").fetchone() == (1,)


def test_a_session_can_be_ended(root: Browser, served: Served):
    with psycopg.connect(served.url, autocommit=True, password=PASSWORDS["seachange"]) as victim:
        (pid,) = victim.execute("select pg_backend_pid()").fetchone() or (0,)
        assert root.post("action/end_session", {"id": pid}).status == 200
        wait_until(lambda: is_ended(victim), "the end of the session")


def is_ended(connection: psycopg.Connection[Any]) -> bool:
    try:
        connection.execute("select 1")
    except psycopg.OperationalError:
        return True
    return False


# Attacks.


@pytest.mark.parametrize("path", ["me", "load", "runs", "events", *(f"view/{name}" for name in VIEWS)])
def test_nothing_is_read_without_a_log_in(served: Served, path: str):
    browser = Browser(served)
    assert browser.get(path).status == 401
    browser.cookie = "seachange_console=1999999999.736561.00.736561"
    assert browser.get(path).status == 401


@pytest.mark.parametrize("path", ["explain", "run", "logout", *(f"action/{name}" for name in ACTIONS)])
def test_a_change_needs_the_cookie_and_the_proof(root: Browser, path: str):
    content = {"id": 1, "text": "create table attacked (id int)"}
    no_proof = Browser(root.served, cookie=root.cookie)
    assert no_proof.post(path, content).status == 403
    wrong_proof = Browser(root.served, cookie=root.cookie, proof="0" * 64)
    assert wrong_proof.post(path, content).status == 403
    assert Browser(root.served, proof=root.proof).post(path, content).status == 401
    # A form of another site can neither send JSON nor a header.
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert root.post(path, "id=1&text=create+table+attacked+(id+int)", **form).status == 400
    assert root.get(path).status == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://[bad"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_requests_of_other_sites_are_refused(root: Browser, headers: dict[str, str]):
    assert root.get("me", **headers).status == 403
    assert root.post("run", {"text": "create table attacked (id int)"}, **headers).status == 403
    assert root.post("login", {"user": "seachange", "password": "root secret"}, **headers).status == 403


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(served: Served):
    answer = Browser(served).log_in("seachange", "root secret")
    flags = {flag.strip() for flag in answer.headers["set-cookie"].split(";")[1:]}
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= flags


@pytest.mark.parametrize(
    "text",
    [
        "create table a1 (id int); drop table shop",
        "select 1",
        "drop role reader; create table a1 (id int)",
        "begin; create table a1 (id int); commit; drop table shop",
        "create table a1 (id int)) drop table shop",
        "",
        "copy shop to '/tmp/attack'",
    ],
)
def test_only_one_schema_change_is_explained_or_run(root: Browser, served: Served, text: str):
    for path in ("explain", "run"):
        answer = root.post(path, {"text": text})
        assert answer.status == 422, answer.text
        assert answer.content["sqlstate"] in ("42601", "0A000")
    assert sql(served, "select count(*) from shop") == [(100,)]
    assert sql(served, "select count(*) from pg_class where relname = 'a1'") == [(0,)]


@pytest.mark.parametrize("value", ["1 or true", "1; drop table shop", None, "x", 1e400, [1], {"a": 1}])
def test_ids_are_numbers(root: Browser, served: Served, value: Any):
    answer = root.post("action/end_session", json.dumps({"id": value}))
    assert answer.status in (400, 422)
    assert sql(served, "select count(*) from shop") == [(100,)]


def test_names_are_values_and_not_text(root: Browser, served: Served):
    assert root.records("columns", "?schema=public&table=shop'%3B%20drop%20table%20shop--") == []
    assert sql(served, "select count(*) from shop") == [(100,)]


@pytest.mark.parametrize(
    "path", ["/console/../../etc/passwd", "/console/%2e%2e/pages.py", "/console/index.html/x", "/console/runs.py"]
)
def test_only_the_files_of_the_page_are_served(served: Served, path: str):
    assert Browser(served).ask("GET", path).status == 404


HALF = '"\\ud800"'


@pytest.mark.parametrize(
    ("body", "status"),
    [
        *(("{", 400), ("[]", 400), ('"x"', 400), ("x" * 70_000, 413)),
        # What is nested too deeply to be read, and half of a character.
        *(("[" * 60_000, 400), ('{"text": ' + "[" * 30_000 + "]" * 30_000 + "}", 400)),
        *((f'{{"text": {HALF}}}', 400), (f'{{"user": {HALF}, "password": {HALF}}}', 400)),
    ],
)
def test_a_body_that_is_no_object_is_refused(root: Browser, body: str, status: int):
    assert root.post("run", body).status == status
    assert root.post("login", body).status == status


def test_a_log_in_ends_with_the_password(served: Served):
    sql(served, "create role short login password 'one'")
    browser = Browser(served)
    assert browser.log_in("short", "one").status == 200
    sql(served, "alter role short password 'two'")
    assert browser.get("me").status == 401


def test_rights_are_those_of_now(served: Served):
    sql(served, "create role former login superuser password 'one'")
    browser = Browser(served)
    browser.log_in("former", "one")
    assert "secret" in [table["table_name"] for table in browser.records("tables")]
    sql(served, "alter role former nosuperuser")
    assert "secret" not in [table["table_name"] for table in browser.records("tables")]


def test_a_log_in_of_the_iceberg_catalog_is_none_here(served: Served):
    form = "grant_type=client_credentials&client_id=seachange&client_secret=root%20secret"
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    token = Browser(served).ask("POST", "/iceberg/v1/oauth/tokens", form, **kind).content["access_token"]
    assert Browser(served, cookie=f"seachange_console={token}.{b'seachange'.hex()}").get("me").status == 401


def test_passwords_are_not_guessed_quickly(tmp_path: Path):
    with serving(tmp_path, PASSWORDS) as served:
        answers = [Browser(served).log_in("seachange", f"guess {n}").status for n in range(FREE_FAILURES)]
        assert answers == [401] * FREE_FAILURES
        # The next attempts wait for their turn, one after another.
        assert served.server.throttle.admit(HOST, 0, 0) is None or served.server.throttle.admit(HOST, 0, 0) is None


def test_without_passwords_only_names_of_this_machine_are_answered(tmp_path: Path):
    with serving(tmp_path) as served:
        browser = Browser(served)
        assert browser.log_in("seachange", "").status == 200
        assert browser.get("me").status == 200
        assert browser.get("me", Host="evil.example").status == 403
