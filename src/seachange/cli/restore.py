"""Create a new database from a backup. The data folder must be empty; with a PostgreSQL catalog, its database too.
Of a series of backups, the newest one is restored, or with --as-of the newest one that is not later."""

from __future__ import annotations

import argparse
from pathlib import Path

from seachange.cli.database import add_database_options, location_of, report_error
from seachange.engine.database.backup import restore
from seachange.engine.database.backup_series import find_backup
from seachange.errors import Error

EXAMPLES = """examples:
  seachange restore --from /backups/shop-monday --data shop
  seachange restore --from /backups/shop --as-of "2026-11-18 03:00" --data shop
  seachange check --data shop
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", required=True, type=Path, metavar="FOLDER", dest="source", help="the backup")
    parser.add_argument(
        "--as-of",
        metavar="WHEN",
        help="of a series: a point in time (UTC, if it has no zone), or a sequence number",
    )
    add_database_options(parser)


def run(arguments: argparse.Namespace) -> int:
    try:
        backup = find_backup(arguments.source.absolute(), arguments.as_of)
        made = restore(backup.folder, location_of(arguments), arguments.catalog, backup.segments)
    except Error as error:
        report_error(error)
        return 1
    print(f"restored as of sequence {made.head}: {len(made.files)} files, {made.bytes} bytes")
    return 0
