"""Create a new database from a backup. The data folder must be empty; with a PostgreSQL catalog, its database too."""

from __future__ import annotations

import argparse
from pathlib import Path

from seachange.cli.database import add_database_options, location_of, report_error
from seachange.engine.database.backup import restore
from seachange.errors import Error

EXAMPLES = """examples:
  seachange restore --from /backups/shop-monday --data shop
  seachange check --data shop
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", required=True, type=Path, metavar="FOLDER", dest="source", help="the backup")
    add_database_options(parser)


def run(arguments: argparse.Namespace) -> int:
    try:
        made = restore(arguments.source.absolute(), location_of(arguments), arguments.catalog)
    except Error as error:
        report_error(error)
        return 1
    print(f"restored as of sequence {made.head}: {len(made.files)} files, {made.bytes} bytes")
    return 0
