"""Text that tries to get out of its literal, name or unit on the way through the translation to DuckDB."""

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session

SECRET = "the-secret-of-the-environment"
CALL = "getenv(''SECRET'')"

TEXTS = [
    "select getenv('SECRET')",
    "select \"getenv\"('SECRET')",
    f"select date_part('epoch from now()), {CALL} --', now())",
    f"select date_trunc('day'', now()), {CALL} --', now())",
    f"select extract('epoch from now()), {CALL} --' from now())",
    "select extract(\"epoch from now()), getenv('SECRET') --\" from now())",
    "select cast('x' as \"text), getenv('SECRET') --\")",
    "select 'x'::\"text), getenv('SECRET') --\"",
    "select interval '1' \"day), getenv('SECRET') --\"",
    f"select interval '1 day''), {CALL} --'",
    f"select '{{}}'::json -> 'a''), {CALL} --'",
    f"select '{{}}'::json ->> 'a\"''), {CALL} --'",
    "select 'x' collate \"C), getenv('SECRET') --\"",
    f"select to_char(now(), 'YYYY''), {CALL} --')",
    f"select to_date('2020', 'YYYY''), {CALL} --')",
    f"select now() at time zone 'x''), {CALL} --'",
    f"select trim(both 'x''), {CALL} --' from 'a')",
    f"select date_bin('1 day''), {CALL} --', now(), now())",
    f"select string_agg('a', ',''), {CALL} --')",
    f"select 'a' like 'b' escape 'x''), {CALL} --'",
    f"select regexp_replace('a', 'b', 'c', 'g''), {CALL} --')",
    "select E'a\\\\', ' , getenv(''SECRET'') --'",
    "select E'\\'), getenv(\\'SECRET\\') --'",
    "select U&'\\0027), getenv(''SECRET'') --'",
    "select $x$'), getenv('SECRET') --$x$",
    'select 1 as "x"", getenv(\'SECRET\') --"',
    'select * from (values (1)) "v"", (select getenv(\'SECRET\')) --"',
    "select 1 /* */ , getenv('SECRET') -- */",
    "select 1; select getenv('SECRET')",
]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    node = open_node(tmp_path_factory.mktemp("data"))
    session = Session(node)
    yield session
    session.close()
    node.close()


@pytest.mark.parametrize("text", TEXTS)
def test_the_environment_stays_out_of_reach(session, monkeypatch, text):
    monkeypatch.setenv("SECRET", SECRET)
    try:
        found = repr(session.execute(text))
    except errors.Error as error:
        found = str(error)
    assert SECRET not in found


@pytest.mark.parametrize(
    "text",
    [
        "select * from '{}'",
        'select * from "{}"',
        'with "{}" as (select 1) select * from "{}"',
        'with x as (select * from "{}"), "{}" as (select 1) select * from x',
        'select * from (with "{}" as (select 1) select 1) q, "{}"',
        'select (select count(*) from "{}")',
        'select 1 where exists (select * from "{}")',
    ],
)
def test_no_file_is_a_table(session, tmp_path, text):
    file = tmp_path / "secret.csv"
    file.write_text(f"a\n{SECRET}\n")
    with pytest.raises(errors.Error) as caught:
        session.execute(text.replace("{}", str(file)))
    assert caught.value.sqlstate in ("42P01", "0A000")


# Holes in generated text are marked by NUL, gaps by a character with code 1: neither may come out of an escape.
MARKS = [
    "select E'\\x000\\x00' from t",
    "select E'\\u00000\\u0000' from t",
    "select E'\\0000\\000', * from t",
    "select U&'\\00000\\0000', * from t",
    "select U&'!00000!0000' uescape '!', * from t",
    "select * from t where b = E'\\x000\\x00'",
    "create table c (a text check (a <> E'\\x000\\x00'))",
]


@pytest.mark.parametrize("text", MARKS)
def test_no_escape_forges_the_place_of_a_scan(session, text):
    session.execute("create table if not exists t (id int primary key, \"' || getenv('SECRET') || '\" int, b text)")
    with pytest.raises((errors.CharacterNotInRepertoire, errors.SyntaxProblem)):
        session.execute(text)


@pytest.mark.parametrize(
    "text",
    [
        "create table c (a text, b text, check (b <> E'\"\\x01c0\\x01\"'))",
        "create table c (a text, b text, check (b <> U&'\"\\0001c0\\0001\"'))",
        "create table c (a text default E'\"\\x01s0\\x01\"' || 'a')",
    ],
)
def test_no_escape_forges_a_gap(session, text):
    with pytest.raises(errors.SyntaxProblem):
        session.execute(text)


def test_a_literal_that_looks_like_a_gap_is_a_literal(session):
    session.execute("create table gaps (id int primary key, b text)")
    session.execute("create index on gaps (lower(b))")
    session.execute("insert into gaps values (1, '\"\x010\x01\"')")
    assert session.execute("select id from gaps where lower(b) = '\"\x010\x01\"'").rows == [(1,)]
    assert session.execute("select id from gaps where lower(b) || '\"\x019\x01\"' = 'x'").rows == []


@pytest.mark.parametrize("text", ["select '\ud800'", "select \ud800", "select U&'\\d800'"])
def test_half_of_a_surrogate_pair_is_no_text(session, text):
    with pytest.raises(errors.Error) as caught:
        session.execute(text)
    assert caught.value.sqlstate == "22021"
