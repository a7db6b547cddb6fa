"""What `make compat` makes of what clients say."""

import json
import sys
from pathlib import Path

import pytest

from compat.__main__ import BEGIN, END, PAGE, rewrite, run
from compat.catalogue import CLIENTS
from compat.expected import KNOWN_FAILURES
from compat.servers import Inconsistent, check_database
from compat.table import Cell, Verdict, as_markdown, as_text, judge

KNOWN = {("psql", "a"): "not yet"}


def test_only_an_unexpected_failure_is_bad():
    cells = [judge("psql", feature, problem, KNOWN) for feature in "ab" for problem in ("", "broken")]
    assert [cell.verdict for cell in cells] == [Verdict.MENDED, Verdict.KNOWN, Verdict.OK, Verdict.FAILS]
    assert [cell.is_bad for cell in cells] == [False, False, False, True]
    assert as_text(cells).splitlines()[3] == "psql  b  fails: broken"


def test_the_page_says_what_works_and_what_does_not(tmp_path):
    page = tmp_path / "clients.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    rewrite(page, [judge("psql", "a", "broken", KNOWN), judge("psql", r"\d", "", KNOWN)])
    table = "| client | works | does not |\n| --- | --- | --- |\n| psql | `\\d` | `a`: not yet |"
    assert page.read_text() == f"before\n{BEGIN}\n{table}\n{END}\nafter\n"


def test_what_is_known_to_fail_is_of_clients_that_there_are():
    assert {client for client, _ in KNOWN_FAILURES} <= {client.name for client in CLIENTS}
    assert all(f"| {client.name} |" in PAGE.read_text() for client in CLIENTS)


def test_a_client_that_dies_is_a_failure():
    dies = 'import sys; print(\'{"feature": "a", "problem": ""}\'); sys.exit(3)'
    told = [json.loads(line) for line in run([sys.executable, "-c", dies], "url", 2)]
    assert told == [{"feature": "a", "problem": ""}, {"feature": "end", "problem": "the client ended with 3"}]


def test_a_skipped_client_says_why():
    assert as_text([Cell("pgbench", "all", Verdict.SKIPPED, "not here")]) == "pgbench  all  skipped: not here"
    assert "not here" in as_markdown([Cell("pgbench", "all", Verdict.SKIPPED, "not here")])
    assert Path(PAGE).exists()


def test_a_database_that_a_client_leaves_is_checked(tmp_path):
    (tmp_path / "segments").mkdir()
    (tmp_path / "segments" / "1.parquet").write_bytes(b"of a database without a catalog")
    with pytest.raises(Inconsistent):
        check_database(str(tmp_path))
