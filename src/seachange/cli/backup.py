"""Back up a database while it is in use: its catalog as of one sequence, and the files that it refers to, to a new
folder. Nothing is locked; no garbage is collected during the backup.

With --incremental the folder keeps a series of backups, and only files that it does not have yet are copied."""

from __future__ import annotations

import argparse
from pathlib import Path

from seachange.cli.database import add_database_options, location_of, report_error
from seachange.engine.database.backup import back_up
from seachange.engine.database.backup_series import add_backup
from seachange.errors import Error

EXAMPLES = """examples:
  seachange backup --data shop --to /backups/shop-monday
  seachange backup --data shop --to /backups/shop --incremental --keep 30
  seachange backup --data shop --catalog postgresql://localhost/shop --to /backups/shop-monday
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_database_options(parser, creates=False)
    parser.add_argument(
        "--to", required=True, type=Path, metavar="FOLDER", help="a new or empty folder, or that of the series"
    )
    parser.add_argument("--incremental", action="store_true", help="add to the series of backups in the folder")
    parser.add_argument(
        "--keep",
        type=_positive,
        metavar="N",
        help="of a series: delete all backups but the newest N",
    )


def run(arguments: argparse.Namespace) -> int:
    target = arguments.to.absolute()
    if arguments.keep is not None and not arguments.incremental:
        print("seachange backup: --keep is for a series, --incremental")
        return 2
    try:
        if arguments.incremental:
            added = add_backup(location_of(arguments), arguments.catalog, target, arguments.keep)
            print(f"backup {added.name}: {added.new_files} new files, {added.new_bytes} bytes")
            manifest = added.manifest
        else:
            manifest = back_up(location_of(arguments), arguments.catalog, target)
    except Error as error:
        report_error(error)
        return 1
    print(f"sequence {manifest.head}, {len(manifest.files)} files, {manifest.bytes} bytes")
    return 0


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return int(text)
