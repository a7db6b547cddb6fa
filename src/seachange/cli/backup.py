"""Back up a database while it is in use: its catalog as of one sequence, and the files that it refers to, to a new
folder. Nothing is locked; no garbage is collected during the backup."""

from __future__ import annotations

import argparse
from pathlib import Path

from seachange.cli.database import add_database_options, location_of, report_error
from seachange.engine.database.backup import back_up
from seachange.errors import Error

EXAMPLES = """examples:
  seachange backup --data shop --to /backups/shop-monday
  seachange backup --data shop --catalog postgresql://localhost/shop --to /backups/shop-monday
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_database_options(parser, creates=False)
    parser.add_argument("--to", required=True, type=Path, metavar="FOLDER", help="a new or empty folder")


def run(arguments: argparse.Namespace) -> int:
    try:
        manifest = back_up(location_of(arguments), arguments.catalog, arguments.to.absolute())
    except Error as error:
        report_error(error)
        return 1
    print(f"sequence {manifest.head}, {len(manifest.files)} files, {manifest.bytes} bytes")
    return 0
