"""The names that programs, scripts and dashboards rely on: none is renamed or lost without notice."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import seachange
from seachange.cli.main import COMMANDS, parser_of
from seachange.model.jobs import JobStatus
from seachange.model.states import State
from seachange.sql.settings.settings import SETTINGS

TARGETS = ("demo", "test", "serve", "bench", "lint", "golden", "compat", "docs")
OPTIONS = {
    "serve": "--data --catalog --listen --http --node",
    "worker": "--data --catalog",
    "sql": "--data --catalog -c -f --format --user --database",
    "check": "--data --catalog --full",
    "feed": "--data --catalog --format --until --follow",
    "verify": "--protocol --break --list",
}
CONNECTION = "cursor commit rollback close autocommit notices copy_from copy_to spark_table insert_dataframe"
# PEP 249.
MODULE = (
    "connect apilevel threadsafety paramstyle Warning Error InterfaceError DatabaseError DataError OperationalError "
    "IntegrityError InternalError ProgrammingError NotSupportedError Date Time Timestamp DateFromTicks TimeFromTicks "
    "TimestampFromTicks Binary STRING BINARY NUMBER DATETIME ROWID"
)
VIEWS = {
    "jobs": "id statement status phase stage progress rows_done rows_total eta waiting_for error",
    "job_stages": "job_id",
    "leases": "node session version",
    "waits": "node session waits_for blocked_by",
    "sessions": "node session role state statement",
    "nodes": "name epoch",
    "descriptors": "id table_name version state",
    "layouts": "table_name layout_id columns",
    "shapes": "name as_of roles sessions",
    "segments": "table_name segment_id layout_id",
    "iceberg_tables": "table_name enabled reason metadata_location",
    "feeds": "name tables position lag_rows lag_seconds lag_bytes ended",
    "events": "moment job_id event",
}
SETTABLE = {
    "seachange.as_of": "1",
    "seachange.layout": "1",
    "seachange.concurrently": "async",
    "seachange.local_rows": "0",
    "seachange.pipeline_cores": "1",
    "seachange.spark.master": "local[1]",
    "seachange.retention": "2 days",
    "seachange.drain_timeout": "1s",
    "statement_timeout": "1min",
    "lock_timeout": "1s",
    "idle_in_transaction_session_timeout": "1min",
}
STATEMENTS = (
    *(f"explain (ddl{form}) create index on t (n)" for form in ("", ", verbose", ", deps", ", viz", ", shape")),
    "show jobs",
    "show leases",
    "show layouts from t",
    "show shapes",
    "create shape s",
    "drop shape s",
    "drop table t; undrop table t",
)


@pytest.fixture(scope="module")
def cursor(tmp_path_factory):
    with seachange.connect(data=tmp_path_factory.mktemp("contract"), autocommit=True) as db:
        cursor = db.cursor()
        cursor.execute("create table t (id bigint primary key, n int)")
        # Over no rows it would need no job.
        cursor.execute("insert into t values (1, 1)")
        cursor.execute("create index concurrently on t (n)")
        yield cursor


def column_names(cursor):
    return [column[0] for column in cursor.description]


def test_makefile_has_the_promised_targets():
    text = (Path(__file__).parent.parent / "Makefile").read_text()
    assert set(TARGETS) <= set(re.findall(r"^(\w+):", text, re.MULTILINE))


@pytest.mark.parametrize("command", OPTIONS)
def test_command_has_the_promised_options(command):
    actions = parser_of(command, import_module(COMMANDS[command][0]))._actions
    assert set(OPTIONS[command].split()) <= {option for action in actions for option in action.option_strings}


def test_python_interface_has_the_promised_names(cursor):
    assert [name for name in MODULE.split() if not hasattr(seachange, name)] == []
    assert [name for name in CONNECTION.split() if not hasattr(cursor.connection, name)] == []
    assert seachange.apilevel == "2.0"
    cursor.execute("select n from t where id = %s or id = %s", (1, 2))
    cursor.execute("select n, n::text, now(), ''::bytea from t where id = %(id)s", {"id": 1})
    groups = [seachange.NUMBER, seachange.STRING, seachange.DATETIME, seachange.BINARY]
    assert [column[1] for column in cursor.description] == groups


@pytest.mark.parametrize("view", VIEWS)
def test_view_has_the_promised_columns(cursor, view):
    cursor.execute(f"select * from seachange.{view}")
    assert set(VIEWS[view].split()) <= set(column_names(cursor))


@pytest.mark.parametrize("text", STATEMENTS)
def test_promised_statement_is_accepted(cursor, text):
    cursor.execute(text)


def test_asynchronous_statements_give_the_id_of_their_job(cursor):
    cursor.execute("create index concurrently of_n on t (n)")
    assert cursor.description is None
    cursor.execute("set seachange.concurrently = 'async'")
    for text in (
        "drop index concurrently of_n",
        "create index concurrently on t (n)",
        "alter table concurrently t add column more int",
    ):
        cursor.execute(text)
        assert column_names(cursor) == ["job_id"]
    cursor.execute("reset seachange.concurrently")


@pytest.mark.parametrize(
    "text",
    [
        form.format(verb)
        for verb in ("pause", "resume", "cancel")
        for form in ("select seachange.{}_job(1)", "{} job 1")
    ],
)
def test_requests_are_heard(cursor, text):
    """The first job is over."""
    cursor.execute("show job 1")
    assert "status" in column_names(cursor)
    with pytest.raises(seachange.Error) as refused:
        cursor.execute(text)
    assert refused.value.sqlstate == "55000"


@pytest.mark.parametrize("name", SETTABLE)
def test_promised_setting_can_be_set_shown_and_reset(cursor, name):
    cursor.execute(f"set {name} = '{SETTABLE[name]}'")
    cursor.execute(f"show {name}")
    assert cursor.fetchall() == [(SETTABLE[name],)]
    cursor.execute(f"reset {name}")


def test_settings_of_a_node_and_defaults():
    assert SETTINGS["seachange.node_expiry"].default == "10s"
    assert SETTINGS["seachange.retention"].default == "1 day"


def test_states_and_job_statuses_are_the_promised_ones():
    statuses = "pending running paused ready reverting succeeded failed canceled"
    assert {status.value for status in JobStatus} == set(statuses.split())
    assert {"ABSENT", "DELETE_ONLY", "WRITE_ONLY", "ENFORCED", "VALIDATING", "PUBLIC"} == {str(s) for s in State}
