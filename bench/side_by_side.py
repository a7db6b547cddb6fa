"""Compares two checkouts: `python -m bench.side_by_side OTHER --only statements,points --rounds 3`.

Runs of the two alternate, measure by measure, so that a busy machine slows both alike. Each uses its own benchmark and
its own sources. Printed is the ratio of the best rounds, this checkout to the other one: above 1 is an improvement for
rates, below 1 for times. `--cpu` compares the CPU time of single statements instead (`bench.statement_cpu`), which
other work on the machine hardly changes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
# Units of rates; all others are times or sizes, of which less is better.
_RATES = ("/s", "rows/s")

Readings = dict[tuple[str, str], list[float]]
# Readings of a checkout, by name and unit.
Run = Callable[[Path], Iterable[tuple[tuple[str, str], float]]]


def run_once(checkout: Path, measure: str, scale: str) -> Iterator[tuple[tuple[str, str], float]]:
    """The medians of one run, by name and unit."""
    paths = {"PYTHONPATH": f"{checkout / 'src'}:{checkout}"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bench", "--only", measure, "--scale", scale, "--to", folder]
        subprocess.run(command, cwd=checkout, env=os.environ | paths, stdout=subprocess.DEVNULL, check=False)
        for path in Path(folder).glob("*.json"):
            for kept in json.loads(path.read_text()).values():
                for result in kept["results"]:
                    if result.get("subject") is not None:
                        yield (result["name"], result.get("unit", "")), result["subject"]["median"]


def run_cpu(checkout: Path) -> Iterator[tuple[tuple[str, str], float]]:
    """The program is that of this checkout, the sources are those of the given one."""
    command = [sys.executable, "-m", "bench.statement_cpu"]
    paths = {"PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(command, cwd=HERE, env=os.environ | paths, stdout=subprocess.PIPE, text=True, check=True)
    for line in done.stdout.splitlines():
        name, value = line.split()
        yield (name, "us"), float(value)


def compare(checkouts: Sequence[Path], runs: Sequence[Run], rounds: int) -> tuple[Readings, Readings]:
    readings: tuple[Readings, Readings] = ({}, {})
    for number in range(rounds):
        # Each goes first in every other round.
        order = (0, 1) if number % 2 == 0 else (1, 0)
        for run in runs:
            for place in order:
                for name, value in run(checkouts[place]):
                    readings[place].setdefault(name, []).append(value)
    return readings


def print_ratios(ours: Readings, theirs: Readings) -> None:
    print(f"{'reading':32} {'this':>12} {'other':>12} {'ratio':>7}")
    for (name, unit), values in sorted(ours.items()):
        others = theirs.get((name, unit))
        if not others:
            continue
        best = max if unit in _RATES else min
        this, other = best(values), best(others)
        ratio = this / other if other else float("nan")
        worse = ratio < 1 if unit in _RATES else ratio > 1
        print(f"{name:32} {this:12,.3f} {other:12,.3f} {ratio:7.2f} {unit:6} {'slower' if worse else ''}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.side_by_side", description="Compares two checkouts.")
    parser.add_argument("other", type=Path)
    parser.add_argument("--only", default="statements,points,server,commits", metavar="NAME[,NAME]")
    parser.add_argument("--scale", default="small")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="only the CPU time of single statements")
    options = parser.parse_args()
    measures = [partial(run_once, measure=name, scale=options.scale) for name in options.only.split(",")]
    runs: Sequence[Run] = [run_cpu] if options.cpu else measures
    print_ratios(*compare((HERE, options.other.resolve()), runs, options.rounds))


if __name__ == "__main__":
    main()
