"""Check that the data of a database is consistent with its schema: every file, every index against its rows, and every
constraint, by two methods. All rows are compared as sets; in addition a sample of each large index is compared key by
key, or all rows with --full. Prints each anomaly, and how much of an index was compared key by key; the exit code is 0
only if there is no anomaly.

Without TABLE, files that no commit, live writer or job refers to are anomalies too, except those that garbage
collection will delete, which are listed.

The exit code is 1 if there are anomalies, or if there is no such database or table. It is 3 if the check could not be
finished, because the catalog, the files or the disk could not be used: that says nothing about the data.
"""

from __future__ import annotations

import argparse

from seachange.cli.database import add_database_options, location_of, open_database, report_error
from seachange.engine.database.opening import check_database_exists
from seachange.errors import CatalogUnavailable, DiskFull, Error, InputOutputError, StoreProblem
from seachange.verify.consistency import KEYWISE_ROWS_MAX, RANGE_ROWS_MAX, inspect

EXAMPLES = """examples:
  seachange check --data shop
  seachange check --data shop orders customers
  seachange check --data shop --full
"""

_UNFINISHED = 3
# Errors that say nothing about the data.
_OF_SURROUNDINGS = (StoreProblem, CatalogUnavailable, InputOutputError, DiskFull)


def configure(parser: argparse.ArgumentParser) -> None:
    add_database_options(parser, creates=False)
    parser.add_argument(
        "--full",
        action="store_true",
        help="compare all rows key by key; takes about 0.1 ms per row and index",
    )
    parser.add_argument(
        "tables",
        nargs="*",
        metavar="TABLE",
        help="[[database.]schema.]name; default: all tables of all databases",
    )


def run(arguments: argparse.Namespace) -> int:
    try:
        # A mistyped name must not be reported as a consistent database.
        check_database_exists(location_of(arguments))
        with open_database(arguments, creates=False) as node:
            rows_max = RANGE_ROWS_MAX if arguments.full else KEYWISE_ROWS_MAX
            report = inspect(node, arguments.tables, rows_max, arguments.full)
    except Error as error:
        report_error(error)
        return _UNFINISHED if isinstance(error, _OF_SURROUNDINGS) else 1
    for anomaly in report.anomalies:
        print(anomaly)
    for coverage in report.coverage:
        if not coverage.is_whole or arguments.full:
            print(coverage)
    for remark in report.remarks:
        print(remark)
    print(f"{len(report.anomalies)} anomalies" if report.anomalies else "consistent")
    return 1 if report.anomalies else 0
