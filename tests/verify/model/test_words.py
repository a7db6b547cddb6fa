"""Traces are told in plain words, and the same in every run."""

import os
import subprocess
import sys

from seachange.cli.main import main
from seachange.cli.verify import parse_ddl
from seachange.verify.model.check import check_scenario
from seachange.verify.model.mutants import MUTANTS, PAIRS, SPARE
from seachange.verify.model.scenario import Protocol, Size
from seachange.verify.model.scenarios import scenarios_of
from tests.support.patience import PATIENCE_S

NO_FENCE = [
    "T1 begins at the head and plans with version 0 (index i (102) ABSENT)",
    "the job publishes version 1 (index i (102) WRITE_ONLY)",
    "the job raises min_version to version 1; R is the sequence of the raise",
    "T1 commits: row 1 goes from 'a' to nothing",
    "the job reads the rows at R and attaches what it has built",
    "the job publishes version 2 (index i (102) PUBLIC)",
]


def verify(*arguments, seed):
    command = [sys.executable, "-m", "seachange.cli.main", "verify", *arguments]
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE_S)


def test_a_trace_tells_what_happened():
    scenario = scenarios_of(Protocol.SEACHANGE, Size.SMALL)[0]
    result = check_scenario(scenario, Protocol.SEACHANGE, (MUTANTS["no-fence"],), parse_ddl).result
    assert result is not None
    assert list(result.trace) == NO_FENCE
    assert result.problem == (
        "at the head, index i (102) is PUBLIC and has an entry that no row has (there are no rows)"
    )


def test_a_trace_is_the_same_in_every_run():
    runs = [verify("--break", "zombie-coordinator", seed=seed) for seed in ("1", "2")]
    assert [run.returncode for run in runs] == [1, 1]
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stdout.splitlines()[-1].startswith("not consistent: 9 steps lead to it")


def test_explored_scenarios_are_reported():
    run = verify("--protocol", "f1", seed="1")
    assert run.returncode == 0, run.stdout
    assert "  create an index: consistent, " in run.stdout
    assert run.stdout.splitlines()[-1].startswith("consistent: ")


def test_the_list_names_all_that_can_be_broken(capsys):
    assert main(["verify", "--list"]) == 0
    told = capsys.readouterr().out
    for name in ({*MUTANTS} - SPARE) | {",".join(pair) for pair in PAIRS}:
        assert f"  {name}: " in told
    # Every name that is listed does harm.
    assert not any(f"  {name}: " in told for name in SPARE)


def test_what_is_not_known_cannot_be_broken(capsys):
    assert main(["verify", "--break", "gravity"]) == 2
    assert "gravity" in capsys.readouterr().err
