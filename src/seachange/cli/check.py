"""Check that the data of a database is consistent with its schema: every file, every index against its rows and every
constraint, by two methods. All rows are compared as sets; key by key a sample of each large index is, with --full all
rows. Prints each anomaly, and how much of an index was compared key by key; the exit code is 0 only if there is no
anomaly.

Without TABLE, files that no commit, live writer or job refers to are anomalies too, save those that garbage collection
is going to delete, which are listed."""

from __future__ import annotations

import argparse

from seachange.cli.database import add_database_options, open_database, report_error
from seachange.engine.database.opening import check_database_exists
from seachange.errors import Error
from seachange.verify.consistency import KEYWISE_ROWS_MAX, RANGE_ROWS_MAX, inspect

EXAMPLES = """examples:
  seachange check --data shop
  seachange check --data shop orders customers
  seachange check --data shop --full
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_database_options(parser, creates=False)
    parser.add_argument(
        "--full",
        action="store_true",
        help="compare all rows key by key too; about a tenth of a millisecond for each row and index",
    )
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
            rows_max = RANGE_ROWS_MAX if arguments.full else KEYWISE_ROWS_MAX
            report = inspect(node, arguments.tables, rows_max, arguments.full)
    except Error as error:
        report_error(error)
        return 1
    for anomaly in report.anomalies:
        print(anomaly)
    for coverage in report.coverage:
        if not coverage.is_whole or arguments.full:
            print(coverage)
    for remark in report.remarks:
        print(remark)
    print(f"{len(report.anomalies)} anomalies" if report.anomalies else "consistent")
    return 1 if report.anomalies else 0
