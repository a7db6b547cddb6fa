"""Text that tries to get out of its literal, name or unit on the way through the translation to DuckDB."""

import pytest

from seachange import errors
from seachange.engine.opening import open_node
from seachange.engine.session import Session

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
