"""A table is altered while two processes read and write it; no row may be lost and no transaction may fail."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from demo.director import Director
from demo.place import Place, folder_place, store_place
from demo.plot import draw
from demo.postgres import run_on_postgres
from demo.story import FULL, QUICK
from demo.timeline import Timeline, quantile
from tests.support.postgres import PostgresFailed

_PLOT = Path(__file__).parent / "output" / "timeline.png"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows, hardly a pause, no PostgreSQL: under a minute")
    parser.add_argument(
        "--s3", action="store_true", help="processes that share only an object store and a PostgreSQL catalog"
    )
    parser.add_argument("--seed", type=int, default=7, help="of what the traffic draws (default: 7)")
    parser.add_argument("--without-postgresql", action="store_true", help="leave the comparison out")
    parser.add_argument("--plot", type=Path, default=_PLOT, metavar="FILE", help="where the picture goes")
    options = parser.parse_args()
    scale = QUICK if options.quick else FULL
    with tempfile.TemporaryDirectory(prefix="seachange-demo-") as folder, _place(Path(folder), options.s3) as place:
        director = Director(place, scale, options.seed)
        verdict = director.run()
    for finding in verdict.findings:
        print(f"  {'ok ' if finding.is_good else 'BAD'}  {finding.text}")
    timelines = [("Seachange", director.scene.timeline)]
    if not (options.quick or options.without_postgresql):
        print("the same changes on PostgreSQL, which locks the table meanwhile ...", flush=True)
        try:
            locked = run_on_postgres(scale, options.seed)
            timelines.append(("PostgreSQL, plain ALTER TABLE and CREATE INDEX", locked))
        except PostgresFailed as problem:
            print(f"PostgreSQL is left out: {problem}")
    for name, timeline in timelines:
        print(f"  {name}: {summarise(timeline)}")
    draw(options.plot, timelines)
    print(f"{'All is well' if verdict.is_good else 'SOMETHING IS WRONG'}; the picture is {options.plot}")
    return 0 if verdict.is_good else 1


@contextmanager
def _place(folder: Path, in_store: bool) -> Iterator[Place]:
    if in_store:
        with store_place(folder) as place:
            yield place
    else:
        yield folder_place(folder)


def summarise(timeline: Timeline) -> str:
    latencies = [sample.ms for sample in timeline.samples]
    stood_still = sum(second.done == 0 for second in timeline.seconds(0.5)[:-1]) / 2
    return (
        f"{len(latencies):,} transactions, p99 {quantile(latencies, 99):.0f} ms,"
        f" slowest {timeline.slowest_ms():.0f} ms, {stood_still:.1f} s without any"
    )


if __name__ == "__main__":
    sys.exit(main())
