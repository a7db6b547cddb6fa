"""`seachange plan`: migrations judged on an empty database, and by a running server."""

import json
import re
import shlex
from pathlib import Path

import psycopg
import pytest

from seachange.cli import plan as plan_command
from seachange.cli.main import main, parser_of
from tests.support.serving import HOST, serving

FIRST = "create table t (id bigint primary key, a int, b text);\ncreate index on t (a);\n"
SECOND = """-- a comment
alter table t add column c int default 7; -- another
create index on t (b);
alter table t drop column a;

alter table t alter column b type int
  using length(b);
delete from t;
create index on nosuch (a);
"""


@pytest.fixture
def migrations(tmp_path):
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "V1__first.sql").write_text(FIRST)
    (folder / "V2__second.sql").write_text(SECOND)
    return folder


@pytest.fixture
def plan(capsys):
    def run(*arguments):
        status = main(["plan", *map(str, arguments)])
        printed = capsys.readouterr()
        assert not printed.err, printed.err
        return status, printed.out

    return run


def listed(text):
    return [
        (finding["line"], finding["strategy"], finding["traits"], finding["sqlstate"]) for finding in json.loads(text)
    ]


JUDGED = [
    (2, "metadata only", [], ""),
    (3, "build index", ["build", "wait"], ""),
    (4, "metadata only", ["irreversible"], ""),
    (6, "rebuild primary index", ["rebuild", "wait"], ""),
    (8, "", ["irreversible"], ""),
    (9, "", [], "42P01"),
]


def test_a_file_is_planned_after_those_before_it(migrations, plan):
    status, out = plan(migrations, "--format", "json")
    assert status == 1
    # An index on a table that the same file creates costs nothing.
    assert listed(out) == [(1, "metadata only", [], ""), (2, "metadata only", [], ""), *JUDGED]


def test_only_the_files_asked_for_are_reported_with_their_history(migrations, plan):
    _, out = plan(migrations / "V2__second.sql", "--history", migrations, "--format", "json")
    assert listed(out) == JUDGED


@pytest.mark.parametrize(
    ("text", "forbidden", "status"),
    [
        ("create index on t (b)", "rebuild,irreversible", 0),
        ("create index on t (b)", "build", 1),
        ("create index on t (b)", "wait", 1),
        ("alter table t add check (a > 0)", "validate", 1),
        ("alter table t drop column a", "rebuild", 0),
        ("alter table t drop column a", "rebuild,irreversible", 1),
        ("drop table t", "irreversible", 1),
        ("update t set a = 1", "irreversible", 1),
        ("insert into t values (1)", "irreversible,rebuild,build,validate,wait", 0),
        ("alter table t alter column a type bigint", "rebuild", 0),
        ("alter table t alter column a type text", "rebuild", 1),
        # Nothing is lost by a conversion: it has a new column for the old one.
        ("alter table t alter column a type text", "irreversible", 0),
        ("not a statement", "", 1),
        ("select 'open", "", 1),
        ("insert into t values (1), (1)", "", 1),
    ],
)
@pytest.mark.one_in(3)
def test_the_exit_code_says_whether_something_is_forbidden_or_refused(migrations, plan, text, forbidden, status):
    (migrations / "V2__second.sql").write_text(text)
    assert plan(migrations, "--forbid", forbidden)[0] == status


def test_an_unknown_word_to_forbid_is_refused(migrations, capsys):
    assert main(["plan", str(migrations), "--forbid", "rebuild,everything"]) == 2
    assert "validate, build, rebuild, wait, irreversible" in capsys.readouterr().err


def test_a_running_server_plans_for_its_rows_and_changes_nothing(migrations, plan, tmp_path):
    with serving(tmp_path / "shop") as served:
        with psycopg.connect(served.url, autocommit=True) as connection:
            connection.execute(FIRST)
            connection.execute("insert into t select i, i, 'x' from generate_series(1, 3000) i")
        url = f"postgresql://seachange@{HOST}:{served.port}/seachange"
        status, out = plan(migrations / "V2__second.sql", "--against", url, "--format", "json")
        with psycopg.connect(served.url, autocommit=True) as connection:
            after = connection.execute("select count(*), count(a) from t").fetchone()
            changes = connection.execute("select count(*) from seachange.changes").fetchone()
    assert (status, listed(out)) == (1, JUDGED)
    assert [finding["rows"] for finding in json.loads(out)] == [0, 3000, 0, 6000, None, None]
    assert after == (3000, 3000)
    assert changes == (1,)


def test_a_server_out_of_reach_is_an_error(migrations, capsys):
    assert main(["plan", str(migrations), "--against", "postgresql://127.0.0.1:1/shop"]) == 1
    assert "08" in capsys.readouterr().err


def test_sarif_and_annotations_name_file_and_line(migrations, plan):
    _, out = plan(migrations, "--format", "sarif", "--forbid", "rebuild")
    (run,) = json.loads(out)["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    found = [
        (result["ruleId"], result["level"], result["locations"][0]["physicalLocation"]) for result in run["results"]
    ]
    assert {rule for rule, _, _ in found} <= rules
    assert [(rule, level, place["region"]["startLine"]) for rule, level, place in found][-3:] == [
        ("rebuild", "error", 6),
        ("irreversible", "warning", 8),
        ("refused", "error", 9),
    ]
    _, out = plan(migrations, "--format", "github", "--forbid", "rebuild")
    file = migrations / "V2__second.sql"
    assert out.splitlines()[-1] == (
        f'::error file={file},line=9,title=refused::refused: 42P01: relation "nosuch" does not exist'
    )
    assert len(out.splitlines()) == 8


def test_annotations_cannot_be_forged_by_a_statement(migrations, plan):
    (migrations / "V2__second.sql").write_text('alter table t drop column "x\n::error file=a,line=1::forged"')
    _, out = plan(migrations, "--format", "github")
    assert not [line for line in out.splitlines() if line.startswith("::error file=a")]


def test_the_workflow_and_the_hook_use_options_that_exist():
    root = Path(__file__).parents[2]
    texts = [(root / name).read_text() for name in ("examples/ci/migrations.yml", "docs/plan.md")]
    used = [
        shlex.split(line)[1:] for text in texts for line in re.findall(r"seachange plan (?=\S*-|migrations).*", text)
    ]
    (args,) = re.findall(r"args: \[(.*)\]", texts[1])
    used.append(["plan", *(word.strip(' "') for word in args.split(", "))])
    for words in used:
        # Where the shell adds the files, and behind what it takes for itself.
        end = next((number for number, word in enumerate(words) if word in ("<", ">", "|")), len(words))
        parser_of("plan", plan_command).parse_intermixed_args([*words[1:end], "V1__a.sql"])
    assert len(used) >= 5
    assert "entry: seachange plan\n" in (root / ".pre-commit-hooks.yaml").read_text()
