"""Runs the soak: processes on one database under load, schema changes and faults, and a checker of its own.

examples:
  python -m soak --minutes 20 --seed 7
  python -m soak --seconds 30 --catalog postgresql --faults kill,postgres
  python -m soak --seconds 60 --plant frozen-snapshot
  python -m soak --minutes 5 --s3
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys

from soak.faults import FAULTS, STORE
from soak.plants import PLANTS
from soak.run import Options, run_soak

NICE = 19


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m soak", formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__
    )
    parser.add_argument("--minutes", type=float, default=0.0, help="how long, for each catalog")
    parser.add_argument("--seconds", type=float, default=0.0, help="in addition to --minutes (default: 60 in all)")
    parser.add_argument("--seed", type=int, help="default: a random one, which is printed")
    parser.add_argument("--catalog", choices=("sqlite", "postgresql", "both"), default="both")
    parser.add_argument(
        "--s3", action="store_true", help="the data in an object store, each process with a local folder of its own"
    )
    parser.add_argument("--processes", type=_positive, default=2, metavar="N", help="servers (default: 2)")
    parser.add_argument("--writers", type=_positive, default=4, metavar="N", help="clients over the wire (default: 4)")
    parser.add_argument(
        "--faults", type=_faults, default=FAULTS, metavar="LIST", help=f"of {','.join(FAULTS)}, or none"
    )
    parser.add_argument("--plant", choices=sorted(PLANTS), help="a defect that the run must find")
    parser.add_argument("--expect", default="", metavar="LIST", help="anomalies that are known, and no failure")
    parser.add_argument("--keep-going", action="store_true", help="do not end with the first violation")
    parser.add_argument("--keep", action="store_true", help="leave the folder of the run, with histories and logs")
    parser.add_argument(
        "--nice", type=int, default=NICE, metavar="N", help=f"the priority of all processes (default: {NICE})"
    )
    arguments = parser.parse_args()
    # So that the processes of the run end with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    os.nice(max(0, arguments.nice - os.nice(0)))
    seed = random.randrange(1 << 30) if arguments.seed is None else arguments.seed
    catalogs = ("sqlite", "postgresql") if arguments.catalog == "both" else (arguments.catalog,)
    failed = False
    for catalog in catalogs:
        report = run_soak(_options(arguments, seed, catalog))
        print("\n".join(report.lines()), flush=True)
        failed |= bool(report.unexpected)
    return 1 if failed else 0


def _options(arguments: argparse.Namespace, seed: int, catalog: str) -> Options:
    return Options(
        seconds=arguments.minutes * 60 + arguments.seconds or 60.0,
        seed=seed,
        catalog=catalog,
        processes=arguments.processes,
        writers=arguments.writers,
        faults=tuple(fault for fault in arguments.faults if arguments.s3 or fault != STORE),
        in_store=arguments.s3,
        plant=arguments.plant,
        expected=frozenset(filter(None, arguments.expect.split(","))),
        keep_going=arguments.keep_going,
        keep=arguments.keep,
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return int(text)


def _faults(text: str) -> tuple[str, ...]:
    chosen = () if text == "none" else tuple(text.split(","))
    if not set(chosen) <= set(FAULTS):
        raise argparse.ArgumentTypeError(f"faults are {', '.join(FAULTS)}, or none")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
