"""Counter-examples of the model: the engine withstands them, and does not without the safeguard that they are about."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from seachange import errors
from seachange.changer import runner
from seachange.changer.job import Job
from seachange.engine.transaction import submit
from seachange.engine.transaction.rebase import Rebase
from seachange.model.codecs.descriptor_json import KEPT
from seachange.model.schema.descriptor import Table
from seachange.model.states import BEHAVIOUR, Checking, State
from seachange.planner.rules.release import CURRENT, RELEASES
from seachange.verify.model.mutants import MUTANTS, SPARE, edit_lifecycles
from seachange.verify.model.scenario import Size
from seachange.verify.model.scenarios import SCENARIOS
from tests.support.nodes import Place
from tests.verify.replay.anomalies import Trial
from tests.verify.replay.cluster import Cluster
from tests.verify.replay.tally import Tally
from tests.verify.replay.walks import Subject, Walk, Walker, counter_example, subject_of

STORED = Path(__file__).parent / "testdata" / "counter_examples.txt"
SHOWN = {scenario.name: scenario for scenario in SCENARIOS if scenario.is_part_of(Size.DEFAULT)}
NAMES = [name for name in MUTANTS if name not in SPARE]
WRITERS = 3


def subject_without(name: str) -> Subject:
    mutant = MUTANTS[name]
    return subject_of(SHOWN[mutant.shows], (mutant,))


def stored(subject: Subject, name: str) -> Walk:
    lines = dict(line.split(": ") for line in STORED.read_text().splitlines())
    return Walker(subject).decode(lines[name])


def try_out(
    place: Place, name: str, tally: Tally, without_fence: frozenset[str] = frozenset()
) -> tuple[Trial, list[str]]:
    subject = subject_without(name)
    with closing(Cluster(place, WRITERS, without_fence)) as cluster:
        trial = Trial(cluster, subject, stored(subject, name), tally)
        return trial, trial.run()


@pytest.mark.parametrize("name", NAMES)
def test_the_engine_withstands(name: str, tmp_path: Path, tally: Tally):
    _, problems = try_out(Place(tmp_path), name, tally)
    assert problems == []


def break_lifecycles(name: str, patch: pytest.MonkeyPatch) -> None:
    # Another release of the same number: what follows from one is cached.
    edited = edit_lifecycles(CURRENT.lifecycles, [MUTANTS[name]])
    patch.setitem(RELEASES, CURRENT.number, replace(CURRENT, lifecycles=edited))


def break_write_only(name: str, patch: pytest.MonkeyPatch) -> None:
    patch.setitem(BEHAVIOUR, State.WRITE_ONLY, BEHAVIOUR[State.ABSENT])


def break_early_backfill(name: str, patch: pytest.MonkeyPatch) -> None:
    break_lifecycles(name, patch)
    patch.setattr(runner, "as_of", _as_of_the_record)


def _as_of_the_record(job: Job) -> object:
    return job.at or job.seen


def break_declared_keys(name: str, patch: pytest.MonkeyPatch) -> None:
    declare = submit._add_hashes

    def declare_what_is_checked(txn, draft, plan, op, encoded, entry):
        if plan.holds_rows or BEHAVIOUR[plan.index.state].checks is Checking.REFUSED:
            declare(txn, draft, plan, op, encoded, entry)

    patch.setattr(submit, "_add_hashes", declare_what_is_checked)


def break_rebase(name: str, patch: pytest.MonkeyPatch) -> None:
    def refuse(rebase: Rebase) -> object:
        raise errors.SerializationFailure(detail="the commit is below min_version")

    patch.setattr(Rebase, "run", refuse)


def break_needed_keys(name: str, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Table, "needed_for", lambda table, index: ())


BREAKS: dict[str, Callable[[str, pytest.MonkeyPatch], None]] = {
    "skip-write-only": break_write_only,
    "skip-enforced": break_lifecycles,
    "early-backfill": break_early_backfill,
    "undeclared-keys": break_declared_keys,
    "keyless-entries": break_needed_keys,
}


@pytest.fixture
def nothing_derived() -> Iterator[None]:
    """Tables keep what follows from the states of their parts, and are themselves kept by their texts."""
    KEPT.clear()
    yield
    KEPT.clear()


@pytest.mark.usefixtures("nothing_derived")
@pytest.mark.parametrize("name", BREAKS)
def test_without_the_safeguard_it_does_not(name: str, tmp_path: Path, tally: Tally, monkeypatch: pytest.MonkeyPatch):
    BREAKS[name](name, monkeypatch)
    _, problems = try_out(Place(tmp_path), name, tally)
    assert problems != []


def test_without_fences_it_does_not(tmp_path: Path, tally: Tally):
    _, problems = try_out(Place(tmp_path), "no-fence", tally, without_fence=frozenset({"epoch", "version"}))
    assert problems != []


def test_without_rebase_a_change_aborts_transactions(tmp_path: Path, tally: Tally, monkeypatch: pytest.MonkeyPatch):
    trial, problems = try_out(Place(tmp_path), "no-drain-no-refit", tally)
    assert (trial.refused, problems) == ([], [])
    break_rebase("no-drain-no-refit", monkeypatch)
    trial, problems = try_out(Place(tmp_path), "no-drain-no-refit", tally)
    assert [problem.sqlstate for problem in trial.refused] == ["40001"]
    assert problems == []


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_the_counter_examples_are_shortest(rewrite: bool):
    lines = []
    for name in NAMES:
        subject = subject_without(name)
        lines.append(f"{name}: {Walker(subject).encode(counter_example(subject))}\n")
    if rewrite:
        STORED.write_text("".join(lines))
    assert STORED.read_text() == "".join(lines), "run with --exhaustive --rewrite"
