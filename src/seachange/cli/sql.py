"""Run SQL in one embedded session, without a server. Stops at the first error, with its SQLSTATE on standard error and
the exit code 1.

Each -c is one transaction unless it contains BEGIN; each statement of a file, or of standard input, is its own
transaction. Without -c and -f, a terminal gets a prompt with history, completion and psql's commands (\\? lists them);
Ctrl-C cancels a statement.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from seachange.cli.database import add_database_options, open_database, report_error, warn_of_open_folder
from seachange.cli.formats import FORMATS
from seachange.engine.session.session import Session
from seachange.errors import Error
from seachange.runtime.ctrl_c import CtrlCHeld, calling_at_ctrl_c
from seachange.sql.text.tokens import split_script

EXAMPLES = """examples:
  seachange sql --data shop -c "create table t (id bigint primary key, name text)"
  seachange sql --data shop -c "insert into t values (1, 'a')" -c "select * from t" --format json
  seachange sql --data shop -f schema.sql
  echo "select count(*) from t" | seachange sql --data shop --format csv
  seachange sql --data shop --catalog postgresql://user@host/catalog
"""
_SHELL = "seachange.cli.shell"


class _Append(argparse.Action):
    """Keeps -c and -f in the order in which they were given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        namespace.inputs = [*(namespace.inputs or []), (self.dest, values)]


def configure(parser: argparse.ArgumentParser) -> None:
    add_database_options(parser)
    parser.add_argument("-c", dest="command", action=_Append, metavar="SQL", help="run this text; may be repeated")
    parser.add_argument("-f", dest="file", action=_Append, metavar="FILE", help="run this file (- is standard input)")
    parser.add_argument("--format", choices=list(FORMATS), default="table", help="the output format")
    parser.add_argument("--user", default="seachange", help="the role (default: seachange)")
    parser.add_argument("--database", default="seachange", help="the database (default: seachange)")
    parser.set_defaults(inputs=None)


def run(arguments: argparse.Namespace) -> int:
    try:
        with open_database(arguments) as node:
            warn_of_open_folder(node.parts.data)
            session = Session(node, arguments.user, arguments.database)
            runner = TextRunner(session, arguments.format)
            try:
                session.check_login()
                if arguments.inputs is None and sys.stdin.isatty():
                    # The packages of the prompt are loaded only for it.
                    return int(import_module(_SHELL).Shell(session, arguments.format).run())
                with calling_at_ctrl_c(session.interrupt):
                    return runner.run(arguments.inputs)
            except Error as error:
                report_error(error, runner.place(error))
                return 1
            finally:
                session.close()
    except Error as error:
        report_error(error)
        return 1
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"seachange sql: {error}", file=sys.stderr)
        return 1


class TextRunner:
    """Runs texts on a session and prints their results."""

    def __init__(self, session: Session, format_name: str) -> None:
        self._session = session
        self._print = FORMATS[format_name]
        # The file that is being run, and the line where its statement begins.
        self._file: tuple[str, int] | None = None

    def run(self, inputs: list[tuple[str, str]] | None) -> int:
        for kind, value in inputs or [("file", "-")]:
            if kind == "command":
                self._file = None
                self.run_text(value)
            elif value == "-":
                self.run_script("standard input", sys.stdin.read())
            else:
                self.run_script(value, Path(value).read_text(encoding="utf-8"))
        return 0

    def run_script(self, name: str, script: str) -> None:
        self._file = name, 1
        for statement in split_script(script):
            self._file = name, statement.tokens[0].line
            self.run_text(statement.text)

    def place(self, error: Error) -> str | None:
        """The file and line of an error; None if the text was not in a file."""
        if self._file is None:
            return None
        name, line = self._file
        if error.statement is not None and error.position is not None:
            line += error.statement.count("\n", 0, error.position - 1)
        return f"{name}:{line}"

    def run_text(self, text: str) -> None:
        try:
            with CtrlCHeld(self._session.interrupt):
                results = self._session.execute_all(text)
            for result in results:
                self._print(result, sys.stdout)
        finally:
            sys.stdout.flush()
            for notice in self._session.notices:
                print(f"NOTICE:  {notice}", file=sys.stderr)
            self._session.notices.clear()
