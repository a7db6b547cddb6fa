"""Every operator and function of PostgreSQL gives what it gives there, for arguments of each of its types.

What is refused here (0A000) is left out; testdata/call_differences.txt lists other differences, by the call.
"""

import random
import re
from pathlib import Path

import pytest

from tests.differential.both import open_both, values
from tests.differential.random_calls import all_calls, create_table
from tests.differential.test_expressions import read_lines
from tests.differential.test_random_statements import ask
from tests.support.postgres import LocalPostgres

SEED = 1


def find_differences(server: LocalPostgres, folder: Path, part: int, parts: int) -> dict[str, str]:
    found = {}
    with open_both(server, folder) as both:
        both.run(create_table())
        calls = list(all_calls(random.Random(SEED)))
        for query in calls[part::parts]:
            ours = ask(both, query)
            postgres = both.ask_postgres(query) if ours.sqlstate != "0A000" else ours
            if values(ours) != values(postgres):
                found[query] = f"{query}\n    PostgreSQL {values(postgres)}\n    ours       {values(ours)}"
    print(f"calls: {len(calls) // parts} compared, {len(found)} differ")
    return found


@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 8))])
def test_calls_give_the_same(postgres_server: LocalPostgres, tmp_path: Path, part: int) -> None:
    known = set(read_lines("call_differences.txt"))
    found = find_differences(postgres_server, tmp_path, part, 8)
    unlisted = [how for query, how in found.items() if query not in known]
    assert not unlisted, "\n".join(unlisted)
    assert not any(re.search("XX000", how) for how in found.values())


@pytest.mark.slow
def test_listed_differences_of_calls_are_some(postgres_server: LocalPostgres, tmp_path: Path) -> None:
    found = find_differences(postgres_server, tmp_path, 0, 1)
    known = set(read_lines("call_differences.txt"))
    assert not known - set(found), f"these no longer differ: {known - set(found)}"
