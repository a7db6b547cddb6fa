"""The protocol holds, and each of its safeguards is needed."""

import pytest

from seachange.cli.verify import parse_ddl
from seachange.verify.model.check import check_scenario
from seachange.verify.model.explore import Exploration
from seachange.verify.model.mutants import (
    BESIDE_MUTANTS,
    BLOCK_MUTANTS,
    CLASSIC_MUTANTS,
    MUTANTS,
    PAIRS,
    RETURN_MUTANTS,
    SPARE,
    shown_by,
)
from seachange.verify.model.scenario import Protocol, Scenario, Size, build_model
from seachange.verify.model.scenarios import BLOCK_SCENARIOS, mutants_of, scenarios_of

# It has ten times as many states as others; tests/verify/replay runs its steps, too.
LONG = "convert the primary key"
SMALL = [
    pytest.param(p, s, marks=[pytest.mark.slow] if s.name == LONG else [])
    for p in Protocol
    for s in scenarios_of(p, Size.SMALL)
]
REST = [(p, s) for p in Protocol for s in scenarios_of(p, Size.DEFAULT) if s.size is not Size.SMALL]
LARGE = [(p, s) for p in Protocol for s in scenarios_of(p, Size.LARGE) if s.size is Size.LARGE]

# The length of the shortest trace. A change of it is no mistake in itself, but shows what a change of a table means;
# docs/verification.md tells them.
LENGTHS = {
    "skip-write-only": 6,
    "skip-enforced": 7,
    "skip-key-share": 8,
    "undeclared-keys": 13,
    "early-backfill": 6,
    "no-drain-no-refit": 4,
    "no-fence": 6,
    "distance-fence": 6,
    "blind-ingest": 6,
    "compact-without-base": 8,
    "gc-before-fence": 6,
    "gc-by-fold": 12,
    "cached-schema": 5,
    "late-register": 4,
    "null-fill": 3,
    "early-drop": 8,
    "zombie-coordinator": 9,
    "refit-forgets-keys": 7,
    "no-publication-fence": 8,
    "trusted-start": 6,
    "keyless-entries": 17,
    "cached-schema,no-lower-bound": 8,
}
BLOCK_LENGTHS = {
    "skip-validating": 7,
    "early-validation": 6,
    "buffer-in-generation": 9,
    "validate-at-snapshot": 9,
    "background-statement": 9,
    "own-keys-at-snapshot": 11,
    "own-keys-unchecked": 11,
    "ignored-record": 6,
    "record-after-look-ignored": 13,
    "blind-record": 6,
    "record-outside-lock": 7,
    "silent-keys": 13,
    "hard-keys": 7,
    "skip-key-share-in-block": 8,
    "silent-references": 10,
    "own-references-unchecked": 9,
    "unchecked-rebase": 9,
    "own-rows-not-rebased": 8,
    "old-image-at-snapshot": 10,
    "index-at-snapshot": 8,
    "fence-itself": 8,
    "no-exemption": 2,
    "leftovers": 2,
    "leftovers-of-savepoint": 5,
    "late-commit": 11,
}
BESIDE_LENGTHS = {
    "no-exclusion": 5,
    "planned-from-other": 9,
    "forgotten-publication": 7,
    "shared-snapshot": 8,
}
RETURN_LENGTHS = {
    "early-restoration": 5,
    "rebase-forgets-values": 6,
    "restore-beside-rewrite": 6,
    "forgotten-layouts": 1,
    "collected-table": 1,
}
CLASSIC_LENGTHS = {"skip-delete-only": 3, "skip-write-only": 9, "skip-enforced": 14, "no-drain-no-refit": 5}


def name(value):
    return value.name if isinstance(value, Scenario) else str(value)


def check(scenario: Scenario, protocol: Protocol, broken: tuple[str, ...] = ()) -> Exploration:
    mutants = tuple(mutants_of(protocol)[name] for name in broken)
    result = check_scenario(scenario, protocol, mutants, parse_ddl).result
    assert result is not None
    return result


