"""VACUUM as steps of a job: its indexes are rewritten one after the other, then files are deleted.

**Invariant:** a rewritten index has the same rows, so there is nothing to revert.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from seachange.changer.job import THIS_COMMIT, Job, as_of, job_change, written
from seachange.changer.job_log import JobLog
from seachange.changer.ports import Changes, Overtaken, Pipeline
from seachange.model.change.vacuum import RewriteIndex, VacuumWork
from seachange.model.change.work import UnitDone
from seachange.planner.stages import Phase
from seachange.runtime.clock import Clock
from seachange.runtime.faults import reach

# What a job waits for while another one compacts the same index, and how often it polls.
_OTHER_COMPACTION = "another compaction of the same index"
COMPACTION_POLL_S = 0.2


class Maintenance:
    """`rest` waits for some seconds before the job is tried again."""

    def __init__(
        self,
        changes: Changes,
        pipeline: Pipeline,
        clock: Clock,
        log: JobLog,
        rest: Callable[[Job, float], Job],
    ) -> None:
        self._changes = changes
        self._pipeline = pipeline
        self._clock = clock
        self._log = log
        self._rest = rest

    def step(self, job: Job, upkeep: VacuumWork) -> Job:
        if not upkeep.left:
            return self._collect(job, upkeep)
        with self._changes.compacting(upkeep.left[0]) as is_ours:
            if is_ours:
                return self._rewrite(job, upkeep)
        if not job.waiting:
            job = self._log.record(replace(job, waiting=_OTHER_COMPACTION), f"waits for {_OTHER_COMPACTION}")
        return self._rest(job, COMPACTION_POLL_S)

    def _rewrite(self, job: Job, upkeep: VacuumWork) -> Job:
        if job.at is None:
            # The sequence is recorded, so that another node continues with the same rows.
            job = self._log.record(replace(job, at=THIS_COMMIT, since_us=self._clock.wall_us(), waiting=""))
        at, began_us = as_of(job), job.since_us
        current = job

        def keep(unit: UnitDone) -> None:
            nonlocal current
            current = self._log.keep(current, 0, unit)

        def on_progress(rows: int) -> None:
            nonlocal current
            current = self._log.on_progress(current, rows)

        def planned(rows: int) -> None:
            nonlocal current
            # The same number is expected for each of the other indexes.
            current = replace(current, rows_total=current.rows_before + rows * len(upkeep.left))

        op = RewriteIndex(upkeep.table_id, upkeep.left[0], upkeep.full)
        done = [unit for _, unit in job.units]
        try:
            made = self._pipeline.rewrite(op, at, done, keep, on_progress, planned)
            reach("compaction.written")
            read = sum(unit.rows for _, unit in current.units)
            after = replace(
                self._log.stage_done(current, Phase.POST_COMMIT, "rewrite", began_us, read),
                upkeep=replace(upkeep, left=upkeep.left[1:]),
                units=(),
                at=None,
            )
            if made is None:
                return self._log.record(after)
            event = f"rewrote {read} rows of index {made.name} as of {at}"
            seq = self._changes.swap(made, at, job_change(after, event))
        except Overtaken:
            return self._log.record(replace(current.restarted(), at=None), "starts again: the index has been compacted")
        reach("compaction.swapped")
        return written(after, seq)

    def _collect(self, job: Job, upkeep: VacuumWork) -> Job:
        began_us = self._clock.wall_us()

        def on_progress(rows: int) -> None:
            nonlocal job
            job = self._log.on_progress(job, rows)

        files = self._pipeline.collect(on_progress)
        after = self._log.stage_done(job, Phase.POST_COMMIT, "collection", began_us, 0)
        return self._log.record(replace(after, upkeep=replace(upkeep, is_collected=True)), f"deleted {files} files")
