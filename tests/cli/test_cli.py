"""The command line, in processes of its own."""

import json
import subprocess
import sys

import pytest

from seachange.cli.main import COMMANDS, main
from tests.support.forks import Fork
from tests.support.patience import PATIENCE_S


def seachange(*arguments, stdin=""):
    with Fork("seachange.cli.main", *map(str, arguments)) as process:
        return process.communicate(stdin)


@pytest.fixture
def shop(tmp_path):
    data = tmp_path / "shop"
    made = seachange(
        "sql", "--data", data, "-c", "create table t (id bigint primary key, email text unique, n int)",
        "-c", "insert into t values (1, 'a', 1)",
    )  # fmt: skip
    assert (made.returncode, made.stdout, made.stderr) == (0, "CREATE TABLE\nINSERT 0 1\n", "")
    return data


def test_an_error_prints_its_code(shop):
    failed = seachange("sql", "--data", shop, "-c", "insert into t values (2, 'a', 1)")
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert failed.stderr.startswith("ERROR:  23505: ")
    assert "t_email_key" in failed.stderr


def test_an_error_shows_its_line(shop):
    failed = seachange("sql", "--data", shop, "-c", "select id,\n  nosuch from t")
    assert failed.stderr.splitlines()[1:3] == ["LINE 2:   nosuch from t", "          ^"]


def test_the_first_error_stops(shop):
    failed = seachange("sql", "--data", shop, "-c", "select nope", "-c", "insert into t values (2)")
    assert failed.returncode == 1
    assert seachange("sql", "--data", shop, "--format", "csv", "-c", "select id from t").stdout == "id\n1\n"


def test_files_are_refused(shop):
    failed = seachange("sql", "--data", shop, "-c", "select * from read_csv('/etc/passwd')")
    assert failed.returncode == 1
    assert "42501" in failed.stderr


def test_rows_that_a_change_returns_come_with_its_tag(shop):
    printed = seachange("sql", "--data", shop, "-c", "update t set n = 2 returning id, n")
    assert printed.stdout == " id | n\n----+---\n  1 | 2\n(1 row)\n\nUPDATE 1\n"
    printed = seachange("sql", "--data", shop, "--format", "csv", "-c", "delete from t returning id")
    assert printed.stdout == "id\n1\n"


def test_json_output_keeps_types_and_quotes(shop):
    text = "select *, 1.50::numeric(4,2) as m, null as x, 'é\"' as q, true as b, date '2024-02-09' as d from t"
    printed = seachange("sql", "--data", shop, "--format", "json", "-c", text)
    assert printed.returncode == 0
    assert json.loads(printed.stdout) == [
        {"id": 1, "email": "a", "n": 1, "m": 1.5, "x": None, "q": 'é"', "b": True, "d": "2024-02-09"}
    ]
    assert '"m": 1.50' in printed.stdout


def test_csv_output_quotes_and_leaves_nulls_empty(shop):
    text = "select id, null as x, 'a,\"b' as y, true as z from t"
    printed = seachange("sql", "--data", shop, "--format", "csv", "-c", text)
    assert printed.stdout == 'id,x,y,z\n1,,"a,""b",t\n'


def test_table_output_is_aligned(shop):
    printed = seachange("sql", "--data", shop, "-c", "select id as identifier, email, 'x' as y from t")
    assert printed.stdout == (" identifier | email | y\n------------+-------+---\n          1 | a     | x\n(1 row)\n\n")


def test_files_and_commands_run_in_order(shop, tmp_path):
    script = tmp_path / "script.sql"
    script.write_text("-- a script\ninsert into t values (3, 'c', 3);\nselect count(*) from t")
    printed = seachange(
        "sql", "--data", shop, "--format", "csv",
        "-c", "insert into t values (2, 'b', 2)", "-f", script, "-c", "select max(id) from t",
    )  # fmt: skip
    assert printed.stdout == "count\n3\nmax\n3\n"


def test_standard_input_is_a_script(shop):
    script = "insert into t values (2);\nselect 'a;b' as x; selec; select 2"
    printed = seachange("sql", "--data", shop, "--format", "csv", stdin=script)
    assert printed.returncode == 1
    assert printed.stdout == "x\na;b\n"
    assert "42601" in printed.stderr
    assert seachange("sql", "--data", shop, "--format", "csv", stdin="select count(*) from t").stdout == "count\n2\n"


