"""The effects of statements in one text or block when one of them fails: as in PostgreSQL."""

import pytest

from tests.support.serving import serving
from tests.support.wire import FLUSH, SYNC, Wire, bind, describe, execute, fields, message, parse, query


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("blocks")) as served:
        with Wire(served.port) as wire:
            wire.round(query("create table t (id int primary key)"))
        yield served


@pytest.fixture
def wire(served):
    with Wire(served.port) as wire:
        wire.round(query("truncate t"))
        wire.round(query("insert into t select i from generate_series(1, 9) as s(i)"))
        yield wire


def told(wire: Wire, *data: bytes) -> list[str]:
    """Command tags, codes of errors and the status, up to ReadyForQuery."""
    shown = {b"C": lambda body: body[:-1].decode(), b"E": lambda body: fields(body)["C"], b"Z": bytes.decode}
    return [shown[kind](body) for kind, body in wire.round(*data) if kind in shown]


def ids(wire: Wire, least: int = 10) -> list[int]:
    return [int(value or b"") for (value,) in wire.rows(f"select id from t where id >= {least} order by id")]


FAILING = {
    "a text that is none": (query("selec 1"), "42601"),
    "a text that is none, to be prepared": (parse("selec 1") + SYNC, "42601"),
    "a parameter that cannot be read": (parse("select $1::int") + bind([b"x"]) + SYNC, "22P02"),
    "a statement that is not there": (bind(statement="none") + SYNC, "26000"),
    "a portal that is not there": (execute("none") + SYNC, "34000"),
    "a name that is taken": (parse("select 1", "twice") + parse("select 1", "twice") + SYNC, "42P05"),
}


@pytest.mark.parametrize(("data", "code"), FAILING.values(), ids=FAILING)
def test_any_error_in_a_block_fails_the_block(wire, data, code):
    assert told(wire, query("begin")) == ["BEGIN", "T"]
    assert told(wire, query("insert into t values (10)")) == ["INSERT 0 1", "T"]
    assert told(wire, data) == [code, "E"]
    assert told(wire, query("select 1")) == ["25P02", "E"]
    assert told(wire, parse("select 1") + SYNC) == ["25P02", "E"]
    assert told(wire, query("commit")) == ["ROLLBACK", "I"]
    assert ids(wire) == []


def test_rollback_to_savepoint_after_a_syntax_error(wire):
    told(wire, query("begin; insert into t values (10); savepoint s"))
    assert told(wire, query("selec 1")) == ["42601", "E"]
    assert told(wire, query("rollback to s")) == ["ROLLBACK", "T"]
    assert told(wire, query("commit")) == ["COMMIT", "I"]
    assert ids(wire) == [10]


# The statements of one text; what is answered; the rows that are left.
TEXTS = {
    "a setting between": ("insert into t values (10); set jit = off; insert into t values (1)", "23505", []),
    "shown between": ("insert into t values (10); show jit; insert into t values (1)", "23505", []),
    "prepared": ("prepare i as insert into t values (10); execute i; execute i", "23505", []),
    "a savepoint without a block": ("insert into t values (10); savepoint s; select 1", "25P01", []),
    "begun in the middle": ("insert into t values (10); begin; insert into t values (11); rollback", "", []),
    "committed in the middle": ("insert into t values (10); commit; insert into t values (1)", "23505", [10]),
    "rolled back in the middle": ("insert into t values (10); rollback; insert into t values (11)", "", [11]),
    "settings of the text alone": ("set local jit = off; insert into t values (10); select 1", "", [10]),
    "without any control": ("insert into t values (10); insert into t values (1)", "23505", []),
    "a savepoint first": ("savepoint s; insert into t values (10)", "25P01", []),
    "begun too late": ("insert into t values (10); begin isolation level serializable", "25001", []),
    "a setting that there is not behind it": ("insert into t values (10); set no_such = 1", "42704", []),
    "a value that cannot be behind it": ("insert into t values (10); set statement_timeout = 'x'", "22023", []),
    "an unknown name after it": ("insert into t values (10); deallocate missing", "26000", []),
    "a role of its own behind it": ("create role r10; set role r10; reset role; drop role r10", "", []),
    "settings behind it": ("insert into t values (10); set statement_timeout = 0; reset statement_timeout", "", [10]),
    "an index concurrently": ("insert into t values (10); create index concurrently on t (id)", "25001", []),
    "an index concurrently after a setting": ("set jit = off; create index concurrently on t (id)", "25001", []),
    "a database before a setting": ("create database d10; set jit = off", "25001", []),
    "all discarded": ("insert into t values (10); discard all", "25001", []),
    "temporary tables discarded": ("insert into t values (10); discard temp; insert into t values (1)", "23505", []),
}


