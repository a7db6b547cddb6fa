"""`seachange COMMAND ...`: finds the command and runs it.

A command is a module with `configure(parser)` and `run(arguments)`; it is imported only when it is run.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

import seachange

# The module of each command, and its summary.
COMMANDS: dict[str, tuple[str, str]] = {
    "sql": ("seachange.cli.sql", "run SQL in an embedded session"),
    "serve": ("seachange.cli.serve", "serve a database over PostgreSQL's protocol"),
    "worker": ("seachange.cli.worker", "run the jobs of a database"),
    "feed": ("seachange.cli.feed", "write the changes of tables as JSON"),
    "check": ("seachange.cli.check", "check that data and schema are consistent"),
    "backup": ("seachange.cli.backup", "back up a database while it is in use"),
    "restore": ("seachange.cli.restore", "create a database from a backup"),
    "copy": ("seachange.cli.copy", "move a database to another folder or object store"),
    "plan": ("seachange.cli.plan", "judge migrations before they are run"),
    "replay": ("seachange.cli.replay", "replay a history of migrations under concurrent writes"),
    "verify": ("seachange.cli.verify", "check the protocol of schema changes itself"),
}

# The exit codes of a program that ended by SIGINT or SIGPIPE.
_INTERRUPTED = 130
_BROKEN_PIPE = 141

_DESCRIPTION = "Seachange: a lakehouse SQL engine with online schema changes."


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = arguments[0] if arguments else None
    if command not in COMMANDS:
        # Prints the help or the error, and exits.
        _overview().parse_args(arguments or ["--help"])
        return 2
    module = _load(COMMANDS[command][0])
    options = parser_of(command, module).parse_args(arguments[1:])
    try:
        return int(module.run(options))
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output is gone; nothing may be written to it at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE


def _load(name: str) -> ModuleType:
    """Nothing of what is imported is garbage: to look for it would take a seventh of the time."""
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.enable()


def parser_of(command: str, module: ModuleType) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"seachange {command}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=module.__doc__,
        epilog=module.EXAMPLES,
    )
    module.configure(parser)
    return parser


def _overview() -> argparse.ArgumentParser:
    listing = "\n".join(f"  {name:<8} {purpose}" for name, (_, purpose) in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="seachange",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=_DESCRIPTION,
        epilog=f"commands:\n{listing}\n\nseachange COMMAND --help shows its options.",
    )
    parser.add_argument("--version", action="version", version=f"seachange {seachange.__version__}")
    parser.add_argument("command", choices=list(COMMANDS), metavar="COMMAND", help="what to do")
    return parser


if __name__ == "__main__":
    sys.exit(main())