def test_an_open_transaction_is_rolled_back(shop):
    seachange("sql", "--data", shop, "-c", "begin", "-c", "delete from t")
    assert seachange("sql", "--data", shop, "--format", "csv", "-c", "select id from t").stdout == "id\n1\n"


def test_notices_go_to_standard_error(shop):
    printed = seachange("sql", "--data", shop, "-c", "drop table if exists nope")
    assert (printed.stdout, printed.stderr) == ("DROP TABLE\n", 'NOTICE:  table "nope" does not exist, skipping\n')


def test_postgres_catalog(tmp_path, postgres_catalog_url):
    options = ("sql", "--data", tmp_path / "d", "--catalog", postgres_catalog_url, "--format", "csv")
    assert seachange(*options, "-c", "create table t (a int)", "-c", "insert into t values (1)").returncode == 0
    assert seachange(*options, "-c", "select * from t").stdout == "a\n1\n"


def test_check_of_no_database(tmp_path):
    checked = seachange("check", "--data", tmp_path / "shpo")
    assert checked.returncode == 1
    assert checked.stderr.startswith("ERROR:  58P01: ")
    assert not (tmp_path / "shpo").exists()


def test_check_passes_for_a_sound_database_and_rejects_unknown_tables(shop):
    checked = seachange("check", "--data", shop)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert seachange("check", "--data", shop, "t").returncode == 0
    unknown = seachange("check", "--data", shop, "nope")
    assert (unknown.returncode, "42P01" in unknown.stderr) == (1, True)


def test_problems_with_the_database(tmp_path):
    (tmp_path / "file").write_text("")
    assert seachange("sql", "--data", tmp_path / "file", "-c", "select 1").returncode == 1
    wrong = seachange("sql", "--data", tmp_path / "d", "--catalog", "mysql://x", "-c", "select 1")
    assert (wrong.returncode, "22023" in wrong.stderr) == (1, True)
    missing = seachange("sql", "--data", tmp_path / "d", "-f", tmp_path / "nope.sql")
    assert (missing.returncode, "nope.sql" in missing.stderr) == (1, True)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert "examples:" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "code"), [([], 0), (["--help"], 0), (["--version"], 0), (["nope"], 2)])
def test_command_line_exits_with_the_right_code(arguments, code, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == code
    capsys.readouterr()


def test_a_reader_that_goes_away_is_no_error_of_ours(shop):
    command = f"{sys.executable} -m seachange.cli.main sql --data {shop} --format csv"
    text = "select i from generate_series(1, 200000) g(i)"
    piped = subprocess.run(
        f'{command} -c "{text}" | head -1', shell=True, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (piped.stdout, piped.stderr) == ("i\n", "")


@pytest.mark.parametrize(
    ("script", "place"),
    [
        ("select 1;\n\nselect 1/0;\n", ":3: ERROR:  22012"),
        ("select 1;\n-- a comment\nselect id,\n  nosuch\nfrom t;\n", ":4: ERROR:  42703"),
        ("select 1;\nselect 'abc\n;", ":2: ERROR:  42601: syntax error: unterminated quoted string"),
        ('select 1;\n\nselect "abc;\n', ":3: ERROR:  42601: syntax error: unterminated quoted identifier"),
        ("select e'a\\'b';\nselect e'a\\'b;", ":2: ERROR:  42601: syntax error: unterminated quoted string"),
        ("select 1; /* from here", ":1: ERROR:  42601: syntax error: unterminated /* comment"),
        ("select\n$a$ to $b$", ":2: ERROR:  42601: syntax error: unterminated dollar-quoted string"),
    ],
)
def test_an_error_in_a_file_names_its_line(shop, tmp_path, script, place):
    path = tmp_path / "script.sql"
    path.write_text(script)
    printed = seachange("sql", "--data", shop, "-f", path)
    assert printed.returncode == 1
    assert f"{path}{place}" in printed.stderr
    assert f"standard input{place}" in seachange("sql", "--data", shop, stdin=script).stderr