@pytest.mark.parametrize(("text", "code", "left"), TEXTS.values(), ids=TEXTS)
def test_a_text_is_one_transaction(wire, text, code, left):
    answers = told(wire, query(text))
    assert [answer for answer in answers if answer[0].isdigit()] == ([code] if code else [])
    assert answers[-1] == "I"
    assert ids(wire) == left


def test_results_before_the_one_that_fails_are_sent(wire):
    assert told(wire, query("select 1; insert into t values (10); select 1 / 0")) == [
        "SELECT 1",
        "INSERT 0 1",
        "22012",
        "I",
    ]
    assert ids(wire) == []


def test_a_text_that_ends_a_block_is_one_transaction_behind_that(wire):
    told(wire, query("begin; insert into t values (10)"))
    text = "commit; insert into t values (11); insert into t values (1)"
    assert told(wire, query(text)) == ["COMMIT", "INSERT 0 1", "23505", "I"]
    assert ids(wire) == [10]


def test_last_statement_after_commit_is_autocommit(wire):
    """As a change of a table with rows must."""
    change = "alter table converted alter column a type text using a::text"
    text = f"create table converted (a int); insert into converted values (1); commit; {change}"
    assert told(wire, query(text))[-2:] == ["ALTER TABLE", "I"]
    assert told(wire, query("drop table converted")) == ["DROP TABLE", "I"]


SET = "select set_config('application_name', 'kept', {})"
# Statements that set something, in a transaction that commits or rolls back; and the final value.
SETTING = {
    "SET": ("set application_name = 'kept'; select 1 / 0", "22012"),
    "a function": (SET.format("false") + "; select 1 / 0", "22012"),
    "a function of the same query": (SET.format("false") + ", 1 / 0", "22012"),
    "SET that is rolled back": ("set application_name = 'kept'; rollback", "ROLLBACK"),
    "SET that becomes a part of a block": ("set application_name = 'kept'; begin; select 1 / 0", "22012"),
    "a function, for the transaction": (SET.format("true"), "SELECT 1"),
    "a function, for the transaction of a text": (SET.format("true") + "; select 1", "SELECT 1"),
}


@pytest.mark.parametrize(("text", "outcome"), SETTING.values(), ids=SETTING)
def test_settings_are_rolled_back_with_their_transaction(wire, text, outcome):
    assert told(wire, query(text))[-2] == outcome
    told(wire, query("rollback"))
    assert wire.rows("show application_name") == [[b""]]


def test_settings_are_rolled_back_with_a_failed_round(wire):
    data = parse("set application_name = 'kept'") + bind() + execute() + parse("select 1 / 0") + bind() + execute()
    assert "22012" in told(wire, data + SYNC)
    assert wire.rows("show application_name") == [[b""]]


def test_a_setting_of_the_transaction_lasts_for_the_text(wire):
    text = SET.format("true") + "; select current_setting('application_name')"
    assert wire.rows(text) == [[b"kept"], [b"kept"]]


def test_discarded_temporary_tables_are_restored_by_rollback(wire):
    told(wire, query("create temp table own (a int)"))
    assert told(wire, query("discard temp; select 1 / 0")) == ["DISCARD TEMP", "22012", "I"]
    assert wire.rows("select count(*) from own") == [[b"0"]]


# Single statements, and whether they return a row description.
DESCRIBED = {
    "select pg_advisory_lock(1), 2": "T",
    "select pg_try_advisory_xact_lock(1)": "T",
    "select pg_advisory_unlock_all()": "T",
    "execute shown": "T",
    "fetch 1 from c": "T",
    "move 1 in c": "n",
    "set transaction read only": "n",
}


@pytest.mark.parametrize(("text", "rows"), DESCRIBED.items(), ids=DESCRIBED)
def test_describe_of_each_statement(wire, text, rows):
    told(wire, query("prepare shown as select id from t where id = 1; begin; declare c cursor for select id from t"))
    answer = wire.kinds(parse(text) + describe("S") + bind() + execute() + SYNC)
    assert answer == f"1t{rows}2{'D' if rows == 'T' else ''}CZ"


def test_describe_needs_no_transaction(wire):
    told(wire, query("begin"))
    level = parse("set transaction isolation level repeatable read") + describe("S") + bind() + execute() + SYNC
    assert told(wire, level) == ["SET", "T"]
    told(wire, query("select 1 / 0"))
    assert told(wire, parse("rollback") + describe("S") + bind() + execute() + SYNC) == ["ROLLBACK", "I"]


