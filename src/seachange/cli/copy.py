"""Move a database to another folder or object store while it is in use. Its files are copied; then one step makes the
new place that of the database, and nodes that use the old one must be started again with the new one: their statements
fail (55000). The catalog and the old files stay where they are. A copy that was interrupted is resumed by the same
command."""

from __future__ import annotations

import argparse

from seachange.cli.database import add_database_options, location_of, report_error
from seachange.engine.database.copying import move_database
from seachange.errors import Error
from seachange.runtime.location import find_location

EXAMPLES = """examples:
  seachange copy --data shop --catalog postgresql://localhost/shop --to s3://bucket/shop
  seachange copy --data s3://bucket/shop --catalog postgresql://localhost/shop --to shop
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_database_options(parser, creates=False)
    parser.add_argument("--to", required=True, metavar="DIR", help="the new data folder, or s3://BUCKET/PREFIX")
    parser.add_argument("--to-local", metavar="DIR", help="the local folder of the new place, if it is an object store")


def run(arguments: argparse.Namespace) -> int:
    try:
        target = find_location(arguments.to, arguments.to_local)
        moved = move_database(location_of(arguments), arguments.catalog, target)
    except Error as error:
        report_error(error)
        return 1
    print(f"moved to {target}: {moved.files} files, {moved.bytes} bytes")
    return 0
