"""The interactive prompt: reads statements up to their semicolon, and continues after an error."""

from __future__ import annotations

import sys
from collections.abc import Callable

from seachange.cli.database import report_error
from seachange.errors import Error, SyntaxProblem
from seachange.sql.text.tokens import is_complete

_HELP = "Statements end with a semicolon. \\q quits, \\? shows this help."


def converse(run_text: Callable[[str], None]) -> int:
    print(_HELP)
    lines: list[str] = []
    while True:
        try:
            line = input("seachange-> " if lines else "seachange=> ")
        except EOFError:
            print()
            return 0
        except KeyboardInterrupt:
            print()
            lines.clear()
            continue
        if not lines and line.strip() in ("\\q", "exit", "quit"):
            return 0
        if not lines and line.strip() == "\\?":
            print(_HELP)
            continue
        lines.append(line)
        text = "\n".join(lines)
        if not text.strip():
            lines.clear()
        elif _ends(text):
            lines.clear()
            _run(run_text, text)


def _ends(text: str) -> bool:
    try:
        return is_complete(text)
    except SyntaxProblem:
        # An open quote or comment: wait for the rest, until a line ends it.
        return False


def _run(run_text: Callable[[str], None], text: str) -> None:
    try:
        run_text(text)
    except Error as error:
        report_error(error)
    except KeyboardInterrupt:
        print("canceled", file=sys.stderr)
    sys.stdout.flush()
