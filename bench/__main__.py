"""Runs the measures, prints one table, stores it as JSON and writes the page; `--help` lists the options."""

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.harness import Context, Measure, Result, Unavailable, Verdict, run_measure
from bench.measures import MEASURES
from bench.page.files import write_all
from bench.report import limit, print_table
from bench.scale import SCALES, Scale
from bench.store import KEPT, keep

HERE = Path(__file__).resolve().parent
# What was measured in full is kept with the code, and is what the documentation shows.
RESULTS = {"full": KEPT, "small": HERE / "results"}
# On the same disk as the code: a temporary folder may be in memory, where
# syncing costs nothing.
SCRATCH = HERE / "scratch"


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="Measures Seachange and its peers.")
    parser.add_argument("--only", metavar="NAME[,NAME]", help="measures or topics to run")
    parser.add_argument("--scale", choices=sorted(SCALES), default="full")
    parser.add_argument("--to", metavar="FOLDER", type=Path, help="where results are kept, a file for each topic")
    parser.add_argument("--list", action="store_true", help="print the measures and their bounds")
    options = parser.parse_args(arguments)
    names = options.only.split(",") if options.only else [""]
    unknown = [name for name in names if not any(matches(each, name) for each in MEASURES)]
    if unknown:
        parser.error(f"no such measure: {', '.join(unknown)}")
    options.to = options.to or RESULTS[options.scale]
    options.measures = [each for each in MEASURES if any(matches(each, name) for name in names)]
    return options


def matches(measure: Measure, name: str) -> bool:
    return name in ("", measure.name) or measure.name.startswith(f"{name}.")


def print_list(measures: Sequence[Measure]) -> None:
    for measure in measures:
        print(measure.name)
        for bound in measure.bounds:
            print(f"    {bound.reading} {limit(bound)}")


@contextmanager
def scratch_folder() -> Iterator[Path]:
    SCRATCH.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=SCRATCH))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(measure: Measure, scale: Scale) -> list[Result]:
    """A measure that fails becomes a line of the table; the others still run."""
    print(f"measuring {measure.name} ...", file=sys.stderr, flush=True)
    begun = time.monotonic()
    try:
        with scratch_folder() as folder:
            return run_measure(measure, Context(scale, folder))
    except Unavailable as error:
        return [Result(measure.name, Verdict.UNAVAILABLE, reason=str(error))]
    except Exception as error:  # noqa: BLE001 - the outer edge of the harness
        traceback.print_exc()
        return [Result(measure.name, Verdict.CRASHED, reason=f"{type(error).__name__}: {error}")]
    finally:
        print(f"measured {measure.name} in {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    options = parse_arguments(arguments)
    if options.list:
        print_list(options.measures)
        return 0
    scale = SCALES[options.scale]
    results: list[Result] = []
    for measure in options.measures:
        found = run(measure, scale)
        # One that failed leaves what is known from earlier.
        if all(result.verdict is not Verdict.CRASHED for result in found):
            keep(options.to, measure.name, scale, found)
        results += found
    print_table(results)
    if options.to.resolve() == KEPT:
        write_all(KEPT)
    return int(any(result.verdict is Verdict.CRASHED for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
