"""Judge migrations before they are run: the strategy, cost and waits of each statement, what it loses, and what is
refused. Without --against they are planned and run on an empty temporary database; with it, a running server is asked
what they would take on its rows, and changes nothing.

The exit code is 0 if nothing is refused and nothing is done that --forbid names, else 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from seachange.cli.database import report_error
from seachange.errors import Error
from seachange.review.finding import Forbidden, StatementFinding, read_forbidden
from seachange.review.forms import as_github, as_json, as_sarif, as_text, is_bad
from seachange.review.judge import judge_on_scratch, judge_on_server
from seachange.review.served import connected

_FORMS = {"text": as_text, "json": as_json, "sarif": as_sarif, "github": as_github}
EXAMPLES = """examples:
  seachange plan migrations
  seachange plan migrations/0042_orders.sql --against postgresql://reader@db.example/shop --forbid rebuild,irreversible
  seachange plan migrations/V7__orders.sql --history migrations --format github
  seachange plan migrations --format sarif > plan.sarif
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="SQL files, or folders of migrations in the layout of Prisma, Diesel, golang-migrate, Flyway and others",
    )
    parser.add_argument(
        "--against", metavar="URL", help="a running server: postgresql://user:password@host:port/database"
    )
    parser.add_argument(
        "--history",
        type=Path,
        metavar="DIR",
        help="the folder of migrations that the files belong to: the others are run first, and not reported",
    )
    parser.add_argument("--format", choices=list(_FORMS), default="text", help="the output format (default: text)")
    parser.add_argument(
        "--forbid",
        default="",
        metavar="LIST",
        help=f"exit with 1 if a statement does one of these: {', '.join(Forbidden)}",
    )


def run(arguments: argparse.Namespace) -> int:
    try:
        forbidden = read_forbidden(arguments.forbid)
    except Error as error:
        report_error(error)
        return 2
    try:
        findings = _judge(arguments.files, arguments.against, arguments.history)
    except Error as error:
        report_error(error)
        return 1
    sys.stdout.write(_FORMS[arguments.format](findings, forbidden))
    return 1 if any(is_bad(finding, forbidden) for finding in findings) else 0


def _judge(files: list[Path], against: str | None, history: Path | None) -> list[StatementFinding]:
    if against is not None:
        with connected(against) as database:
            return judge_on_server(files, database)
    if history is None:
        return judge_on_scratch(files)
    asked = [file.resolve() for file in files]
    return [found for found in judge_on_scratch([history]) if Path(found.file).resolve() in asked]
