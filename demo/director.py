"""Runs the story on Seachange: loads the tables, starts traffic and a worker, makes the changes one by one, and
checks."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from demo.place import Place
from demo.processes import Request, TrafficProcess, Worker
from demo.scene import Act, Scene
from demo.story import Scale, Step, rows, steps, tables
from demo.timeline import Mark
from demo.verdict import Verdict, judge
from demo.view import View, open_view
from demo.watch import Watch

_LOOK_S = 0.1
_GOOD = "succeeded"
_KILL_AFTER_S = 2.0
# Two of traffic and a worker. A second worker joins when the first has done a job: two Sparks that start at once on a
# small machine are slow to.
_NODES_AT_FIRST = 3


class Director:
    def __init__(self, place: Place, scale: Scale, seed: int) -> None:
        self._place = place
        self._log = place.folder / "worker.log"
        self._scale = scale
        self._seed = seed
        self._workers: list[Worker] = []
        self.scene = Scene(f"Seachange: {scale.accounts:,} accounts", [Act(step) for step in steps(scale)])

    def run(self) -> Verdict:
        with ExitStack() as stack:
            view = stack.enter_context(open_view(self.scene))
            watch = Watch(self._place, "director")
            stack.callback(watch.close)
            stack.callback(self._stop_workers)
            self._call_worker("worker A")
            self._load(watch, view)
            with self._traffic(view), self._watching_leases():
                self._play(watch, view)
            self._stop_workers()
            view.say("the traffic has ended; every index, constraint and row is checked")
            return judge(self._place, watch, self.scene, self._scale)

    def _load(self, watch: Watch, view: View) -> None:
        began = time.monotonic()
        for statement in (*tables(), *rows(self._scale)):
            watch.do(statement)
        view.say(f"{self._scale.accounts:,} accounts were loaded in {time.monotonic() - began:.1f} s")

    @contextmanager
    def _traffic(self, view: View) -> Iterator[None]:
        samples = self.scene.timeline.samples
        processes = [
            TrafficProcess(self._place.options(f"traffic {number}"), number, self._scale, self._seed, samples)
            for number in range(2)
        ]
        try:
            for number, process in enumerate(processes):
                process.wait_until_ready()
                self._call(process.pid, f"traffic {number + 1}")
            view.say(
                f"two processes transfer money, look up, open and close accounts:"
                f" {2 * self._scale.transactions_per_second} transactions a second"
            )
            yield
        finally:
            for process in processes:
                process.stop()

    def _call(self, pid: int, name: str) -> None:
        """Nodes are named by host and process."""
        self.scene.names[str(pid)] = name

    def _call_worker(self, name: str) -> None:
        worker = Worker(self._place.options(name), self._log)
        self._workers.append(worker)
        self._call(worker.pid, name)

    def _stop_workers(self) -> None:
        while self._workers:
            self._workers.pop().stop()

    def _worker_of(self, node: str | None) -> Worker | None:
        """None if it is a client's node."""
        pid = self.scene.process_of(node or "")
        return next((worker for worker in self._workers if str(worker.pid) == pid), None)

    def _kill_worker(self, node: str) -> str:
        """Kills the worker that runs a job; returns its name."""
        worker = self._worker_of(node)
        assert worker is not None
        self._workers.remove(worker)
        worker.kill()
        return self.scene.name_of(node)

    @contextmanager
    def _watching_leases(self) -> Iterator[None]:
        over = threading.Event()
        thread = threading.Thread(target=self._watch_leases, args=(over,))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _watch_leases(self, over: threading.Event) -> None:
        watch = Watch(self._place, "leases")
        while not over.wait(_LOOK_S):
            self.scene.note_leases(watch.leases())
        watch.close()

    def _play(self, watch: Watch, view: View) -> None:
        time.sleep(self._scale.pause_s)
        for act in self.scene.acts:
            view.say(f"{act.step.title}: {act.step.statement}")
            act.began = time.monotonic()
            if act.step.is_job:
                self._run_job(act, watch, view)
                if len(self.scene.names) == _NODES_AT_FIRST:
                    self._call_worker("worker B")
            else:
                watch.do(act.step.statement)
                act.outcome = "no bytes moved, no session waited"
            act.ended = act.ended or time.monotonic()
            self.scene.timeline.marks.append(Mark(act.step.title, act.began, act.ended))
            view.say(f"    {act.ended - act.began:.2f} s: {act.outcome}")
            time.sleep(self._scale.pause_s)

    def _run_job(self, act: Act, watch: Watch, view: View) -> None:
        earlier = watch.newest_job()
        request = Request(self._place.options("client"), act.step)
        while (number := watch.newest_job()) == earlier:
            request.check()
            time.sleep(_LOOK_S)
        killed = None
        building_since: float | None = None
        while not (job := watch.job(number)).is_over:
            act.job = job
            for worker in self._workers:
                worker.check()
            if building_since is None and job.stage == "backfill":
                building_since = time.monotonic()
            if (
                killed is None
                and self._worker_of(job.node) is not None
                and building_since is not None
                and _is_to_be_killed(act.step, job.progress, building_since)
            ):
                killed = f"{self._kill_worker(str(job.node))} was killed at {job.progress:.0%}"
                view.say(f"    SIGKILL: {killed} of its job")
            time.sleep(_LOOK_S)
        act.job, act.ended = job, time.monotonic()
        request.wait()
        spark = watch.spark(number)
        if act.step.fails_with is None:
            act.is_good = job.status == _GOOD and (act.step.killed_at is None or killed is not None)
            stages = ", ".join(f"{stage} {ms / 1e3:.1f} s" for stage, ms, _ in watch.stages(number) if ms >= 100)
            finished = killed and job.node and f"{killed}, {self.scene.name_of(job.node)} finished it"
            found = [finished, spark and "on Spark", stages, job.error]
            act.outcome = "; ".join(part for part in found if part) or "validated"
        else:
            act.is_good = job.status != _GOOD and act.step.fails_with in (job.error or "")
            act.outcome = f"rejected and rolled back: {job.error}"


def _is_to_be_killed(step: Step, progress: float, building_since: float) -> bool:
    """In the middle of its work, whether or not a unit has been reported as done."""
    if step.killed_at is None:
        return False
    return progress >= step.killed_at or time.monotonic() - building_since >= _KILL_AFTER_S
