"""Check that the data of a database is consistent with its schema: every index against its rows and
every constraint, by two methods, and every file. Prints each anomaly; the exit code is 0 only if there is none."""

from __future__ import annotations

import argparse
import sys

from seachange.cli.database import add_database_options, open_database, report_error
from seachange.engine.opening import check_database_exists
from seachange.errors import Error
from seachange.verify.consistency import inspect

EXAMPLES = """examples:
  seachange check --data shop
  seachange check --data shop orders customers
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_database_options(parser, creates=False)
    parser.add_argument(
        "tables",
        nargs="*",
        metavar="TABLE",
        help="[[database.]schema.]name; all of all databases if none is given",
    )


def run(arguments: argparse.Namespace) -> int:
    try:
        # A name that was mistyped is no database without anomalies.
        check_database_exists(arguments.data)
        with open_database(arguments, creates=False) as node:
            report = inspect(node, arguments.tables)
    except Error as error:
        report_error(error)
        return 1
    for anomaly in report.anomalies:
        print(anomaly)
    for coverage in report.coverage:
        if not coverage.is_whole:
            # A remark: whoever reads the output wants to know what is wrong.
            print(coverage, file=sys.stderr)
    print(f"{len(report.anomalies)} anomalies" if report.anomalies else "consistent")
    return 1 if report.anomalies else 0