def assert_consistent(scenario: Scenario, protocol: Protocol) -> None:
    result = check(scenario, protocol)
    assert result.problem is None, "\n".join([*result.trace, result.problem])
    assert result.complete


@pytest.mark.parametrize(("protocol", "scenario"), SMALL, ids=name)
def test_a_change_is_consistent(protocol, scenario):
    assert_consistent(scenario, protocol)


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "scenario"), REST, ids=name)
def test_a_larger_change_is_consistent(protocol, scenario):
    assert_consistent(scenario, protocol)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("protocol", "scenario"), LARGE, ids=name)
def test_a_change_is_consistent_in_a_larger_scope(protocol, scenario):
    assert_consistent(scenario, protocol)


def caught(protocol: Protocol, broken: tuple[str, ...]) -> Exploration:
    shows = shown_by(tuple(mutants_of(protocol)[name] for name in broken))
    scenario = next(s for s in scenarios_of(protocol, Size.LARGE) if s.name == shows)
    return check(scenario, protocol, broken)


@pytest.mark.parametrize("broken", LENGTHS)
def test_a_safeguard_is_needed(broken):
    result = caught(Protocol.SEACHANGE, tuple(broken.split(",")))
    assert result.problem
    assert len(result.trace) == LENGTHS[broken]


@pytest.mark.parametrize("broken", BLOCK_LENGTHS)
def test_a_safeguard_of_blocks_is_needed(broken):
    result = caught(Protocol.SEACHANGE, (broken,))
    assert result.problem
    assert len(result.trace) == BLOCK_LENGTHS[broken]


@pytest.mark.parametrize("broken", BESIDE_LENGTHS)
def test_a_safeguard_of_jobs_side_by_side_is_needed(broken):
    result = caught(Protocol.SEACHANGE, (broken,))
    assert result.problem
    assert len(result.trace) == BESIDE_LENGTHS[broken]


@pytest.mark.parametrize("broken", RETURN_LENGTHS)
def test_a_safeguard_of_what_comes_back_is_needed(broken):
    result = caught(Protocol.SEACHANGE, (broken,))
    assert result.problem
    assert len(result.trace) == RETURN_LENGTHS[broken]


def test_block_can_fix_the_rows_and_commit_its_constraint():
    scenario = next(s for s in BLOCK_SCENARIOS if s.name == "fix the rows and add a CHECK in a block")
    model = build_model(scenario, Protocol.SEACHANGE, (), parse_ddl)
    met, left = {model.initial}, [model.initial]
    while left:
        for label, state in model.successors(left.pop()):
            if "PUBLIC" in label[0]:
                return
            if state not in met:
                met.add(state)
                left.append(state)
    pytest.fail("it can never commit")


@pytest.mark.parametrize("broken", CLASSIC_LENGTHS)
def test_a_safeguard_of_the_classic_protocol_is_needed(broken):
    result = caught(Protocol.F1, (broken,))
    assert result.problem
    assert len(result.trace) == CLASSIC_LENGTHS[broken]


def test_every_mutant_is_tried():
    assert {*LENGTHS} == {*MUTANTS} - SPARE | {",".join(pair) for pair in PAIRS}
    assert {*CLASSIC_LENGTHS} == {*CLASSIC_MUTANTS}
    assert {*BLOCK_LENGTHS} == {*BLOCK_MUTANTS}
    assert {*BESIDE_LENGTHS} == {*BESIDE_MUTANTS}
    assert {*RETURN_LENGTHS} == {*RETURN_MUTANTS}


@pytest.mark.parametrize("pair", PAIRS, ids=",".join)
def test_either_of_a_pair_is_enough(pair):
    scenario = next(s for s in scenarios_of(Protocol.SEACHANGE, Size.DEFAULT) if s.name == PAIRS[pair])
    for one in pair:
        assert check(scenario, Protocol.SEACHANGE, (one,)).problem is None
