"""Check that the data of a database is consistent with its schema: every index against its rows, by two methods, and
every file. Prints each anomaly; the exit code is 0 only if there is none."""

from __future__ import annotations

import argparse

from seachange.cli.database import add_database_options, open_database, report_error
from seachange.errors import Error
from seachange.verify.consistency import check

EXAMPLES = """examples:
  seachange check --data shop
  seachange check --data shop orders customers
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_database_options(parser)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="name or schema.name; all tables if none is given")


def run(arguments: argparse.Namespace) -> int:
    try:
        with open_database(arguments) as node:
            anomalies = check(node, arguments.tables)
    except Error as error:
        report_error(error)
        return 1
    for anomaly in anomalies:
        print(anomaly)
    print(f"{len(anomalies)} anomalies" if anomalies else "consistent")
    return 1 if anomalies else 0
