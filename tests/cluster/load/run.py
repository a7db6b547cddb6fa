"""One run of the load: three nodes and a worker, kills and stops, and the verdict.

python -m tests.cluster.load.run [--seconds N] [--seed N] [--runs N] [--catalog sqlite|postgresql] [--skewed]
"""

import argparse
import random
import signal
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from seachange.engine.session.session import Session
from tests.cluster.load.judge import Ledger, judge, resume_jobs
from tests.cluster.load.processes import Crew
from tests.cluster.load.sampler import Sampler
from tests.cluster.load.schema import create_schema
from tests.support.nodes import HOUR_S, Place, open_ported_node
from tests.support.postgres import LocalPostgres
from tests.support.workers import wait_until

SKEWED = (HOUR_S, 0, -HOUR_S)


@dataclass(frozen=True, slots=True)
class Verdict:
    seed: int
    problems: list[str]
    summary: str


def run_load(
    place: Place, folder: Path, seed: int, seconds: float, clock_offsets_s: tuple[int, ...] = (0, 0, 0)
) -> Verdict:
    node = open_ported_node(place, "judge")
    session = Session(node)
    try:
        create_schema(session)
        return _run(session, place, folder, seed, seconds, clock_offsets_s)
    finally:
        session.close()
        node.close()


def _run(
    session: Session, place: Place, folder: Path, seed: int, seconds: float, clock_offsets_s: tuple[int, ...]
) -> Verdict:
    # The judge runs no jobs before the end.
    node = session.node
    node.jobs.paused = True
    executor = Crew(place, folder, seed, clock_offsets_s)
    try:
        with Sampler(node) as sampler:
            disturb(executor, random.Random(f"{seed} kills"), seconds)
            codes = executor.end(lambda: resume_jobs(session))
    finally:
        executor.kill()
    node.jobs.paused = False
    ledger = Ledger(executor.entries())
    problems = [*sampler.problems[:5], *judge(node, ledger)]
    # One that was told to end before it had begun ends by the signal.
    problems += [f"a process ended with {code}" for code in codes if code not in (0, -signal.SIGTERM)]
    if executor.complaints:
        problems.append(executor.complaints)
    return Verdict(seed, problems, summarise(session, ledger, sampler))


def disturb(executor: Crew, chance: random.Random, seconds: float) -> None:
    """For some seconds from when all have begun. Who has just been started is left alone."""
    never = threading.Event()
    wait_until(lambda: all(process.has_begun for process in executor.processes), "the crew to begin")
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        never.wait(min(left, chance.uniform(1.0, 5.0)))
        process = chance.choice([process for process in executor.processes if process.has_begun])
        match chance.choice(("kill", "kill", "sleep", "nothing")):
            case "kill":
                process.replace()
            case "sleep":
                # Past its expiry, or not.
                process.sleep(chance.choice((0.3, 3.0)), never)
            case _:
                continue


def summarise(session: Session, ledger: Ledger, sampler: Sampler) -> str:
    jobs = session.execute("select status, count(*) from seachange.jobs group by status order by status").rows
    counts = [f"{len(ledger.committed)} transactions committed, {len(ledger.refused)} refused or given up"]
    counts.append("jobs: " + ", ".join(f"{count} {status}" for status, count in jobs))
    counts.append(f"{sampler.samples} samples; versions in use {dict(sampler.versions)}, states {dict(sampler.states)}")
    reasons = [f"{count:5} {reason}" for reason, count in ledger.reasons.most_common()]
    changes = [f"{count:5} {change}" for change, count in sorted(ledger.changes.items())]
    return "\n".join([*counts, "refusals:", *reasons, "changes:", *changes])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--catalog", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--skewed", action="store_true", help="clocks that are an hour off either way")
    options = parser.parse_args()
    failed = 0
    with ExitStack() as stack:
        server = stack.enter_context(LocalPostgres()) if options.catalog == "postgresql" else None
        for number in range(options.runs):
            seed = random.randrange(1 << 30) if options.seed is None else options.seed + number
            folder = Path(tempfile.mkdtemp(prefix=f"load-{seed}-"))
            (folder / "data").mkdir()
            place = Place(folder / "data", server.create_database() if server else None)
            offsets = SKEWED if options.skewed else (0, 0, 0)
            print(f"seed {seed}, {options.catalog}, {folder}", flush=True)
            verdict = run_load(place, folder, seed, options.seconds, offsets)
            print(verdict.summary)
            for problem in verdict.problems:
                print(f"PROBLEM {problem}")
            failed += bool(verdict.problems)
            sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
