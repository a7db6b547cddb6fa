"""Histories replayed, as the command does it."""

import json
from pathlib import Path

import pytest

from seachange.cli.main import main
from tests.support.nodes import Place

SHOP = {
    "1_customers.sql": """
        \\set ON_ERROR_STOP on
        create table customers (id bigserial primary key, mail text, age int);
        insert into customers (mail, age) values ('a@shop', 20), ('b@shop', 30);
        """,
    "2_orders.sql": """
        begin;
        create table orders (id bigserial primary key, customer_id bigint, state text default 'new');
        create table spare (id int primary key);
        commit;
        """,
    "3_rules.sql": """
        alter table customers alter column mail set not null;
        alter table customers add constraint mails unique (mail);
        alter table orders add constraint buyer foreign key (customer_id) references customers (id) on delete cascade;
        alter table orders add check (state in ('new', 'paid'));
        alter table customers rename column mail to email;
        create function f() returns int as $$ select 1; $$ language sql;
        drop table spare;
        alter table concurrently orders add column note text default '-';
        """,
}
EXPECTED = """
    create table customers (id bigserial primary key, email text not null, age int, constraint mails unique (email));
    create table orders (
        id bigserial primary key,
        customer_id bigint constraint buyer references customers (id) on delete cascade,
        state text default 'new' constraint orders_state_check check (state in ('new', 'paid')),
        note text default '-'
    );
"""


def lay_out(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(line.strip() for line in text.splitlines()))
    return folder


def test_two_writers_go_on_while_everything_changes(tmp_path: Path, place: Place, capsys: pytest.CaptureFixture[str]):
    folder = lay_out(tmp_path / "history", SHOP)
    (tmp_path / "dump.sql").write_text(EXPECTED)
    where = ["--data", str(place.data), *(["--catalog", place.catalog] if place.catalog else [])]
    options = ["--writers", "2", "--expected", str(tmp_path / "dump.sql"), "--json"]
    assert main(["replay", str(folder), *where, *options]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["good"] is True
    foreground = told["foreground"]
    assert foreground["done"] > 10
    assert (foreground["failed"], told["anomalies"], told["schema_differences"]) == ({}, [], [])
    refused = [s for s in told["statements"] if s["verdict"] == "refused"]
    assert [(s["sqlstate"], s["migration"], s["line"]) for s in refused] == [("0A000", "3_rules.sql", 7)]
    assert [s["verdict"] for s in told["statements"] if s["statement"].startswith("\\")] == ["skipped"]
    strategies = {
        s["statement"].split(" ", 3)[3]: s["strategy"] for s in told["statements"] if "alter" in s["statement"]
    }
    assert strategies["alter column mail set not null"] == "validate only"
    assert strategies["add constraint mails unique (mail)"] == "build index"
    assert strategies["rename column mail to email"] == "metadata only"


def replay(folder: Path, *options: str) -> int:
    return main(["replay", str(folder), "--writers", "0", "--pause", "0", *options])


def test_refused_statements_are_reported_and_fail_if_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = lay_out(tmp_path, {"1.sql": "create table t (id int);\nalter table nowhere add column n int;\nnonsense;"})
    assert replay(folder) == 0
    out = capsys.readouterr().out
    assert "REFUSED" in out
    assert '42P01: relation "nowhere" does not exist' in out
    assert "1.sql:3  nonsense" in out
    # With BEGIN and COMMIT.
    assert "3 accepted, 2 refused, 0 skipped" in out
    assert replay(folder, "--strict") == 1


def test_schema_differences_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = lay_out(tmp_path / "history", {"1.sql": "create table t (id int primary key, n int)"})
    dump = tmp_path / "dump.sql"
    dump.write_text("create table t (id int primary key, n bigint not null)")
    assert replay(folder, "--expected", str(dump)) == 1
    out = capsys.readouterr().out
    assert "differs: column public.t.n: integer; expected: bigint not null" in out
    assert "schema: 1 differences" in out


def test_open_transaction_is_rolled_back_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = lay_out(tmp_path, {"1.sql": "begin; create table t (id int);", "2.sql": "select * from t"})
    assert replay(folder, "--json") == 0
    told = json.loads(capsys.readouterr().out)["statements"]
    assert [(s["migration"], s["sqlstate"]) for s in told] == [
        ("1.sql", None),
        ("1.sql", None),
        ("1.sql", "25001"),
        ("2.sql", None),
        ("2.sql", "42P01"),
        ("2.sql", None),
    ]


def statements(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[tuple[str, str | None]]:
    replay(folder, "--json", *options)
    told = json.loads(capsys.readouterr().out)["statements"]
    return [(s["statement"], s["sqlstate"]) for s in told]


def test_migration_is_one_transaction(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    migration = "create table t (id int primary key);\ninsert into t values (1);\nnonsense;\ncreate index i on t (id)"
    folder = lay_out(tmp_path, {"1.sql": migration})
    create, insert, index = (
        "create table t (id int primary key)",
        "insert into t values (1)",
        "create index i on t (id)",
    )
    # A refused statement is undone, and the rest goes on.
    alone: list[tuple[str, str | None]] = [(create, None), (insert, None), ("nonsense", "42601"), (index, None)]
    assert statements(folder, capsys) == [("BEGIN", None), *alone, ("COMMIT", None)]
    assert statements(folder, capsys, "--autocommit") == alone


@pytest.mark.parametrize("statement", ["begin", "create index concurrently i on t (id)", "vacuum"])
def test_migration_that_cannot_be_one_transaction_runs_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], statement: str
):
    folder = lay_out(tmp_path, {"1.sql": f"create table t (id int);\n{statement};"})
    assert ("BEGIN", None) not in statements(folder, capsys)


def test_commit_that_fails_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    create = "create table t (id int primary key, up int references t deferrable initially deferred)"
    folder = lay_out(tmp_path, {"1.sql": create, "2.sql": "insert into t values (1, 2)", "3.sql": "table t"})
    assert statements(folder, capsys)[5] == ("COMMIT", "23503")


def test_rows_of_a_copy_come_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    rows = "copy t (id, v) from stdin;\n1\tone\n2\t\\N\n\\.\n"
    script = f"create table t (id int, v text);\n{rows}select 1 / (count(*) - 2) from t;"
    folder = lay_out(tmp_path, {"1.sql": script})
    assert replay(folder, "--json") == 0
    told = json.loads(capsys.readouterr().out)["statements"]
    # The division fails if there are two rows.
    assert [s["sqlstate"] for s in told] == [None, None, None, "22012", None]


def test_a_database_with_tables_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = lay_out(tmp_path / "history", {"1.sql": "create table t (id int)"})
    data = str(tmp_path / "data")
    assert replay(folder, "--data", data) == 0
    assert replay(folder, "--data", data) == 1
    assert "55000" in capsys.readouterr().err


def test_a_folder_without_migrations_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert replay(tmp_path) == 1
    assert "58P01" in capsys.readouterr().err