def test_a_copy_among_others_is_part_of_them(wire):
    run = parse("copy t from stdin", "c") + bind(statement="c") + execute() + FLUSH
    wire.send(run)
    assert wire.until(b"G")[-1][0] == b"G"
    wire.send(message(b"d", b"10\n11\n"), message(b"c"))
    assert told(wire, parse("insert into t values (1)") + bind() + execute() + SYNC) == ["COPY 2", "23505", "I"]
    assert ids(wire) == []


ALL = "select id from t order by id"
# What ends a portal of which rows are left.
ENDINGS = {
    "the end of its transaction": parse("rollback", "r") + bind(statement="r") + execute() + query("begin"),
    "its savepoint": query("rollback to s"),
    "CLOSE": query("close p"),
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_a_portal_ends_as_a_cursor_does(wire, ending):
    told(wire, query("begin; savepoint s"))
    told(wire, parse(ALL, "all") + bind(portal="p", statement="all") + execute("p", 2) + SYNC)
    told(wire, ending)
    assert wire.code(execute("p", 2) + SYNC) == "34000"
    told(wire, query("rollback"))
    told(wire, query("begin"))
    assert wire.kinds(bind(portal="p", statement="all") + execute("p", 2) + SYNC) == "2DDsZ"
    told(wire, query("select 1 / 0"))
    assert wire.code(execute("p", 2) + SYNC) == "25P02"


def test_discard_all_closes_held_cursors(wire):
    told(wire, query(f"declare held cursor with hold for {ALL}"))
    assert wire.rows("fetch 1 from held") == [[b"1"]]
    told(wire, query("discard all"))
    assert wire.code(query("fetch 1 from held")) == "34000"


def test_reused_name_refers_to_the_new_statement(wire):
    run = bind(statement="s") + execute() + SYNC
    told(wire, parse("select 1", "s") + SYNC)
    first = [wire.round(run) for _ in range(3)]
    told(wire, query("deallocate s"))
    told(wire, query("prepare s as select 2"))
    second = [wire.round(run) for _ in range(3)]
    assert [answer[1][1][-1:] for answer in first + second] == [b"1"] * 3 + [b"2"] * 3
    assert wire.kinds(bind(statement="s") + describe() + execute() + SYNC) == "2TDCZ"


def test_read_only_session_cannot_write(wire):
    insert = parse("insert into t values (10)") + bind() + execute() + SYNC
    for said in ("set session characteristics as transaction read only", "set default_transaction_read_only = true"):
        told(wire, query(said))
        assert wire.rows("show default_transaction_read_only") == [[b"on"]]
        assert told(wire, insert) == ["25006", "I"]
        assert told(wire, query("begin; insert into t values (10)")) == ["BEGIN", "25006", "E"]
        assert told(wire, query("rollback")) == ["ROLLBACK", "I"]
        assert told(wire, query("begin read write; insert into t values (10); rollback"))[1] == "INSERT 0 1"
        told(wire, query("set session characteristics as transaction read write"))
    assert told(wire, insert) == ["INSERT 0 1", "I"]
    assert ids(wire) == [10]


@pytest.mark.parametrize("data", [query("select 2"), parse("selec 2") + SYNC], ids=["a text", "one that is none"])
def test_a_statement_without_a_name_ends_with_the_next(wire, data):
    told(wire, parse("select 1") + SYNC)
    assert wire.kinds(bind() + execute() + SYNC) == "2DCZ"
    told(wire, data)
    assert wire.code(bind() + execute() + SYNC) == "26000"


def test_strings_of_bits_are_refused(wire):
    assert wire.code(query("select b'101'")) == wire.code(query("select x'1F'")) == "0A000"


@pytest.mark.parametrize("sql", ["create index held_n on held (n)", "alter table held add column m int"])
def test_notice_of_a_wait_arrives_during_the_wait(served, sql: str):
    with Wire(served.port) as block, Wire(served.port) as waiter:
        block.round(query("create table if not exists held (id int primary key, n int)"))
        block.round(query("insert into held values (1, 1) on conflict do nothing"))
        block.round(query(f"begin; {sql}"))
        holder = (block.rows("select pg_backend_pid()")[0][0] or b"").decode()
        waiter.send(query("begin; alter table held add column z int"))
        notice = fields(waiter.until(b"N")[-1][1])["M"]
        assert notice.startswith("waits for ")
        assert holder in notice
        block.round(query("rollback"))
        assert waiter.until(b"Z")[-1] == (b"Z", b"T")
        waiter.round(query("rollback"))
