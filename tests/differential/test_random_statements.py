"""Random definitions, changes of rows and queries give what they give in PostgreSQL, and never an internal error.

Rounds of statements, each from its own seed in a schema of its own. What is refused here (0A000) is left out; other
differences are listed with a reason. `--random-statements 200000` runs more of them.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field

import pytest

from tests.differential.both import Answer, Both, open_both, values
from tests.differential.random_statements import RandomStatements
from tests.support.postgres import LocalPostgres

STATEMENTS_PER_ROUND = 40
SEED = 20261118
# A pattern in the statement, the code here and in PostgreSQL ("" is a result, "*" anything), and why they differ.
KNOWN = (
    ("^CREATE VIEW.*sum.*FILTER", "42883", "", "a sum of intervals in a view, which is bound without tables"),
    ("substring", "42883", "", "substring of a bytea that is computed"),
    ("VALUES", "0A000", "", "untyped constants beside values of a type that DuckDB does not combine with texts"),
    ("^(UPDATE|MERGE|INSERT)", "", "22001", "PostgreSQL computes constants of a statement even if there are no rows"),
    ("'null'::jsonb", "", "22023", "PostgreSQL computes constants of a statement even if there are no rows"),
    (r"\|\|", "42000", "", "an element appended to an array"),
    ("ORDER BY .*(LIMIT|OFFSET)", "", "", "documents are ordered as texts"),
    (r"DISTINCT ON .*::inet", "22P02", "", "an untyped address beside a typed one, in ORDER BY of DISTINCT ON"),
    ("^CREATE.*INDEX.*to_char", "", "42P17", "to_char is immutable here"),
    ("^CREATE.*INDEX.*date_trunc", "", "42P17", "date_trunc of a date is immutable here"),
    ("^INSERT", "23502", "23505", "NOT NULL of all rows is checked before keys"),
    ("^CREATE.*INDEX.*timestamptz", "42P17", "", "a constant of a time zone in an index expression"),
)


@dataclass
class Tally:
    statements: int = 0
    refused: int = 0
    errors: int = 0
    known: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)


def ask(both: Both, text: str) -> Answer:
    """An exception that is none of the product's is what a client gets as XX000."""
    try:
        return both.ask_ours(text)
    except Exception as error:  # noqa: BLE001
        return Answer(None, f"XX000 {type(error).__name__} {error}")


def reason_for(text: str, ours: Answer, postgres: Answer) -> str | None:
    for pattern, own, other, reason in KNOWN:
        if own == (ours.sqlstate or "") and other == (postgres.sqlstate or "") and re.search(pattern, text):
            return reason
    return None


def run_round(both: Both, seed: int, tally: Tally) -> None:
    """Ends early where the databases no longer have the same rows."""
    made = RandomStatements(random.Random(seed))
    schema = f"r{seed}"
    both.run(f"CREATE SCHEMA {schema}")
    both.run(f"SET search_path = {schema}, public")
    for _ in range(STATEMENTS_PER_ROUND):
        before = deepcopy((made.tables, made.views, made.indexes))
        text, is_query = made.next()
        ours = ask(both, text)
        tally.statements += 1
        if ours.sqlstate == "0A000" and not is_query:
            tally.refused += 1
            made.tables, made.views, made.indexes = before
            continue
        postgres = both.ask_postgres(text)
        if values(ours) == values(postgres):
            tally.errors += ours.sqlstate is not None
            if ours.sqlstate is not None:
                made.tables, made.views, made.indexes = before
            continue
        reason = reason_for(text, ours, postgres)
        if reason is not None:
            tally.known[reason] += 1
        else:
            tally.found.append(f"seed {seed}: {text}\n    PostgreSQL {values(postgres)}\n    ours       {values(ours)}")
        if not is_query:
            break
    both.run(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture(scope="module")
def both(postgres_server: LocalPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with open_both(postgres_server, tmp_path_factory.mktemp("data")) as opened:
        opened.run("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
        yield opened


def test_random_statements_give_the_same(both: Both, request: pytest.FixtureRequest) -> None:
    wanted = int(request.config.getoption("--random-statements"))
    tally = Tally()
    for number in range(wanted):
        if tally.statements >= wanted:
            break
        run_round(both, SEED + number, tally)
    print(
        f"random statements: {tally.statements} compared, {tally.errors} failed in both, {tally.refused} refused here, "
        f"{sum(tally.known.values())} differ as listed {dict(tally.known)}, {len(tally.found)} otherwise"
    )
    assert not tally.found, "\n".join(tally.found)
