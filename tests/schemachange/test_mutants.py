"""The bench finds what it is there to find: broken engines, each lacking one safeguard."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from seachange.changer import runner
from seachange.changer.job import Job, as_of
from seachange.engine.transaction.rebase import Rebase
from seachange.model.ids import Seq
from seachange.model.schema.descriptor import Table
from seachange.model.states import State
from tests.schemachange.bench import Bench
from tests.schemachange.cases import CASES
from tests.schemachange.judging import judge
from tests.schemachange.world import Worlds


def _skip_write_only(patch: pytest.MonkeyPatch) -> None:
    """Writers do not maintain an index that is not readable yet."""

    def maintained(table: Table) -> tuple[object, ...]:
        return (table.primary, *(index for index in table.secondary if index.state is not State.WRITE_ONLY))

    patch.setattr(Table, "maintained", property(maintained))


def _skip_rebase(patch: pytest.MonkeyPatch) -> None:
    """A commit that is fenced says that it knows the newest version, and is sent again as it is."""

    def run(rebase: Rebase) -> None:
        epoch, buffer = rebase._txn.epoch, rebase._txn.buffer
        at = epoch.catch_up()
        newest = epoch.schema(at).by_id
        rebase._used.update({id_: newest[id_].version for id_ in rebase._used if id_ in newest})
        for id_ in buffer.fits.keys() & newest.keys():
            buffer.relabel(newest[id_], at)

    patch.setattr(Rebase, "run", run)


def _early_backfill(patch: pytest.MonkeyPatch) -> None:
    """An index is built from the rows as of its publication, not as of the raise."""
    published: list[Seq] = []
    advance = runner.JobRunner._raise

    def raise_(self: runner.JobRunner, job: Job, *rest: object) -> Job:
        published.append(job.seen)
        return advance(self, job, *rest)  # type: ignore[arg-type]

    patch.setattr(runner.JobRunner, "_raise", raise_)
    patch.setattr(runner, "as_of", lambda job: published[0] if published else as_of(job))


MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "writers skip an index that is WRITE_ONLY": _skip_write_only,
    "a commit is not made to fit": _skip_rebase,
    "a backfill reads before the raise": _early_backfill,
}


@pytest.mark.parametrize("mutant", MUTANTS)
@pytest.mark.parametrize("catalog_kind", ["sqlite"])
def test_a_broken_engine_is_found_out(worlds: Worlds, mutant: str, monkeypatch: pytest.MonkeyPatch):
    case = replace(CASES[0])
    with Bench(worlds.make(case), case) as bench:
        MUTANTS[mutant](monkeypatch)
        outcome = bench.run()
        monkeypatch.undo()
        problems = judge(bench, outcome)
    assert any(problem.startswith("check: ") for problem in problems), problems
