"""Replay a history of migrations, statement by statement, while writers generated from the live schema insert, update
and delete rows; then check the database, and compare its schema with a dump.

Prints each statement with its duration and strategy, and the refused ones. The exit code is 0 only if no foreground
transaction failed, the database is consistent and the schema is the expected one.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from seachange.cli.database import report_error
from seachange.errors import Error
from seachange.replay.history import read_history
from seachange.replay.perform import PieceOutcome
from seachange.replay.report import outcome_lines, summary_lines, to_json
from seachange.replay.run import Replay, ReplayOptions, replay

EXAMPLES = """examples:
  seachange replay examples/shop --writers 4
  seachange replay prisma/migrations --expected schema.sql --strict
  seachange replay db/structure.sql --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder",
        type=Path,
        metavar="FOLDER",
        help="migrations in the layout of Prisma, Diesel, golang-migrate, Flyway, goose, dbmate and others; "
        "or one SQL file",
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="the data folder, without tables (default: a temporary one)"
    )
    parser.add_argument("--catalog", metavar="URL", help="sqlite:///PATH (default: inside DIR) or postgresql://...")
    parser.add_argument("--writers", type=int, default=2, metavar="N", help="number of writer processes (default: 2)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the writers (default: 1)")
    parser.add_argument(
        "--pace", type=int, default=20, metavar="MS", help="interval between the transactions of a writer (default: 20)"
    )
    parser.add_argument("--pause", type=int, default=20, metavar="MS", help="pause before each statement (default: 20)")
    parser.add_argument(
        "--autocommit", action="store_true", help="run the statements of a migration without a transaction around them"
    )
    parser.add_argument("--expected", type=Path, metavar="DUMP", help="SQL that creates the expected final schema")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a statement is refused")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")


def run(arguments: argparse.Namespace) -> int:
    try:
        if arguments.data is not None:
            return _run(arguments, arguments.data)
        with TemporaryDirectory(prefix="seachange-replay-") as folder:
            return _run(arguments, Path(folder))
    except Error as error:
        report_error(error)
        return 1


def _run(arguments: argparse.Namespace, data: Path) -> int:
    options = ReplayOptions(
        data=data,
        catalog=arguments.catalog,
        writers=arguments.writers,
        seed=arguments.seed,
        pace_ms=arguments.pace,
        pause_ms=arguments.pause,
        expected=arguments.expected,
        autocommit=arguments.autocommit,
    )
    result = replay(read_history(arguments.folder), options, _nothing if arguments.json else _print)
    is_good = result.is_good(arguments.strict)
    _print_result(result, is_good, arguments.json)
    return 0 if is_good else 1


def _print(outcome: PieceOutcome) -> None:
    for line in outcome_lines(outcome):
        print(line, flush=True)


def _nothing(outcome: PieceOutcome) -> None:
    """Everything is printed at the end."""


def _print_result(result: Replay, is_good: bool, as_json: bool) -> None:
    if as_json:
        json.dump(to_json(result, is_good), sys.stdout, indent=2)
        print()
        return
    for line in summary_lines(result):
        print(line)
