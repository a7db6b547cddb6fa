"""Compares two checkouts: `python -m bench.side_by_side OTHER --only statements,points --rounds 3`.

Runs of the two alternate, measure by measure, so that a busy machine slows both alike. Each uses its own benchmark and
its own sources. Printed is the ratio of the medians, this checkout to the other one: above 1 is an improvement for
rates, below 1 for times.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parents[1]
# Units of rates; all others are times or sizes, of which less is better.
_RATES = ("/s", "rows/s")

Readings = dict[tuple[str, str], list[float]]


def run_once(checkout: Path, measure: str, scale: str, python: Path) -> Iterator[tuple[tuple[str, str], float]]:
    """The medians of one run, by name and unit."""
    paths = {"PYTHONPATH": f"{checkout / 'src'}:{checkout}"}
    with tempfile.TemporaryDirectory() as folder:
        command = [str(python), "-m", "bench", "--only", measure, "--scale", scale, "--to", folder]
        subprocess.run(command, cwd=checkout, env=os.environ | paths, stdout=subprocess.DEVNULL, check=False)
        for path in Path(folder).glob("*.json"):
            for kept in json.loads(path.read_text()).values():
                for result in kept["results"]:
                    if result.get("subject") is not None:
                        yield (result["name"], result.get("unit", "")), result["subject"]["median"]


def compare(checkouts: Sequence[Path], measures: Sequence[str], scale: str, rounds: int) -> tuple[Readings, Readings]:
    readings: tuple[Readings, Readings] = ({}, {})
    for number in range(rounds):
        # Each goes first in every other round.
        order = (0, 1) if number % 2 == 0 else (1, 0)
        for measure in measures:
            for place in order:
                for name, value in run_once(checkouts[place], measure, scale, Path(sys.executable)):
                    readings[place].setdefault(name, []).append(value)
    return readings


def print_ratios(ours: Readings, theirs: Readings) -> None:
    print(f"{'reading':32} {'this':>12} {'other':>12} {'ratio':>7}")
    for (name, unit), values in sorted(ours.items()):
        others = theirs.get((name, unit))
        if not others:
            continue
        this, other = median(values), median(others)
        ratio = this / other if other else float("nan")
        worse = ratio < 1 if unit in _RATES else ratio > 1
        print(f"{name:32} {this:12,.3f} {other:12,.3f} {ratio:7.2f} {unit:6} {'slower' if worse else ''}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.side_by_side", description="Compares two checkouts.")
    parser.add_argument("other", type=Path)
    parser.add_argument("--only", default="statements,points,server,commits", metavar="NAME[,NAME]")
    parser.add_argument("--scale", default="small")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print_ratios(*compare((HERE, options.other.resolve()), options.only.split(","), options.scale, options.rounds))


if __name__ == "__main__":
    main()
